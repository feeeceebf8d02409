// SPDX-License-Identifier: GPL-2.0-only
/*
 * The token bucket of a counter: limits how often readers are woken, and wakes them
 * from a timer when a write found no token. All state is under the lock of the
 * counter's wait queue. The arithmetic is in bucket.h.
 */
#include <linux/ktime.h>
#include <linux/lockdep.h>

#include "compat.h"
#include "counter.h"

static void bucket_deliver(struct flowfd_counter *c)
{
	WRITE_ONCE(c->wakeup_deferred, false);
	if (c->mapped)
		flowfd_mapped_wake_readers(c);
	else
		flowfd_counter_wake(c, EPOLLIN);
}

/* A program that adds to a mapped count from here on notifies. Before the look at it. */
static bool bucket_count_is_left(struct flowfd_counter *c)
{
	if (!c->mapped)
		return c->count;
	if (counter_has_queue(c))
		mapped_arm(c->mapped, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	return mapped_count(c->mapped);
}

/*
 * A deferred wakeup always has a timer that is queued or running. A timer that was
 * armed for a bucket that has been replaced may expire early, while the timer of the
 * new bucket is queued already: then there is no token, and it is not queued again.
 */
static enum hrtimer_restart timer_expired(struct hrtimer *timer)
{
	struct flowfd_counter *c = container_of(timer, struct flowfd_counter, timer);
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	unsigned long flags;

	spin_lock_irqsave(&c->wqh.lock, flags);
	/* An empty queue costs no token. It grows under the lock only. */
	if (!bucket_count_is_left(c) || !waitqueue_active(&c->wqh)) {
		WRITE_ONCE(c->wakeup_deferred, false);
	} else if (c->wakeup_deferred && bucket_take(&c->bucket, ktime_get_ns())) {
		bucket_deliver(c);
	} else if (c->wakeup_deferred && !hrtimer_is_queued(timer)) {
		hrtimer_set_expires(timer, ns_to_ktime(bucket_due(&c->bucket)));
		restart = HRTIMER_RESTART;
	}
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return restart;
}

/**
 * flowfd_bucket_admits - take a token, or defer the wakeup to the timer
 * @c: locked counter with a bucket and a count
 *
 * Until the timer expires there is no token, so further writes need not even read the
 * clock.
 *
 * Return: whether the caller is to wake the readers.
 */
bool flowfd_bucket_admits(struct flowfd_counter *c)
{
	lockdep_assert_held(&c->wqh.lock);

	if (c->wakeup_deferred)
		return false;
	if (bucket_take(&c->bucket, ktime_get_ns()))
		return true;
	WRITE_ONCE(c->wakeup_deferred, true);
	hrtimer_start(&c->timer, ns_to_ktime(bucket_due(&c->bucket)), HRTIMER_MODE_ABS);
	return false;
}

/**
 * flowfd_bucket_wake - wake the readers of a counter with a bucket
 * @c: locked counter, not mapped
 */
void flowfd_bucket_wake(struct flowfd_counter *c)
{
	if (c->count && flowfd_bucket_admits(c))
		flowfd_counter_wake(c, EPOLLIN);
}

/**
 * flowfd_bucket_replace - start again with a full bucket
 * @c: locked counter
 * @qos: valid settings
 *
 * A deferred wakeup is delivered now.
 */
void flowfd_bucket_replace(struct flowfd_counter *c, const struct eventfd_qos *qos)
{
	lockdep_assert_held(&c->wqh.lock);

	c->qos = *qos;
	bucket_init(&c->bucket, qos->token_capacity, qos->token_rate);
	/* Which takes must notify depends on whether there is a bucket. */
	if (c->mapped)
		counter_arm_writers(c);
	if (!c->wakeup_deferred)
		return;

	/* If it runs already, it waits for the lock and then finds nothing to do. */
	hrtimer_try_to_cancel(&c->timer);
	WRITE_ONCE(c->wakeup_deferred, false);
	if (bucket_count_is_left(c))
		bucket_deliver(c);
}

/**
 * flowfd_qos_is_valid - whether a bucket can have these settings
 * @qos: settings from user space
 */
bool flowfd_qos_is_valid(const struct eventfd_qos *qos)
{
	if (qos->token_rate > FLOWFD_TOKEN_RATE_MAX)
		return false;
	return qos->token_capacity || !qos->token_rate;
}

/**
 * flowfd_bucket_init - give a new counter its bucket
 * @c: counter that nothing else refers to yet
 * @qos: valid settings
 */
void flowfd_bucket_init(struct flowfd_counter *c, const struct eventfd_qos *qos)
{
	c->qos = *qos;
	c->wakeup_deferred = false;
	bucket_init(&c->bucket, qos->token_capacity, qos->token_rate);
	hrtimer_setup(&c->timer, timer_expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}

/**
 * flowfd_bucket_exit - cancel the timer and wait for it
 * @c: counter that is not written to any more
 */
void flowfd_bucket_exit(struct flowfd_counter *c)
{
	hrtimer_cancel(&c->timer);
}
