// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waking the tasks, pollers and rings in a counter's wait queue, under its lock.
 */
#include <linux/lockdep.h>
#include <linux/sched.h>

#include "counter.h"
#include "publish.h"

/**
 * flowfd_counter_wake_one - call one entry of a counter's wait queue
 * @entry: entry; it may be freed by the call
 * @events: events of the wakeup
 *
 * Sets in_eventfd, as eventfd does, so that a function that would signal an eventfd
 * from inside this wakeup defers the signal. A ring sets it when it wakes: see
 * flowfd_ring_wake().
 *
 * Return: whether the wakeup ends here.
 */
noinline bool flowfd_counter_wake_one(wait_queue_entry_t *entry, __poll_t events)
{
	bool exclusive = entry->flags & WQ_FLAG_EXCLUSIVE;
	bool outer = current->in_eventfd;
	int woken;

	current->in_eventfd = 1;
	woken = entry->func(entry, TASK_NORMAL, 0, poll_to_key(events));
	current->in_eventfd = outer;
	return woken < 0 || (woken && exclusive);
}

/**
 * flowfd_counter_wake - wake sleepers and pollers
 * @c: locked counter
 * @events: what happened
 *
 * As wake_up_locked_poll(), but events that a ring watches are published here.
 */
void flowfd_counter_wake(struct flowfd_counter *c, __poll_t events)
{
	wait_queue_entry_t *entry, *next;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (likely(entry->func == flowfd_watch_wake &&
			   watch_announce(watch_of_first(entry), events, 0)))
			continue;
		if (flowfd_counter_wake_one(entry, events))
			break;
	}
}
