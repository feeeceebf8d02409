// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of ready.h that an eventfd does not need: read mark, delay, bucket and timer.
 */
#include <linux/ktime.h>

#include "ready.h"

/**
 * flowfd_ready_wait_for_due - have the timer expire when the delay has passed
 * @r: of a locked counter
 *
 * The timer of a deferred wakeup comes first, and then starts this.
 */
void flowfd_ready_wait_for_due(struct ready *r)
{
	if (r->flow.due && !r->bucket.deferred)
		hrtimer_start(&r->timer, ns_to_ktime(r->flow.due), HRTIMER_MODE_ABS);
}

/**
 * flowfd_ready_check - whether readers are to know of a count
 * @r: of a locked counter
 * @count: the count
 * @blocked: a writer has no room, so it is ready below the mark, too
 *
 * Starts the timer if it will be ready when the delay has passed.
 */
bool flowfd_ready_check(struct ready *r, u64 count, bool blocked)
{
	if (flow_is_ready(&r->flow, count) || (count && blocked)) {
		r->flow.due = 0;
		return true;
	}
	if (count && flow_needs_due(&r->flow)) {
		flow_begin(&r->flow, ktime_get_ns());
		flowfd_ready_wait_for_due(r);
	}
	return false;
}

/**
 * flowfd_ready_force - make a count ready below its mark
 * @r: of a locked counter
 * @count: the count
 *
 * Until it is taken, also if the mark is raised meanwhile.
 *
 * Return: whether that may have made it ready.
 */
bool flowfd_ready_force(struct ready *r, u64 count)
{
	bool forced = r->flow.forced;

	/* Without policies it is ready. */
	if (!r->flow.has_policies || !count)
		return false;
	r->flow.forced = true;
	r->flow.due = 0;
	return !forced && r->flow.read_mark > 1;
}

/**
 * flowfd_ready_take_token - take a token, or leave the wakeup to the timer
 * @r: of a locked counter, with a bucket that is limited
 *
 * Until the timer expires there is no token, so further calls do not read the clock.
 */
bool flowfd_ready_take_token(struct ready *r)
{
	if (r->bucket.deferred)
		return false;
	if (bucket_take(&r->bucket, ktime_get_ns()))
		return true;
	WRITE_ONCE(r->bucket.deferred, true);
	hrtimer_start(&r->timer, ns_to_ktime(bucket_due(&r->bucket)), HRTIMER_MODE_ABS);
	return false;
}

/**
 * flowfd_ready_end_deferral - the caller wakes the readers
 * @r: of a locked counter
 *
 * Return: whether a wakeup was deferred.
 */
bool flowfd_ready_end_deferral(struct ready *r)
{
	bool deferred = r->bucket.deferred;

	WRITE_ONCE(r->bucket.deferred, false);
	return deferred;
}

/**
 * flowfd_ready_expire - the timer expired
 * @r: of a locked counter
 * @count: the count
 *
 * It may come too early, for a bucket that was replaced or a count that was taken.
 *
 * Return: whether a wakeup was deferred until now.
 */
bool flowfd_ready_expire(struct ready *r, u64 count)
{
	bool deferred = flowfd_ready_end_deferral(r);

	if (!count)
		r->flow.due = 0;
	if (!flow_expire(&r->flow, ktime_get_ns()))
		flowfd_ready_wait_for_due(r);
	return deferred;
}

/**
 * flowfd_ready_set_bucket - start with a full bucket
 * @r: of a locked counter
 * @qos: valid settings
 *
 * The caller delivers a wakeup that was deferred. If the timer runs already, it waits for
 * the lock and then finds nothing to do.
 */
void flowfd_ready_set_bucket(struct ready *r, const struct eventfd_qos *qos)
{
	bucket_init(&r->bucket, qos->token_capacity, qos->token_rate);
	WRITE_ONCE(r->bucket.deferred, false);
	flowfd_ready_wait_for_due(r);
}

/**
 * flowfd_ready_init - marks and delay of an eventfd, and a bucket
 * @r: of a new counter
 * @qos: valid settings
 */
void flowfd_ready_init(struct ready *r, const struct eventfd_qos *qos)
{
	flow_init(&r->flow);
	flowfd_ready_set_bucket(r, qos);
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
