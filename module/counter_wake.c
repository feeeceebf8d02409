// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waking the pollers and rings in a counter's wait queue, under its lock. Tasks that sleep
 * in read or write are not in it: see sleeper.c.
 */
#include <linux/lockdep.h>
#include <linux/sched.h>

#include "counter.h"
#include "publish.h"

/*
 * Calls one entry, which may be freed by that, and returns whether the wakeup ends here.
 *
 * Sets in_eventfd, as eventfd does, so that a function that would signal an eventfd
 * from inside this wakeup defers the signal.
 */
static noinline bool counter_wake_one(wait_queue_entry_t *entry, __poll_t events)
{
	bool exclusive = entry->flags & WQ_FLAG_EXCLUSIVE;
	bool outer = current->in_eventfd;
	int woken;

	current->in_eventfd = 1;
	/*
	 * l: EPOLL_CTL_MOD has a barrier between its mask and its look at the events, and does
	 * not join the queue again. The function begins with epoll's lock, and then reads the
	 * mask. This is a full barrier, or, as on x86, all locks are.
	 */
	smp_mb__before_atomic();
	woken = entry->func(entry, TASK_NORMAL, 0, poll_to_key(events));
	current->in_eventfd = outer;
	return woken < 0 || (woken && exclusive);
}

/*
 * Wakes the pollers of a locked counter: as wake_up_locked_poll(), but events that a ring
 * watches are published here.
 */
void flowfd_counter_wake(struct flowfd_counter *c, __poll_t events)
{
	wait_queue_entry_t *entry, *next;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (likely(entry->func == flowfd_watch_wake &&
			   watch_announce(entry->private, events, 0)))
			continue;
		if (counter_wake_one(entry, events))
			break;
	}
}

/* Wakes one exclusive poller of a locked counter. */
void flowfd_counter_wake_exclusive(struct flowfd_counter *c, __poll_t events)
{
	wait_queue_entry_t *entry, *next;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (entry->flags & WQ_FLAG_EXCLUSIVE && counter_wake_one(entry, events))
			break;
	}
}
