// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pace of a counter: when its readers may be told of a count. The marks and the
 * maximum delay say when the count is ready (flow.h), the token bucket how often a ready
 * one wakes them (bucket.h). What must wait is left to the timer. All state is under the
 * lock of the counter's wait queue.
 */
#include <linux/ktime.h>
#include <linux/lockdep.h>

#include "counter.h"

/**
 * flowfd_pace_restart - the count was taken: the next one begins anew
 * @c: locked counter
 */
void flowfd_pace_restart(struct flowfd_counter *c)
{
	flow_restart(&c->flow);
	if (c->mapped)
		c->mapped->paced = atomic64_read(c->mapped->consumed);
}

/* Takes in memory are seen only now. One that began earlier may have left the last adds. */
static void pace_see_takes(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	s64 consumed;

	if (!m)
		return;
	consumed = atomic64_read(m->consumed);
	if (consumed == m->paced)
		return;
	/* A take from here on is seen the next time. */
	if (c->flow.forced && mapped_is_forced(m))
		m->paced = consumed;
	else
		flowfd_pace_restart(c);
}

/* The timer of a deferred wakeup comes first, and then looks for this. */
static void pace_wait_for_due(struct flowfd_counter *c)
{
	if (c->flow.due && !c->wakeup_deferred)
		hrtimer_start(&c->timer, ns_to_ktime(c->flow.due), HRTIMER_MODE_ABS);
}

/**
 * flowfd_pace_is_ready - whether readers are to know of the count
 * @c: locked counter
 *
 * Starts the timer if they will be told of it only later.
 */
bool flowfd_pace_is_ready(struct flowfd_counter *c)
{
	u64 count;

	lockdep_assert_held(&c->wqh.lock);

	pace_see_takes(c);
	count = counter_count(c);
	if (counter_is_ready(c, count)) {
		c->flow.due = 0;
		return true;
	}
	if (count && flow_needs_due(&c->flow)) {
		flow_begin(&c->flow, ktime_get_ns());
		pace_wait_for_due(c);
	}
	return false;
}

/*
 * Takes a token, or defers the wakeup to the timer. Until that expires there is no token,
 * so further writes need not even read the clock.
 */
static bool pace_takes_token(struct flowfd_counter *c)
{
	if (c->wakeup_deferred)
		return false;
	if (bucket_take(&c->bucket, ktime_get_ns()))
		return true;
	WRITE_ONCE(c->wakeup_deferred, true);
	hrtimer_start(&c->timer, ns_to_ktime(bucket_due(&c->bucket)), HRTIMER_MODE_ABS);
	return false;
}

/*
 * Whether a wakeup of readers has somebody to wake. Of a mapped counter, it also ends the
 * notifications for which a task that sleeps in a write has armed.
 */
static bool pace_has_waiters(const struct flowfd_counter *c)
{
	return c->mapped ? counter_has_waiters(c) : counter_has_readers(c);
}

/* Readers may be woken, if the bucket admits it. */
static bool pace_passes_bucket(struct flowfd_counter *c)
{
	if (!bucket_is_limited(&c->bucket) || pace_takes_token(c))
		return true;
	counter_note_held_back(c, HELD_BY_BUCKET);
	return false;
}

/* An eventfd wakes pollers for a write of 0, too. */
static bool pace_is_plain(const struct flowfd_counter *c)
{
	return !bucket_is_limited(&c->bucket) && c->flow.read_mark == 1;
}

/**
 * flowfd_pace_admits - whether readers are to be woken now
 * @c: locked counter
 *
 * If it returns false though there is a count, the timer wakes them, or the next add
 * finds the mark reached. An empty queue costs no token.
 */
bool flowfd_pace_admits(struct flowfd_counter *c)
{
	bool ready = flowfd_pace_is_ready(c);

	if (!pace_has_waiters(c))
		return false;
	if (!ready && !pace_is_plain(c)) {
		if (counter_count(c))
			counter_note_held_back(c, HELD_BY_MARK);
		return false;
	}
	return pace_passes_bucket(c);
}

/**
 * flowfd_pace_force - make a count ready below its mark
 * @c: locked counter
 *
 * Until it is taken, also if the mark is raised meanwhile.
 *
 * Return: whether it was not ready before.
 */
bool flowfd_pace_force(struct flowfd_counter *c)
{
	bool ready = flowfd_pace_is_ready(c);

	/* Without policies it is ready, and takes restart nothing. */
	if (!c->has_policies || !counter_count(c))
		return false;
	if (c->mapped)
		WRITE_ONCE(c->mapped->forced, atomic64_read(c->mapped->produced));
	/* g: for poll of a mapped counter, which has no lock. */
	smp_store_release(&c->flow.forced, true);
	c->flow.due = 0;
	return !ready;
}

/* Ends the deferral; returns whether there was one. */
static bool pace_ends_deferral(struct flowfd_counter *c)
{
	if (!c->wakeup_deferred)
		return false;
	WRITE_ONCE(c->wakeup_deferred, false);
	/* A program that adds from here on notifies. Before the look at the count. */
	if (c->mapped)
		counter_arm_readers(c);
	return true;
}

/**
 * flowfd_pace_hurries - whether readers are to be woken for an urgent write
 * @c: locked counter
 *
 * Makes the count ready. A wakeup that was deferred is part of this one.
 */
bool flowfd_pace_hurries(struct flowfd_counter *c)
{
	flowfd_pace_force(c);
	if (!counter_count(c) || !counter_has_waiters(c))
		return false;
	pace_ends_deferral(c);
	return true;
}

/* What is in memory then is ready. */
static bool pace_ends_delay(struct flowfd_counter *c)
{
	u64 now = ktime_get_ns();

	if (!counter_count(c))
		c->flow.due = 0;
	if (!c->flow.due || now < c->flow.due)
		return false;
	if (c->mapped)
		WRITE_ONCE(c->mapped->forced, atomic64_read(c->mapped->produced));
	/* g: see flowfd_pace_force(). */
	smp_wmb();
	return flow_expire(&c->flow, now);
}

/**
 * flowfd_pace_expire - the timer expired
 * @c: locked counter
 *
 * It may come too early, for a bucket that was replaced or a count that was taken. It
 * starts again for a token, and for a delay. That begins here only after a wakeup was
 * deferred, for which there is a token then: a program that changes memory all the time
 * must not keep the timer busy.
 *
 * Return: whether to wake the readers.
 */
bool flowfd_pace_expire(struct flowfd_counter *c)
{
	bool deferred = pace_ends_deferral(c);
	bool delayed = pace_ends_delay(c);
	bool ready;

	lockdep_assert_held(&c->wqh.lock);

	ready = deferred ? flowfd_pace_is_ready(c) :
			   counter_is_ready(c, counter_count(c));
	if (!ready) {
		pace_wait_for_due(c);
		return false;
	}
	if (!(deferred || delayed) || !pace_has_waiters(c))
		return false;
	return pace_passes_bucket(c);
}

/**
 * flowfd_pace_set_bucket - start with a full bucket
 * @c: locked counter
 * @qos: valid settings
 *
 * The caller delivers a wakeup that was deferred. If the timer runs already, it waits for
 * the lock and then finds nothing to do.
 */
void flowfd_pace_set_bucket(struct flowfd_counter *c, const struct eventfd_qos *qos)
{
	c->qos = *qos;
	bucket_init(&c->bucket, qos->token_capacity, qos->token_rate);
	WRITE_ONCE(c->wakeup_deferred, false);
	pace_wait_for_due(c);
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
