/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Publishing an event in a ring: the fast path of every wakeup of every watched file,
 * and therefore inline. The letters are those of docs/ring.md, which has the proof.
 */
#ifndef FLOWFD_PUBLISH_H
#define FLOWFD_PUBLISH_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/preempt.h>

#include "trace.h"
#include "watch.h"

/* The flag of a wakeup that needs the slow path: above all published events. */
#define WATCH_SLOW_PATH ((__force u32)POLLFREE)

static_assert((__force u32)WATCH_EVENTS < WATCH_SLOW_PATH);

/*
 * Sets the flag of an item and returns its old value; a full barrier. On x86 a test
 * and set of a bit saves a comparison. It is an operation on 64 bits, while the others
 * on these words are on 32: x86 orders such a mix, but no model of other
 * architectures covers it.
 */
static __always_inline bool item_test_and_set_queued(struct flowfd_ring_item *item)
{
#ifdef CONFIG_X86_64
	return test_and_set_bit(offsetof(struct flowfd_ring_item, queued) * 8,
				(unsigned long *)item);
#else
	/* Not an exchange: if it is in the stack of posts, its link must stay. */
	return atomic_fetch_or(FLOWFD_RING_IN_INDEX, (atomic_t *)&item->queued) &
	       FLOWFD_RING_IN_INDEX;
#endif
}

/* The lock of a wait queue keeps a publisher on its processor, but for PREEMPT_RT. */
static __always_inline bool publisher_is_preemptible(bool locked)
{
	return !locked || IS_ENABLED(CONFIG_PREEMPT_RT);
}

/*
 * Puts the item into the index, unless it is there: then returns false. It is not
 * preempted where it would hide entries. @locked: as for flowfd_publish().
 */
static __always_inline bool publish_entry(struct flowfd_watch *w, bool locked)
{
	struct flowfd_ring *ring = w->ring;
	bool in_index;
	u32 position;

	if (publisher_is_preemptible(locked))
		preempt_disable();
	in_index = item_test_and_set_queued(w->item);
	if (!in_index) {
		position = atomic_long_fetch_inc(&ring->tail);
		/*
		 * d: a full barrier orders the slot before the look for listeners. Pairs
		 * with e, in ring_sleeper_join() and ring_poll(), after the listener has
		 * announced itself and before it looks at the ring: either this sees the
		 * listener, or the listener sees the slot.
		 *
		 * a orders what the consumer finds through the slot before the slot.
		 */
		smp_store_mb(ring->index[position & ring->mask], w->index_entry);
	}
	if (publisher_is_preemptible(locked))
		preempt_enable();
	return !in_index;
}

/* As flowfd_publish(); @locked and @traced are constants. */
static __always_inline void publish(struct flowfd_watch *w, __poll_t events, int sync,
				    bool locked, bool traced)
{
	struct flowfd_ring_item *item = w->item;
	struct flowfd_ring *ring = w->ring;

	atomic_or((__force int)events, (atomic_t *)&item->ready);
	/*
	 * a: orders the bits before the flag. Pairs with b, the consumer's full barrier
	 * after it clears the flag and before it takes the bits: either this sees the
	 * flag cleared, or the consumer sees the bits.
	 */
	if (!publish_entry(w, locked)) {
		this_cpu_inc(ring->stats->coalesced);
		if (traced)
			trace_flowfd_publish(w, events, true);
		return;
	}
	if (traced)
		trace_flowfd_publish(w, events, false);
	if (unlikely(atomic_read(&ring->listening)))
		flowfd_ring_wake(ring, sync, false);
}

/*
 * Publishes events, not 0, of a watched file, in any context, in a fixed number of steps.
 * @sync: the waker is about to sleep, a hint for the scheduler. @locked: the lock of a
 * wait queue is held; a constant.
 */
static __always_inline void flowfd_publish(struct flowfd_watch *w, __poll_t events,
					   int sync, bool locked)
{
	/* Out of line: a call in here would cost registers, also if it is never made. */
	if (trace_flowfd_publish_enabled())
		flowfd_publish_traced(w, events, sync);
	else
		publish(w, events, sync, locked, false);
}

/*
 * The fast path of a wakeup, under the lock of the file's wait queue. @events is 0 if the
 * wakeup says nothing; @sync is as for flowfd_publish(). Returns false if the wakeup
 * needs the slow path, and nothing was done.
 */
static __always_inline bool watch_announce(struct flowfd_watch *w, __poll_t events,
					   int sync)
{
	u32 bits = (__force u32)events & READ_ONCE(w->direct);

	/*
	 * Slow path: no events, which wraps to U32_MAX, and the flag above all events.
	 * One comparison catches both. An error is checked first.
	 */
	if (unlikely(bits - 1 >= WATCH_SLOW_PATH - 1 || bits & (__force u32)EPOLLERR))
		return false;
	flowfd_publish(w, (__force __poll_t)bits, sync, true);
	return true;
}

#endif /* FLOWFD_PUBLISH_H */
