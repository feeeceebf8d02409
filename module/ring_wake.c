// SPDX-License-Identifier: GPL-2.0-only
/*
 * How publishers wake the tasks that sleep on a ring and the pollers of a ring, and how
 * tasks sleep. A publisher has the lock of a watched file and interrupts off. So it wakes
 * tasks itself, and leaves pollers, whose functions are foreign and may take long, to a
 * work item of the class of the task that made the ring. docs/ring.md has the proof.
 */
#include <linux/jiffies.h>
#include <linux/sched/signal.h>

#include "ring.h"
#include "sleep.h"

/*
 * A sleeping task. It is woken once, and only when there are as many entries as it
 * wants. The first in the tree is the task that wants fewest, so a publisher looks at
 * no sleeper that it does not wake.
 */
struct ring_sleeper {
	struct rb_node node;
	struct wait_queue_entry entry; /* for default_wake_function() */
	u32 wanted;
	bool queued;
};

/* Tells publishers, which do not have the lock, for which sleeper they must take it. */
static void ring_announce_sleepers(struct flowfd_ring *ring)
{
	struct rb_node *first = rb_first_cached(&ring->sleepers);

	if (!first) {
		atomic_andnot(RING_SLEEPERS, &ring->listening);
		return;
	}
	WRITE_ONCE(ring->wanted, rb_entry(first, struct ring_sleeper, node)->wanted);
	atomic_or(RING_SLEEPERS, &ring->listening);
}

/*
 * A sleeper stores what it wants before barrier e. So a publisher that finds an older
 * value here comes before the sleeper's look at the ring.
 */
static bool ring_sleeper_is_due(const struct flowfd_ring *ring, int listening)
{
	return listening & RING_SLEEPERS &&
	       flowfd_ring_pending(ring) >= READ_ONCE(ring->wanted);
}

/* Wakes the first sleeper if that wants no more than there is. */
static bool ring_wake_first(struct flowfd_ring *ring, u32 pending, int sync)
{
	struct rb_node *node = rb_first_cached(&ring->sleepers);
	struct ring_sleeper *s;

	lockdep_assert_held(&ring->sleeper_lock);

	if (!node)
		return false;
	s = rb_entry(node, struct ring_sleeper, node);
	if (pending < s->wanted)
		return false;
	rb_erase_cached(node, &ring->sleepers);
	ring_announce_sleepers(ring);
	default_wake_function(&s->entry, TASK_NORMAL, sync, NULL);
	/* The last use of it. Pairs with ring_sleeper_leave(). */
	smp_store_release(&s->queued, false);
	return true;
}

/*
 * Wakes one sleeper, with interrupts off. If there are entries enough for the next, the
 * sleeper that was woken wakes it. A post wakes all: it ends each wait, whatever that wants.
 */
static void ring_wake_sleepers(struct flowfd_ring *ring, int sync, bool posted)
{
	unsigned long irq;

	spin_lock_irqsave(&ring->sleeper_lock, irq);
	if (!posted)
		ring_wake_first(ring, flowfd_ring_pending(ring), sync);
	else
		while (ring_wake_first(ring, U32_MAX, sync))
			;
	spin_unlock_irqrestore(&ring->sleeper_lock, irq);
}

/* A poller has looked, or pollers were woken last before this tick. */
static bool ring_pollers_are_due(const struct flowfd_ring *ring, int listening)
{
	unsigned long tick = jiffies;

	return listening & RING_POLLERS ||
	       (listening & RING_WOKEN && tick != READ_ONCE(ring->woken_at));
}

/*
 * Wakes the tasks that sleep on a ring, and its pollers. @sync: the publisher is about to
 * sleep, a hint for the scheduler. @posted: by a post, for which all sleepers wait.
 * Pollers are woken once until one of them looks at the ring, or after a tick: an epoll
 * may have woken a task that was killed.
 */
void flowfd_ring_wake(struct flowfd_ring *ring, int sync, bool posted)
{
	int listening = atomic_read(&ring->listening);

	if (ring_sleeper_is_due(ring, listening) || (posted && listening & RING_SLEEPERS))
		ring_wake_sleepers(ring, sync, posted);
	if (!ring_pollers_are_due(ring, listening))
		return;
	WRITE_ONCE(ring->woken_at, jiffies);
	atomic_or(RING_WOKEN, &ring->listening);
	/*
	 * l: a full barrier before the work item is queued. It wakes each poller that has
	 * set the bit before this; the next publisher finds the bit of any other.
	 */
	atomic_fetch_andnot(RING_POLLERS, &ring->listening);
	flowfd_ring_queue_work(ring, ring->work_class->unbound, &ring->wake_work);
}

/*
 * Has publishers and posters look for listeners: RING_POLLERS: the caller is in the
 * queue; RING_SLEEPERS: in the tree. The caller needs a full barrier before it looks at
 * the ring: e of docs/ring.md. For posters that pairs with i, after a push and before the
 * look at @armed.
 */
void flowfd_ring_arm(struct flowfd_ring *ring, int bit)
{
	atomic_or(bit, &ring->listening);
	/* k: a notification that clears this sees the bit above. */
	smp_store_release(&ring->header->armed, 1);
}

/*
 * FLOWFD_IOC_RING_NOTIFY. A level test. Without posts nobody is woken, so @armed stays
 * for the next post. With posts all listeners are woken, and set it again before they
 * look: sleepers here, even if the posts are gone by then; pollers by the rule of
 * flowfd_ring_wake(), as for any publisher.
 */
void flowfd_ring_notify(struct flowfd_ring *ring)
{
	if (!flowfd_ring_has_posts(ring))
		return;
	/* k: a full barrier. Pairs with flowfd_ring_arm(). */
	xchg(&ring->header->armed, 0);
	flowfd_ring_wake(ring, 0, true);
}

/*
 * Makes up for a process that ends: "Posters that die" of docs/ring.md. Pollers are armed
 * as if one had looked; a sleeper arms the ring by itself.
 */
void flowfd_ring_heal(struct flowfd_ring *ring)
{
	/* A poller that joins now looks by itself. */
	if (waitqueue_active(&ring->wqh)) {
		flowfd_ring_arm(ring, RING_POLLERS);
		/* e: pairs with i of posters. */
		smp_mb();
	}
	flowfd_ring_notify(ring);
	if (flowfd_ring_pending(ring))
		flowfd_ring_wake(ring, 0, false);
}

static int bookmark_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			 void *key)
{
	return 0;
}

/*
 * Wakes all pollers, also exclusive ones, without events, so that each looks at the ring
 * (docs/ring.md). Pollers that join meanwhile look by themselves.
 */
static void ring_wake_work(struct work_struct *work)
{
	struct flowfd_ring *ring = container_of(work, struct flowfd_ring, wake_work);
	wait_queue_entry_t bookmark, end, *entry;

	init_waitqueue_func_entry(&bookmark, bookmark_wake);
	init_waitqueue_func_entry(&end, bookmark_wake);
	spin_lock_irq(&ring->wqh.lock);
	/* The queue grows under the lock only, so no barrier is needed. */
	if (!waitqueue_active(&ring->wqh))
		atomic_and(RING_SLEEPERS, &ring->listening);
	__add_wait_queue(&ring->wqh, &bookmark);
	__add_wait_queue_entry_tail(&ring->wqh, &end);
	while ((entry = list_next_entry(&bookmark, entry)) != &end) {
		list_move(&bookmark.entry, &entry->entry);
		entry->func(entry, TASK_NORMAL, 0, NULL);
		spin_unlock_irq(&ring->wqh.lock);
		cond_resched();
		spin_lock_irq(&ring->wqh.lock);
	}
	__remove_wait_queue(&ring->wqh, &bookmark);
	__remove_wait_queue(&ring->wqh, &end);
	spin_unlock_irq(&ring->wqh.lock);
	flowfd_ring_end_work(ring);
}

static bool sleeper_wants_less(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct ring_sleeper, node)->wanted <
	       rb_entry(other, struct ring_sleeper, node)->wanted;
}

static void ring_sleeper_join(struct flowfd_ring *ring, struct ring_sleeper *s)
{
	spin_lock_irq(&ring->sleeper_lock);
	if (!s->queued) {
		s->queued = true;
		rb_add_cached(&s->node, &ring->sleepers, sleeper_wants_less);
		ring_announce_sleepers(ring);
	}
	flowfd_ring_arm(ring, RING_SLEEPERS);
	/* e: a full barrier. Pairs with d, in flowfd_publish(), and with i of posters. */
	set_current_state(TASK_INTERRUPTIBLE);
	spin_unlock_irq(&ring->sleeper_lock);
}

/* It wakes the next: it may have been woken, and then joined again. */
static void ring_sleeper_leave(struct flowfd_ring *ring, struct ring_sleeper *s)
{
	__set_current_state(TASK_RUNNING);
	/* Pairs with ring_wake_first(). */
	if (smp_load_acquire(&s->queued)) {
		spin_lock_irq(&ring->sleeper_lock);
		if (s->queued) {
			rb_erase_cached(&s->node, &ring->sleepers);
			ring_announce_sleepers(ring);
		}
		spin_unlock_irq(&ring->sleeper_lock);
	}
	if (ring_sleeper_is_due(ring, atomic_read(&ring->listening)))
		ring_wake_sleepers(ring, 0, false);
}

/*
 * Sleeps until there are @wanted entries, at least 1, or a post; until @end on
 * CLOCK_MONOTONIC, KTIME_MAX for never; or until a signal. Sets @slept if it slept: a
 * call is counted once.
 *
 * Returns what flowfd_ring_has_enough() says, or -EINTR.
 */
int flowfd_ring_sleep(struct flowfd_ring *ring, u32 wanted, ktime_t end, bool *slept)
{
	struct ring_sleeper s = { .entry.private = current, .wanted = wanted };
	bool expired = false;
	int result;

	do {
		ring_sleeper_join(ring, &s);
		/* First, as an entry without an event may announce what is to be polled. */
		if (flowfd_repoll_is_due(ring)) {
			__set_current_state(TASK_RUNNING);
			flowfd_repoll_now(ring);
			/* There may always be another. */
			expired = ktime_get() >= end;
			if (!signal_pending(current))
				continue;
		}
		if (flowfd_ring_has_enough(ring, wanted, &result))
			break;
		if (signal_pending(current)) {
			result = -EINTR;
			break;
		}
		if (!*slept)
			this_cpu_inc(ring->stats->sleeps);
		*slept = true;
		expired = sleep_until(end);
		flowfd_repoll_now(ring);
	} while (!flowfd_ring_has_enough(ring, wanted, &result) && !expired);
	ring_sleeper_leave(ring, &s);
	return result;
}

/* A new ring has no poller yet, and belongs to the user of the calling task. */
void flowfd_ring_wake_init_ring(struct flowfd_ring *ring)
{
	ring->work_class = flowfd_work_class_of_caller();
	INIT_WORK(&ring->wake_work, ring_wake_work);
}
