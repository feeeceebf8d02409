/* SPDX-License-Identifier: GPL-2.0-only */
/* Posts as programs use them. The steps are those of <linux/flowfd.h>. */
#ifndef POST_USER_H
#define POST_USER_H

#include "ring_user.h"

static inline int ring_add_post(struct user_ring *r, __u64 data)
{
	return ring_change(r, FLOWFD_RING_ADD_POST, -1, 0, data);
}

static inline int ring_del_post(struct user_ring *r, int number)
{
	return ring_change(r, FLOWFD_RING_DEL_POST, number, 0, 0);
}

static inline long ring_notify(int fd)
{
	return result_of(ioctl(fd, FLOWFD_IOC_RING_NOTIFY));
}

static inline __u32 ring_stack(const struct user_ring *r)
{
	return __atomic_load_n(&r->header->posted, __ATOMIC_SEQ_CST) &
	       FLOWFD_RING_POSTED_ITEM;
}

static inline bool ring_is_armed(const struct user_ring *r)
{
	return __atomic_load_n(&r->header->armed, __ATOMIC_SEQ_CST);
}

/* All but the look at @armed. */
static inline void ring_push(struct user_ring *r, __u32 number, __u32 bits)
{
	__u32 *queued = &r->items[number].queued, *posted = &r->header->posted;
	__u32 top, mark = 0, link, found;

	__atomic_fetch_or(&r->items[number].ready, bits, __ATOMIC_SEQ_CST);
	top = __atomic_load_n(posted, __ATOMIC_RELAXED);
	do {
		link = top << 2 | FLOWFD_RING_IN_STACK;
		found = mark;
		while (!__atomic_compare_exchange_n(queued, &found, link, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			if (!mark)
				return;
			mark = 0;
			found = 0;
		}
		mark = link;
	} while (!__atomic_compare_exchange_n(posted, &top,
					      (top & FLOWFD_RING_POSTED_EPOCH) | (number + 1),
					      false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* Returns whether it called the kernel. */
static inline bool ring_post(struct user_ring *r, __u32 number, __u32 bits)
{
	ring_push(r, number, bits);
	if (!ring_is_armed(r))
		return false;
	ring_notify(r->fd);
	return true;
}

/* The number plus one of the oldest post in the stack, which is empty afterwards. */
static inline __u32 ring_take_stack(struct user_ring *r)
{
	__u32 epoch = __atomic_load_n(&r->header->posted, __ATOMIC_RELAXED) &
		      FLOWFD_RING_POSTED_EPOCH;
	__u32 top, oldest = 0, link;

	top = __atomic_exchange_n(&r->header->posted, epoch, __ATOMIC_ACQUIRE) &
	      FLOWFD_RING_POSTED_ITEM;
	for (__u32 n = 0; n <= r->mask && top && top <= r->mask + 1; n++) {
		link = r->items[top - 1].queued;
		r->items[top - 1].queued = (epoch | oldest) << 2 | FLOWFD_RING_IN_STACK;
		oldest = top;
		top = link >> 2 & FLOWFD_RING_POSTED_ITEM;
	}
	return oldest;
}

/* Takes one post; false: there is none. */
static inline bool ring_take_post(struct user_ring *r, struct ring_event *event)
{
	struct flowfd_ring_item *item;
	__u32 number = r->header->taken;

	if (!number)
		number = ring_take_stack(r);
	while (number) {
		item = &r->items[number - 1];
		number = item->queued >> 2 & FLOWFD_RING_POSTED_ITEM;
		__atomic_store_n(&r->header->taken, number, __ATOMIC_RELAXED);
		__atomic_store_n(&item->queued, 0, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		event->events = __atomic_exchange_n(&item->ready, 0, __ATOMIC_SEQ_CST);
		event->data = item->data;
		if (event->events)
			return true;
	}
	return false;
}

/* Takes one event of a file or a post. */
static inline bool ring_take_any(struct user_ring *r, struct ring_event *event)
{
	return ring_take(r, event) || ring_take_post(r, event);
}

/* The data of the next post if it has these bits; 0: there is none; -1: other bits. */
static inline long next_post(struct user_ring *r, __u32 bits)
{
	struct ring_event event;

	if (!ring_take_post(r, &event))
		return 0;
	return event.events == bits ? (long)event.data : -1;
}

#endif /* POST_USER_H */
