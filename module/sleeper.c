// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tasks that sleep in read or write of a counter. The task that changes the count takes
 * or adds for them, in their order, and wakes only tasks whose call is done. All of it is
 * under the lock of the counter's wait queue.
 */
#include <linux/lockdep.h>
#include <linux/sched/prio.h>
#include <linux/sched/signal.h>

#include "count.h"
#include "counter.h"
#include "sleep.h"

/* The task needs the lock to go on, and so is there until this is done. */
static void sleeper_end(struct flowfd_sleeper *s, int result)
{
	s->result = result;
	list_del_init(&s->node);
	wake_up_process(s->task);
}

/* 0; -EAGAIN: sleep on; -EBUSY: others change the count. */
static int sleeper_add(struct flowfd_counter *c, u64 value)
{
	int err = store_try_add(&c->store, &value, false);

	if (err)
		return err;
	c->stats.writes++;
	/* Programs may take it before another call sees it. */
	counter_see_count(c);
	return 0;
}

/* 0; -EAGAIN: sleep on; -EBUSY: others change the count. */
static int sleeper_take(struct flowfd_counter *c, u64 *value)
{
	u64 before;
	int err;

	if (!counter_is_ready(c, counter_count(c)))
		return -EAGAIN;
	err = store_try_take(&c->store, value, &before);
	if (err)
		return err;
	stats_take(&c->stats, before, *value);
	if (before == *value)
		ready_restart(&c->ready);
	return 0;
}

/*
 * Adds what the first sleeping writers want to add, or gives the count to the first sleeping
 * reader; a semaphore gives 1 to each. Returns whether something was added, or taken.
 *
 * Stops at the first writer that does not fit: big values have their turn, too. But not of a
 * semaphore: each 1 is for another reader, so nothing is gathered for a big value, and
 * its writer could wait for readers that wait for the writers behind it.
 */
bool flowfd_sleepers_go_on(struct flowfd_counter *c, bool writes)
{
	struct list_head *sleepers = writes ? &c->writers : &c->readers;
	struct flowfd_sleeper *s, *next;
	bool done = false;
	int err = 0;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(s, next, sleepers, node) {
		/* After one of 64 tries, all others try for themselves. */
		if (err != -EBUSY)
			err = writes ? sleeper_add(c, s->value) :
				       sleeper_take(c, &s->value);
		if (err == -EAGAIN && writes && c->store.semaphore)
			continue;
		if (err == -EAGAIN)
			break;
		done |= !err;
		sleeper_end(s, err);
	}
	counter_set_busy(c);
	return done;
}

/*
 * After a change of settings, has writers try again if they must not sleep now: because
 * of the policy, or because their value can never fit.
 */
void flowfd_writers_retry(struct flowfd_counter *c)
{
	struct flowfd_sleeper *s, *next;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(s, next, &c->writers, node)
		if (c->ready.flow.overflow != FLOWFD_OVERFLOW_WAIT ||
		    !count_can_fit(store_maximum(&c->store), s->value))
			sleeper_end(s, -EBUSY);
	counter_set_busy(c);
}

/*
 * Makes the caller a sleeper, on its stack, for flowfd_sleeper_sleep(). @sleepers:
 * readers or writers of the counter. A writer has set its value.
 *
 * As futex(2) does, it puts real-time tasks in the order of their priorities, and all
 * others behind them. Equals have their turns in the order in which they came.
 */
void flowfd_sleeper_join(struct flowfd_counter *c, struct flowfd_sleeper *s,
			 struct list_head *sleepers)
{
	struct flowfd_sleeper *other;

	s->task = current;
	/* Its own. That of a waiter may be lent to it: with PREEMPT_RT, for this lock. */
	s->priority = min(current->normal_prio, MAX_RT_PRIO);
	s->result = SLEEPER_SLEEPS;
	list_for_each_entry_reverse(other, sleepers, node) {
		if (other->priority <= s->priority)
			break;
	}
	list_add(&s->node, &other->node);
	counter_set_busy(c);
}

/*
 * Sleeps until another task has done what the caller wants to do, or until @end on
 * CLOCK_MONOTONIC, KTIME_MAX for never. The lock is released meanwhile. The sleeper has
 * joined; it leaves.
 *
 * The result in @s is 0: it was added or taken; -EBUSY: try again, because settings
 * changed, or because a program changed the count of a mapped counter; -ETIMEDOUT; or
 * -ERESTARTSYS for a signal.
 */
void flowfd_sleeper_sleep(struct flowfd_counter *c, struct flowfd_sleeper *s, ktime_t end)
	__must_hold(&c->wqh.lock)
{
	bool expired = false;

	while (s->result == SLEEPER_SLEEPS) {
		if (expired || signal_pending(current)) {
			s->result = expired ? -ETIMEDOUT : -ERESTARTSYS;
			break;
		}
		set_current_state(TASK_INTERRUPTIBLE);
		spin_unlock_irq(&c->wqh.lock);
		expired = sleep_until(end);
		spin_lock_irq(&c->wqh.lock);
	}
	/* A task that ended the sleep has done this. */
	if (!list_empty(&s->node)) {
		list_del(&s->node);
		counter_set_busy(c);
	}
}
