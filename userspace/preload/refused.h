/* SPDX-License-Identifier: MIT */
/* Repeats calls that the kernel refused because of a counter, without the counter. */
#ifndef FLOWFD_PRELOAD_REFUSED_H
#define FLOWFD_PRELOAD_REFUSED_H

#include <stdbool.h>

/** refused_is - whether syscall(@number) can be one of these calls */
bool refused_is(long number);

/** refused_syscall - next_syscall() for one of these calls */
long refused_syscall(long number, const long arguments[6]);

#endif /* FLOWFD_PRELOAD_REFUSED_H */
