/* SPDX-License-Identifier: MIT */
/* The functions that the shim wraps. */
#ifndef FLOWFD_PRELOAD_NEXT_H
#define FLOWFD_PRELOAD_NEXT_H

/*
 * For all functions that a syscall(2) passes through: SYS_arch_prctl can move the
 * thread pointer, and with it the value that the stack protector compares.
 */
#define NO_STACK_PROTECTOR __attribute__((no_stack_protector))

/** next_eventfd - eventfd(2) as the program has it without the shim */
int next_eventfd(unsigned int initial, int flags);

/** next_ioctl - ioctl(2) as the program has it without the shim */
int next_ioctl(int fd, unsigned long request, long argument);

/*
 * On a 32-bit machine, programs with 64 bits of time_t call ioctl(2) by a name of
 * its own.
 */
#if __SIZEOF_LONG__ == 4
#define HAS_IOCTL_TIME64
/** next_ioctl_time64 - the same by that name */
int next_ioctl_time64(int fd, unsigned long request, long argument);
#endif

/**
 * next_syscall - syscall(2) as the program has it without the shim
 * @number: of the system call
 * @arguments: all six; those that the call does not have are not looked at
 *
 * The shim makes its own system calls with it, too: unlike open(2) and close(2),
 * and like eventfd(2), it is not a cancellation point.
 */
long next_syscall(long number, const long arguments[6]);

/** next_call - next_syscall() with four arguments; returns -errno for an error */
long next_call(long number, long first, long second, long third, long fourth);

#endif /* FLOWFD_PRELOAD_NEXT_H */
