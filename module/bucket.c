// SPDX-License-Identifier: GPL-2.0-only
/*
 * The token bucket of a counter: limits how often readers are woken, and wakes
 * them from a timer when a write found no token. All state is under the lock of
 * the counter's wait queue. The arithmetic is in bucket.h.
 */
#include <linux/ktime.h>
#include <linux/lockdep.h>

#include "compat.h"
#include "flowfd.h"

/*
 * A timer that was armed for a bucket since replaced can get here early, while
 * the one armed for the new bucket is still to come: then there is no token, and
 * the timer is queued already. Otherwise it is queued again by returning so: a
 * wakeup that is held back always has a timer to come.
 */
static enum hrtimer_restart counter_timer_expired(struct hrtimer *timer)
{
	struct counter *c = container_of(timer, struct counter, timer);
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	unsigned long flags;

	spin_lock_irqsave(&c->wqh.lock, flags);
	/* Nobody to wake costs no token. The queue grows under the lock only. */
	if (!c->count || !waitqueue_active(&c->wqh)) {
		c->wakeup_deferred = false;
	} else if (c->wakeup_deferred &&
		   bucket_take(&c->bucket, ktime_get_ns())) {
		c->wakeup_deferred = false;
		counter_wake(c, EPOLLIN);
	} else if (c->wakeup_deferred && !hrtimer_is_queued(timer)) {
		hrtimer_set_expires(timer,
				    ns_to_ktime(bucket_due(&c->bucket)));
		restart = HRTIMER_RESTART;
	}
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return restart;
}

/**
 * counter_wake_readers_limited - wake the readers of a counter with a bucket
 * @c: counter, locked
 *
 * Without a token the wakeup is left to the timer. While it is, no token can
 * have come in, so a writer in a hurry does not even read the clock.
 */
void counter_wake_readers_limited(struct counter *c)
{
	lockdep_assert_held(&c->wqh.lock);

	if (c->wakeup_deferred || !c->count)
		return;
	if (bucket_take(&c->bucket, ktime_get_ns())) {
		counter_wake(c, EPOLLIN);
		return;
	}
	c->wakeup_deferred = true;
	hrtimer_start(&c->timer, ns_to_ktime(bucket_due(&c->bucket)),
		      HRTIMER_MODE_ABS);
}

/**
 * counter_replace_bucket - start again with a full bucket
 * @c: counter, locked
 * @qos: valid settings
 *
 * A wakeup that was held back is delivered now.
 */
void counter_replace_bucket(struct counter *c, const struct eventfd_qos *qos)
{
	lockdep_assert_held(&c->wqh.lock);

	c->qos = *qos;
	bucket_init(&c->bucket, qos->token_capacity, qos->token_rate);
	if (!c->wakeup_deferred)
		return;

	/* If it is running already, it waits for the lock and finds nothing. */
	hrtimer_try_to_cancel(&c->timer);
	c->wakeup_deferred = false;
	if (c->count)
		counter_wake(c, EPOLLIN);
}

/**
 * qos_is_valid - whether a bucket can be made of these settings
 * @qos: settings from user space
 */
bool qos_is_valid(const struct eventfd_qos *qos)
{
	if (qos->token_rate > FLOWFD_TOKEN_RATE_MAX)
		return false;
	return qos->token_capacity || !qos->token_rate;
}

/**
 * counter_init_bucket - give a new counter its bucket
 * @c: counter that nobody else knows yet
 * @qos: valid settings
 */
void counter_init_bucket(struct counter *c, const struct eventfd_qos *qos)
{
	c->qos = *qos;
	c->wakeup_deferred = false;
	bucket_init(&c->bucket, qos->token_capacity, qos->token_rate);
	hrtimer_setup(&c->timer, counter_timer_expired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
}

/**
 * counter_exit_bucket - wait until the timer is no more
 * @c: counter that nobody can write to any more
 */
void counter_exit_bucket(struct counter *c)
{
	hrtimer_cancel(&c->timer);
}
