// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adding to and taking from a counter, each in the same loop, wherever the count is. Count,
 * settings and the wakeups that follow from them are under one lock, that of the wait queue.
 * counter_io.c has the fast paths of read and write.
 */
#include <linux/sched/signal.h>

#include "counter.h"

/*
 * Programs change the words all the time: enables interrupts, lets others run, and looks
 * for signals and the time, before the caller tries again.
 */
static int counter_yield(struct flowfd_counter *c, const struct flowfd_options *options)
{
	spin_unlock_irq(&c->wqh.lock);
	cond_resched();
	spin_lock_irq(&c->wqh.lock);
	if (options->end != KTIME_MAX && ktime_get() >= options->end)
		return -ETIMEDOUT;
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/* By policy, what does not fit is lost. */
static int counter_lose(struct flowfd_counter *c, u64 value,
			const struct flowfd_options *options)
{
	u64 lost = value;

	if (c->ready.flow.overflow == FLOWFD_OVERFLOW_SATURATE &&
	    store_try_add(&c->store, &lost, true) == -EBUSY)
		return -EBUSY;
	flow_lose(&c->ready.flow, lost);
	counter_note_write(c, value);
	flowfd_ready_force(&c->ready, counter_count(c));
	flowfd_counter_settle(c, EPOLLIN, options->urgent && lost < value);
	return 0;
}

/*
 * A write that does not sleep passes writers that do, and so does one that adds nothing, or
 * that is of a semaphore. The maximum says whether a value can ever fit, and may change
 * while the writer sleeps. Returns 0; -EAGAIN: it does not fit now, or has to wait;
 * -EBUSY: others change the count; -EINVAL.
 */
static int counter_try_add(struct flowfd_counter *c, u64 value,
			   const struct flowfd_options *options)
{
	bool passes = !value || options->nonblock || c->store.semaphore;
	u64 left = value;
	int err = -EAGAIN;

	if (passes || list_empty(&c->writers))
		err = store_try_add(&c->store, &left, false);
	if (err == -EAGAIN && counter_loses(c))
		return counter_lose(c, value, options);
	if (err == -EAGAIN && !count_can_fit(store_maximum(&c->store), value))
		return -EINVAL;
	if (err)
		return err;
	counter_note_write(c, value);
	if (unlikely(options->urgent))
		flowfd_ready_force(&c->ready, counter_count(c));
	flowfd_counter_settle(c, EPOLLIN, options->urgent);
	return 0;
}

/*
 * One that must not sleep takes what is there, ready or not. Programs take without a call:
 * an edge is for them only that there is room again.
 */
static int counter_try_take(struct flowfd_counter *c, u64 *value,
			    const struct flowfd_options *options)
{
	u64 before;
	int err;

	if (!options->nonblock && !counter_is_ready(c, counter_count(c)))
		return -EAGAIN;
	err = store_try_take(&c->store, value, &before);
	if (err)
		return err;
	counter_note_read(c, before, *value);
	if (!counter_count(c))
		ready_restart(&c->ready);
	flowfd_counter_settle(c, counter_arm_readers(c) ? 0 : EPOLLOUT, false);
	return 0;
}

/*
 * Whether there may be room after all. A reader would make room, so it must not wait for its
 * read mark; a program may have made room before it notifies of takes.
 */
static bool counter_makes_room(struct flowfd_counter *c)
{
	bool armed = counter_arm_writers(c);
	bool forced = flowfd_ready_force(&c->ready, counter_count(c));

	if (armed || forced)
		flowfd_counter_settle(c, 0, false);
	return armed || forced;
}

/* As in programs: each look arms, and makes up for a take that was not finished. */
static bool counter_may_have_count(struct flowfd_counter *c)
{
	if (!counter_arm_readers(c))
		return false;
	flowfd_counter_settle(c, 0, false);
	return true;
}

/* A mapped counter can have room once the next take notifies. */
static int counter_sleep_as_writer(struct flowfd_counter *c, u64 value,
				   const struct flowfd_options *options)
{
	struct flowfd_sleeper s = { .value = value };
	bool waits;

	flowfd_sleeper_join(c, &s, &c->writers);
	/* One that overtook all others may fit: there was no try for it. */
	if (counter_arm_writers(c) || c->writers.next == &s.node)
		flowfd_counter_settle(c, 0, false);
	waits = s.result == SLEEPER_SLEEPS && !signal_pending(current);
	if (waits)
		stats_begin_wait(&c->stats, ktime_get_ns());
	flowfd_sleeper_sleep(c, &s, options->end);
	if (waits)
		stats_end_wait(&c->stats, ktime_get_ns());
	if (s.result) {
		/* Writers behind it may fit. And as after EAGAIN, the caller may poll. */
		c->write_refused = true;
		flowfd_counter_settle(c, 0, false);
		return s.result;
	}
	trace_flowfd_write(c, value);
	if (options->urgent) {
		flowfd_ready_force(&c->ready, counter_count(c));
		flowfd_counter_settle(c, EPOLLIN, true);
	}
	return 0;
}

/* A mapped counter can have a count once the next add notifies. */
static int counter_sleep_as_reader(struct flowfd_counter *c, u64 *value,
				   const struct flowfd_options *options)
{
	struct flowfd_sleeper s;

	flowfd_sleeper_join(c, &s, &c->readers);
	if (counter_arm_readers(c) && counter_is_ready(c, counter_count(c)))
		s.result = -EBUSY;
	flowfd_sleeper_sleep(c, &s, options->end);
	if (s.result)
		return s.result;
	*value = s.value;
	trace_flowfd_read(c, *value);
	return 0;
}

/* @writes is a constant: an add and a take are the same but for their steps. */
static __always_inline int counter_transfer(struct flowfd_counter *c, u64 *value,
					    const struct flowfd_options *options,
					    bool writes)
{
	bool sleeps = !options->nonblock;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	do {
		err = writes ? counter_try_add(c, *value, options) :
			       counter_try_take(c, value, options);
		if (err != -EAGAIN)
			continue;
		if (writes ? counter_makes_room(c) : counter_may_have_count(c))
			err = writes ? counter_try_add(c, *value, options) :
				       counter_try_take(c, value, options);
		if (err != -EAGAIN)
			continue;
		if (writes && c->ready.flow.overflow != FLOWFD_OVERFLOW_WAIT)
			sleeps = false;
		if (sleeps) {
			err = writes ? counter_sleep_as_writer(c, *value, options) :
				       counter_sleep_as_reader(c, value, options);
		} else {
			c->write_refused |= writes;
			c->stats.again++;
		}
	} while (err == -EBUSY && !(err = counter_yield(c, options)));
	return err;
}

/*
 * Adds to a locked counter, as a write does. The lock is released while it sleeps.
 * Returns 0 or a negative errno.
 */
int flowfd_counter_add(struct flowfd_counter *c, u64 value,
		       const struct flowfd_options *options)
{
	if (value == U64_MAX)
		return -EINVAL;
	return counter_transfer(c, &value, options, true);
}

/*
 * Takes from a locked counter, as a read does. The lock is released while it sleeps.
 * Returns 0 or a negative errno.
 */
int flowfd_counter_take(struct flowfd_counter *c, u64 *value,
			const struct flowfd_options *options)
{
	return counter_transfer(c, value, options, false);
}

/*
 * Whether flowfd_counter_add_some() would leave nothing of @value and 1 more. The counter
 * is locked. By policy, what does not fit is lost, but not what would fit without it.
 */
bool flowfd_counter_takes_more(const struct flowfd_counter *c, u64 value)
{
	if (store_has_room(&c->store, value + 1))
		return true;
	return counter_loses(c) && !(value && store_has_room(&c->store, value));
}

/*
 * Adds to a locked counter as much as there is room for, and subtracts from *@value what
 * was added, or lost by policy. Does not sleep, nor unlock the counter. Returns 0;
 * -EAGAIN: there is no room for the rest; or -EBUSY: others changed the count of a mapped
 * counter all the time.
 */
int flowfd_counter_add_some(struct flowfd_counter *c, u64 *value)
{
	const struct flowfd_options options = { .nonblock = true };
	u64 before = *value;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	if (counter_loses(c)) {
		err = counter_try_add(c, *value, &options);
		if (!err)
			*value = 0;
		return err;
	}
	err = store_try_add(&c->store, value, true);
	if (*value != before) {
		counter_note_write(c, before - *value);
		flowfd_counter_settle(c, EPOLLIN, false);
	}
	return err;
}

/*
 * Has the next take wake an entry for EPOLLOUT, which is in the queue of a locked counter
 * without room. A mapped counter can have room afterwards.
 */
void flowfd_counter_want_room(struct flowfd_counter *c)
{
	c->write_refused = true;
	counter_makes_room(c);
}

/* Wakes readers of a locked counter if the count is ready, as after an add. */
void flowfd_counter_tell_readers(struct flowfd_counter *c)
{
	counter_arm_readers(c);
	if (counter_count(c))
		flowfd_counter_settle(c, EPOLLIN, false);
}

/*
 * Takes the count of a locked counter if it is ready. Returns 0; -EAGAIN: the next add
 * that makes it ready wakes readers; or -EBUSY: others changed the count of a mapped
 * counter all the time.
 */
int flowfd_counter_take_ready(struct flowfd_counter *c, u64 *value)
{
	const struct flowfd_options options = {};

	lockdep_assert_held(&c->wqh.lock);

	counter_arm_readers(c);
	return counter_try_take(c, value, &options);
}
