// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of ready.h that an eventfd does not need: read mark, delay, bucket and timer.
 */
#include <linux/ktime.h>

#include "ready.h"

/*
 * Has the timer expire when the delay has passed. The timer of a deferred wakeup comes
 * first, and then starts this.
 */
void flowfd_ready_wait_for_due(struct ready *r)
{
	if (r->flow.due && !r->bucket.deferred)
		hrtimer_start(&r->timer, ns_to_ktime(r->flow.due), HRTIMER_MODE_ABS);
}

/*
 * Whether readers are to know of a count. @blocked: a writer has no room, so it is ready
 * below the mark, too. Starts the timer if it will be ready when the delay has passed. The
 * delay also goes on while the count is ready: other settings can end that.
 */
bool flowfd_ready_check(struct ready *r, u64 count, bool blocked)
{
	if (flow_is_ready(&r->flow, count) || (count && blocked))
		return true;
	if (count && flow_needs_due(&r->flow)) {
		flow_begin(&r->flow, ktime_get_ns());
		flowfd_ready_wait_for_due(r);
	}
	return false;
}

/*
 * Makes a count ready below its mark until it is taken, also if the mark is raised
 * meanwhile. Returns whether that may have made it ready.
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

/*
 * Takes a token of a bucket that is limited, or returns false and leaves the wakeup to
 * the timer. Until the timer expires there is no token, so further calls do not read the
 * clock.
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

/* The caller wakes the readers. Returns whether a wakeup was deferred. */
bool flowfd_ready_end_deferral(struct ready *r)
{
	bool deferred = r->bucket.deferred;

	WRITE_ONCE(r->bucket.deferred, false);
	return deferred;
}

/*
 * The timer expired; it may come too early, for a bucket that was replaced or a count
 * that was taken. Returns whether a wakeup was deferred until now.
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

/*
 * Starts with a full bucket of valid settings. The caller delivers a wakeup that was
 * deferred. If the timer runs already, it waits for the lock and then finds nothing to
 * do.
 */
void flowfd_ready_set_bucket(struct ready *r, const struct eventfd_qos *qos)
{
	bucket_init(&r->bucket, qos->token_capacity, qos->token_rate);
	WRITE_ONCE(r->bucket.deferred, false);
	flowfd_ready_wait_for_due(r);
}

/* Whether a bucket can have these settings from user space. */
bool flowfd_qos_is_valid(const struct eventfd_qos *qos)
{
	if (qos->token_rate > FLOWFD_TOKEN_RATE_MAX)
		return false;
	return qos->token_capacity || !qos->token_rate;
}
