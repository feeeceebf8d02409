// SPDX-License-Identifier: GPL-2.0-only
/*
 * The settings of a counter and what follows from a change of them, under the lock of its
 * wait queue.
 */
#include <linux/lockdep.h>

#include "count.h"
#include "counter.h"

/* Of this moment; of a mapped counter that others use it may be too high. */
static u64 settings_count(const struct flowfd_counter *c)
{
	return c->mapped ? flowfd_mapped_count(c->mapped) : c->count;
}

/* A mark that could never be reached would be a lock-up. 1 is none. */
static bool mark_is_valid(u64 mark, u64 maximum)
{
	return mark <= 1 || mark < maximum;
}

static void settings_store_maximum(struct flowfd_counter *c, u64 maximum)
{
	struct flowfd_mapped *m = c->mapped;

	if (m) {
		WRITE_ONCE(m->maximum, maximum);
		WRITE_ONCE(m->header->maximum, maximum);
	} else {
		c->maximum = maximum;
	}
}

/* @readers: they are to be told of the count; @writers: there may be more room. */
static void settings_deliver(struct flowfd_counter *c, bool readers, bool writers)
{
	if (flowfd_writers_retry(c)) {
		if (flowfd_writers_go_on(c))
			readers |= flowfd_pace_admits(c);
		else
			/* Without them, the count may be ready only later. */
			flowfd_pace_is_ready(c);
	}
	if (!c->mapped) {
		/* Pollers for room are told, whatever there was before. */
		c->write_refused |= writers;
		flowfd_counter_deliver(c, readers, writers, c->count);
		/* A source waits for room, and what it has need not wait now. */
		if (writers && flow_loses(&c->flow) && !(c->events & EPOLLOUT))
			flowfd_counter_wake(c, EPOLLOUT);
		return;
	}
	if (readers)
		flowfd_mapped_deliver(c);
	if (writers)
		flowfd_mapped_raised(c);
}

static int settings_set_maximum(struct flowfd_counter *c, u64 maximum)
{
	bool raised = maximum > counter_maximum(c);
	bool untold, ready;

	if (!bridges_allow_maximum(c->bridges) && maximum != U64_MAX)
		return -EINVAL;
	if (maximum <= settings_count(c) || !mark_is_valid(c->flow.read_mark, maximum) ||
	    !mark_is_valid(c->flow.write_mark, maximum))
		return -EINVAL;
	untold = !flowfd_pace_is_ready(c);
	settings_store_maximum(c, maximum);
	/* It is if there is no room now. Or else begins the delay. */
	ready = flowfd_pace_is_ready(c);
	settings_deliver(c, untold && ready && flowfd_pace_admits(c), raised);
	return 0;
}

/**
 * flowfd_counter_set_maximum - change the maximum
 * @c: counter
 * @maximum: new maximum
 *
 * Return: 0, or -EINVAL if it is not above the count and the marks.
 */
int flowfd_counter_set_maximum(struct flowfd_counter *c, u64 maximum)
{
	int err;

	spin_lock_irq(&c->wqh.lock);
	err = settings_set_maximum(c, maximum);
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/* The caller delivers a wakeup that was deferred; returns whether there was one. */
static bool settings_set_qos(struct flowfd_counter *c, const struct eventfd_qos *qos)
{
	bool deferred = c->wakeup_deferred;

	flowfd_pace_set_bucket(c, qos);
	/* Which takes must notify depends on whether there is a bucket. */
	if (c->mapped) {
		counter_arm_writers(c);
		counter_arm_readers(c);
	}
	return deferred && flowfd_pace_is_ready(c);
}

/**
 * flowfd_counter_set_qos - start with a new bucket, which is full
 * @c: counter
 * @qos: valid settings
 *
 * Return: 0, or -EINVAL if the counter is a semaphore.
 */
int flowfd_counter_set_qos(struct flowfd_counter *c, const struct eventfd_qos *qos)
{
	int err = -EINVAL;

	spin_lock_irq(&c->wqh.lock);
	if (!c->semaphore) {
		if (settings_set_qos(c, qos))
			settings_deliver(c, true, false);
		err = 0;
	}
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

static bool flow_suits(const struct flowfd_counter *c, const struct flowfd_flow *args)
{
	if (c->semaphore && (args->read_mark > 1 || args->max_delay ||
			     args->qos.token_capacity || args->qos.token_rate))
		return false;
	if (!bridges_allow_maximum(c->bridges) && (args->maximum ?: U64_MAX) != U64_MAX)
		return false;
	return (args->maximum ?: U64_MAX) > settings_count(c);
}

static void flow_store(struct flowfd_counter *c, const struct flowfd_flow *args)
{
	struct flow *f = &c->flow;

	settings_store_maximum(c, args->maximum ?: U64_MAX);
	/* Poll of a mapped counter reads them without the lock. */
	WRITE_ONCE(f->read_mark, args->read_mark ?: 1);
	WRITE_ONCE(f->write_mark, args->write_mark ?: 1);
	WRITE_ONCE(f->max_delay, args->max_delay);
	f->overflow = args->overflow;
	c->has_policies = f->read_mark > 1 || f->write_mark > 1 ||
			  f->overflow != FLOWFD_OVERFLOW_WAIT;
	if (!c->has_policies)
		flowfd_pace_restart(c);
	counter_set_marker(c);
}

/**
 * flowfd_counter_set_flow - replace all settings
 * @c: counter
 * @args: settings that are valid for some counter
 *
 * Return: 0, or -EINVAL if they are not valid for this one now.
 */
int flowfd_counter_set_flow(struct flowfd_counter *c, const struct flowfd_flow *args)
{
	bool untold, ready, suits;

	spin_lock_irq(&c->wqh.lock);
	suits = flow_suits(c, args);
	if (suits) {
		untold = !flowfd_pace_is_ready(c);
		/* A delay goes on. What made the count ready until a take still does. */
		flow_move_due(&c->flow, args->max_delay);
		flow_store(c, args);
		untold |= settings_set_qos(c, &args->qos);
		/* Begins the delay, if there is one now. */
		ready = flowfd_pace_is_ready(c);
		settings_deliver(c, untold && ready, true);
	}
	spin_unlock_irq(&c->wqh.lock);
	return suits ? 0 : -EINVAL;
}

/**
 * flowfd_flow_is_valid - whether a counter can have these settings
 * @args: settings from user space
 */
bool flowfd_flow_is_valid(const struct flowfd_flow *args)
{
	u64 maximum = args->maximum ?: U64_MAX;

	return mark_is_valid(args->read_mark, maximum) &&
	       mark_is_valid(args->write_mark, maximum) &&
	       args->max_delay <= FLOWFD_MAX_DELAY_MAX &&
	       args->overflow <= FLOWFD_OVERFLOW_DROP && flowfd_qos_is_valid(&args->qos);
}

static u32 settings_flags(const struct flowfd_counter *c)
{
	if (c->mapped)
		return c->mapped->header->flags;
	return c->semaphore ? FLOWFD_SEMAPHORE : 0;
}

/**
 * flowfd_counter_get_flow - settings and count of one moment
 * @c: counter
 * @answer: result
 */
void flowfd_counter_get_flow(struct flowfd_counter *c, struct flowfd_flow *answer)
{
	spin_lock_irq(&c->wqh.lock);
	*answer = (struct flowfd_flow){
		.maximum = counter_maximum(c),
		.read_mark = c->flow.read_mark,
		.write_mark = c->flow.write_mark,
		.max_delay = c->flow.max_delay,
		.qos = c->qos,
		.overflow = c->flow.overflow,
		.flags = settings_flags(c),
		.count = settings_count(c),
		.lost = c->flow.lost,
	};
	spin_unlock_irq(&c->wqh.lock);
}
