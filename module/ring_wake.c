// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waking the tasks that sleep on a ring and the pollers of a ring, and sleeping.
 * Publishers call this with interrupts on or off.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "outer_user.h"
#include "ring.h"
#include "sleep.h"

/*
 * How many pollers are woken with the lock held and interrupts off, by a publisher
 * itself and by the work item at a time. A file may be in a ring many times, and each
 * of its wakeups then comes here as often and may wait for the lock. Whatever one poller
 * wakes in turn, as an epoll does, its own kind must bound.
 */
#define RING_POLLERS_AT_ONCE 4

/*
 * To wake an epoll that is polled very often takes long, perhaps more than a tick. A file
 * that is in a ring many times, or in many rings, would wake it as often, with interrupts
 * off. So publishers on a processor wake the pollers of a user's rings for half of the time
 * at most, and those of all users for four fifths; beyond that, the work item does. It is
 * exceeded by these debts at most, and by what one publisher does. A single user's pollers
 * are not enough for the second limit, so that they have no influence on those of others.
 * Not with PREEMPT_RT, where interrupts are on.
 */
#define RING_DEBT_NS	 2000000
#define RING_DEBT_ALL_NS 50000000

/* Users whose hashes are equal share. */
#define RING_USERS_BITS 5

/*
 * When publishers here have made up for the time that they woke pollers, in ns: of each
 * user, and of all.
 */
struct ring_budget {
	u64 user[1 << RING_USERS_BITS];
	u64 all;
};

static DEFINE_PER_CPU(struct ring_budget, ring_budget);

static struct workqueue_struct *ring_workqueue;

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

/* A post wakes all of them: it ends each wait, whatever that wants. */
static void ring_wake_sleepers(struct flowfd_ring *ring, int sync, bool posted)
{
	u32 pending = posted ? U32_MAX : flowfd_ring_pending(ring);
	struct ring_sleeper *s;
	struct rb_node *node;

	while ((node = rb_first_cached(&ring->sleepers))) {
		s = rb_entry(node, struct ring_sleeper, node);
		if (pending < s->wanted)
			break;
		rb_erase_cached(node, &ring->sleepers);
		default_wake_function(&s->entry, TASK_NORMAL, sync, NULL);
		/* The last use of it. Pairs with ring_sleeper_leave(). */
		smp_store_release(&s->queued, false);
	}
	ring_announce_sleepers(ring);
}

/*
 * A poller must not signal an eventfd from here, because a ring may watch that
 * eventfd. in_eventfd makes it defer the signal, as in a wakeup by an eventfd. This may
 * be inside such a wakeup already. Interrupts are off, so no handler sees the change.
 */
static void ring_call_poller(wait_queue_entry_t *entry, int sync, void *key)
{
	bool outer = current->in_eventfd;

	current->in_eventfd = 1;
	entry->func(entry, TASK_NORMAL, sync, key);
	current->in_eventfd = outer;
}

/*
 * Without events, so that each poller looks at the ring. A multishot poll of io_uring
 * would complete with the events of a wakeup, never look, and not be woken again.
 * EPOLL_URING_WAKE ends such a poll; io_uring ignores that flag without events.
 */
static void *ring_key(__poll_t flags)
{
	return flags ? poll_to_key(EPOLLIN | EPOLLRDNORM | flags) : NULL;
}

/* For the bits of the work item. */
static int ring_uring_bit(__poll_t flags)
{
	return flags ? RING_URING : 0;
}

static void ring_leave_to_work(struct flowfd_ring *ring, __poll_t flags)
{
	atomic_or(RING_WAKING | ring_uring_bit(flags), &ring->listening);
	flowfd_ring_queue_work(ring, ring_workqueue, &ring->wake_work);
}

/* All of them: an exclusive poller may go away before it looks at the ring. */
static void ring_wake_pollers(struct flowfd_ring *ring, __poll_t flags, int sync)
{
	wait_queue_entry_t *entry, *next;
	unsigned int count = 0;

	list_for_each_entry_safe(entry, next, &ring->wqh.head, entry) {
		if (count++ == RING_POLLERS_AT_ONCE) {
			ring_leave_to_work(ring, flags);
			return;
		}
		ring_call_poller(entry, sync, ring_key(flags));
	}
}

/* The same, or it is left to the work item: see RING_DEBT_NS. */
static void ring_wake_pollers_in_time(struct flowfd_ring *ring, __poll_t flags, int sync)
{
	struct ring_budget *budget;
	u64 start, time, *user;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		ring_wake_pollers(ring, flags, sync);
		return;
	}
	budget = this_cpu_ptr(&ring_budget);
	user = &budget->user[ring->user];
	start = ktime_get_ns();
	if (*user > start + RING_DEBT_NS || budget->all > start + RING_DEBT_ALL_NS) {
		ring_leave_to_work(ring, flags);
		return;
	}
	ring_wake_pollers(ring, flags, sync);
	time = ktime_get_ns() - start;
	*user = max(*user, start) + 2 * time;
	budget->all = max(budget->all, start) + time + time / 4;
}

/*
 * Before pollers are woken: a poller that looks from here on is woken again. Returns the
 * bits of before.
 */
static int ring_begin_wakeups(struct flowfd_ring *ring)
{
	WRITE_ONCE(ring->woken_at, jiffies);
	/* A full barrier before what the pollers do. Pairs with e. */
	return atomic_fetch_andnot(RING_POLLERS | RING_AGAIN | RING_URING,
				   &ring->listening);
}

/* A poller has looked, or pollers were woken last before this tick. */
static bool ring_pollers_are_due(const struct flowfd_ring *ring, int listening)
{
	return listening & RING_POLLERS ||
	       (listening & RING_WOKEN && time_after(jiffies, READ_ONCE(ring->woken_at)));
}

/* False if nobody is to be woken now, or the work item does it. */
static bool ring_needs_wakeup(struct flowfd_ring *ring, __poll_t flags, bool posted)
{
	int listening = atomic_read(&ring->listening);
	int again = RING_AGAIN | ring_uring_bit(flags);

	if (ring_sleeper_is_due(ring, listening) || (posted && listening & RING_SLEEPERS))
		return true;
	if (listening & RING_WAKING)
		return !(atomic_fetch_or(again, &ring->listening) & RING_WAKING);
	return ring_pollers_are_due(ring, listening);
}

/*
 * A sleeper is woken once. Pollers are woken once until one of them looks at the ring:
 * all others have yet to look, and will see the entries that came meanwhile. But an epoll
 * wakes one of several tasks, and that one may be killed before it looks. So the first
 * publisher after a tick wakes them again if none has looked.
 *
 * Takes the lock only if somebody is to be woken. While the work item wakes the pollers,
 * publishers wake none.
 */
static void ring_wake(struct flowfd_ring *ring, __poll_t flags, int sync, bool posted)
{
	unsigned long irq;
	int listening;

	if (!ring_needs_wakeup(ring, flags, posted))
		return;
	spin_lock_irqsave(&ring->wqh.lock, irq);
	listening = atomic_read(&ring->listening);
	if (listening & RING_SLEEPERS)
		ring_wake_sleepers(ring, sync, posted);
	if (listening & RING_WAKING) {
		atomic_or(RING_AGAIN | ring_uring_bit(flags), &ring->listening);
		/* The queue grows under the lock only, so no barrier is needed. */
	} else if (!waitqueue_active(&ring->wqh)) {
		atomic_and(RING_SLEEPERS, &ring->listening);
	} else if (ring_pollers_are_due(ring, listening)) {
		atomic_or(RING_WOKEN, &ring->listening);
		ring_begin_wakeups(ring);
		ring_wake_pollers_in_time(ring, flags, sync);
	}
	spin_unlock_irqrestore(&ring->wqh.lock, irq);
}

/**
 * flowfd_ring_wake - wake the tasks that sleep on a ring, and its pollers
 * @ring: ring
 * @flags: EPOLL_URING_WAKE or 0
 * @sync: whether the waker is about to sleep, a hint for the scheduler
 */
void flowfd_ring_wake(struct flowfd_ring *ring, __poll_t flags, int sync)
{
	ring_wake(ring, flags, sync, false);
}

/**
 * flowfd_ring_arm - have publishers and posters look for listeners
 * @ring: ring
 * @bit: RING_POLLERS: the caller is in the queue; RING_SLEEPERS: in the tree
 *
 * The caller needs a full barrier before it looks at the ring: e of docs/ring.md. For
 * posters that pairs with i, after a push and before the look at @armed.
 */
void flowfd_ring_arm(struct flowfd_ring *ring, int bit)
{
	atomic_or(bit, &ring->listening);
	/* k: a notification that clears this sees the bit above. */
	smp_store_release(&ring->header->armed, 1);
}

/**
 * flowfd_ring_notify - FLOWFD_IOC_RING_NOTIFY
 * @ring: ring
 *
 * A level test. Without posts nobody is woken, so @armed stays for the next post. With
 * posts all are woken that listen, and set it again before they look: sleepers here, even
 * if the posts are gone by then; pollers by the rule of flowfd_ring_wake(), as for any
 * publisher.
 */
void flowfd_ring_notify(struct flowfd_ring *ring)
{
	if (!flowfd_ring_has_posts(ring))
		return;
	/* k: a full barrier. Pairs with flowfd_ring_arm(). */
	xchg(&ring->header->armed, 0);
	ring_wake(ring, 0, 0, true);
}

/*
 * A process that ended may have died after a push and before it looked at @armed, or
 * after it was woken and before it looked at the ring. So pollers are armed as if one had
 * looked: if there is no post by now, the next one wakes them. A sleeper arms the ring by
 * itself.
 */
static void ring_heal_work(struct work_struct *work)
{
	struct flowfd_ring *ring = container_of(work, struct flowfd_ring, heal_work);

	/* A poller that joins now looks by itself. */
	if (waitqueue_active(&ring->wqh)) {
		flowfd_ring_arm(ring, RING_POLLERS);
		/* e: pairs with i of posters. */
		smp_mb();
	}
	flowfd_ring_notify(ring);
	flowfd_ring_end_work(ring);
}

/**
 * flowfd_ring_heal - make up for a process that ends
 * @ring: ring; the caller holds a reference
 *
 * A work item does it, once for all mappings and descriptors that go until it runs.
 */
void flowfd_ring_heal(struct flowfd_ring *ring)
{
	flowfd_ring_queue_work(ring, ring_workqueue, &ring->heal_work);
}

static int bookmark_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			 void *key)
{
	return 0;
}

/* Wakes some of the pollers between two bookmarks, and moves the first; false: no more. */
static bool ring_wake_between(struct flowfd_ring *ring, wait_queue_entry_t *bookmark,
			      const wait_queue_entry_t *end, void *key)
{
	wait_queue_entry_t *entry;
	unsigned int i;

	for (i = 0; i < RING_POLLERS_AT_ONCE; i++) {
		entry = list_next_entry(bookmark, entry);
		if (entry == end)
			return false;
		list_move(&bookmark->entry, &entry->entry);
		ring_call_poller(entry, 0, key);
	}
	return true;
}

/* A publisher left it to the work item to wake pollers that are due. */
static bool ring_wake_again(struct flowfd_ring *ring)
{
	int listening = atomic_fetch_andnot(RING_WAKING | RING_AGAIN, &ring->listening);

	if (!(listening & RING_AGAIN) || !ring_pollers_are_due(ring, listening))
		return false;
	atomic_or(RING_WAKING, &ring->listening);
	return true;
}

/*
 * Wakes all pollers of a ring that has more of them than a publisher wakes, or slow ones.
 * Not those that join meanwhile: they look by themselves. Nor in a loop: user space
 * decides whether to wake again, and other rings have their turn first.
 */
static void ring_wake_work(struct work_struct *work)
{
	struct flowfd_ring *ring = container_of(work, struct flowfd_ring, wake_work);
	wait_queue_entry_t bookmark, end;
	void *key;

	init_waitqueue_func_entry(&bookmark, bookmark_wake);
	init_waitqueue_func_entry(&end, bookmark_wake);
	spin_lock_irq(&ring->wqh.lock);
	key = ring_key(ring_begin_wakeups(ring) & RING_URING ? EPOLL_URING_WAKE : 0);
	__add_wait_queue(&ring->wqh, &bookmark);
	__add_wait_queue_entry_tail(&ring->wqh, &end);
	while (ring_wake_between(ring, &bookmark, &end, key)) {
		spin_unlock_irq(&ring->wqh.lock);
		cond_resched();
		spin_lock_irq(&ring->wqh.lock);
	}
	__remove_wait_queue(&ring->wqh, &bookmark);
	__remove_wait_queue(&ring->wqh, &end);
	if (ring_wake_again(ring))
		flowfd_ring_queue_work(ring, ring_workqueue, &ring->wake_work);
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
	spin_lock_irq(&ring->wqh.lock);
	if (!s->queued) {
		s->queued = true;
		rb_add_cached(&s->node, &ring->sleepers, sleeper_wants_less);
		ring_announce_sleepers(ring);
	}
	flowfd_ring_arm(ring, RING_SLEEPERS);
	/* e: a full barrier. Pairs with d, in flowfd_publish(), and with i of posters. */
	set_current_state(TASK_INTERRUPTIBLE);
	spin_unlock_irq(&ring->wqh.lock);
}

static void ring_sleeper_leave(struct flowfd_ring *ring, struct ring_sleeper *s)
{
	__set_current_state(TASK_RUNNING);
	/* Pairs with ring_wake_sleepers(). */
	if (!smp_load_acquire(&s->queued))
		return;
	spin_lock_irq(&ring->wqh.lock);
	if (s->queued) {
		rb_erase_cached(&s->node, &ring->sleepers);
		ring_announce_sleepers(ring);
	}
	spin_unlock_irq(&ring->wqh.lock);
}

/**
 * flowfd_ring_sleep - sleep until there are entries or a post, a deadline or a signal
 * @ring: ring
 * @wanted: how many entries to wait for, at least 1
 * @end: deadline on CLOCK_MONOTONIC, KTIME_MAX for none
 * @slept: set if the call slept, for which it is counted once
 *
 * Return: as flowfd_ring_has_enough() says, or -EINTR.
 */
int flowfd_ring_sleep(struct flowfd_ring *ring, u32 wanted, ktime_t end, bool *slept)
{
	struct ring_sleeper s = { .entry.private = current, .wanted = wanted };
	bool expired = false;
	int result;

	do {
		ring_sleeper_join(ring, &s);
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
	} while (!flowfd_ring_has_enough(ring, wanted, &result) && !expired);
	ring_sleeper_leave(ring, &s);
	return result;
}

/**
 * flowfd_ring_wake_init_ring - there is no poller yet
 * @ring: new ring of the user who calls
 */
void flowfd_ring_wake_init_ring(struct flowfd_ring *ring)
{
	INIT_WORK(&ring->wake_work, ring_wake_work);
	INIT_WORK(&ring->heal_work, ring_heal_work);
	ring->user = hash_32(__kuid_val(outer_user()), RING_USERS_BITS);
}

/**
 * flowfd_ring_wake_init - make the workqueue that wakes pollers
 *
 * Return: 0 or -ENOMEM.
 */
int flowfd_ring_wake_init(void)
{
	ring_workqueue = alloc_workqueue("flowfd", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return ring_workqueue ? 0 : -ENOMEM;
}

/** flowfd_ring_wake_exit - the last ring is gone; waits for its worker to end */
void flowfd_ring_wake_exit(void)
{
	destroy_workqueue(ring_workqueue);
}
