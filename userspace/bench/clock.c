// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clocks of the benchmarks: time, and the CPU time of a thread.
 */
#include <err.h>
#include <errno.h>
#include <time.h>

#include "bench.h"

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	if (clock_gettime(id, &now))
		err(EXIT_FAILURE, "clock_gettime");
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread, in milliseconds. */
double clock_thread_ms(void)
{
	return (double)read_clock(CLOCK_THREAD_CPUTIME_ID) / 1e6;
}

/* CPU time of a thread that was not joined yet, in milliseconds. */
double clock_other_thread_ms(pthread_t thread)
{
	clockid_t id;

	errno = pthread_getcpuclockid(thread, &id);
	if (errno)
		err(EXIT_FAILURE, "pthread_getcpuclockid");
	return (double)read_clock(id) / 1e6;
}

void clock_sleep_until(uint64_t when)
{
	struct timespec until = {
		.tv_sec = (time_t)(when / 1000000000),
		.tv_nsec = (long)(when % 1000000000),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
