/* SPDX-License-Identifier: MIT */
/*
 * The ring of libflowfd: included by <flowfd.h>, whose rules apply.
 *
 * Watched files must be non-blocking and must be read or written until EAGAIN: an
 * event says what the file announced, and the file may have nothing to read by the
 * time the event is taken.
 *
 * Only one thread at a time may take events, revive posts or wait; see THREADS in
 * flowfd(7). A signal handler counts as another consumer. Of a ring without the module,
 * only harvests and posts are async-signal-safe.
 */
#ifndef FLOWFD_RING_H
#define FLOWFD_RING_H

#include <errno.h>
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

/* What flowfd_ring_features() returns. */
#define FLOWFD_HAS_EVENTS  (1U << 8)  /* events arrive in memory, without a wait */
#define FLOWFD_HAS_CLOSES  (1U << 9)  /* a closed file has no events; or it is pinned */
#define FLOWFD_HAS_SHARING (1U << 10) /* other processes can attach and keep the ring */

/**
 * struct flowfd_ring - a ring in this process
 * @fd: its descriptor, for poll(2), epoll(7), io_uring(7), or to send to another
 *      process; all other members are the library's
 *
 * flowfd_ring_create(3) says when it may be moved and copied.
 */
struct flowfd_ring {
	int fd;
	/* private: */
	uint32_t mask;
	uint32_t map_size;
	uint32_t max_items;
	struct flowfd_ring_header *header;
	struct flowfd_ring_item *items;
	uint32_t *index;
	struct flowfd_watches *watches; /* NULL with the module */
	uint32_t features;
	int32_t doorbell;
	/* The consumer's, 64 bytes away from what posting reads. */
	uint32_t reserved[13];
	uint32_t posts_at;
	uint32_t head;
	uint32_t consuming;
};

/**
 * struct flowfd_event - what happened to a watched file, or what was posted
 * @events: EPOLL* bits that the file announced since its last event was taken; of a
 *          post, the bits that were posted since then
 * @reserved: 0
 * @data: as given when the file or the post was added, or the file changed
 */
struct flowfd_event {
	uint32_t events;
	uint32_t reserved;
	uint64_t data;
};

/**
 * flowfd_ring_create - create a ring and map it
 * @ring: filled in, if the call succeeds
 * @max_items: how many files and posts it can have, 1 to FLOWFD_RING_ITEMS_MAX
 * @flags: FLOWFD_KEEP_ON_EXEC, FLOWFD_FALLBACK, or 0
 *
 * Returns 0, -ENODEV, -EACCES, -EPROTONOSUPPORT, -EINVAL, -ENOMEM, -EPERM, -EMFILE,
 * -ENFILE, -ENOSPC or -EOPNOTSUPP.
 */
int flowfd_ring_create(struct flowfd_ring *ring, uint32_t max_items, unsigned int flags);

/**
 * flowfd_ring_attach - map a ring that another process created
 * @ring: filled in, if the call succeeds
 * @fd: its descriptor as it was received; @ring owns it after success
 *
 * Processes that map a ring must trust each other: each can write its memory, and
 * harvesting uses the numbers in the index unchecked. Returns 0, -EPROTONOSUPPORT,
 * -ENOTTY, -EBADF, -EPERM or -ENOMEM.
 */
int flowfd_ring_attach(struct flowfd_ring *ring, int fd);

/**
 * flowfd_ring_destroy - unmap a ring and close its descriptor
 * @ring: created or attached; no other function uses it
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
 * A file other than a socket, an unnamed pipe or a counter is pinned: the watch keeps it
 * open, so remove it before you close it. Returns 0, -EBADF, -EINVAL, -EOPNOTSUPP, -EPERM,
 * -ELOOP, -EEXIST, -ENOSPC, -EMFILE, -ENFILE, -ENOMEM or -ECHILD, which
 * flowfd_ring_strerror() describes.
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
 * Cheaper than flowfd_ring_add(): all but UNIX sockets are pinned. Returns as that.
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
 * Returns 0, -EBADF, -EINVAL, -ENOENT or -ECHILD.
 */
int flowfd_ring_mod(const struct flowfd_ring *ring, int fd, uint32_t events,
		    uint64_t data);

/**
 * flowfd_ring_del - stop watching a file
 * @ring: ring
 * @fd: watched
 *
 * Returns 0, -EBADF, -ENOENT or -ECHILD.
 */
int flowfd_ring_del(const struct flowfd_ring *ring, int fd);

/**
 * flowfd_ring_del_data - remove every watch and every post with this data
 * @ring: ring
 * @data: as given to flowfd_ring_add(), flowfd_ring_mod() or flowfd_ring_add_post()
 *
 * Returns 0, -ENOENT or -ECHILD.
 */
int flowfd_ring_del_data(const struct flowfd_ring *ring, uint64_t data);

/**
 * flowfd_ring_add_post - add an item that any thread can post
 * @ring: ring
 * @data: returned with each event
 *
 * Returns the number of the item, 0 or more, or -ENOSPC, -EINVAL or -ECHILD.
 */
int flowfd_ring_add_post(const struct flowfd_ring *ring, uint64_t data);

/**
 * flowfd_ring_del_post - remove such an item, which nobody may post any more
 * @ring: ring
 * @item: its number
 *
 * Returns 0, -ENOENT, -EINVAL or -ECHILD.
 */
int flowfd_ring_del_post(const struct flowfd_ring *ring, uint32_t item);

/**
 * flowfd_ring_revive_post - deliver what a process left that died as it posted
 * @ring: ring; the caller is its consumer
 * @item: a post, which may have been removed
 *
 * Returns 1 if the item was silent and its bits are now posted, 0 if there was nothing to
 * do, or -EINVAL.
 */
int flowfd_ring_revive_post(struct flowfd_ring *ring, uint32_t item);

/**
 * flowfd_ring_control - add, change and remove many files and posts in one system call
 * @ring: ring
 * @entries: array of control entries, carried out in order; each receives its
 *           result
 * @count: length of @entries, at most FLOWFD_RING_ITEMS_MAX
 *
 * Returns how many entries failed, or -EINVAL, -EFAULT or -ECHILD.
 */
int flowfd_ring_control(const struct flowfd_ring *ring, struct flowfd_ring_entry *entries,
			uint32_t count);

/**
 * flowfd_ring_wait - wait for an event
 * @ring: ring
 * @timeout: nanoseconds to wait at most, as FLOWFD_MS(50); 0: do not wait;
 *           FLOWFD_RING_FOREVER: no limit
 *
 * Call it when there is nothing to harvest. Returns how many entries the index has, 1 if
 * there are only posts, 0 after the timeout, or -EINTR or -ECHILD.
 */
int flowfd_ring_wait(const struct flowfd_ring *ring, uint64_t timeout);

/**
 * flowfd_ring_wait_with - wait for several events, or with a signal mask
 * @ring: ring
 * @args: how to wait
 * @size: sizeof(*args) in the compiled caller, in bytes
 *
 * Returns as flowfd_ring_wait(), after the timeout how many entries there are, or
 * -EINVAL, -EFAULT or -EPROTONOSUPPORT.
 */
int flowfd_ring_wait_with(const struct flowfd_ring *ring,
			  const struct flowfd_ring_wait *args, size_t size);

/**
 * flowfd_ring_stats - read what was counted of a ring
 * @ring: ring
 * @stats: receives the numbers; those that the module does not know become 0
 * @size: sizeof(*stats) in the compiled caller, in bytes
 *
 * Returns 0, -EINVAL, -EFAULT, -EOPNOTSUPP or -EPROTONOSUPPORT.
 */
int flowfd_ring_stats(const struct flowfd_ring *ring, struct flowfd_ring_stats *stats,
		      size_t size);

/**
 * flowfd_ring_strerror - describe an error of a function of a ring
 * @error: as flowfd_strerror(), which describes other errors
 */
const char *flowfd_ring_strerror(int error);

/* The library defines it as empty, to export these functions for other languages. */
#ifndef FLOWFD_INLINE
#define FLOWFD_INLINE static inline
#endif
/**
 * flowfd_ring_features - what a ring can do
 * @ring: ring
 *
 * Returns FLOWFD_HAS_EVENTS, FLOWFD_HAS_CLOSES and FLOWFD_HAS_SHARING, or 0 for a ring
 * without the module.
 */
FLOWFD_INLINE unsigned int flowfd_ring_features(const struct flowfd_ring *ring);

/* How many events of files flowfd_ring_next() takes before it looks for posts. */
#define FLOWFD_RING_TURN 64
/* What must not make the compiler store a cursor in memory. */
#define FLOWFD_ALWAYS_INLINE __attribute__((__always_inline__)) static inline

/**
 * struct flowfd_cursor - the position of a consumer while it takes events
 *
 * All members are the library's. As a local variable it lives in registers.
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
 * flowfd_cursor_next - take one event, as flowfd_ring_next()
 * @cursor: begun
 * @event: receives it
 *
 * Returns 1, or 0 if there is none.
 */
FLOWFD_ALWAYS_INLINE int flowfd_cursor_next(struct flowfd_cursor *cursor,
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
 * @events can hold an event of a file that is removed because of an earlier one. Returns
 * how many events were taken; 0: there are none.
 */
FLOWFD_INLINE unsigned int flowfd_ring_harvest(struct flowfd_ring *ring,
					       struct flowfd_event *events,
					       unsigned int count);

/**
 * flowfd_ring_next - take one event, without a system call
 * @ring: ring
 * @event: receives it
 *
 * Returns 1, or 0 if there is none.
 */
FLOWFD_INLINE int flowfd_ring_next(struct flowfd_ring *ring, struct flowfd_event *event);

/**
 * flowfd_ring_post - tell the consumer of a ring something, without a system call
 * @ring: ring, or a copy of it
 * @item: from flowfd_ring_add_post()
 * @bits: of the program's own choice; 0: nothing is posted
 *
 * In any thread of any process that has mapped the ring, and in a signal handler. Returns
 * 0, -EINVAL, or -EBADF or another error of ioctl(2): posted, but nobody was woken.
 */
FLOWFD_INLINE int flowfd_ring_post(const struct flowfd_ring *ring, uint32_t item,
				   uint32_t bits);

/**
 * flowfd_ring_notify - wake those that wait for a ring with posts
 * @ring: ring
 *
 * flowfd_ring_post() calls this where needed. Returns 0, or an error as that does.
 */
int flowfd_ring_notify(const struct flowfd_ring *ring);

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

/* Only a consumer changes it. */
static inline uint32_t flowfd_ring_epoch(const struct flowfd_ring *ring)
{
	return __atomic_load_n(&ring->header->posted, __ATOMIC_RELAXED) &
	       FLOWFD_RING_POSTED_EPOCH;
}

/*
 * Reverses the list of posts, so that it begins with the oldest; returns that, as an
 * item number plus one, or 0. Its items are the caller's from the exchange (h) until
 * their flags are cleared. Their links have the present epoch: a poster that was stopped
 * before one of them was revived compares with a mark of an earlier epoch (P3). At most
 * so many steps as there are items: another process can store a cycle.
 */
static inline uint32_t flowfd_ring_reverse_posts(const struct flowfd_ring *ring,
						 uint32_t number)
{
	uint32_t epoch = flowfd_ring_epoch(ring), left = ring->max_items;
	uint32_t oldest = 0, link;

	for (; number - 1 < ring->max_items && left; left--) {
		uint32_t *queued = &ring->items[number - 1].queued;

		link = __atomic_load_n(queued, __ATOMIC_RELAXED);
		__atomic_store_n(queued, (epoch | oldest) << 2 | FLOWFD_RING_IN_STACK,
				 __ATOMIC_RELAXED);
		oldest = number;
		number = link >> 2 & FLOWFD_RING_POSTED_ITEM;
	}
	return oldest;
}

/* H7: takes the whole stack. */
static inline uint32_t flowfd_ring_take_stack(const struct flowfd_ring *ring,
					      uint32_t epoch)
{
	/* h: an acquire, before the links. Pairs with the pushes (i). */
	return __atomic_exchange_n(&ring->header->posted, epoch, __ATOMIC_ACQUIRE) &
	       FLOWFD_RING_POSTED_ITEM;
}

static inline int flowfd_ring_has_posts(const struct flowfd_ring *ring)
{
	const struct flowfd_ring_header *header = ring->header;

	return (__atomic_load_n(&header->posted, __ATOMIC_RELAXED) &
		FLOWFD_RING_POSTED_ITEM) ||
	       header->taken;
}

/*
 * Takes the oldest post; no events: there is none.
 *
 * @is_turn: it is the posts' turn, at position @head of the index, which may have more
 * entries there. The consumer then delivers all that it takes from the stack at once, and
 * goes on, even if there is more: neither files nor posts wait for the others to end.
 */
FLOWFD_ALWAYS_INLINE struct flowfd_event flowfd_ring_find_post(struct flowfd_ring *ring,
							       int is_turn, uint32_t head)
{
	struct flowfd_ring_header *header = ring->header;
	struct flowfd_event event = { 0, 0, 0 };
	uint32_t left = ring->max_items, number = header->taken;
	struct flowfd_ring_item *item;

	if (!number) {
		if (is_turn && ring->posts_at == head)
			return event;
		ring->posts_at = head;
		number = flowfd_ring_take_stack(ring, flowfd_ring_epoch(ring));
		number = flowfd_ring_reverse_posts(ring, number);
	}
	for (; number - 1 < ring->max_items && left; left--) {
		item = &ring->items[number - 1];
		number = __atomic_load_n(&item->queued, __ATOMIC_RELAXED) >> 2 &
			 FLOWFD_RING_POSTED_ITEM;
		/* H8, before the flag is cleared (c). */
		__atomic_store_n(&header->taken, number, __ATOMIC_RELAXED);
		event.events = flowfd_ring_take_bits(item);
		if (event.events) {
			event.data = __atomic_load_n(&item->data, __ATOMIC_RELAXED);
			return event;
		}
	}
	__atomic_store_n(&header->taken, 0, __ATOMIC_RELAXED);
	return event;
}

/* For cursors: without pointers, so that cursor and event stay in registers. */
__attribute__((__noinline__, __unused__)) static struct flowfd_event
flowfd_ring_take_post(struct flowfd_ring *ring, int is_turn, uint32_t head)
{
	return flowfd_ring_find_post(ring, is_turn, head);
}

FLOWFD_ALWAYS_INLINE int flowfd_cursor_is_at_end(const struct flowfd_cursor *cursor)
{
	return cursor->slot == cursor->ring->index + cursor->ring->mask + 1;
}

/* Behind the last slot is one that stays empty: goes back to the first. */
FLOWFD_ALWAYS_INLINE int flowfd_cursor_wrap(struct flowfd_cursor *cursor)
{
	const struct flowfd_ring *ring = cursor->ring;

	if (!flowfd_cursor_is_at_end(cursor))
		return 0;
	cursor->slot = ring->index;
	cursor->head += ring->mask + 1;
	return 1;
}

FLOWFD_ALWAYS_INLINE int flowfd_cursor_next(struct flowfd_cursor *cursor,
					    struct flowfd_event *event)
{
	struct flowfd_ring_item *item;
	uint32_t number;

	for (;;) {
		/* H1: an acquire, as the C language has no dependencies. */
		number = __atomic_load_n(cursor->slot, __ATOMIC_ACQUIRE);
		if (__builtin_expect(!number, 0)) {
			if (__builtin_expect(flowfd_ring_has_posts(cursor->ring), 0)) {
				*event = flowfd_ring_take_post(
					cursor->ring, flowfd_cursor_is_at_end(cursor),
					cursor->head);
				if (!cursor->ring->header->taken)
					flowfd_cursor_wrap(cursor);
				if (event->events)
					return 1;
			} else if (!flowfd_cursor_wrap(cursor)) {
				return 0;
			}
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

/* A turn of the posts before those of the files, for at most half of the events. */
__attribute__((__noinline__, __cold__, __unused__)) static unsigned int
flowfd_ring_harvest_posts(struct flowfd_ring *ring, struct flowfd_event *events,
			  unsigned int count)
{
	unsigned int taken = 0;

	if (!ring->header->taken)
		ring->posts_at = ring->head - 1;
	while (taken < count / 2) {
		events[taken] = flowfd_ring_take_post(ring, 1, ring->head);
		if (!events[taken].events)
			break;
		taken++;
	}
	return taken;
}

FLOWFD_INLINE unsigned int flowfd_ring_harvest(struct flowfd_ring *ring,
					       struct flowfd_event *events,
					       unsigned int count)
{
	struct flowfd_cursor cursor;
	unsigned int taken = 0;

	if (count == 1)
		return (unsigned int)flowfd_ring_next(ring, events);
	cursor = flowfd_cursor_begin(ring);
	if (__builtin_expect(flowfd_ring_has_posts(ring), 0))
		taken = flowfd_ring_harvest_posts(ring, events, count);
	while (taken < count && flowfd_cursor_next(&cursor, &events[taken]))
		taken++;
	flowfd_cursor_end(&cursor);
	return taken;
}

/* H2 to H5 for one entry; no events: they were taken before, or the file was removed. */
static inline uint32_t flowfd_ring_take_entry(struct flowfd_ring *ring, uint32_t *slot,
					      uint32_t number, struct flowfd_event *event)
{
	struct flowfd_ring_item *item = ring->items + number - 1;
	uint32_t bits;

	__atomic_store_n(slot, 0, __ATOMIC_RELAXED);
	bits = flowfd_ring_take_bits(item);
	event->events = bits;
	event->reserved = 0;
	event->data = __atomic_load_n(&item->data, __ATOMIC_RELAXED);
	ring->head++;
	__atomic_store_n(&ring->header->head, ring->head, __ATOMIC_RELEASE);
	return bits;
}

FLOWFD_INLINE unsigned int flowfd_ring_features(const struct flowfd_ring *ring)
{
	return ring->features;
}

/* There is more than one post; @number is the head of a stack that was taken, or 0. */
__attribute__((__noinline__, __unused__)) static int
flowfd_ring_next_of_posts(struct flowfd_ring *ring, struct flowfd_event *event,
			  uint32_t number)
{
	struct flowfd_event post;

	if (number)
		__atomic_store_n(&ring->header->taken,
				 flowfd_ring_reverse_posts(ring, number),
				 __ATOMIC_RELAXED);
	post = flowfd_ring_find_post(ring, 0, ring->head);
	flowfd_ring_disclaim(ring);
	if (!post.events)
		return 0;
	*event = post;
	return 1;
}

/* Where the slot is empty and there are posts: only the steps that the only one needs. */
__attribute__((__noinline__, __unused__)) static int
flowfd_ring_next_post(struct flowfd_ring *ring, struct flowfd_event *event)
{
	struct flowfd_ring_header *header = ring->header;
	struct flowfd_ring_item *item;
	uint32_t number, mark, bits;

	flowfd_ring_claim(ring);
	if (__builtin_expect(header->taken != 0, 0))
		return flowfd_ring_next_of_posts(ring, event, 0);
	number = flowfd_ring_take_stack(ring, flowfd_ring_epoch(ring));
	if (__builtin_expect(number - 1 >= ring->max_items, 0)) {
		flowfd_ring_disclaim(ring);
		return 0;
	}
	item = &ring->items[number - 1];
	mark = __atomic_load_n(&item->queued, __ATOMIC_RELAXED);
	if (__builtin_expect(mark >> 2 & FLOWFD_RING_POSTED_ITEM, 0))
		return flowfd_ring_next_of_posts(ring, event, number);
	bits = flowfd_ring_take_bits(item);
	flowfd_ring_disclaim(ring);
	if (!bits)
		return 0;
	event->events = bits;
	event->reserved = 0;
	event->data = __atomic_load_n(&item->data, __ATOMIC_RELAXED);
	return 1;
}

/* Where it is the posts' turn, and after an entry of no events. */
__attribute__((__noinline__, __unused__)) static int
flowfd_ring_next_slowly(struct flowfd_ring *ring, struct flowfd_event *event)
{
	struct flowfd_event post;
	uint32_t number, *slot;
	int found;

	flowfd_ring_claim(ring);
	do {
		slot = ring->index + (ring->head & ring->mask);
		number = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if ((!number || !(ring->head % FLOWFD_RING_TURN)) &&
		    flowfd_ring_has_posts(ring)) {
			post = flowfd_ring_find_post(ring, number != 0, ring->head);
			found = post.events != 0;
			if (found) {
				*event = post;
				break;
			}
		}
		found = number && flowfd_ring_take_entry(ring, slot, number, event);
	} while (number && !found);
	flowfd_ring_disclaim(ring);
	return found;
}

/* As with a cursor, but only the steps that one event needs. */
FLOWFD_INLINE int flowfd_ring_next(struct flowfd_ring *ring, struct flowfd_event *event)
{
	uint32_t *slot = ring->index + (ring->head & ring->mask);
	uint32_t number = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	int found = 0;

	flowfd_ring_claim(ring);
	if (__builtin_expect(number && ring->head % FLOWFD_RING_TURN, 1))
		found = flowfd_ring_take_entry(ring, slot, number, event) != 0;
	flowfd_ring_disclaim(ring);
	if (__builtin_expect(found, 1))
		return 1;
	if (number)
		return flowfd_ring_next_slowly(ring, event);
	return flowfd_ring_has_posts(ring) ? flowfd_ring_next_post(ring, event) : 0;
}

/*
 * P2 to P4 of docs/ring.md: marks an item, by number plus one, and puts it into the stack,
 * unless it was marked already.
 */
static inline void flowfd_ring_push_post(const struct flowfd_ring *ring, uint32_t number)
{
	uint32_t *queued = &ring->items[number - 1].queued;
	uint32_t *posted = &ring->header->posted;
	uint32_t top = __atomic_load_n(posted, __ATOMIC_RELAXED);
	uint32_t mark = 0, link, next, found;

	do {
		link = top << 2 | FLOWFD_RING_IN_STACK;
		found = mark;
		/* a: after the bits, also where it fails. */
		while (!__atomic_compare_exchange_n(queued, &found, link, 0,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			if (!mark)
				return;
			/* The consumer has revived it. */
			mark = 0;
			found = 0;
		}
		mark = link;
		next = (top & FLOWFD_RING_POSTED_EPOCH) | number;
		/* i: after the link, and before the look at @armed. */
	} while (!__atomic_compare_exchange_n(posted, &top, next, 0, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
}

FLOWFD_INLINE int flowfd_ring_post(const struct flowfd_ring *ring, uint32_t item,
				   uint32_t bits)
{
	const uint32_t *armed = &ring->header->armed;

	if (item >= ring->max_items)
		return -EINVAL;
	if (!bits)
		return 0;
	__atomic_fetch_or(&ring->items[item].ready, bits, __ATOMIC_SEQ_CST); /* P1 */
	flowfd_ring_push_post(ring, item + 1);
	/* P5, also for an item that was marked: its poster may be stopped before P5. */
	if (__builtin_expect(__atomic_load_n(armed, __ATOMIC_SEQ_CST) != 0, 0))
		return flowfd_ring_notify(ring);
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif /* FLOWFD_RING_H */
