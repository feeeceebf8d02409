/* SPDX-License-Identifier: MIT */
/* eventfd(2). errno stays as it is, and nothing is a cancellation point. */
#ifndef FLOWFD_LIB_EVENTFD_H
#define FLOWFD_LIB_EVENTFD_H

#include <stdint.h>

/** flowfd__eventfd - as eventfd(2), empty; returns a descriptor or a negative errno */
int flowfd__eventfd(int flags);

/** flowfd__eventfd_write - as write(2); 0 also if it is full */
int flowfd__eventfd_write(int fd, uint64_t value);

/**
 * flowfd__eventfd_drain - take its count
 * @fd: eventfd
 * @value: receives the count; stays as it is if that is 0
 *
 * Does not sleep, also if another process has cleared O_NONBLOCK: but not without preadv2(2)
 * for eventfds, before Linux 5.8 or by a filter. Returns 0 or a negative errno.
 */
int flowfd__eventfd_drain(int fd, uint64_t *value);

#endif /* FLOWFD_LIB_EVENTFD_H */
