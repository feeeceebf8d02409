/* SPDX-License-Identifier: MIT */
/*
 * libflowfd - event file descriptors with flow control
 *
 * Counters of the module, by their descriptors. flowfd-counter.h has counters in memory,
 * which run without the module, too, and flowfd-ring.h rings. flowfd(7) says what they
 * are. The manual page of a function says all that it does, which threads may call it,
 * and what each error means: this file has names, units and the errors' numbers.
 *
 * Every function returns a negative errno on failure and never sets errno. Where this
 * file says -ENOTTY, an epoll(7) is -EINVAL since Linux 6.9. -EINVAL is also for a size
 * that is impossible, and -EPROTONOSUPPORT for a module that is too old for the call. All
 * functions except flowfd_counter_open() and those that describe errors are
 * async-signal-safe.
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
 * @initial: initial count, 0 to ULLONG_MAX - 1
 * @flags: FLOWFD_SEMAPHORE, FLOWFD_NONBLOCK, FLOWFD_KEEP_ON_EXEC and
 *         FLOWFD_MAPPED, or 0
 *
 * Returns the lowest free descriptor, or -ENODEV, -EACCES, -EPROTONOSUPPORT, -EINVAL,
 * -EMFILE, -ENFILE or -ENOMEM.
 */
int flowfd_counter_create(uint64_t initial, unsigned int flags);

/**
 * flowfd_counter_create_from - create a counter with all its settings at once
 * @counter: initial count, maximum (0: none), flags and bucket (rate 0: none)
 * @size: sizeof(*counter) in the compiled caller, in bytes
 *
 * Returns as flowfd_counter_create().
 */
int flowfd_counter_create_from(const struct flowfd_create_counter *counter, size_t size);

/**
 * flowfd_device_open - open the device, to create many counters through it
 *
 * A process that has this descriptor can create counters and rings, and open those of
 * others by their keys: close it before entering a sandbox. Returns a close-on-exec
 * descriptor, or an error of flowfd_counter_create().
 */
int flowfd_device_open(void);

/**
 * flowfd_counter_create_on - create a counter in one system call
 * @device: from flowfd_device_open()
 * @counter: as flowfd_counter_create_from()
 * @size: as flowfd_counter_create_from()
 *
 * Returns as flowfd_counter_create(), or -EBADF, -ENOTTY or -EPERM for a wrong @device.
 */
int flowfd_counter_create_on(int device, const struct flowfd_create_counter *counter,
			     size_t size);

/**
 * flowfd_set_maximum - set the count that writers must stay below
 * @fd: a counter
 * @maximum: above the count, 1 to ULLONG_MAX, which is no limit
 *
 * Returns 0, -EINVAL, -EPERM, -ENOTTY or -EBADF.
 */
int flowfd_set_maximum(int fd, uint64_t maximum);

/** flowfd_get_maximum - read the maximum; returns 0, -ENOTTY or -EBADF */
int flowfd_get_maximum(int fd, uint64_t *maximum);

/**
 * flowfd_set_bucket - limit how often readers are woken
 * @fd: a counter that is not a semaphore
 * @capacity: tokens, the longest burst of wakeups, 1 to UINT32_MAX
 * @rate: wakeups per second, 1 to FLOWFD_TOKEN_RATE_MAX; 0 removes the limit
 *
 * Returns 0, -EINVAL, -EPERM, -ENOTTY or -EBADF.
 */
int flowfd_set_bucket(int fd, uint32_t capacity, uint32_t rate);

/** flowfd_get_bucket - read capacity and rate; returns 0, -ENOTTY or -EBADF */
int flowfd_get_bucket(int fd, uint32_t *capacity, uint32_t *rate);

/**
 * flowfd_bridge - connect a counter with an eventfd of the kernel, or disconnect them
 * @fd: a counter
 * @eventfd: from eventfd(2); not used with FLOWFD_BRIDGE_REMOVE
 * @flags: FLOWFD_BRIDGE_SOURCE: the eventfd's count is moved into the counter as it comes;
 *         FLOWFD_BRIDGE_SINK: what wakes the counter's readers takes the count and signals
 *         the eventfd; with FLOWFD_BRIDGE_REMOVE: ends that
 *
 * Returns 0, -EBADF, -EBUSY, -EINVAL, -ENOENT, -ENOMEM or -ENOTTY.
 */
int flowfd_bridge(int fd, int eventfd, unsigned int flags);

/**
 * flowfd_balance - wake the workers of a listening socket in turn
 * @listener: a TCP or UNIX socket that listens
 * @flags: FLOWFD_KEEP_ON_EXEC or 0
 *
 * Of workers that wait for @listener with EPOLLEXCLUSIVE, a connection wakes the one that
 * was woken longest ago, as long as the descriptor is open that this returns. It does not
 * keep @listener open, and cannot be polled. Returns the descriptor, or
 *   -EBADF       @listener is no descriptor
 *   -ENOTSOCK    it is no socket
 *   -EINVAL      it does not listen, or is of another protocol; an unknown flag
 *   -EBUSY       it is balanced already
 *   -EOPNOTSUPP  this kernel wakes waiters in another way
 *   -EPROTONOSUPPORT  the module is too old: see FLOWFD_FEATURE_BALANCE
 *   -ENODEV -EACCES -EMFILE -ENFILE -ENOMEM  as flowfd_counter_create()
 */
int flowfd_balance(int listener, unsigned int flags);

/**
 * flowfd_share - let others open a counter or ring by a key
 * @fd: a counter or ring of the module
 * @key: receives the key, the same each time; keep it as a password
 *
 * Returns 0, -ENOTTY, -EBADF, -EINTR or -ENOMEM.
 */
int flowfd_share(int fd, struct flowfd_key *key);

/**
 * flowfd_open_shared - open a counter or ring by its key
 * @key: from flowfd_share(), perhaps of another process
 * @flags: FLOWFD_KEEP_ON_EXEC or 0
 *
 * Returns the lowest free descriptor, or -ENOENT, -EINVAL, -EPROTONOSUPPORT, -EACCES,
 * -ENODEV, -EMFILE, -ENFILE or -ENOMEM.
 */
int flowfd_open_shared(const struct flowfd_key *key, unsigned int flags);

/**
 * flowfd_write - add to the count
 * @fd: a counter of the module; with a struct flowfd_counter call flowfd_add(), as the
 *      descriptor of one without the module has no count: nobody would get @value
 * @value: 0 to ULLONG_MAX - 1
 *
 * Waits until count + @value is below the maximum. Returns 0, -EAGAIN, -EINTR, -EINVAL,
 * -EBADF, -EACCES or -EIO.
 */
int flowfd_write(int fd, uint64_t value);

/**
 * flowfd_read - take the count
 * @fd: a counter of the module; with a struct flowfd_counter call flowfd_take()
 * @value: receives the count, which becomes 0; for a semaphore 1, and the count
 *         is decremented
 *
 * Waits until the counter is ready. Returns 0, -EAGAIN, -EINTR, -EBADF, -EACCES or -EIO.
 */
int flowfd_read(int fd, uint64_t *value);

/**
 * flowfd_set_flow - replace settings of a counter at once
 * @fd: a counter, opened in any mode
 * @flow: maximum, bucket, low-water marks, maximum delay (ns) and what happens to a write
 *        that does not fit; a field that is 0 is as in an eventfd(2)
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Returns 0, -EINVAL, -EPROTONOSUPPORT, -ENOTTY, -EPERM or -EBADF.
 */
int flowfd_set_flow(int fd, const struct flowfd_flow *flow, size_t size);

/**
 * flowfd_get_flow - read all settings of a counter, its count, and what was lost
 * @fd: a counter
 * @flow: receives them, all of one moment; fields that the module does not know become 0
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Returns 0, -EINVAL, -EPROTONOSUPPORT, -ENOTTY or -EBADF.
 */
int flowfd_get_flow(int fd, struct flowfd_flow *flow, size_t size);

/**
 * flowfd_counter_stats - read what was counted of a counter
 * @fd: a counter
 * @stats: receives the numbers, all of one moment; those that the module does not know
 *         become 0
 * @size: sizeof(*stats) in the compiled caller, in bytes
 *
 * Returns 0, -EINVAL, -EFAULT, -EPROTONOSUPPORT, -ENOTTY or -EBADF.
 */
int flowfd_counter_stats(int fd, struct flowfd_counter_stats *stats, size_t size);

/**
 * flowfd_write_with - add to the count, with a timeout or urgently
 * @fd: a counter
 * @value: as flowfd_write()
 * @timeout: how long to wait for room, in ns; 0: for ever, so use FLOWFD_NONBLOCK if 0 is
 *           what is left of a deadline. FLOWFD_MS() and FLOWFD_SEC() give nanoseconds
 * @flags: FLOWFD_NONBLOCK, do not wait, and FLOWFD_URGENT, wake readers at once; or 0
 *
 * Returns 0, -EAGAIN, -ETIMEDOUT, -EINTR, -EINVAL, -EPROTONOSUPPORT, -ENOTTY, -EBADF or
 * -EACCES.
 */
int flowfd_write_with(int fd, uint64_t value, uint64_t timeout, unsigned int flags);

/**
 * flowfd_read_with - take the count, with a timeout
 * @fd: a counter
 * @value: as flowfd_read()
 * @timeout: how long to wait until the counter is ready, in ns; 0: for ever, as above
 * @flags: FLOWFD_NONBLOCK, take what is there without waiting; or 0
 *
 * Returns as flowfd_write_with().
 */
int flowfd_read_with(int fd, uint64_t *value, uint64_t timeout, unsigned int flags);

/**
 * flowfd_query - ask what the loaded module can do
 * @query: receives ABI version, limits and FLOWFD_FEATURE_* bits; fields that
 *         the module does not know become 0
 * @size: sizeof(*query) in the compiled caller, in bytes
 *
 * Returns 0, or an error of flowfd_counter_create().
 */
int flowfd_query(struct flowfd_query *query, size_t size);

/** flowfd_version - version of the loaded library, as "1.2.3" */
const char *flowfd_version(void);

/**
 * flowfd_strerror - describe an error of this library
 * @error: a negative errno; a positive one is taken as the negative one
 *
 * The caller must not free the string; strerror(3)'s rules for threads apply to it.
 */
const char *flowfd_strerror(int error);

/**
 * flowfd_flow_strerror - describe an error of the calls that set or read policies
 * @error: as flowfd_strerror(), which describes other errors
 */
const char *flowfd_flow_strerror(int error);

/**
 * flowfd_bridge_strerror - describe an error of flowfd_bridge()
 * @error: as flowfd_strerror(), which describes other errors
 */
const char *flowfd_bridge_strerror(int error);

#ifdef __cplusplus
}
#endif

#include "flowfd-counter.h"
#include "flowfd-ring.h"

/* The library's own files define and call the functions themselves. */
#if defined(FLOWFD_DEBUG) && !defined(FLOWFD_LIBRARY)
#include "flowfd-debug.h"
#endif

#endif /* FLOWFD_H */
