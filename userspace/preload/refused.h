/* SPDX-License-Identifier: MIT */
/* Calls that the kernel refuses because of a counter, made again without it. */
#ifndef FLOWFD_PRELOAD_REFUSED_H
#define FLOWFD_PRELOAD_REFUSED_H

#include <stdbool.h>

/** refused_is - can syscall(@number) be one of them? */
bool refused_is(long number);

/** refused_syscall - next_syscall() for one of them */
long refused_syscall(long number, const long arguments[6]);

#endif /* FLOWFD_PRELOAD_REFUSED_H */
