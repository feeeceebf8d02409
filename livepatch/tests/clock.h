/* SPDX-License-Identifier: GPL-2.0-only */
/* Milliseconds of a clock, for the tests and the benchmarks. */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

static inline double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

#endif /* CLOCK_H */
