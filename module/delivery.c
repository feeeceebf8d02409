// SPDX-License-Identifier: GPL-2.0-only
/*
 * What follows from a change of the count: who sleeps and can go on does so, then pollers
 * are told. For counters that are not mapped; mapped_wake.c has the same for the others.
 * All of it is under the lock of the counter's wait queue.
 */
#include <linux/lockdep.h>

#include "count.h"
#include "counter.h"

static __poll_t counter_events(const struct flowfd_counter *c, u64 count)
{
	return count_events_at(count, c->maximum, counter_is_ready(c, count),
			       c->flow.write_mark);
}

/*
 * A take made room. With a bucket, pollers are woken for EPOLLOUT only if one may wait
 * for room: poll reported none before, or a write has failed with EAGAIN since the last
 * such wakeup. epoll polls a file again for each wakeup, so a poller that wants EPOLLIN
 * too would report the next write without a token.
 *
 * Exclusive entries are always woken, as the one that was woken last may be gone.
 */
static void counter_tell_writers(struct flowfd_counter *c, u64 before)
{
	if (bucket_is_limited(&c->bucket) && !c->write_refused &&
	    counter_events(c, before) & EPOLLOUT) {
		flowfd_counter_wake_exclusive(c, EPOLLOUT);
		return;
	}
	c->write_refused = false;
	flowfd_counter_wake(c, EPOLLOUT);
}

/**
 * flowfd_counter_deliver - let sleepers go on, and tell pollers
 * @c: locked counter
 * @readers: there is a count, and readers are to be woken
 * @writers: something was taken, or the maximum raised
 * @before: the count before it was taken
 *
 * Each turn ends a sleeper; mostly there are none, and no calls. Poll does not take the
 * lock: the events are stored before pollers are woken, and are never those of a count and
 * a maximum that were not there together.
 */
void flowfd_counter_deliver(struct flowfd_counter *c, bool readers, bool writers,
			    u64 before)
{
	bool tell_readers = readers, tell_writers = writers, taken, slept = false;
	__poll_t events;

	lockdep_assert_held(&c->wqh.lock);

	while (readers || writers) {
		taken = readers && !list_empty(&c->readers) && flowfd_readers_go_on(c);
		slept |= taken;
		writers |= taken;
		tell_writers |= writers;
		readers = writers && !list_empty(&c->writers) &&
			  flowfd_writers_go_on(c) && flowfd_pace_admits(c);
		tell_readers |= readers;
		writers = false;
	}
	events = counter_events(c, c->count);
	WRITE_ONCE(c->events, events);
	if (tell_readers) {
		counter_note_wakeup(c, slept);
		flowfd_counter_wake(c, EPOLLIN);
	}
	if (tell_writers && events & EPOLLOUT)
		counter_tell_writers(c, before);
}

/**
 * flowfd_counter_added - something was added to the count
 * @c: locked counter
 * @urgent: wake readers at once
 */
void flowfd_counter_added(struct flowfd_counter *c, bool urgent)
{
	bool readers = urgent ? flowfd_pace_hurries(c) : flowfd_pace_admits(c);

	flowfd_counter_deliver(c, readers, false, c->count);
}

/**
 * flowfd_counter_refused - a write does not fit
 * @c: locked counter
 *
 * Who makes room must not wait for more to come.
 */
void flowfd_counter_refused(struct flowfd_counter *c)
{
	if (flowfd_pace_force(c))
		flowfd_counter_deliver(c, flowfd_pace_admits(c), false, c->count);
}

/**
 * flowfd_counter_left - a writer stopped waiting
 * @c: locked counter
 *
 * The writers behind it may fit. Without any, the count may be ready only later.
 */
void flowfd_counter_left(struct flowfd_counter *c)
{
	bool added = flowfd_writers_go_on(c);

	flowfd_counter_deliver(c,
			       flowfd_pace_is_ready(c) && added && flowfd_pace_admits(c),
			       false, c->count);
}

/**
 * flowfd_counter_taken - something was taken from the count
 * @c: locked counter
 * @before: the count before
 */
void flowfd_counter_taken(struct flowfd_counter *c, u64 before)
{
	if (!c->count)
		flowfd_pace_restart(c);
	flowfd_counter_deliver(c, false, true, before);
}
