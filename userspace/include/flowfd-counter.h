/* SPDX-License-Identifier: MIT */
/*
 * Counters in memory, of libflowfd: included by <flowfd.h>.
 *
 * A mapped counter (FLOWFD_MAPPED) has its count in memory that processes share.
 * flowfd_add() and flowfd_take() work there, and make a system call only if somebody
 * sleeps or polls, or if there is no room or no count. flowfd(7) says what they cost.
 * read(2), write(2) and poll(2) work on the same count. With a counter that is not
 * mapped the functions make a system call each, so that one program serves both.
 *
 * Any number of threads and processes may add and take at any time, also in a signal
 * handler. A struct flowfd_counter does not change until it is unmapped: it may be
 * copied, and used after fork(2). Its descriptor must stay open as long, also in
 * children. Less than 2^64 must be added in all while a call is being made.
 *
 * flowfd_counter_open() gives a program the same calls where the module is not loaded, and
 * flowfd_counter_export() and flowfd_counter_import() pass a counter to another process.
 *
 * The functions return a negative errno on failure and never set errno. All but
 * flowfd_counter_open() are async-signal-safe. Those that may wait (flowfd_add(),
 * flowfd_take(), flowfd_counter_write(), flowfd_counter_read(), and flowfd_add_with() and
 * flowfd_take_with() without the module, or without timeout and flags) are cancellation
 * points while they make a system call; the others are none.
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
 *            possible: semaphores, and counters of a kernel of 32 bits, are not mapped
 * @size: sizeof(*settings) in the compiled caller, in bytes
 * @options: FLOWFD_FALLBACK, FLOWFD_OPTIONAL_BUCKET, FLOWFD_ONE_CONSUMER and
 *           FLOWFD_NO_POLL, or 0
 *
 * With FLOWFD_FALLBACK, if the module is not there or out of reach (not loaded, or of
 * another version; the device or a request is refused to this user; RLIMIT_MEMLOCK would
 * be exceeded), the counter is an eventfd(2) and a memfd_create(2). flowfd_add() and
 * flowfd_take() are the same. The
 * descriptor is readable while there is a count (a poll that does not wait can miss it
 * for a moment, while another call settles that), and not writable after a flowfd_add()
 * that found no room, until the next take. But
 *   - the count is in memory alone: the descriptor is only for polling, and read(2) and
 *     write(2) must not be used; another process needs both descriptors, which
 *     flowfd_counter_export() gives
 *   - an add or take in a process that closed the descriptor is not announced until the
 *     next of another process; if the number is another file, that file is read or
 *     written
 *   - of the settings only maximum and overflow can be changed, by
 *     flowfd_counter_set_flow(); FLOWFD_NONBLOCK is as it was created
 *   - edge-triggered pollers get an edge for the first add after a take
 *   - a signal can interrupt a call that waits (-EINTR), also with SA_RESTART
 *   - a process that is killed, stopped or not run in the middle of a call can delay the
 *     wakeup of others until the next take
 *
 * With FLOWFD_ONE_CONSUMER the program says that one thread at a time takes or polls, and
 * that the last take of all, before any thread polls the descriptor or waits in
 * flowfd_take(), has found nothing (-EAGAIN). So a signal handler that takes, and a thread
 * that lets another go on, take until flowfd_try_take() returns -EAGAIN. Without the module
 * this saves two system calls for each take, and one for each sleep in flowfd_take().
 *
 * With FLOWFD_NO_POLL the program says that nobody polls the descriptor: threads sleep in
 * flowfd_add() and flowfd_take() alone. Without the module they sleep on a futex(2), there
 * is no eventfd, and any number of threads may take.
 *
 * The environment variable FLOWFD_BACKEND is for tests of a program that sets
 * FLOWFD_FALLBACK: "module" does not fall back, "fallback" does in any case. Programs
 * that run set-user-ID ignore it. Not async-signal-safe. Returns 0, an error of
 * flowfd_counter_create_from() or flowfd_counter_map(), or
 *   -EINVAL      an unknown option or FLOWFD_BACKEND
 *   -EOPNOTSUPP  only the module has this: a bucket (unless FLOWFD_OPTIONAL_BUCKET is
 *                set), a semaphore with a maximum; or eventfd(2) does not take all values
 */
int flowfd_counter_open(struct flowfd_counter *c,
			const struct flowfd_create_counter *settings, size_t size,
			unsigned int options);

/**
 * flowfd_counter_export - the descriptors that make a counter, to send to another process
 * @c: a counter
 * @fds: receives the descriptors, which stay those of @c
 *
 * Send them by SCM_RIGHTS of unix(7), or let them be inherited, in this order. Whoever
 * has them can add, take, and disturb those who use the counter. Returns their number, 1
 * with the module and 1 or 2 without it, or
 *   -EOPNOTSUPP  a semaphore made without the module: its @fd is an eventfd(2)
 *   -ENODEV      made without the module, and unmapped
 */
int flowfd_counter_export(const struct flowfd_counter *c, int fds[FLOWFD_EXPORT_MAX]);

/**
 * flowfd_counter_import - make a counter of descriptors from flowfd_counter_export()
 * @c: filled in, if the call succeeds; flowfd_counter_close() ends it
 * @fds: descriptors in the order of flowfd_counter_export(); on success they are @c's
 * @count: their number
 *
 * The counter is as its maker opened it, whether with the module or without it. The sender
 * needs no trust but for the counter itself: files that are not what they must be are
 * refused. Returns 0, an error of flowfd_counter_map(), or
 *   -EINVAL           @count is 0 or above FLOWFD_EXPORT_MAX
 *   -ENOTTY           a descriptor of another kind, or in another order; or memory that
 *                     can still shrink
 *   -EPROTONOSUPPORT  memory of a version that this library does not know
 */
int flowfd_counter_import(struct flowfd_counter *c, const int *fds, unsigned int count);

/**
 * flowfd_counter_set_flow - as flowfd_set_flow(), also without the module
 * @c: a counter
 * @flow: as flowfd_set_flow()
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Without the module a counter has a maximum and what happens to an add that does not
 * fit, and 0 does not say that those who wait for room were told. With the module, a
 * counter in memory has a bucket, too. Returns as flowfd_set_flow(), or
 *   -EOPNOTSUPP  made without the module, and @flow has a mark above 1, a delay, a bucket
 *                or FLOWFD_SEAL; or it is a semaphore
 *   -ENODEV      made without the module, and unmapped
 */
int flowfd_counter_set_flow(const struct flowfd_counter *c,
			    const struct flowfd_flow *flow, size_t size);

/**
 * flowfd_counter_get_flow - as flowfd_get_flow(), also without the module
 * @c: a counter
 * @flow: receives settings, count and what was lost
 * @size: sizeof(*flow) in the compiled caller, in bytes
 *
 * Without the module the fields are not of one moment. Returns as flowfd_get_flow(), or
 * -EOPNOTSUPP or -ENODEV as flowfd_counter_set_flow().
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
 * A counter that is not mapped is no error: flowfd_counter_is_mapped() tells. Whoever
 * has the descriptor of a mapped counter can disturb those who use it, but cannot
 * harm them otherwise. Returns 0, or
 *   -EINVAL           no role, or an unknown one
 *   -ENOTTY           not a counter of flowfd
 *   -EBADF            not a descriptor
 *   -EACCES           in memory, and not open for reading and writing
 *   -EPROTONOSUPPORT  a counter of a version that this library does not know
 *   -EPERM            on older kernels, with the personality READ_IMPLIES_EXEC; or a
 *                     filter of seccomp(2) refuses a call, such as fstatfs(2)
 *   -ENOMEM           no memory, or RLIMIT_MEMLOCK would be exceeded after mlockall(2)
 */
int flowfd_counter_map(struct flowfd_counter *c, int fd, unsigned int roles);

/**
 * flowfd_counter_unmap - unmap a counter
 * @c: a counter that no other function uses
 *
 * The descriptor stays open, and further calls with @c are system calls. But if it was
 * made without the module, they return -ENODEV, and flowfd_features() is 0.
 */
void flowfd_counter_unmap(struct flowfd_counter *c);

/**
 * flowfd_counter_write - add by a system call
 * @c: a counter
 * @value: as flowfd_write()
 *
 * flowfd_add() calls it if there is no room. Waits and returns as that.
 */
int flowfd_counter_write(const struct flowfd_counter *c, uint64_t value);

/**
 * flowfd_counter_read - take by a system call
 * @c: a counter
 * @value: receives the count
 *
 * flowfd_take() calls it if there is no count. Waits and returns as that.
 */
int flowfd_counter_read(const struct flowfd_counter *c, uint64_t *value);

/**
 * flowfd_counter_try_read - take what there is, without waiting
 * @c: a counter
 * @value: receives the count
 *
 * flowfd_try_take() calls it if there is no count. Returns as flowfd_try_take().
 */
int flowfd_counter_try_read(const struct flowfd_counter *c, uint64_t *value);

/**
 * flowfd_add_with - add, with a timeout or urgently
 * @c: a counter
 * @value: as flowfd_add()
 * @timeout: as flowfd_write_with()
 * @flags: as flowfd_write_with()
 *
 * Adds in memory if there is room, unless it is urgent. Without timeout and flags it is
 * flowfd_add(), for which any module is new enough. Returns as flowfd_write_with(), or
 * -EPERM as flowfd_add().
 * Without the module an add is urgent in any case, and a semaphore knows neither
 * @timeout nor FLOWFD_NONBLOCK (-EOPNOTSUPP), unless its descriptor is non-blocking.
 */
int flowfd_add_with(const struct flowfd_counter *c, uint64_t value, uint64_t timeout,
		    unsigned int flags);

/**
 * flowfd_take_with - take, with a timeout
 * @c: a counter
 * @value: receives the count
 * @timeout: as flowfd_read_with()
 * @flags: as flowfd_read_with()
 *
 * Takes what is in memory, and waits as flowfd_read_with() if there is nothing. Without
 * timeout and flags it is flowfd_take(). Returns as flowfd_read_with(), or
 *   -EOPNOTSUPP  a semaphore made without the module, before Linux 5.8
 */
int flowfd_take_with(const struct flowfd_counter *c, uint64_t *value, uint64_t timeout,
		     unsigned int flags);

/**
 * flowfd_take_spin - take, and look for a while before sleeping
 * @c: a counter
 * @value: receives the count
 * @ns: how long to look, in ns; a second at most, as a signal does not end it
 *
 * For a count that comes sooner than a thread falls asleep and is woken, on a processor
 * that no other thread needs meanwhile. Then it is flowfd_take(), and returns as that.
 */
int flowfd_take_spin(const struct flowfd_counter *c, uint64_t *value, uint64_t ns);

/**
 * flowfd_counter_notify - have the count looked at
 * @c: a counter
 * @role: FLOWFD_PRODUCER: the caller has added; FLOWFD_CONSUMER: it has taken
 *
 * flowfd_add() and flowfd_take() call it if somebody sleeps or polls. It is also for
 * programs that change the words of a mapped counter themselves; see <linux/flowfd.h>.
 * Wakes those who can proceed; if nobody can, it does nothing. Returns 0, or
 *   -ENODEV  not mapped
 *   -EPERM   nobody was told: the descriptor was closed, or a filter of seccomp(2)
 *            refuses the calls that tell. Without the module only if there was
 *            somebody to tell
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
 * Returns FLOWFD_HAS_* bits. A counter of the module has all, but FLOWFD_HAS_MEMORY
 * only if it is mapped, and FLOWFD_HAS_FLOW and FLOWFD_HAS_OVERFLOW only with
 * FLOWFD_FEATURE_FLOW. One that flowfd_counter_open() made without the module has
 * FLOWFD_HAS_MEMORY, FLOWFD_HAS_OVERFLOW and, without FLOWFD_NO_POLL, FLOWFD_HAS_POLL; if
 * it is a semaphore, it has FLOWFD_HAS_CALLS and FLOWFD_HAS_POLL.
 */
FLOWFD_INLINE unsigned int flowfd_features(const struct flowfd_counter *c);

/**
 * flowfd_add - add to the count, in memory
 * @c: a counter
 * @value: 0 to ULLONG_MAX - 1
 *
 * Waits until count + @value is below the maximum, if the descriptor is blocking. What
 * fits at once overtakes writers that wait. All that was stored before is visible to who
 * takes. Returns 0, or
 *   -EPERM   the value was added, but nobody was told: the descriptor was closed, or a
 *            filter of seccomp(2) refuses the calls that tell. After any other error
 *            nothing was added
 *   -EAGAIN  it does not fit, and the descriptor is non-blocking or the policy is to
 *            fail. Without the module also if others change the count at each look, of
 *            which there is a limited number
 *   -EINTR   interrupted by a signal
 *   -EINVAL  @value is ULLONG_MAX, or not below the maximum: it could never fit
 *   -EBADF   it does not fit, and the descriptor was closed
 *   -EACCES  it does not fit, and a filter of seccomp(2) refuses a call
 *   -ENODEV  made without the module, and unmapped
 */
FLOWFD_INLINE int flowfd_add(const struct flowfd_counter *c, uint64_t value);

/**
 * flowfd_take - take the count, in memory
 * @c: a counter
 * @value: receives the count, which becomes 0 (of a semaphore: as flowfd_read())
 *
 * Waits until the count is above 0, if the descriptor is blocking. With a read mark
 * (flowfd_set_flow()) it takes what there is, too, and if that is nothing, it waits until
 * the counter is ready. Returns 0, or
 *   -EAGAIN  the count is 0 and the descriptor is non-blocking
 *   -EINTR   interrupted by a signal
 *   -EBADF   there is no count, and the descriptor was closed
 *   -EACCES  there is no count, and a filter of seccomp(2) refuses a call
 *   -ENODEV  made without the module, and unmapped
 */
FLOWFD_INLINE int flowfd_take(const struct flowfd_counter *c, uint64_t *value);

/**
 * flowfd_try_take - take the count, in memory, if there is one
 * @c: a counter
 * @value: receives the count, which becomes 0 (of a semaphore: as flowfd_read())
 *
 * Never waits, also if the descriptor is blocking. To find no count takes no system
 * call, but without the module a read(2) each 64th time. If the counter is not mapped,
 * it is a preadv2(2) with RWF_NOWAIT, which eventfd(2) has since Linux 5.8. Returns 0, or
 *   -EAGAIN      the count is 0
 *   -EBADF       a system call was needed, and the descriptor was closed
 *   -EACCES      there is no count, and a filter of seccomp(2) refuses a call
 *   -ENODEV      made without the module, and unmapped
 *   -EOPNOTSUPP  a semaphore made without the module, before Linux 5.8
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
