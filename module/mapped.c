// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of a mapped counter: they work on the words that programs add to and take
 * from in memory. A program may store anything there at any moment: no loop depends on
 * it, nor anything but this counter. Wakeups are under the lock of the wait queue, as
 * those of any counter.
 */
#include <linux/sched/signal.h>

#include "counter.h"

/*
 * Programs change the words all the time: enables interrupts, lets others run, and looks
 * for signals and the time, before the caller tries again.
 */
static int mapped_yield(struct flowfd_counter *c, const struct flowfd_terms *terms)
{
	spin_unlock_irq(&c->wqh.lock);
	cond_resched();
	spin_lock_irq(&c->wqh.lock);
	if (terms->end != KTIME_MAX && ktime_get() >= terms->end)
		return -ETIMEDOUT;
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/**
 * flowfd_mapped_notify - FLOWFD_IOC_COUNTER_NOTIFY
 * @c: mapped counter
 */
void flowfd_mapped_notify(struct flowfd_counter *c)
{
	spin_lock_irq(&c->wqh.lock);
	flowfd_mapped_settle(c);
	spin_unlock_irq(&c->wqh.lock);
}

/**
 * flowfd_mapped_heal - do what processes that ended may have left undone
 * @work: of a mapped counter
 *
 * One may have died after an add or take and before it looked at the bits, or after it
 * was woken and before it looked at the count: so this wakes all again.
 */
void flowfd_mapped_heal(struct work_struct *work)
{
	struct flowfd_mapped *m = container_of(work, struct flowfd_mapped, heal);
	struct flowfd_counter *c = m->counter;

	spin_lock_irq(&c->wqh.lock);
	counter_arm_readers(c);
	/* With a bucket, an edge for room would let a poller see a count without a token. */
	if (!bucket_is_limited(&c->bucket)) {
		counter_arm_writers(c);
		/* Not what it was. */
		m->told_consumed = atomic64_read(m->consumed) - 1;
	}
	flowfd_mapped_settle(c);
	spin_unlock_irq(&c->wqh.lock);
}

/* As counter_has_turn(). */
static int mapped_try_add(struct flowfd_counter *c, u64 value,
			  const struct flowfd_terms *terms)
{
	if (value && !terms->nonblock && !list_empty(&c->writers))
		return -EAGAIN;
	return flowfd_mapped_try_add(c->mapped, value);
}

static void mapped_lose(struct flowfd_counter *c, u64 lost)
{
	if (!lost)
		return;
	flow_lose(&c->flow, lost);
	flowfd_pace_force(c);
}

/*
 * By policy, adds what fits of *@value and loses the rest, which *@value is then; or
 * -EBUSY: others changed the count all the time, and nothing is done.
 */
static int mapped_add_or_lose(struct flowfd_counter *c, u64 *value)
{
	int err = 0;

	if (c->flow.overflow == FLOWFD_OVERFLOW_SATURATE)
		err = flowfd_mapped_try_add_some(c->mapped, value);
	if (err == -EBUSY)
		return err;
	mapped_lose(c, *value);
	return 0;
}

/* Has the next take notify, and then looks whether the caller can go on after all. */
static int mapped_sleep_as_writer(struct flowfd_counter *c, u64 value,
				  const struct flowfd_terms *terms)
{
	struct flowfd_sleeper s;
	int err;

	flowfd_sleeper_join(c, &s, EPOLLOUT, value);
	mapped_arm(c->mapped, FLOWFD_ARMED_WRITERS);
	flowfd_mapped_tell_writers(c);
	err = flowfd_sleeper_sleep(c, &s, terms->end);
	if (err) {
		/* Those behind it may fit. Without any, the count may be ready later. */
		flowfd_mapped_tell_writers(c);
		flowfd_pace_is_ready(c);
	} else {
		trace_flowfd_write(c, value);
		if (terms->urgent)
			flowfd_mapped_added(c, true);
	}
	return err;
}

/* Return: 0: it was added; 1: look again; 2: yield, then try again; or a negative errno. */
static int mapped_overflow(struct flowfd_counter *c, u64 value,
			   const struct flowfd_terms *terms, bool *refused)
{
	int err;

	if (!count_can_fit(c->mapped->maximum, value))
		return -EINVAL;
	counter_see_count(c);
	flowfd_mapped_refused(c);
	if (!terms->nonblock && c->flow.overflow == FLOWFD_OVERFLOW_WAIT) {
		err = mapped_sleep_as_writer(c, value, terms);
		return err > 0 ? 2 : err;
	}
	if (*refused) {
		c->stats.again++;
		return -EAGAIN;
	}
	/* For pollers that were told of room and now find none. */
	*refused = true;
	counter_arm_writers(c);
	return 1;
}

/**
 * flowfd_mapped_add - add to the count by a call
 * @c: locked mapped counter; the lock is released while this sleeps
 * @value: what to add
 * @terms: how
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_add(struct flowfd_counter *c, u64 value,
		      const struct flowfd_terms *terms)
{
	bool refused = false;
	u64 lost = 0;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	while ((err = mapped_try_add(c, value, terms))) {
		if (err == -EAGAIN && flow_loses(&c->flow)) {
			lost = value;
			err = mapped_add_or_lose(c, &lost);
			if (!err)
				break;
			lost = 0;
		} else if (err == -EAGAIN) {
			err = mapped_overflow(c, value, terms, &refused);
			if (err <= 0)
				return err;
		}
		if (err == 1)
			continue;
		err = mapped_yield(c, terms);
		if (err)
			return err;
	}
	counter_note_write(c, value);
	flowfd_mapped_added(c, terms->urgent && value > lost);
	return 0;
}

/**
 * flowfd_mapped_add_some - add as much as there is room for
 * @c: locked mapped counter
 * @value: what to add; reduced by what was added, or lost by policy
 *
 * Does not unlock the counter.
 *
 * Return: 0; -EAGAIN: there is no room for the rest; -EBUSY: others changed the count all
 * the time.
 */
int flowfd_mapped_add_some(struct flowfd_counter *c, u64 *value)
{
	struct flowfd_mapped *m = c->mapped;
	u64 before = *value;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	if (flow_loses(&c->flow)) {
		err = flowfd_mapped_try_add(m, *value);
		if (err == -EAGAIN)
			err = mapped_add_or_lose(c, value);
		if (!err)
			*value = 0;
	} else {
		err = flowfd_mapped_try_add_some(m, value);
	}
	if (*value != before) {
		counter_note_write(c, before - *value);
		flowfd_mapped_added(c, false);
	}
	return err;
}

/* Has the next add notify, and then looks, which begins a delay. */
static int mapped_sleep_as_reader(struct flowfd_counter *c, u64 *value,
				  const struct flowfd_terms *terms)
{
	struct flowfd_sleeper s;
	int err;

	flowfd_sleeper_join(c, &s, EPOLLIN, 0);
	counter_arm_readers(c);
	if (flowfd_pace_is_ready(c))
		s.result = 1;
	err = flowfd_sleeper_sleep(c, &s, terms->end);
	*value = s.value;
	if (!err)
		trace_flowfd_read(c, *value);
	return err;
}

/* Return: 0: it was taken; 1: look again; 2: yield, then try again; or a negative errno. */
static int mapped_await(struct flowfd_counter *c, u64 *value,
			const struct flowfd_terms *terms, bool *refused)
{
	int err;

	/* As in programs: each take makes up for one that was not finished. */
	flowfd_mapped_tell_writers(c);
	if (!terms->nonblock) {
		err = mapped_sleep_as_reader(c, value, terms);
		return err > 0 ? 2 : err;
	}
	if (*refused) {
		c->stats.again++;
		return -EAGAIN;
	}
	/* As in programs: this may follow a wakeup. */
	*refused = true;
	counter_arm_readers(c);
	return 1;
}

/* One that must not sleep takes what is there, ready or not. */
static int mapped_try_take(struct flowfd_counter *c, u64 *value,
			   const struct flowfd_terms *terms)
{
	if (!terms->nonblock && !flowfd_pace_is_ready(c))
		return -EAGAIN;
	return flowfd_mapped_try_take(c->mapped, value);
}

static void mapped_taken(struct flowfd_counter *c, u64 value)
{
	counter_note_read(c, value, value);
	flowfd_pace_restart(c);
	counter_arm_readers(c);
	flowfd_mapped_settle(c);
}

/**
 * flowfd_mapped_take - take the count by a call
 * @c: locked mapped counter; the lock is released while this sleeps
 * @value: result
 * @terms: how
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_take(struct flowfd_counter *c, u64 *value,
		       const struct flowfd_terms *terms)
{
	bool refused = false;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	while ((err = mapped_try_take(c, value, terms))) {
		if (err == -EAGAIN) {
			err = mapped_await(c, value, terms, &refused);
			if (err <= 0)
				return err;
		}
		if (err == 1)
			continue;
		err = mapped_yield(c, terms);
		if (err)
			return err;
	}
	mapped_taken(c, *value);
	return 0;
}

/**
 * flowfd_mapped_take_once - take the count, for a work item
 * @c: locked mapped counter
 * @value: result
 *
 * Does not sleep, nor unlock the counter, and nothing in memory keeps it busy.
 *
 * Return: 0; -EAGAIN: there is none; -EBUSY: others changed it all the time.
 */
int flowfd_mapped_take_once(struct flowfd_counter *c, u64 *value)
{
	int err;

	lockdep_assert_held(&c->wqh.lock);

	err = flowfd_mapped_try_take(c->mapped, value);
	if (!err)
		mapped_taken(c, *value);
	return err;
}

/**
 * flowfd_mapped_give_back - return what was taken with a bad buffer
 * @c: locked mapped counter
 * @value: what was taken
 *
 * One step, so that it cannot fail. Adds in memory at the same moment may raise the
 * count above the maximum, which poll reports as an overflow.
 */
void flowfd_mapped_give_back(struct flowfd_counter *c, u64 value)
{
	struct flowfd_mapped *m = c->mapped;
	u64 count = min(flowfd_mapped_count(m), m->maximum);

	lockdep_assert_held(&c->wqh.lock);

	atomic64_add(min(value, m->maximum - count), m->produced);
	/* a */
	smp_mb__after_atomic();
	stats_give_back(&c->stats, value);
	/* It may have been ready below its mark. */
	flowfd_pace_force(c);
	flowfd_mapped_added(c, false);
}
