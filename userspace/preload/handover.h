/* SPDX-License-Identifier: MIT */
/*
 * Calls that hand eventfds to the kernel, which takes no counter. Each is to be
 * made again when its function returns true, after the kernel refused it with
 * EINVAL: refused calls have changed nothing.
 */
#ifndef FLOWFD_PRELOAD_HANDOVER_H
#define FLOWFD_PRELOAD_HANDOVER_H

#include <stdbool.h>

struct iocb;

/** handover_is_ioctl - does this request take an eventfd? */
bool handover_is_ioctl(unsigned long request);

/** handover_ioctl - replace the counters that ioctl(2) was given */
bool handover_ioctl(unsigned long request, const void *argument);

/** handover_iocb - replace the counter that io_submit(2) was given */
bool handover_iocb(struct iocb *const *iocb);

/** handover_uring - replace the counter that io_uring_register(2) was given */
bool handover_uring(unsigned int opcode, const void *argument);

#endif /* FLOWFD_PRELOAD_HANDOVER_H */
