/* SPDX-License-Identifier: MIT */
/*
 * Calls after which the number of a descriptor may be another file's: the descriptor is
 * forgotten before the call.
 */
#ifndef FLOWFD_PRELOAD_GOING_H
#define FLOWFD_PRELOAD_GOING_H

#include <stdbool.h>

/** going_dup - before dup2(@old, @number) and dup3(@old, @number) */
void going_dup(int old, int number);

/** going_range - before close_range(@first, @last, @flags) */
void going_range(unsigned int first, unsigned int last, unsigned int flags);

/** going_unshare - before unshare(@flags) */
void going_unshare(unsigned long flags);

/** going_is - whether syscall(@number) is one of these calls, or close(2) */
bool going_is(long number);

/** going_syscall - before syscall(@number) of one of them */
void going_syscall(long number, const long arguments[6]);

#endif /* FLOWFD_PRELOAD_GOING_H */
