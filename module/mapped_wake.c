// SPDX-License-Identifier: GPL-2.0-only
/*
 * Telling those who wait for a mapped counter, so that no add or take in memory goes
 * unnoticed that comes meanwhile. All of it is under the lock of the counter's wait queue.
 * delivery.c has the same for other counters.
 */
#include <linux/lockdep.h>

#include "counter.h"

/*
 * Whether a wakeup may leave some pollers out: it ends at the first exclusive entry, and
 * exclusive entries are at the tail.
 */
static bool mapped_ends_early(const struct flowfd_counter *c)
{
	const wait_queue_entry_t *last, *before;

	last = list_last_entry(&c->wqh.head, wait_queue_entry_t, entry);
	before = list_prev_entry(last, entry);
	return !list_is_head(&before->entry, &c->wqh.head) &&
	       before->flags & last->flags & WQ_FLAG_EXCLUSIVE;
}

/* Each add must notify: one edge for all that come until a take is not enough. */
static bool mapped_keeps_readers(const struct flowfd_counter *c)
{
	return READ_ONCE(c->mapped->edge_in) || mapped_ends_early(c);
}

/* With a bucket, pollers are told of room only if they wait for it: see delivery.c. */
static bool mapped_keeps_writers(const struct flowfd_counter *c)
{
	return (READ_ONCE(c->mapped->edge_out) && !bucket_is_limited(&c->bucket)) ||
	       mapped_ends_early(c);
}

/*
 * Whether readers are to be woken: when the count is ready, through the bucket. Below the
 * mark each add notifies; without a token none does.
 */
static bool mapped_admits(struct flowfd_counter *c)
{
	if (!counter_has_waiters(c))
		return false;
	if (flowfd_pace_admits(c))
		return true;
	if (c->wakeup_deferred)
		mapped_disarm(c->mapped, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	return false;
}

/**
 * struct news - what pollers are to be told
 * @count: something was added, and readers are to be woken
 * @room: something was taken
 */
struct news {
	bool count;
	bool room;
};

/*
 * Lets sleepers go on until none can, readers first if it is their turn. Each turn ends
 * the sleep of one.
 */
static void mapped_run_sleepers(struct flowfd_counter *c, bool readers, struct news *news)
{
	do {
		news->room |= readers && flowfd_readers_go_on(c);
		readers = flowfd_writers_go_on(c) && mapped_admits(c);
		news->count |= readers;
	} while (readers);
}

/*
 * Disarms first: who arms from there on looks at the count afterwards. Whoever is woken
 * polls or takes, which arms again, also if the count is gone by then.
 */
static void mapped_wake_readers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!mapped_keeps_readers(c))
		mapped_disarm(m, FLOWFD_ARMED_READERS);
	/* Looks again: poll sets edge_in before it arms. Pairs with e. */
	if (mapped_keeps_readers(c))
		mapped_arm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	flowfd_counter_wake(c, EPOLLIN);
}

/* Likewise: pollers that find no room arm again in poll or in a write that fails. */
static void mapped_wake_writers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!mapped_keeps_writers(c))
		mapped_disarm(m, FLOWFD_ARMED_WRITERS);
	/* Pairs with e. */
	if (mapped_keeps_writers(c))
		mapped_arm(m, FLOWFD_ARMED_WRITERS);
	flowfd_counter_wake(c, EPOLLOUT);
}

/* If nothing was taken since the last time, this is no edge. */
static bool mapped_room_is_news(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	s64 consumed = atomic64_read_acquire(m->consumed);

	if (!(atomic_read(m->armed) & FLOWFD_ARMED_WRITERS))
		return false;
	/* If each take notifies. Else it may be equal after 2^64 was taken in all. */
	if (mapped_keeps_writers(c) && consumed == m->told_consumed)
		return false;
	if (!mapped_has_room(m, c->flow.write_mark))
		return false;
	m->told_consumed = consumed;
	return true;
}

/*
 * Sleepers that are left do not run, and one that was given the count does not look again,
 * as a program does after a take. So this arms for them, and returns whether to look.
 *
 * A delay begins, unless the timer has just ended one and nobody took: a program that
 * changes memory all the time must not keep the timer busy.
 */
static bool mapped_arm_again(struct flowfd_counter *c, const struct news *news)
{
	bool readers = news->room || (news->count && !list_empty(&c->readers));

	if (readers) {
		counter_arm_readers(c);
		if (!c->flow.forced)
			flowfd_pace_is_ready(c);
	}
	if (list_empty(&c->writers))
		return readers;
	mapped_arm(c->mapped, FLOWFD_ARMED_WRITERS);
	return true;
}

/*
 * Lets sleepers go on, and tells pollers: @readers of a count, @writers of room, whatever
 * there was before. Wakes the queue twice at most for each of the two.
 */
static void mapped_deliver(struct flowfd_counter *c, bool readers, bool writers)
{
	struct news news = { .count = readers }, later = {};

	if (!counter_has_waiters(c))
		return;
	mapped_run_sleepers(c, readers, &news);
	if (news.count) {
		counter_note_wakeup(c, news.room);
		mapped_wake_readers(c);
	}
	if (mapped_room_is_news(c) || writers)
		mapped_wake_writers(c);
	if (!mapped_arm_again(c, &news))
		return;
	mapped_run_sleepers(c, news.count, &later);
	if (later.count || later.room)
		counter_note_wakeup(c, later.room);
	if (later.count)
		flowfd_counter_wake(c, EPOLLIN);
	if (later.room && mapped_room_is_news(c)) {
		mapped_wake_writers(c);
		if (!list_empty(&c->writers))
			mapped_arm(c->mapped, FLOWFD_ARMED_WRITERS);
	}
}

/**
 * flowfd_mapped_tell_writers - tell those that wait for room of what was taken
 * @c: locked mapped counter
 */
void flowfd_mapped_tell_writers(struct flowfd_counter *c)
{
	lockdep_assert_held(&c->wqh.lock);

	mapped_deliver(c, false, false);
}

/**
 * flowfd_mapped_deliver - wake readers
 * @c: locked mapped counter
 */
void flowfd_mapped_deliver(struct flowfd_counter *c)
{
	lockdep_assert_held(&c->wqh.lock);

	mapped_deliver(c, true, false);
}

/**
 * flowfd_mapped_added - something was added to the count
 * @c: locked mapped counter
 * @urgent: wake readers at once
 */
void flowfd_mapped_added(struct flowfd_counter *c, bool urgent)
{
	lockdep_assert_held(&c->wqh.lock);

	counter_see_count(c);
	mapped_deliver(c, urgent ? flowfd_pace_hurries(c) : mapped_admits(c), false);
}

/**
 * flowfd_mapped_refused - a write does not fit
 * @c: locked mapped counter
 *
 * Who makes room must not wait for more to come.
 */
void flowfd_mapped_refused(struct flowfd_counter *c)
{
	if (flowfd_pace_force(c))
		flowfd_mapped_added(c, false);
}

/**
 * flowfd_mapped_raised - the maximum was raised, or the pace changed
 * @c: locked mapped counter
 */
void flowfd_mapped_raised(struct flowfd_counter *c)
{
	mapped_deliver(c, false, true);
}

/**
 * flowfd_mapped_settle - what follows from the count as it is now
 * @c: locked mapped counter
 *
 * A level test: whoever calls this heals what another left undone. Without a count the
 * bits stay, for the next add.
 */
void flowfd_mapped_settle(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	bool readers;

	lockdep_assert_held(&c->wqh.lock);

	counter_see_count(c);
	if (!counter_has_waiters(c)) {
		/* The queue grows under the lock only; poll arms after it has joined. */
		WRITE_ONCE(m->edge_in, false);
		WRITE_ONCE(m->edge_out, false);
		mapped_disarm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS |
					 FLOWFD_ARMED_WATCHED);
		return;
	}
	readers = atomic_read(m->armed) & FLOWFD_ARMED_READERS && mapped_count(m) &&
		  mapped_admits(c);
	mapped_deliver(c, readers, false);
}
