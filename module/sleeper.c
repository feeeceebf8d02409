// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tasks that sleep in read or write of a counter. Who changes the count takes or adds
 * for them, first come first served, and wakes only those whose call is done. All of it is
 * under the lock of the counter's wait queue.
 */
#include <linux/lockdep.h>
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

/* It ends without a turn: nothing shall be taken by who cannot use it. */
static bool sleeper_is_killed(const struct flowfd_sleeper *s)
{
	/* A signal that comes now comes after its turn. */
	return data_race(fatal_signal_pending(s->task));
}

/* Whose turn it is. */
static struct flowfd_sleeper *sleepers_first(struct list_head *sleepers)
{
	struct flowfd_sleeper *s;

	while ((s = list_first_entry_or_null(sleepers, struct flowfd_sleeper, node)) &&
	       sleeper_is_killed(s))
		sleeper_end(s, -ERESTARTSYS);
	return s;
}

/* 0; -EAGAIN: sleep on; -EINVAL: it can never fit; -EBUSY: others change the count. */
static int sleeper_add(struct flowfd_counter *c, u64 value)
{
	if (!count_can_fit(counter_maximum(c), value))
		return -EINVAL;
	if (c->mapped)
		return flowfd_mapped_try_add(c->mapped, value);
	if (!count_has_room(c->count, c->maximum, value))
		return -EAGAIN;
	c->count += value;
	return 0;
}

/* 0; -EAGAIN: sleep on; -EBUSY: others change the count. */
static int sleeper_take(struct flowfd_counter *c, u64 *value)
{
	u64 before = c->count;
	int err;

	if (!counter_is_ready(c, counter_count(c)))
		return -EAGAIN;
	if (c->mapped) {
		err = flowfd_mapped_try_take(c->mapped, value);
		if (err)
			return err;
		before = *value;
	} else {
		*value = c->semaphore ? 1 : before;
		c->count -= *value;
	}
	stats_take(&c->stats, before, *value);
	return 0;
}

/**
 * flowfd_writers_go_on - add what the first sleeping writers want to add
 * @c: locked counter
 *
 * Stops at the first that does not fit: big values have their turn, too.
 *
 * Return: whether something was added.
 */
bool flowfd_writers_go_on(struct flowfd_counter *c)
{
	struct flowfd_sleeper *s;
	bool added = false;
	int err = 0;

	lockdep_assert_held(&c->wqh.lock);

	while ((s = sleepers_first(&c->writers))) {
		/* After one of 64 tries, all others try for themselves. */
		err = err == -EBUSY ? err : sleeper_add(c, s->value);
		if (err == -EAGAIN)
			break;
		if (!err) {
			added = true;
			c->stats.writes++;
			/* Programs may take it before another call sees it. */
			counter_see_count(c);
		}
		sleeper_end(s, err == -EBUSY ? 1 : err);
	}
	counter_set_marker(c);
	return added;
}

/**
 * flowfd_readers_go_on - give the count to the first sleeping reader
 * @c: locked counter
 *
 * A semaphore gives 1 to each.
 *
 * Return: whether something was taken.
 */
bool flowfd_readers_go_on(struct flowfd_counter *c)
{
	struct flowfd_sleeper *s;
	bool taken = false;
	int err = 0;

	lockdep_assert_held(&c->wqh.lock);

	while ((s = sleepers_first(&c->readers))) {
		/* As for writers. */
		err = err == -EBUSY ? err : sleeper_take(c, &s->value);
		if (err == -EAGAIN)
			break;
		taken |= !err;
		if (!err && !c->semaphore)
			flowfd_pace_restart(c);
		sleeper_end(s, err == -EBUSY ? 1 : err);
	}
	counter_set_marker(c);
	return taken;
}

/**
 * flowfd_writers_retry - have writers try again after a change of settings
 * @c: locked counter
 *
 * Those who must not sleep now: because of the policy, or because the value can never fit.
 *
 * Return: whether there are any. Those behind them may fit.
 */
bool flowfd_writers_retry(struct flowfd_counter *c)
{
	struct flowfd_sleeper *s, *next;
	bool ended = false;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(s, next, &c->writers, node) {
		if (c->flow.overflow == FLOWFD_OVERFLOW_WAIT &&
		    count_can_fit(counter_maximum(c), s->value))
			continue;
		sleeper_end(s, sleeper_is_killed(s) ? -ERESTARTSYS : 1);
		ended = true;
	}
	counter_set_marker(c);
	return ended;
}

/* Sleeps without the lock; returns whether @end has come. */
static bool sleeper_sleep(struct flowfd_counter *c, ktime_t end) __must_hold(&c->wqh.lock)
{
	bool expired;

	set_current_state(TASK_INTERRUPTIBLE);
	spin_unlock_irq(&c->wqh.lock);
	expired = sleep_until(end);
	spin_lock_irq(&c->wqh.lock);
	return expired;
}

/**
 * flowfd_sleeper_join - make the caller a sleeper, for flowfd_sleeper_sleep()
 * @c: locked counter
 * @s: on the stack of the caller
 * @event: EPOLLIN: it reads; EPOLLOUT: it writes
 * @value: what a writer adds
 */
void flowfd_sleeper_join(struct flowfd_counter *c, struct flowfd_sleeper *s,
			 __poll_t event, u64 value)
{
	s->task = current;
	s->writes = event == EPOLLOUT;
	s->value = value;
	s->result = SLEEPER_SLEEPS;
	list_add_tail(&s->node, s->writes ? &c->writers : &c->readers);
	counter_set_marker(c);
}

/**
 * flowfd_sleeper_sleep - sleep until somebody has done what the caller wants to do
 * @c: locked counter; the lock is released meanwhile
 * @s: sleeper that has joined; it leaves
 * @end: until when it may sleep, on CLOCK_MONOTONIC; KTIME_MAX: for ever
 *
 * Return: 0: it was added or taken; 1: try again, because settings changed, or because a
 * program changed the count of a mapped counter; -EINVAL: it can never fit; -ETIMEDOUT; or
 * -ERESTARTSYS for a signal.
 */
int flowfd_sleeper_sleep(struct flowfd_counter *c, struct flowfd_sleeper *s, ktime_t end)
{
	bool expired = false, waits = false;

	while (s->result == SLEEPER_SLEEPS) {
		if (expired)
			s->result = -ETIMEDOUT;
		else if (signal_pending(current))
			s->result = -ERESTARTSYS;
		if (s->result != SLEEPER_SLEEPS)
			break;
		if (s->writes && !waits) {
			stats_begin_wait(&c->stats, ktime_get_ns());
			waits = true;
		}
		expired = sleeper_sleep(c, end);
	}
	if (waits)
		stats_end_wait(&c->stats, ktime_get_ns());
	list_del(&s->node);
	counter_set_marker(c);
	return s->result;
}
