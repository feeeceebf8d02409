/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Publishing an event in a ring. Every wakeup of every watched file comes here,
 * so it is inline: docs/ring.md says why it is right, by the letters below.
 */
#ifndef FLOWFD_PUBLISH_H
#define FLOWFD_PUBLISH_H

#include <linux/bitops.h>
#include <linux/preempt.h>

#include "flowfd.h"

/* What a wakeup seldom has; all of it is above the events that are published. */
#define WATCH_RARE	((__force u32)(POLLFREE | EPOLL_URING_WAKE))
#define WATCH_RARE_MIN	((__force u32)POLLFREE)

/*
 * Sets the flag of an item and says whether it was set; a full barrier. A test and
 * set of a bit saves x86 a comparison. It is an operation of 64 bits, and the
 * others on these words are of 32: a mix that x86 orders, and that no model of
 * other memories covers.
 */
static __always_inline bool ring_test_and_set_queued(struct flowfd_ring_item *item)
{
#ifdef CONFIG_X86_64
	return test_and_set_bit(offsetof(struct flowfd_ring_item, queued) * 8,
				(unsigned long *)item);
#else
	return xchg(&item->queued, 1);
#endif
}

/**
 * ring_publish - tell the consumer of events
 * @w: watch of the file that has them
 * @events: what happened, not 0
 * @wake_flags: EPOLL_URING_WAKE or 0, for those who poll the ring
 * @sync: whether the waker is about to sleep, a hint for the scheduler
 *
 * Runs in any context, wait-free: a fixed number of steps, whatever user space
 * stores in the memory meanwhile. If the flag is set there is an entry in the
 * index, or its publisher is about to put it there and to wake; the consumer
 * will find these events with it.
 *
 * A publisher that took a position and did not fill its slot hides all entries
 * behind it, so it must not be preempted in between.
 */
static __always_inline void ring_publish(struct watch *w, __poll_t events,
					 __poll_t wake_flags, int sync)
{
	struct flowfd_ring_item *item = w->item;
	struct ring *ring = w->ring;
	u32 position;

	atomic_or((__force int)events, (atomic_t *)&item->ready);
	/*
	 * a: orders the bits before the flag. Pairs with b, the consumer's full
	 * barrier after it clears the flag and before it takes the bits: either
	 * this sees the flag cleared, or the consumer sees the bits.
	 */
	preempt_disable();
	if (ring_test_and_set_queued(item)) {
		preempt_enable();
		return;
	}
	position = atomic_fetch_inc(&ring->tail);
	/*
	 * d: a full barrier orders the slot before the look for listeners. Pairs
	 * with e, in ring_sleeper_join() and ring_poll(), after the listener
	 * announced itself and before it looks at the ring: either this sees the
	 * listener, or the listener sees the slot.
	 *
	 * What the consumer finds by the slot is ordered before it by a.
	 */
	smp_store_mb(ring->index[position & ring->mask], w->index_entry);
	preempt_enable();
	if (unlikely(atomic_read(&ring->listening)))
		ring_wake(ring, wake_flags, sync);
}

/* Of most files there is but one, whose place in the watch is known. */
static __always_inline struct watch *watch_of_first(struct wait_queue_entry *wait)
{
	return container_of(wait, struct watch, queue.wait);
}

/**
 * watch_announce - publish what a watched file announces, if that is simple
 * @w: watch
 * @events: what the file woke with, perhaps nothing
 * @sync: as for ring_publish()
 *
 * The lock of the file's wait queue is held.
 *
 * Return: whether that was all. If not, the watch's wake function does the rest.
 */
static __always_inline bool watch_announce(struct watch *w, __poll_t events,
					   int sync)
{
	u32 bits = (__force u32)events & READ_ONCE(w->direct);

	/* Rare are: nothing, which wraps round, and what is above all events. */
	if (unlikely(bits - 1 >= WATCH_RARE_MIN - 1))
		return false;
	ring_publish(w, (__force __poll_t)bits, 0, sync);
	return true;
}

#endif /* FLOWFD_PUBLISH_H */
