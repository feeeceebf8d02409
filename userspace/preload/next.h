/* SPDX-License-Identifier: MIT */
/* The functions that the shim stands in front of. */
#ifndef FLOWFD_PRELOAD_NEXT_H
#define FLOWFD_PRELOAD_NEXT_H

/** next_eventfd - eventfd(2) as the program has it without the shim */
int next_eventfd(unsigned int initial, int flags);

/**
 * next_syscall - syscall(2) as the program has it without the shim
 *
 * The shim makes its own system calls with it too: unlike open(2) and close(2)
 * it is no cancellation point, just as eventfd(2) is none.
 */
long next_syscall(long number, const long arguments[6]);

#endif /* FLOWFD_PRELOAD_NEXT_H */
