/* SPDX-License-Identifier: MIT */
/*
 * Calls that hand eventfds to the kernel, which does not accept counters. After the
 * kernel refused a call with EINVAL, and so changed nothing, its function here replaces
 * the counters by eventfds. If it returns true the caller must repeat the call.
 */
#ifndef FLOWFD_PRELOAD_HANDOVER_H
#define FLOWFD_PRELOAD_HANDOVER_H

#include <stdbool.h>

struct iocb;

/** handover_is_ioctl - whether this request takes an eventfd */
bool handover_is_ioctl(unsigned long request);

/** handover_ioctl - replace the counters in the argument of ioctl(2) */
bool handover_ioctl(unsigned long request, const void *argument);

/** handover_iocb - replace the counter in a request of io_submit(2) */
bool handover_iocb(struct iocb *const *iocb);

/** handover_uring - replace the counter in an argument of io_uring_register(2) */
bool handover_uring(unsigned int opcode, const void *argument);

#endif /* FLOWFD_PRELOAD_HANDOVER_H */
