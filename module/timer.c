// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer of a counter: wakes readers when there is a token again, or when the maximum
 * delay has passed. pace.c starts it.
 */
#include "compat.h"
#include "counter.h"

static void timer_deliver(struct flowfd_counter *c)
{
	bool readers;

	readers = flowfd_pace_expire(c);
	trace_flowfd_timer(c, readers && counter_has_readers(c));
	if (!c->mapped)
		flowfd_counter_deliver(c, readers, false, c->count);
	else if (readers)
		flowfd_mapped_deliver(c);
	else if (c->wakeup_deferred)
		mapped_disarm(c->mapped, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
}

static enum hrtimer_restart timer_expired(struct hrtimer *timer)
{
	struct flowfd_counter *c = container_of(timer, struct flowfd_counter, timer);
	unsigned long flags;

	spin_lock_irqsave(&c->wqh.lock, flags);
	timer_deliver(c);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return HRTIMER_NORESTART;
}

/**
 * flowfd_timer_init - give a new counter its timer
 * @c: counter that nothing else refers to yet
 */
void flowfd_timer_init(struct flowfd_counter *c)
{
	hrtimer_setup(&c->timer, timer_expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

/**
 * flowfd_timer_exit - cancel the timer and wait for it
 * @c: counter that is not written to any more
 */
void flowfd_timer_exit(struct flowfd_counter *c)
{
	hrtimer_cancel(&c->timer);
}
