// SPDX-License-Identifier: GPL-2.0-only
/*
 * What follows from a change of a counter: sleeping tasks whose turn has come go on, then
 * pollers are told. All of it is under the lock of the counter's wait queue.
 *
 * flowfd_counter_settle() tests the level: it compares what readers and writers may know now
 * with what they were told before. So most causes need no rule of their own:
 *
 * | cause | before it | news | past the bucket |
 * | --- | --- | --- | --- |
 * | something was added | | EPOLLIN | |
 * | by an urgent write | the count is forced to be ready | EPOLLIN | yes |
 * | something was taken by a call | of a mapped counter: arm readers | EPOLLOUT, but of a
 *	mapped counter | |
 * | a write was refused | the count is forced; of a mapped counter: arm writers | | |
 * | a sleeping writer gave up | | | |
 * | the timer expired | the delay may force the count | EPOLLIN, if a wakeup was deferred | |
 * | a program notifies | | | |
 * | a process ended | arm both | | |
 * | settings changed | writers that must not sleep now try again | EPOLLOUT if there may be
 *	more room; EPOLLIN, if a wakeup was deferred | if the bucket is new |
 *
 * News are edges: pollers are told of them also if they were told before, as an eventfd does.
 */
#include <linux/lockdep.h>

#include "compat.h"
#include "counter.h"

/*
 * Whether a wakeup may leave some pollers out: it ends at the first exclusive entry, and
 * exclusive entries are at the tail. Then each add in memory must notify: the one that was
 * woken may be gone.
 */
static bool turns_end_early(const struct flowfd_counter *c)
{
	const wait_queue_entry_t *last, *before;

	last = list_last_entry(&c->wqh.head, wait_queue_entry_t, entry);
	before = list_prev_entry(last, entry);
	return !list_is_head(&before->entry, &c->wqh.head) &&
	       before->flags & last->flags & WQ_FLAG_EXCLUSIVE;
}

/* What poll returns now. That of a mapped counter is computed by its poll. */
static __poll_t turns_events(struct flowfd_counter *c)
{
	u64 maximum = store_maximum(&c->store);
	/* Programs may have put more there: then there is no room. */
	u64 count = min(store_count(&c->store), maximum);

	return count_events_at(count, maximum, counter_is_ready(c, count),
			       c->ready.flow.write_mark);
}

/*
 * What readers and writers were told before, or can see. Of a mapped counter, each bit says
 * that a task must be told: where each add notifies, all are told again.
 */
static __poll_t turns_told(const struct flowfd_counter *c)
{
	const struct flowfd_mapped *m = c->store.mapped;
	__poll_t told = 0;
	int armed;

	if (!m)
		return c->events;
	armed = atomic_read(m->armed);
	if (!(armed & FLOWFD_ARMED_READERS))
		told |= EPOLLIN;
	if (!(armed & FLOWFD_ARMED_WRITERS))
		told |= EPOLLOUT;
	return told;
}

/* Whether to wake readers now, if there are any. An empty queue costs no token. */
static bool turns_admit(struct flowfd_counter *c, bool past_bucket)
{
	if (!counter_has_readers(c))
		return false;
	if (past_bucket || ready_passes_bucket(&c->ready))
		return true;
	counter_note_held_back(c, HELD_BY_BUCKET);
	if (store_is_mapped(&c->store))
		mapped_disarm(c->store.mapped,
			      FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	return false;
}

/*
 * Lets sleepers go on until none can, readers first if it is their turn. Each turn ends the
 * sleep of one. *@readers: something was added, and readers may be woken. Returns whether
 * a reader took.
 */
static bool turns_run(struct flowfd_counter *c, bool *readers)
{
	bool took = false, turn = *readers;

	do {
		took |= turn && flowfd_sleepers_go_on(c, false);
		turn = !list_empty(&c->writers) && flowfd_sleepers_go_on(c, true) &&
		       turns_events(c) & EPOLLIN && turns_admit(c, false);
		*readers |= turn;
	} while (turn);
	return took;
}

/*
 * Before readers of a mapped counter are woken. Disarms first: a poller that arms from there
 * on looks at the count afterwards. One that is woken polls or takes, which arms again, also
 * if the count is gone by then. A task that still sleeps does not look, so its bit stays.
 */
static void turns_rearm(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->store.mapped;

	if (!list_empty(&c->readers))
		return;
	if (turns_end_early(c))
		mapped_arm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	else
		mapped_disarm(m, FLOWFD_ARMED_READERS);
}

/*
 * With a bucket, pollers are woken for EPOLLOUT only if one may wait for room: they were
 * told of none, or a write has failed with EAGAIN since the last such wakeup. epoll polls a
 * file again for each wakeup, so a poller that wants EPOLLIN too would report the next write
 * without a token.
 *
 * Exclusive entries are always woken, as the one that was woken last may be gone.
 */
static void turns_wake_writers(struct flowfd_counter *c, __poll_t told)
{
	struct flowfd_mapped *m = c->store.mapped;

	if (m) {
		if (list_empty(&c->writers) && !turns_end_early(c))
			mapped_disarm(m, FLOWFD_ARMED_WRITERS);
	} else if (bucket_is_limited(&c->ready.bucket) && told & EPOLLOUT &&
		   !c->write_refused) {
		flowfd_counter_wake_exclusive(c, EPOLLOUT);
		return;
	}
	c->write_refused = false;
	flowfd_counter_wake(c, EPOLLOUT);
}

/* Of a mapped counter: bits that no task needs cost programs calls. */
static void turns_forget(struct flowfd_counter *c)
{
	int bits = FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED;
	struct flowfd_mapped *m = c->store.mapped;

	if (counter_has_readers(c))
		return;
	/* The queue grows under the lock only; poll arms after it has joined. */
	if (list_empty(&c->writers))
		bits |= FLOWFD_ARMED_WRITERS;
	if (atomic_read(m->armed) & bits)
		mapped_disarm(m, bits);
}

/*
 * Poll of a counter that is not mapped does not take the lock: the events are stored before
 * pollers are woken, and always belong to a count and a maximum of one moment. Returns
 * whether a reader took.
 */
static bool turns_settle(struct flowfd_counter *c, __poll_t news, bool past_bucket,
			 bool again)
{
	__poll_t told = turns_told(c), events = turns_events(c);
	bool readers, writers, took = false;

	readers = events & (news | ~told) & EPOLLIN && turns_admit(c, past_bucket);
	if (unlikely(news & ~events & EPOLLIN) && counter_count(c))
		counter_note_held_back(c, HELD_BY_MARK);
	if (!list_empty(&c->readers) || !list_empty(&c->writers)) {
		took = turns_run(c, &readers);
		events = turns_events(c);
	}
	if (store_is_mapped(&c->store)) {
		/* One may have armed since, for the take of a reader that went on. */
		writers = events & (news | ~turns_told(c)) & EPOLLOUT;
	} else {
		writers = events & EPOLLOUT && (took || (news | ~told) & EPOLLOUT);
		WRITE_ONCE(c->events, events);
	}
	if (readers) {
		if (took || counter_has_pollers(c))
			counter_note_wakeup(c, took);
		if (store_is_mapped(&c->store) && !again)
			turns_rearm(c);
		flowfd_counter_wake(c, EPOLLIN);
	}
	if (writers)
		turns_wake_writers(c, told);
	return took;
}

/*
 * Lets sleepers go on, and tells pollers. @news: EPOLLIN: something was added; EPOLLOUT:
 * there is more room, but not for a take of a mapped counter, which programs do without a
 * call. @past_bucket: readers are woken without a token.
 */
void flowfd_counter_settle(struct flowfd_counter *c, __poll_t news, bool past_bucket)
{
	bool took;

	lockdep_assert_held(&c->wqh.lock);

	if (past_bucket && flowfd_ready_end_deferral(&c->ready))
		/* A program that adds from here on notifies. Before the look at the count. */
		counter_arm_readers(c);
	if (store_is_mapped(&c->store))
		counter_see_count(c);
	took = turns_settle(c, news, past_bucket, false);
	if (!store_is_mapped(&c->store))
		return;
	/* A task that was given the count does not look again, as a program does. */
	if (took) {
		counter_arm_readers(c);
		turns_settle(c, 0, true, true);
	}
	turns_forget(c);
}

/*
 * Does what processes that ended may have left undone with a mapped counter. Takes the
 * lock. One may have died after an add or take and before it looked at the bits, or after
 * it was woken and before it looked at the count: so this wakes all again.
 */
void flowfd_counter_heal(struct work_struct *work)
{
	struct flowfd_mapped *m = container_of(work, struct flowfd_mapped, heal);
	struct flowfd_counter *c = m->counter;

	spin_lock_irq(&c->wqh.lock);
	counter_arm_readers(c);
	/* With a bucket, an edge for room would let a poller see a count without a token. */
	if (!bucket_is_limited(&c->ready.bucket))
		counter_arm_writers(c);
	flowfd_counter_settle(c, 0, false);
	spin_unlock_irq(&c->wqh.lock);
}

/* The timer of a counter expired. Takes the lock. */
enum hrtimer_restart flowfd_counter_expired(struct hrtimer *timer)
{
	struct flowfd_counter *c =
		container_of(timer, struct flowfd_counter, ready.timer);
	unsigned long flags;
	u64 wakeups;
	bool deferred;

	spin_lock_irqsave(&c->wqh.lock, flags);
	deferred = flowfd_ready_expire(&c->ready, counter_count(c));
	/* A program that adds from here on notifies. Before the look at the count. */
	if (deferred)
		counter_arm_readers(c);
	wakeups = c->stats.wakeups;
	flowfd_counter_settle(c, deferred ? EPOLLIN : 0, false);
	trace_flowfd_timer(c, c->stats.wakeups != wakeups);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return HRTIMER_NORESTART;
}
