// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waking the readers of a mapped counter, so that no add in memory goes unnoticed that
 * comes meanwhile. All of it is under the lock of the counter's wait queue.
 */
#include <linux/lockdep.h>

#include "counter.h"

/**
 * flowfd_mapped_ends_early - whether a wakeup may leave some pollers out
 * @c: locked counter, with something in its queue
 *
 * A wakeup ends at the first exclusive entry, and exclusive entries are at the tail.
 */
bool flowfd_mapped_ends_early(const struct flowfd_counter *c)
{
	const wait_queue_entry_t *last, *before;

	last = list_last_entry(&c->wqh.head, wait_queue_entry_t, entry);
	before = list_prev_entry(last, entry);
	return !list_is_head(&before->entry, &c->wqh.head) &&
	       before->flags & last->flags & WQ_FLAG_EXCLUSIVE;
}

/* Each add must notify: one edge for all that come until a take is not enough. */
static bool mapped_keeps_readers(const struct flowfd_counter *c)
{
	return READ_ONCE(c->mapped->edge_in) || flowfd_mapped_ends_early(c);
}

/**
 * flowfd_mapped_wake_readers - deliver that there is a count
 * @c: locked mapped counter
 *
 * Disarms first: who arms from there on looks at the count afterwards.
 *
 * Whoever is woken polls or takes, which arms again, also if the count is gone by then.
 * Readers that still sleep do neither: there was no count when their turn came.
 */
void flowfd_mapped_wake_readers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	lockdep_assert_held(&c->wqh.lock);

	if (!counter_has_queue(c))
		return;
	if (!mapped_keeps_readers(c))
		mapped_disarm(m, FLOWFD_ARMED_READERS);
	/* Looks again: poll sets edge_in before it arms. Pairs with e. */
	if (mapped_keeps_readers(c))
		mapped_arm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	flowfd_counter_wake(c, EPOLLIN);
	if (flowfd_sleepers_want(c, EPOLLIN)) {
		counter_arm_readers(c);
		flowfd_sleepers_wake(c, EPOLLIN);
	}
}
