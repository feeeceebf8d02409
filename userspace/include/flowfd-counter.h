/* SPDX-License-Identifier: MIT */
/*
 * Counters in memory, of libflowfd: included by <flowfd.h>, whose rules apply.
 *
 * flowfd_add() and flowfd_take() work in memory, and make a system call only if somebody
 * sleeps or polls, or if there is no room or no count. With a counter that is not mapped
 * they make one each, so that one program serves both: flowfd_counter_map(3).
 *
 * Any number of threads and processes may add and take at any time, also in a signal
 * handler. A struct flowfd_counter does not change until it is unmapped: it may be
 * copied, and used after fork(2). Its descriptor must stay open as long, also in
 * children. Less than 2^64 must be added in all while a call is being made.
 */
#ifndef FLOWFD_COUNTER_H
#define FLOWFD_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#include <linux/flowfd.h>

/* libatomic's locks are not shared by processes, and it may write where it only loads. */
#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "flowfd needs a machine with atomic instructions of 64 bits"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Options of flowfd_counter_open(). */
#define FLOWFD_FALLBACK	       (1U << 0) /* without the module, use eventfd(2) */
#define FLOWFD_OPTIONAL_BUCKET (1U << 1) /* leave it out where there is none */
#define FLOWFD_ONE_CONSUMER    (1U << 2) /* see flowfd_counter_open() */
#define FLOWFD_NO_POLL	       (1U << 3) /* nobody polls the descriptor */

/* What flowfd_features() returns. */
#define FLOWFD_HAS_MEMORY   (1U << 0) /* adds and takes are in memory */
#define FLOWFD_HAS_CALLS    (1U << 1) /* read(2) and write(2) work on the count */
#define FLOWFD_HAS_MAXIMUM  (1U << 2) /* holds for all who have the descriptor */
#define FLOWFD_HAS_BUCKET   (1U << 3) /* there can be a token bucket, but on semaphores */
#define FLOWFD_HAS_FLOW	    (1U << 5) /* flowfd_set_flow() works on @fd */
#define FLOWFD_HAS_OVERFLOW (1U << 6) /* flowfd_counter_set_flow() sets what it can */
#define FLOWFD_HAS_POLL	    (1U << 7) /* @fd can be polled */

/* How many descriptors flowfd_counter_export() gives at most. */
#define FLOWFD_EXPORT_MAX 2

/* What a process does in memory. It then can write only the pages that this needs. */
#define FLOWFD_PRODUCER (1U << 0) /* flowfd_add() */
#define FLOWFD_CONSUMER (1U << 1) /* flowfd_take(), flowfd_try_take() */

/**
 * struct flowfd_counter - a counter in this process
 * @fd: its descriptor, for poll(2), epoll(7), io_uring(7), a ring, or to send to another
 *      process; all other members are the library's
 * @roles: FLOWFD_PRODUCER and FLOWFD_CONSUMER: what is done in memory; 0: not mapped
 * @map_size: bytes at @map
 * @map: the three pages; NULL: not mapped
 * @add: the pages as flowfd_add() uses them; without this role a header with a maximum
 *       of 0, so that there never is room
 * @take: the pages as flowfd_take() uses them; without this role words that are 0, so
 *        that there never is a count
 * @features: FLOWFD_HAS_*
 * @doorbell: how the library does without the module
 * @memory: descriptor of the pages, without the module; or -1
 *
 * Its size stays as it is: 80 bytes where pointers have 64 bits.
 */
struct flowfd_counter {
	int fd;
	/* private: */
	uint32_t roles;
	void *map;
	struct {
		const struct flowfd_counter_header *header;
		struct flowfd_counter_producer *producer;
		const struct flowfd_counter_consumer *consumer;
	} add;
	struct {
		const struct flowfd_counter_producer *producer;
		struct flowfd_counter_consumer *consumer;
	} take;
	uint32_t map_size;
	uint32_t features;
	uint32_t doorbell;
	int memory;
	uint32_t reserved[2];
};

/**
 * flowfd_counter_open - create a counter and map it, with or without the module
 * @c: filled in, if the call succeeds; flowfd_counter_close() ends it
 * @settings: as flowfd_counter_create_from(); FLOWFD_MAPPED is implied where it is
 *            possible
 * @size: sizeof(*settings) in the compiled caller, in bytes
 * @options: FLOWFD_FALLBACK, FLOWFD_OPTIONAL_BUCKET, FLOWFD_ONE_CONSUMER and
 *           FLOWFD_NO_POLL, or 0
 *
 * Returns 0, an error of flowfd_counter_create_from() or flowfd_counter_map(), or
 * -EINVAL, -EOPNOTSUPP or -EFBIG.
 */
int flowfd_counter_open(struct flowfd_counter *c,
			const struct flowfd_create_counter *settings, size_t size,
			unsigned int options);

/**
 * flowfd_counter_export - the descriptors that make a counter, to send to another process
 * @c: a counter
 * @fds: receives the descriptors, which stay those of @c
 *
 * Returns their number, 1 with the module and 1 or 2 without it, -EOPNOTSUPP or -ENODEV.
 */
int flowfd_counter_export(const struct flowfd_counter *c, int fds[FLOWFD_EXPORT_MAX]);

/**
 * flowfd_counter_import - make a counter of descriptors from flowfd_counter_export()
 * @c: filled in, if the call succeeds; flowfd_counter_close() ends it
 * @fds: descriptors in the order of flowfd_counter_export(); on success they are @c's
 * @count: their number
 *
 * Returns 0, or an error of flowfd_counter_map().
 */
int flowfd_counter_import(struct flowfd_counter *c, const int *fds, unsigned int count);

/**
 * flowfd_counter_set_flow - as flowfd_set_flow(), also without the module
 * @c: a counter
 * @flow: as flowfd_set_flow(); without the module only maximum and overflow
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Returns as flowfd_set_flow(), or -EOPNOTSUPP or -ENODEV.
 */
int flowfd_counter_set_flow(const struct flowfd_counter *c,
			    const struct flowfd_flow *flow, size_t size);

/**
 * flowfd_counter_get_flow - as flowfd_get_flow(), also without the module
 * @c: a counter
 * @flow: receives settings, count and what was lost; without the module not of one moment
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Returns as flowfd_get_flow(), or -EOPNOTSUPP or -ENODEV.
 */
int flowfd_counter_get_flow(const struct flowfd_counter *c, struct flowfd_flow *flow,
			    size_t size);

/**
 * flowfd_counter_close - unmap a counter and close its descriptor
 * @c: a counter that no other function uses; its @fd becomes -1
 */
void flowfd_counter_close(struct flowfd_counter *c);

/**
 * flowfd_counter_map - map a counter
 * @c: filled in, if the call succeeds
 * @fd: a counter, which stays the caller's; it must be open for reading and writing
 * @roles: FLOWFD_PRODUCER, FLOWFD_CONSUMER or both: what this process does in memory;
 *         the other is done by system calls
 *
 * A counter that is not mapped is no error: flowfd_counter_is_mapped() tells. Returns 0,
 * -EINVAL, -ENOTTY, -EBADF, -EACCES, -EPROTONOSUPPORT, -EPERM or -ENOMEM.
 */
int flowfd_counter_map(struct flowfd_counter *c, int fd, unsigned int roles);

/**
 * flowfd_counter_unmap - unmap a counter
 * @c: a counter that no other function uses; its descriptor stays open
 */
void flowfd_counter_unmap(struct flowfd_counter *c);

/**
 * flowfd_counter_write - add by a system call
 * @c: a counter
 * @value: as flowfd_write()
 *
 * flowfd_add() calls it if there is no room. Returns as that.
 */
int flowfd_counter_write(const struct flowfd_counter *c, uint64_t value);

/**
 * flowfd_counter_read - take by a system call
 * @c: a counter
 * @value: receives the count
 *
 * flowfd_take() calls it if there is no count. Returns as that.
 */
int flowfd_counter_read(const struct flowfd_counter *c, uint64_t *value);

/**
 * flowfd_counter_try_read - take what there is, without waiting
 * @c: a counter
 * @value: receives the count
 *
 * flowfd_try_take() calls it if there is no count. Returns as that.
 */
int flowfd_counter_try_read(const struct flowfd_counter *c, uint64_t *value);

/**
 * flowfd_add_with - add, with a timeout or urgently
 * @c: a counter
 * @value: as flowfd_add()
 * @timeout: as flowfd_write_with(), in ns
 * @flags: as flowfd_write_with()
 *
 * Returns as flowfd_write_with(), or -EPERM: it was added, but nobody was told; or
 * -EOPNOTSUPP or -ENODEV.
 */
int flowfd_add_with(const struct flowfd_counter *c, uint64_t value, uint64_t timeout,
		    unsigned int flags);

/**
 * flowfd_take_with - take, with a timeout
 * @c: a counter
 * @value: receives the count
 * @timeout: as flowfd_read_with(), in ns
 * @flags: as flowfd_read_with()
 *
 * Returns as flowfd_read_with(), or -EOPNOTSUPP or -ENODEV.
 */
int flowfd_take_with(const struct flowfd_counter *c, uint64_t *value, uint64_t timeout,
		     unsigned int flags);

/**
 * flowfd_take_spin - take, and look for a while before sleeping
 * @c: a counter
 * @value: receives the count
 * @ns: how long to look, in ns; a second at most, as a signal does not end it
 *
 * Returns as flowfd_take().
 */
int flowfd_take_spin(const struct flowfd_counter *c, uint64_t *value, uint64_t ns);

/**
 * flowfd_counter_notify - have the count looked at
 * @c: a counter
 * @role: FLOWFD_PRODUCER: the caller has added; FLOWFD_CONSUMER: it has taken
 *
 * flowfd_add() and flowfd_take() call it if somebody sleeps or polls. It is also for
 * programs that change the words of a mapped counter themselves. Returns 0, -ENODEV or
 * -EPERM.
 */
int flowfd_counter_notify(const struct flowfd_counter *c, unsigned int role);

/* The library defines it as empty, to export these functions for other languages. */
#ifndef FLOWFD_INLINE
#define FLOWFD_INLINE static inline
#endif

/**
 * flowfd_counter_is_mapped - whether a counter is in memory
 * @c: a counter
 *
 * Returns 1, or 0: flowfd_add() and flowfd_take() make a system call each.
 */
FLOWFD_INLINE int flowfd_counter_is_mapped(const struct flowfd_counter *c);

/**
 * flowfd_features - what a counter can do
 * @c: a counter
 *
 * Returns FLOWFD_HAS_* bits.
 */
FLOWFD_INLINE unsigned int flowfd_features(const struct flowfd_counter *c);

/**
 * flowfd_add - add to the count, in memory
 * @c: a counter
 * @value: 0 to ULLONG_MAX - 1
 *
 * Waits until count + @value is below the maximum, if the descriptor is blocking. Returns
 * 0, -EPERM (it was added, but nobody was told), -EAGAIN, -EINTR, -EINVAL, -EBADF, -EACCES
 * or -ENODEV.
 */
FLOWFD_INLINE int flowfd_add(const struct flowfd_counter *c, uint64_t value);

/**
 * flowfd_take - take the count, in memory
 * @c: a counter
 * @value: receives the count, which becomes 0 (of a semaphore: as flowfd_read())
 *
 * Waits until the count is above 0, if the descriptor is blocking. Returns 0, -EAGAIN,
 * -EINTR, -EBADF, -EACCES or -ENODEV.
 */
FLOWFD_INLINE int flowfd_take(const struct flowfd_counter *c, uint64_t *value);

/**
 * flowfd_try_take - take the count, in memory, if there is one
 * @c: a counter
 * @value: receives the count, which becomes 0 (of a semaphore: as flowfd_read())
 *
 * Never waits. Returns 0, -EAGAIN, -EBADF, -EACCES, -ENODEV or -EOPNOTSUPP.
 */
FLOWFD_INLINE int flowfd_try_take(const struct flowfd_counter *c, uint64_t *value);

/*
 * The steps are those of docs/mapped.md, whose letters name the barriers.
 * a: after the exchange of a word, before the bits. Both are sequentially consistent,
 *    which is a full barrier between them.
 * b: after a bit was set, before the count. Likewise.
 * e: after a bit that another set was seen, before the count. Likewise.
 * c: @consumed is loaded with acquire, before @produced.
 */

/* T3 and T4, after a look that found @produced. Also if there was nothing to take. */
static inline void flowfd_counter_arm(const struct flowfd_counter *c, __u64 produced)
{
	struct flowfd_counter_consumer *consumer = c->take.consumer;
	__u32 armed = __atomic_load_n(&consumer->armed, __ATOMIC_SEQ_CST);
	int notify;

	if (__builtin_expect(!(armed & (FLOWFD_ARMED_WATCHED | FLOWFD_ARMED_WRITERS)), 1))
		return;
	notify = (armed & FLOWFD_ARMED_WRITERS) != 0;
	if (armed & FLOWFD_ARMED_WATCHED) {
		if (!(armed & FLOWFD_ARMED_READERS))
			__atomic_fetch_or(&consumer->armed, FLOWFD_ARMED_READERS,
					  __ATOMIC_SEQ_CST);
		/* b, e */
		if (__atomic_load_n(&c->take.producer->produced, __ATOMIC_SEQ_CST) !=
		    produced)
			notify = 1;
	}
	if (notify)
		flowfd_counter_notify(c, FLOWFD_CONSUMER);
}

/*
 * How often an add or take looks at words that others change, before it is left to a call,
 * which looks for signals: a peer can store anything there all the time.
 */
#define FLOWFD_COUNTER_TRIES 64

/*
 * A1 to A3. Returns 1; 0 if there is no room; or -EPERM: it was added, and somebody who
 * waits for it was not told.
 */
static inline int flowfd_counter_add(const struct flowfd_counter *c, uint64_t value)
{
	const struct flowfd_counter_consumer *consumer = c->add.consumer;
	struct flowfd_counter_producer *producer = c->add.producer;
	__u64 consumed, produced, maximum;
	int tries = 0, ret;

	do {
		if (tries++ == FLOWFD_COUNTER_TRIES)
			return 0;
		/* c */
		consumed = __atomic_load_n(&consumer->consumed, __ATOMIC_ACQUIRE);
		produced = __atomic_load_n(&producer->produced, __ATOMIC_RELAXED);
		maximum = __atomic_load_n(&c->add.header->maximum, __ATOMIC_RELAXED);
		if (produced - consumed >= maximum ||
		    maximum - (produced - consumed) <= value)
			return 0;
	} while (!__atomic_compare_exchange_n(&producer->produced, &produced,
					      produced + value, 0, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	/* a */
	if (__builtin_expect(__atomic_load_n(&consumer->armed, __ATOMIC_SEQ_CST) &
				     FLOWFD_ARMED_READERS,
			     0)) {
		ret = flowfd_counter_notify(c, FLOWFD_PRODUCER);
		if (ret)
			return ret;
	}
	return 1;
}

/* T1 to T4. Returns 0 if there is nothing to take; then nothing was armed either. */
static inline int flowfd_counter_take(const struct flowfd_counter *c, uint64_t *value)
{
	const struct flowfd_counter_producer *producer = c->take.producer;
	struct flowfd_counter_consumer *consumer = c->take.consumer;
	__u64 consumed, produced;
	int tries = 0;

	do {
		if (tries++ == FLOWFD_COUNTER_TRIES)
			return 0;
		/* c */
		consumed = __atomic_load_n(&consumer->consumed, __ATOMIC_ACQUIRE);
		produced = __atomic_load_n(&producer->produced, __ATOMIC_ACQUIRE);
		if (produced == consumed)
			return 0;
	} while (!__atomic_compare_exchange_n(&consumer->consumed, &consumed, produced, 0,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	*value = produced - consumed;
	/* a */
	flowfd_counter_arm(c, produced);
	return 1;
}

FLOWFD_INLINE int flowfd_counter_is_mapped(const struct flowfd_counter *c)
{
	return c->roles != 0;
}

FLOWFD_INLINE unsigned int flowfd_features(const struct flowfd_counter *c)
{
	return c->features;
}

FLOWFD_INLINE int flowfd_add(const struct flowfd_counter *c, uint64_t value)
{
	int ret = flowfd_counter_add(c, value);

	if (ret)
		return ret < 0 ? ret : 0;
	return flowfd_counter_write(c, value);
}

FLOWFD_INLINE int flowfd_take(const struct flowfd_counter *c, uint64_t *value)
{
	if (flowfd_counter_take(c, value))
		return 0;
	return flowfd_counter_read(c, value);
}

FLOWFD_INLINE int flowfd_try_take(const struct flowfd_counter *c, uint64_t *value)
{
	if (flowfd_counter_take(c, value))
		return 0;
	return flowfd_counter_try_read(c, value);
}

#ifdef __cplusplus
}
#endif

#endif /* FLOWFD_COUNTER_H */
