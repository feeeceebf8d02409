/* SPDX-License-Identifier: MIT */
/* /dev/flowfd for the files of the library. */
#ifndef FLOWFD_LIB_DEVICE_H
#define FLOWFD_LIB_DEVICE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Objects are compiled with hidden visibility; declarations of <flowfd.h> are public. */
#pragma GCC visibility push(default)
#define FLOWFD_LIBRARY
#include <flowfd.h>
#pragma GCC visibility pop

/* musl has it from 1.2.5 on. */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif

/* Two underscores, as names of the static library must not collide with a program's. */

/**
 * flowfd__open - open /dev/flowfd
 * @flags: O_CLOEXEC, O_NONBLOCK, both or 0
 *
 * Returns the lowest free descriptor, or an error of flowfd_counter_create().
 */
int flowfd__open(int flags);

/**
 * flowfd__check - check that module and library have the same ABI version
 * @fd: from flowfd__open()
 *
 * Asks once in a process: a module in use cannot be replaced, and one that is loaded
 * later refuses requests that it does not know.
 *
 * Returns 0, -EPROTONOSUPPORT, or another -errno of ioctl(2).
 */
int flowfd__check(int fd);

/** flowfd__close - close @fd, preserving errno */
void flowfd__close(int fd);

/**
 * flowfd__take_place - give a file the descriptor of the device that created it
 * @fd: the file, close-on-exec; it is closed
 * @device: the descriptor that it gets in the place of the device
 * @keep: not to be closed on exec
 *
 * Returns @device, or -errno; then @device is as it was.
 */
int flowfd__take_place(int fd, int device, int keep);

/**
 * flowfd__create - have a device of its own create a file by one request
 * @request: of ioctl(2), which returns a close-on-exec descriptor
 * @argument: for the request
 * @keep: not to be closed on exec
 *
 * Returns the lowest free descriptor; -EPROTONOSUPPORT: the module does not know the
 * request; or another -errno.
 */
int flowfd__create(unsigned long request, void *argument, int keep);

/** flowfd__ioctl - ioctl(2) that returns -errno and leaves errno alone */
int flowfd__ioctl(int fd, unsigned long request, void *argument);

/** flowfd__request - the same for requests that answer 0: -ENOTTY for another number */
int flowfd__request(int fd, unsigned long request, void *argument);

/** flowfd__is_filtered - whether an error is one that filters of seccomp(2) answer with */
static inline bool flowfd__is_filtered(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

/**
 * flowfd__refused - the error of a call that was to add, take or wait
 * @error: negative errno of the system call
 *
 * -EPERM of flowfd_add() says that the value was added, so that of a filter is -EACCES.
 */
static inline int flowfd__refused(int error)
{
	return flowfd__is_filtered(error) ? -EACCES : error;
}

#endif /* FLOWFD_LIB_DEVICE_H */
