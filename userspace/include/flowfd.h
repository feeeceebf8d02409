/* SPDX-License-Identifier: MIT */
/*
 * libflowfd - event file descriptors with flow control
 *
 * A counter is an eventfd(2) with two additions: a maximum that makes fast
 * writers wait (backpressure) and a token bucket that limits how often readers
 * are woken. read(2), write(2), poll(2), epoll(7) and io_uring(7) work on its
 * descriptor as on an eventfd; close(2) ends it. A ring watches files as epoll(7)
 * does and needs no system call for each harvest: see flowfd-ring.h.
 *
 * Every function returns a negative errno on failure and never sets errno.
 * Any number of threads may read and write one counter. Taking events from a ring
 * and waiting on it is for one thread at a time: see flowfd-ring.h. All functions
 * but flowfd_strerror() and flowfd_ring_strerror() are async-signal-safe.
 * The ideas: Wen Yang's eventfd patches of 2024 (token bucket) and 2026
 * (maximum); see flowfd(7).
 */
#ifndef FLOWFD_H
#define FLOWFD_H

#include <stddef.h>
#include <stdint.h>

#include <linux/flowfd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLOWFD_DEVICE "/dev/flowfd"

/**
 * flowfd_counter_create - create a counter without maximum or bucket
 * @initial: first count, 0 to ULLONG_MAX - 1
 * @flags: FLOWFD_SEMAPHORE, FLOWFD_NONBLOCK and FLOWFD_KEEP_ON_EXEC, or 0
 *
 * Returns the lowest free descriptor, close-on-exec unless asked otherwise, or
 *   -ENODEV           the module is not loaded (flowfd_strerror() says how)
 *   -EACCES           /dev/flowfd may not be opened by this user
 *   -EPROTONOSUPPORT  module and library do not fit; one of them is too old
 *   -EINVAL           unknown flag, or @initial is ULLONG_MAX
 *   -EMFILE -ENFILE -ENOMEM  as eventfd(2)
 */
int flowfd_counter_create(uint64_t initial, unsigned int flags);

/**
 * flowfd_counter_create_from - create a counter with all its settings at once
 * @counter: initial count, maximum (0: none), flags and bucket (rate 0: none)
 * @size: sizeof(*counter) as the caller was compiled with
 *
 * Returns as flowfd_counter_create(), and
 *   -EINVAL  a count that is not below the maximum, a rate above
 *            FLOWFD_TOKEN_RATE_MAX or without capacity, a bucket on a
 *            semaphore, a reserved field that is not zero
 */
int flowfd_counter_create_from(const struct flowfd_create_counter *counter,
			       size_t size);

/**
 * flowfd_device_open - open the device, to create many counters through it
 *
 * Returns a close-on-exec descriptor for flowfd_counter_create_on(), or what
 * flowfd_counter_create() returns. Whoever has the descriptor can create counters
 * and rings: close it before a sandbox begins.
 */
int flowfd_device_open(void);

/**
 * flowfd_counter_create_on - create a counter in one system call
 * @device: from flowfd_device_open()
 * @counter: as flowfd_counter_create_from()
 * @size: as flowfd_counter_create_from()
 *
 * Returns as flowfd_counter_create_from(), and
 *   -EBADF   @device is not a descriptor
 *   -ENOTTY  @device is not one of flowfd
 *   -EPERM   @device is a counter or ring that was created
 */
int flowfd_counter_create_on(int device,
			     const struct flowfd_create_counter *counter,
			     size_t size);

/**
 * flowfd_set_maximum - set the count that writers must stay below
 * @fd: a counter
 * @maximum: user space fills the counter to @maximum - 1 at most; ULLONG_MAX is
 *           no limit, 1 admits no write but of 0
 *
 * Wakes the writers that now fit. Returns 0, or
 *   -EINVAL  the present count is not below @maximum
 *   -ENOTTY  not a counter of flowfd
 *   -EBADF   not a descriptor, or not open for writing
 */
int flowfd_set_maximum(int fd, uint64_t maximum);

/** flowfd_get_maximum - read the maximum; returns 0, -ENOTTY or -EBADF */
int flowfd_get_maximum(int fd, uint64_t *maximum);

/**
 * flowfd_set_bucket - limit how often readers are woken
 * @fd: a counter that is not a semaphore
 * @capacity: wakeups that may follow each other at once, 1 to UINT32_MAX
 * @rate: wakeups per second, 1 to FLOWFD_TOKEN_RATE_MAX; 0 removes the limit
 *
 * Limits wakeups, never data: a read returns the count at once, and poll(2) is
 * ready whenever there is one. The last write is followed by a wakeup within
 * one token interval. Returns 0, or
 *   -EINVAL  rate too high, or without capacity, or @fd is a semaphore
 *   -ENOTTY  not a counter of flowfd
 *   -EBADF   not a descriptor, or not open for reading
 */
int flowfd_set_bucket(int fd, uint32_t capacity, uint32_t rate);

/** flowfd_get_bucket - read the bucket's settings; returns 0, -ENOTTY or -EBADF */
int flowfd_get_bucket(int fd, uint32_t *capacity, uint32_t *rate);

/**
 * flowfd_write - add to the count
 * @fd: a counter
 * @value: 0 to ULLONG_MAX - 1
 *
 * Waits until count + @value is below the maximum. Returns 0, or
 *   -EAGAIN  it does not fit and the descriptor is non-blocking
 *   -EINTR   a signal came first; nothing was added
 *   -EINVAL  @value is ULLONG_MAX, or not below the maximum: it could never fit
 *   -EBADF   not a descriptor
 *   -EIO     not a counter: it did not take eight bytes
 */
int flowfd_write(int fd, uint64_t value);

/**
 * flowfd_read - take the count
 * @fd: a counter
 * @value: receives the count, which becomes 0; for a semaphore 1, and the count
 *         is decremented
 *
 * Waits until the count is above 0. Returns 0, or
 *   -EAGAIN  the count is 0 and the descriptor is non-blocking
 *   -EINTR   a signal came first
 *   -EBADF   not a descriptor
 *   -EIO     not a counter: it did not give eight bytes
 */
int flowfd_read(int fd, uint64_t *value);

/**
 * flowfd_query - what the loaded module can do
 * @query: receives ABI version, limits and FLOWFD_FEATURE_* bits; what the
 *         module does not know is 0
 * @size: sizeof(*query) as the caller was compiled with
 *
 * Returns 0, the errors of opening the device as flowfd_counter_create(), or
 * -EINVAL for a @size that is too small or too large.
 */
int flowfd_query(struct flowfd_query *query, size_t size);

/** flowfd_version - version of the library at run time, as "1.2.3" */
const char *flowfd_version(void);

/**
 * flowfd_strerror - say in words what a function of this library returned
 * @error: a negative errno
 *
 * -ENODEV, -EPROTONOSUPPORT and -EACCES are answered with what to do about them,
 * all others with strerror(3)'s text; flowfd_ring_strerror() knows more of those of
 * a ring. The string stays valid and is not to be freed
 * (strerror(3)'s rules for threads apply).
 */
const char *flowfd_strerror(int error);

#ifdef __cplusplus
}
#endif

#include "flowfd-ring.h"

#endif /* FLOWFD_H */
