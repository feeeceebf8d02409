/* SPDX-License-Identifier: MIT */
/* /dev/flowfd as the library's own files use it. */
#ifndef FLOWFD_LIB_DEVICE_H
#define FLOWFD_LIB_DEVICE_H

#include <stddef.h>

/* Objects are compiled with hidden visibility; what the header has is public.
 */
#pragma GCC visibility push(default)
#include <flowfd.h>
#pragma GCC visibility pop

/*
 * Two underscores: the static library's own names must not meet a program's.
 */

/**
 * flowfd__open - open /dev/flowfd
 * @flags: O_CLOEXEC and O_NONBLOCK, or 0
 *
 * Returns the lowest free descriptor, or -errno in the terms of
 * flowfd_counter_create().
 */
int flowfd__open(int flags);

/**
 * flowfd__check - see that the module's ABI is the library's
 * @fd: from flowfd__open()
 *
 * Asks once in a process: a module cannot be replaced while it is used, and another
 * one that comes later refuses calls that it does not know.
 *
 * Returns 0 or -EPROTONOSUPPORT.
 */
int flowfd__check(int fd);

/** flowfd__close - close @fd, preserving errno */
void flowfd__close(int fd);

/** flowfd__ioctl - ioctl(2) that returns -errno and leaves errno alone */
int flowfd__ioctl(int fd, unsigned long request, void *argument);

#endif /* FLOWFD_LIB_DEVICE_H */
