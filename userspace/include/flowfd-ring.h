/* SPDX-License-Identifier: MIT */
/*
 * The ring of libflowfd: included by <flowfd.h>.
 *
 * A ring watches files as edge-triggered epoll(7) does and leaves their events
 * in memory that it shares with its consumer, which takes them without a system
 * call. Source of the idea: Roman Penyaev's uepoll patches to epoll (2019);
 * flowfd(7) says what is different.
 *
 * Watched files must be non-blocking and must be read or written until EAGAIN: an
 * event says what the file announced, and the file may have nothing to read by the
 * time the event is taken.
 *
 * Threads: only one thread at a time may take events (flowfd_ring_next(),
 * flowfd_ring_harvest(), a cursor from its begin to its end) or wait
 * (flowfd_ring_wait(), flowfd_ring_wait_with()); threads may hand both over under a
 * lock of their own. Programs compiled with FLOWFD_DEBUG defined abort if two threads
 * take events at the same time. Any thread may poll the descriptor, and add, change
 * and remove files, at any time. flowfd_ring_destroy() must be called when no
 * other function uses the ring. All functions except flowfd_ring_strerror() are
 * async-signal-safe, but a signal handler counts as another consumer.
 *
 * The functions return a negative errno on failure and never set errno.
 */
#ifndef FLOWFD_RING_H
#define FLOWFD_RING_H

#include <stddef.h>
#include <stdint.h>

#include <linux/flowfd.h>

#ifdef FLOWFD_DEBUG
#include <stdio.h>
#include <stdlib.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Timeouts in nanoseconds: flowfd_ring_wait(&ring, FLOWFD_MS(50)). */
#define FLOWFD_MS(n)  ((uint64_t)(1000000ULL * (n)))
#define FLOWFD_SEC(n) ((uint64_t)(1000000000ULL * (n)))

/**
 * struct flowfd_ring - a ring in this process
 * @fd: its descriptor, for poll(2), epoll(7), io_uring(7), or to send to another
 *      process; all other members are the library's
 *
 * It may be moved (copied, and the original not used any more) while no function
 * uses it and no cursor is open. Two copies must not both take events, as each has
 * its own position in the index; the same is true of parent and child after fork(2).
 */
struct flowfd_ring {
	int fd;
	/* private: */
	uint32_t mask;
	uint32_t head;
	uint32_t consuming;
	struct flowfd_ring_header *header;
	struct flowfd_ring_item *items;
	uint32_t *index;
	uint32_t map_size;
	uint32_t reserved[5];
};

/**
 * struct flowfd_event - what happened to a watched file
 * @events: EPOLL* bits that the file announced since its last event was taken
 * @reserved: 0
 * @data: as given when the file was added or changed
 */
struct flowfd_event {
	uint32_t events;
	uint32_t reserved;
	uint64_t data;
};

/**
 * flowfd_ring_create - create a ring and map it
 * @ring: filled in, if the call succeeds
 * @max_items: how many files it can watch, 1 to FLOWFD_RING_ITEMS_MAX
 * @flags: FLOWFD_KEEP_ON_EXEC, or 0
 *
 * Returns 0, an error of opening the device as flowfd_counter_create(), or
 *   -EPROTONOSUPPORT  module and library do not match, or the module has no rings
 *   -EINVAL           @max_items out of range, or an unknown flag
 *   -ENOMEM           no memory, or RLIMIT_MEMLOCK would be exceeded
 *   -EMFILE -ENFILE   no descriptor left
 */
int flowfd_ring_create(struct flowfd_ring *ring, uint32_t max_items, unsigned int flags);

/**
 * flowfd_ring_attach - map a ring that another process created
 * @ring: filled in, if the call succeeds
 * @fd: its descriptor as it was received; @ring owns it after success
 *
 * Continues where the previous consumer stopped. That consumer must not take events
 * any more, and must not have stopped in the middle of a harvest. Processes that map
 * a ring must trust each other: each can write its memory, and harvesting uses the
 * numbers in the index unchecked. Returns 0, or
 *   -EPROTONOSUPPORT  a ring of a version that this library does not know
 *   -ENOTTY           not a ring
 *   -EBADF            not a descriptor
 *   -ENOMEM           no memory
 */
int flowfd_ring_attach(struct flowfd_ring *ring, int fd);

/**
 * flowfd_ring_destroy - unmap a ring and close its descriptor
 * @ring: created or attached
 *
 * Its watches end with the last descriptor and the last mapping, including those
 * of forked children.
 */
void flowfd_ring_destroy(struct flowfd_ring *ring);

/**
 * flowfd_ring_add - watch a file
 * @ring: ring
 * @fd: the file, which must be non-blocking
 * @events: EPOLL* bits of <sys/epoll.h>, which must include EPOLLET and may
 *          include EPOLLONESHOT
 * @data: returned with each event
 *
 * If the file is ready now, there is an event at once. The watch of a socket, an
 * unnamed pipe or a counter ends when the file is closed. Any other file is pinned:
 * the watch keeps it open, so remove it before you close it, or with
 * flowfd_ring_del_data() afterwards. Returns 0, or
 *   -EBADF       not a descriptor
 *   -EINVAL      no EPOLLET, or a bit that is not allowed
 *   -EOPNOTSUPP  the file has more than two wait queues
 *   -EPERM       this kind of file cannot be watched
 *   -ELOOP       a ring, an epoll or an io_uring
 *   -EEXIST      watched already
 *   -ENOSPC      the ring watches max_items files
 *   -ENOMEM      no memory
 * flowfd_ring_strerror() describes them. To learn whether the file is pinned, use
 * flowfd_ring_control(): the result of the entry then has FLOWFD_RING_PINNED.
 */
int flowfd_ring_add(const struct flowfd_ring *ring, int fd, uint32_t events,
		    uint64_t data);

/**
 * flowfd_ring_add_pinned - watch a file that will be removed before it is closed
 * @ring: ring
 * @fd: the file, which must be non-blocking
 * @events: as flowfd_ring_add()
 * @data: as flowfd_ring_add()
 *
 * As flowfd_ring_add(), but sockets other than UNIX sockets, pipes and counters
 * are pinned, too: the peer of a socket does not see a close before the removal.
 * That is cheaper, as the kernel need not watch for a close.
 */
int flowfd_ring_add_pinned(const struct flowfd_ring *ring, int fd, uint32_t events,
			   uint64_t data);

/**
 * flowfd_ring_mod - change a watch, or rearm a one-shot watch
 * @ring: ring
 * @fd: watched
 * @events: as flowfd_ring_add()
 * @data: as flowfd_ring_add()
 *
 * Events that were not taken are dropped; if the file is ready now, there is an
 * event at once. Returns 0, -EBADF, -EINVAL, or -ENOENT if @fd is not watched.
 */
int flowfd_ring_mod(const struct flowfd_ring *ring, int fd, uint32_t events,
		    uint64_t data);

/**
 * flowfd_ring_del - stop watching a file
 * @ring: ring
 * @fd: watched
 *
 * No event of this file is taken afterwards. Returns 0, -EBADF, or -ENOENT if @fd
 * is not watched.
 */
int flowfd_ring_del(const struct flowfd_ring *ring, int fd);

/**
 * flowfd_ring_del_data - remove every watch with this data
 * @ring: ring
 * @data: as given to flowfd_ring_add() or flowfd_ring_mod()
 *
 * Use it to remove a file that was closed while it was pinned. It examines all
 * watches of the ring, so flowfd_ring_del() is cheaper. Returns 0, or -ENOENT if no
 * watch has this data.
 */
int flowfd_ring_del_data(const struct flowfd_ring *ring, uint64_t data);

/**
 * flowfd_ring_control - add, change and remove many files in one system call
 * @ring: ring
 * @entries: array of control entries, carried out in order; each receives its
 *           result
 * @count: length of @entries, at most FLOWFD_RING_ITEMS_MAX
 *
 * Returns how many entries failed, or
 *   -EINVAL  too many entries
 *   -EFAULT  bad address; the entries before it were carried out
 */
int flowfd_ring_control(const struct flowfd_ring *ring, struct flowfd_ring_entry *entries,
			uint32_t count);

/**
 * flowfd_ring_wait - wait for an event
 * @ring: ring
 * @timeout: nanoseconds to wait at most, as FLOWFD_MS(50); 0: do not wait;
 *           FLOWFD_RING_FOREVER: no limit
 *
 * Call it when there is nothing to harvest; otherwise it returns at once. Returns
 * how many entries the index has, 1 or more (an entry has no event if its file was
 * removed, so a harvest can take fewer), 0 after the timeout, or -EINTR if a signal
 * interrupted it.
 */
int flowfd_ring_wait(const struct flowfd_ring *ring, uint64_t timeout);

/**
 * flowfd_ring_wait_with - wait for several events, or with a signal mask
 * @ring: ring
 * @args: how to wait
 * @size: sizeof(*args) in the compiled caller, in bytes
 *
 * Returns as flowfd_ring_wait(), after the timeout how many entries there are, or
 *   -EINVAL           an unknown flag, a reserved field that is not zero, more
 *                     events than the ring has slots, a wrong size of the mask,
 *                     or an impossible @size
 *   -EFAULT           bad address of the mask
 *   -EPROTONOSUPPORT  the module is too old for what @args asks for
 */
int flowfd_ring_wait_with(const struct flowfd_ring *ring,
			  const struct flowfd_ring_wait *args, size_t size);

/**
 * flowfd_ring_strerror - describe an error of a function of a ring
 * @error: a negative errno
 *
 * For an error of flowfd_ring_add() the text is its cause, for others that of
 * flowfd_strerror(), whose rules apply.
 */
const char *flowfd_ring_strerror(int error);

/* The library defines it as empty, to export these functions for other languages. */
#ifndef FLOWFD_INLINE
#define FLOWFD_INLINE static inline
#endif

/**
 * struct flowfd_cursor - the position of a consumer while it takes events
 *
 * All members are the library's. This is the cheapest way to take events: as a local
 * variable the cursor lives in registers, and events need not be stored.
 *
 *	struct flowfd_cursor cursor = flowfd_cursor_begin(&ring);
 *	struct flowfd_event event;
 *
 *	while (flowfd_cursor_next(&cursor, &event))
 *		handle(&event);
 *	flowfd_cursor_end(&cursor);
 */
struct flowfd_cursor {
	/* private: */
	struct flowfd_ring *ring;
	struct flowfd_ring_item *items;
	uint32_t *slot;
	uint32_t head;
};

/**
 * flowfd_cursor_begin - begin to take events
 * @ring: ring; until flowfd_cursor_end() no other thread may take events from it,
 *        wait on it, or move it
 */
static inline struct flowfd_cursor flowfd_cursor_begin(struct flowfd_ring *ring);

/**
 * flowfd_cursor_next - take one event, without a system call
 * @cursor: begun
 * @event: receives it
 *
 * Files may be added and removed between two calls: events of a removed file are
 * not taken any more. Returns 1, or 0 if there is none.
 */
static inline int flowfd_cursor_next(struct flowfd_cursor *cursor,
				     struct flowfd_event *event);

/**
 * flowfd_cursor_end - stop taking events
 * @cursor: begun; events that it did not take stay in the ring
 *
 * Call this on every exit path, including exceptions and cancellation: otherwise
 * the ring gives no events any more.
 */
static inline void flowfd_cursor_end(const struct flowfd_cursor *cursor);

/**
 * flowfd_ring_harvest - take events, without a system call
 * @ring: ring
 * @events: receives them
 * @count: length of @events
 *
 * Returns how many events were taken; 0: there are none. @events can hold an event of
 * a file that the program removes while it handles an earlier one; and, unlike
 * epoll_wait(2), two events of one file, if the second was announced meanwhile.
 * With flowfd_ring_next() neither happens.
 */
FLOWFD_INLINE unsigned int flowfd_ring_harvest(struct flowfd_ring *ring,
					       struct flowfd_event *events,
					       unsigned int count);

/**
 * flowfd_ring_next - take one event, without a system call
 * @ring: ring
 * @event: receives it
 *
 * Files may be added and removed between two calls: events of a removed file are
 * not taken any more. Returns 1, or 0 if there is none.
 *
 *	while (flowfd_ring_next(&ring, &event))
 *		handle(&event);
 */
FLOWFD_INLINE int flowfd_ring_next(struct flowfd_ring *ring, struct flowfd_event *event);

#ifdef FLOWFD_DEBUG
static inline void flowfd_ring_claim(struct flowfd_ring *ring)
{
	if (!__atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE))
		return;
	fputs("flowfd: two consumers harvest one ring at the same time\n", stderr);
	abort();
}

static inline void flowfd_ring_disclaim(struct flowfd_ring *ring)
{
	__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
}
#else
static inline void flowfd_ring_claim(struct flowfd_ring *ring)
{
	(void)ring;
}

static inline void flowfd_ring_disclaim(struct flowfd_ring *ring)
{
	(void)ring;
}
#endif

/*
 * Clears the flag and takes the bits: steps H3 and H4 of docs/ring.md, whose letters
 * name the barriers.
 * c: the flag is cleared by a release store, after the slot was emptied.
 * b: a full barrier between the flag and the bits. Pairs with a, the publisher's
 *    between the bits and the flag: either this takes the new bits, or the publisher
 *    finds the flag cleared and makes another entry.
 * f: the exchange is an acquire, so that the data is loaded after the bits.
 */
static inline uint32_t flowfd_ring_take_bits(struct flowfd_ring_item *item)
{
#ifdef __x86_64__
	/* One locked instruction is c, b and f. The bits are the lower half. */
	typedef uint64_t __attribute__((__may_alias__)) flag_and_bits;

	return (uint32_t)__atomic_exchange_n((flag_and_bits *)item, 0, __ATOMIC_SEQ_CST);
#else
	__atomic_store_n(&item->queued, 0, __ATOMIC_RELEASE);	       /* c */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);		       /* b */
	return __atomic_exchange_n(&item->ready, 0, __ATOMIC_ACQUIRE); /* f */
#endif
}

/* Slots hold an item's number plus one: @items begins one item early. */
static inline struct flowfd_cursor flowfd_cursor_begin(struct flowfd_ring *ring)
{
	uint32_t place = ring->head & ring->mask;
	struct flowfd_cursor cursor;

	flowfd_ring_claim(ring);
	cursor.ring = ring;
	cursor.items = ring->items - 1;
	cursor.slot = ring->index + place;
	cursor.head = ring->head - place;
	return cursor;
}

/* Behind the last slot is one that stays empty: goes back to the first. */
static inline int flowfd_cursor_wrap(struct flowfd_cursor *cursor)
{
	const struct flowfd_ring *ring = cursor->ring;

	if (cursor->slot != ring->index + ring->mask + 1)
		return 0;
	cursor->slot = ring->index;
	cursor->head += ring->mask + 1;
	return 1;
}

static inline int flowfd_cursor_next(struct flowfd_cursor *cursor,
				     struct flowfd_event *event)
{
	struct flowfd_ring_item *item;
	uint32_t number;

	for (;;) {
		/* H1: an acquire, as the C language has no dependencies. */
		number = __atomic_load_n(cursor->slot, __ATOMIC_ACQUIRE);
		if (__builtin_expect(!number, 0)) {
			if (!flowfd_cursor_wrap(cursor))
				return 0;
			continue;
		}
		/* H2, before the flag is cleared (c): the next entry may come here. */
		__atomic_store_n(cursor->slot, 0, __ATOMIC_RELAXED);
		cursor->slot++;
		item = cursor->items + number;
		event->events = flowfd_ring_take_bits(item);
		if (__builtin_expect(event->events != 0, 1)) {
			event->reserved = 0;
			/* H5, after the bits were taken (f). */
			event->data = __atomic_load_n(&item->data, __ATOMIC_RELAXED);
			return 1;
		}
	}
}

static inline void flowfd_cursor_end(const struct flowfd_cursor *cursor)
{
	struct flowfd_ring *ring = cursor->ring;

	ring->head = cursor->head + (uint32_t)(cursor->slot - ring->index);
	/* Before a wait: the kernel then looks at the slot there (S2, after e). */
	__atomic_store_n(&ring->header->head, ring->head, __ATOMIC_RELEASE);
	flowfd_ring_disclaim(ring);
}

FLOWFD_INLINE unsigned int flowfd_ring_harvest(struct flowfd_ring *ring,
					       struct flowfd_event *events,
					       unsigned int count)
{
	struct flowfd_cursor cursor = flowfd_cursor_begin(ring);
	unsigned int taken = 0;

	while (taken < count && flowfd_cursor_next(&cursor, &events[taken]))
		taken++;
	flowfd_cursor_end(&cursor);
	return taken;
}

FLOWFD_INLINE int flowfd_ring_next(struct flowfd_ring *ring, struct flowfd_event *event)
{
	return (int)flowfd_ring_harvest(ring, event, 1);
}

#ifdef __cplusplus
}
#endif

#endif /* FLOWFD_RING_H */
