/* SPDX-License-Identifier: MIT */
/*
 * libflowfd - event file descriptors with flow control
 *
 * A counter is an eventfd(2) with two additions: a maximum that makes fast
 * writers wait (backpressure) and a token bucket that limits how often readers
 * are woken; and with policies for both (flowfd_set_flow()). read(2), write(2), poll(2),
 * epoll(7) and io_uring(7) work on its descriptor as on an eventfd; close(2) destroys it.
 * A ring watches files as epoll(7) does and is harvested without system calls: see
 * flowfd-ring.h. A mapped counter is added to and taken from in memory, and runs without
 * the module, too: see flowfd-counter.h.
 *
 * Every function returns a negative errno on failure and never sets errno. Where this
 * file says -ENOTTY, an epoll(7) is -EINVAL since Linux 6.9.
 * Any number of threads may read and write one counter. Only one thread at a time
 * may take events from a ring or wait on it: see flowfd-ring.h. All functions
 * except flowfd_counter_open() and those that describe errors are async-signal-safe.
 * Source of the ideas: Wen Yang's eventfd patches of 2024 (token bucket) and 2026
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
 * @initial: initial count, 0 to ULLONG_MAX - 1
 * @flags: FLOWFD_SEMAPHORE, FLOWFD_NONBLOCK, FLOWFD_KEEP_ON_EXEC and
 *         FLOWFD_MAPPED, or 0
 *
 * Returns the lowest free descriptor, close-on-exec without FLOWFD_KEEP_ON_EXEC, or
 *   -ENODEV           the module is not loaded (flowfd_strerror() says how to)
 *   -EACCES           this user may not open /dev/flowfd
 *   -EPROTONOSUPPORT  module and library do not match: one of them is too old
 *   -EINVAL           unknown flag, @initial is ULLONG_MAX, a mapped semaphore, or
 *                     this kernel (of 32 bits) has no mapped counters
 *   -EMFILE -ENFILE -ENOMEM  as eventfd(2); -EMFILE also if there is no second
 *                     descriptor free, which FLOWFD_MAPPED needs for a moment; -ENOMEM
 *                     also if a mapped counter would exceed RLIMIT_MEMLOCK
 */
int flowfd_counter_create(uint64_t initial, unsigned int flags);

/**
 * flowfd_counter_create_from - create a counter with all its settings at once
 * @counter: initial count, maximum (0: none), flags and bucket (rate 0: none)
 * @size: sizeof(*counter) in the compiled caller, in bytes
 *
 * Returns as flowfd_counter_create(), and
 *   -EINVAL  an initial count not below the maximum, a rate above
 *            FLOWFD_TOKEN_RATE_MAX or without capacity, a bucket on a
 *            semaphore, a reserved field that is not zero
 */
int flowfd_counter_create_from(const struct flowfd_create_counter *counter, size_t size);

/**
 * flowfd_device_open - open the device, to create many counters through it
 *
 * Returns a close-on-exec descriptor for flowfd_counter_create_on(), or an
 * error of flowfd_counter_create(). A process that has this descriptor can create
 * counters and rings, and open those of others by their keys: close it before entering a
 * sandbox.
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
 *   -ENOTTY  @device is not a descriptor of flowfd
 *   -EPERM   @device is a counter or a ring that was created
 */
int flowfd_counter_create_on(int device, const struct flowfd_create_counter *counter,
			     size_t size);

/**
 * flowfd_set_maximum - set the count that writers must stay below
 * @fd: a counter
 * @maximum: user space fills the counter to @maximum - 1 at most; ULLONG_MAX is
 *           no limit, 1 allows only writes of 0
 *
 * Wakes the writers whose value now fits. Returns 0, or
 *   -EINVAL  the current count is not below @maximum
 *   -EPERM   the settings are sealed
 *   -ENOTTY  not a counter of flowfd
 *   -EBADF   not a descriptor
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
 * Limits wakeups, never data: a read returns the count at once, and poll(2) is
 * ready whenever the count is above 0 (with a read mark: whenever the counter is ready,
 * see flowfd_set_flow()). The last write is then followed by a wakeup within one token
 * interval (1 s / @rate). Returns 0, or
 *   -EINVAL  rate too high, or without capacity, or @fd is a semaphore
 *   -EPERM   the settings are sealed
 *   -ENOTTY  not a counter of flowfd
 *   -EBADF   not a descriptor
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
 * For what signals, or wants to be signalled by, an eventfd: KVM, vhost, VFIO, AIO,
 * io_uring. Bucket, marks and delay apply as to any reader, and a maximum as to any writer,
 * unless the counter has a source and a sink. A bridge holds neither file open. Returns 0, or
 *   -EBADF   not a descriptor, or @fd is not open for writing (source) or reading (sink)
 *   -EBUSY   there is a source or sink already, or @eventfd is in another bridge
 *   -EINVAL  wrong flags; @eventfd is no eventfd; a sink of a semaphore; or the counter
 *            would have a source, a sink and a maximum
 *   -ENOENT  there is nothing to remove
 *   -ENOMEM  no memory, or RLIMIT_MEMLOCK would be exceeded: a page for each counter
 *   -ENOTTY  @fd is not a counter of flowfd, or the module is too old:
 *            see FLOWFD_FEATURE_BRIDGE
 */
int flowfd_bridge(int fd, int eventfd, unsigned int flags);

/**
 * flowfd_balance - wake the workers of a listening socket in turn
 * @listener: a TCP or UNIX socket that listens
 * @flags: FLOWFD_KEEP_ON_EXEC or 0
 *
 * Of workers that wait for @listener with EPOLLEXCLUSIVE, a connection wakes the one that
 * was woken longest ago, as long as the descriptor is open that this returns. It does not
 * keep @listener open, and has EPOLLHUP when that is closed. Returns the descriptor, or
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
 * @key: receives the key, the same each time
 *
 * A process that knows the key can open the counter or ring if it may open the device and is
 * in the user namespace in which that was opened or created. So keep it as a password; a
 * process that has the key of a ring can have its consumer write to wrong places of its own
 * memory. A key keeps nothing open, and opens nothing any more when the last descriptor and
 * the last mapping are gone. Without the module there are no keys (-ENOTTY):
 * flowfd_counter_export() gives what can be sent over a socket, with and without it.
 * Returns 0, or
 *   -ENOTTY  not a counter or ring of the module, or the module is too old: see
 *            FLOWFD_FEATURE_SHARE
 *   -EBADF   not a descriptor
 *   -EINTR   a signal came while it waited for the first random numbers after boot
 *   -ENOMEM  no memory
 */
int flowfd_share(int fd, struct flowfd_key *key);

/**
 * flowfd_open_shared - open a counter or ring by its key
 * @key: from flowfd_share(), perhaps of another process
 * @flags: FLOWFD_KEEP_ON_EXEC or 0
 *
 * Gives what a descriptor that was sent over a socket gives: the same open file description,
 * with its mode and O_NONBLOCK. flowfd_counter_map() and flowfd_ring_attach() map its memory.
 * Returns the lowest free descriptor, or
 *   -ENOENT           there is nothing with this key, or it is of another user namespace
 *   -EINVAL           an unknown flag
 *   -EPROTONOSUPPORT  the module is too old: see FLOWFD_FEATURE_SHARE
 *   -ENODEV -EACCES -EMFILE -ENFILE -ENOMEM  as flowfd_counter_create(); -EACCES also if a
 *                     security module does not allow it
 */
int flowfd_open_shared(const struct flowfd_key *key, unsigned int flags);

/**
 * flowfd_write - add to the count
 * @fd: a counter of the module; with a struct flowfd_counter call flowfd_add(), as the
 *      descriptor of one without the module has no count: nobody would get @value. Programs
 *      compiled with FLOWFD_DEBUG defined abort there
 * @value: 0 to ULLONG_MAX - 1
 *
 * Waits until count + @value is below the maximum, in the order of those that wait; a
 * write that does not wait overtakes them, and so does an add in memory that fits.
 * flowfd_set_flow() sets another policy. Returns 0, or
 *   -EAGAIN  it does not fit, and the descriptor is non-blocking or the policy is to fail
 *   -EINTR   interrupted by a signal; nothing was added
 *   -EINVAL  @value is ULLONG_MAX, or not below the maximum: it could never fit (with
 *            FLOWFD_OVERFLOW_SATURATE and FLOWFD_OVERFLOW_DROP it is lost)
 *   -EBADF   not a descriptor
 *   -EACCES  a filter of seccomp(2) refuses the call (with -EPERM flowfd_add() has added)
 *   -EIO     not a counter: write(2) did not take eight bytes
 */
int flowfd_write(int fd, uint64_t value);

/**
 * flowfd_read - take the count
 * @fd: a counter of the module; with a struct flowfd_counter call flowfd_take()
 * @value: receives the count, which becomes 0; for a semaphore 1, and the count
 *         is decremented
 *
 * Waits until the count is above 0, or with a read mark until the counter is ready (see
 * flowfd_set_flow()). Returns 0, or
 *   -EAGAIN  the count is 0 and the descriptor is non-blocking
 *   -EINTR   interrupted by a signal
 *   -EBADF   not a descriptor
 *   -EACCES  a filter of seccomp(2) refuses the call
 *   -EIO     not a counter: read(2) did not give eight bytes
 */
int flowfd_read(int fd, uint64_t *value);

/**
 * flowfd_set_flow - replace all settings of a counter at once
 * @fd: a counter, opened in any mode
 * @flow: maximum, bucket, low-water marks, maximum delay and what happens to a write that
 *        does not fit; a field that is 0 is as in an eventfd(2)
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Nothing changes if it fails. Returns 0, or
 *   -EINVAL           @size is too small; the maximum is not above the count and both
 *                     marks; a bucket as flowfd_set_bucket() refuses it; a delay above
 *                     FLOWFD_MAX_DELAY_MAX; an unknown policy; a semaphore with a read
 *                     mark above 1, a delay or a bucket
 *   -EPROTONOSUPPORT  the module does not know the request, or something in the tail
 *   -ENOTTY           not a counter of flowfd; so a counter without the module
 *   -EPERM            the settings are sealed
 *   -EBADF            not a descriptor
 */
int flowfd_set_flow(int fd, const struct flowfd_flow *flow, size_t size);

/**
 * flowfd_get_flow - read all settings of a counter, its count, and what was lost
 * @fd: a counter
 * @flow: receives them, all of one moment; fields that the module does not know become 0
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * To change one setting, change it in the answer and pass that to flowfd_set_flow(),
 * which ignores flags, count and lost. Returns 0, -EINVAL for a @size that is too
 * small, -EPROTONOSUPPORT, -ENOTTY or -EBADF.
 */
int flowfd_get_flow(int fd, struct flowfd_flow *flow, size_t size);

/**
 * flowfd_counter_stats - read what was counted of a counter
 * @fd: a counter
 * @stats: receives the numbers, all of one moment; those that the module does not know
 *         become 0
 * @size: sizeof(*stats) in the compiled caller, in bytes
 *
 * Returns 0, or
 *   -EINVAL           @size is too small or too large
 *   -EPROTONOSUPPORT  the module does not know the request: see FLOWFD_FEATURE_STATS
 *   -ENOTTY           not a counter of flowfd; so a counter without the module
 *   -EBADF            not a descriptor
 */
int flowfd_counter_stats(int fd, struct flowfd_counter_stats *stats, size_t size);

/**
 * flowfd_write_with - add to the count, with a timeout or urgently
 * @fd: a counter
 * @value: as flowfd_write()
 * @timeout: how long to wait for room, in ns; 0: for ever, so use FLOWFD_NONBLOCK if 0 is
 *           what is left of a deadline. FLOWFD_MS() and FLOWFD_SEC() give nanoseconds
 * @flags: FLOWFD_NONBLOCK, do not wait, and FLOWFD_URGENT, wake readers at once, past
 *         read mark, delay and bucket; or 0
 *
 * Returns 0, or an error of flowfd_write(), where -EAGAIN is also for FLOWFD_NONBLOCK, or
 *   -ETIMEDOUT        for so long there was no room, or it was the turn of others
 *   -EINVAL           an unknown flag
 *   -EPROTONOSUPPORT  the module does not know the request
 *   -ENOTTY           not a counter of flowfd
 */
int flowfd_write_with(int fd, uint64_t value, uint64_t timeout, unsigned int flags);

/**
 * flowfd_read_with - take the count, with a timeout
 * @fd: a counter
 * @value: as flowfd_read()
 * @timeout: how long to wait until the counter is ready, in ns; 0: for ever, as above
 * @flags: FLOWFD_NONBLOCK, take what is there without waiting; or 0
 *
 * When the time has passed, a count below the read mark stays where it is: take it with
 * FLOWFD_NONBLOCK. Returns 0, or an error of flowfd_read(), where -EAGAIN is also for
 * FLOWFD_NONBLOCK, or
 *   -ETIMEDOUT        the counter was not ready for so long
 *   -EINVAL           an unknown flag
 *   -EPROTONOSUPPORT  the module does not know the request
 *   -ENOTTY           not a counter of flowfd
 */
int flowfd_read_with(int fd, uint64_t *value, uint64_t timeout, unsigned int flags);

/**
 * flowfd_query - ask what the loaded module can do
 * @query: receives ABI version, limits and FLOWFD_FEATURE_* bits; fields that
 *         the module does not know become 0
 * @size: sizeof(*query) in the compiled caller, in bytes
 *
 * Returns 0, an error of opening the device as flowfd_counter_create(), or
 * -EINVAL for a @size that is too small or too large.
 */
int flowfd_query(struct flowfd_query *query, size_t size);

/** flowfd_version - version of the loaded library, as "1.2.3" */
const char *flowfd_version(void);

/**
 * flowfd_strerror - describe an error of this library
 * @error: a negative errno
 *
 * For -ENODEV, -EPROTONOSUPPORT, -EACCES, -EOPNOTSUPP, -ENOTTY, -EINVAL, -EIO and -ENOMEM
 * the text says what can be the cause or what to do, for -ENOENT that of
 * flowfd_open_shared(), for -ETIMEDOUT what happened, for all
 * others it is strerror(3)'s. flowfd_flow_strerror(), flowfd_bridge_strerror() and
 * flowfd_ring_strerror() describe more errors of policies, bridges and rings. A positive
 * errno is taken as the negative one. The caller must not free the string; strerror(3)'s
 * rules for threads apply to it.
 */
const char *flowfd_strerror(int error);

/**
 * flowfd_flow_strerror - describe an error of the calls that set or read policies
 * @error: a negative errno of flowfd_set_flow(), flowfd_get_flow(), flowfd_set_maximum(),
 *         flowfd_set_bucket(), flowfd_write_with(), flowfd_read_with() or
 *         flowfd_counter_stats()
 *
 * Other errors than its own are described by flowfd_strerror(), whose rules apply.
 */
const char *flowfd_flow_strerror(int error);

/**
 * flowfd_bridge_strerror - describe an error of flowfd_bridge()
 * @error: a negative errno
 *
 * Other errors than its own are described by flowfd_strerror(), whose rules apply.
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
