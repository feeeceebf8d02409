// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of a mapped counter: they work on the words that programs add to and take
 * from in memory. A program may store anything there at any moment: no loop depends on
 * it, nor anything but this counter. Wakeups are under the lock of the wait queue, as
 * those of any counter.
 */
#include <linux/sched/signal.h>

#include "counter.h"

/* How often a call tries to change a word with interrupts off. */
#define MAPPED_TRIES 64

/**
 * flowfd_mapped_count_exactly - the count, at one moment
 * @m: of a mapped counter
 * @count: result
 *
 * Looks once more if somebody took meanwhile.
 *
 * Return: false if somebody did so each time: then @count may be too high.
 */
bool flowfd_mapped_count_exactly(const struct flowfd_mapped *m, u64 *count)
{
	unsigned int tries;
	s64 consumed;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		*count = atomic64_read_acquire(m->produced) - consumed;
		if (atomic64_read(m->consumed) == consumed)
			return true;
	}
	return false;
}

/**
 * flowfd_mapped_count - the count
 * @m: of a mapped counter
 */
u64 flowfd_mapped_count(const struct flowfd_mapped *m)
{
	u64 count;

	flowfd_mapped_count_exactly(m, &count);
	return count;
}

/* 0; -EAGAIN: no room; -EBUSY: others were faster each time. */
static int mapped_try_add(struct flowfd_mapped *m, u64 value)
{
	s64 consumed, produced;
	unsigned int tries;
	u64 count;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		count = produced - consumed;
		if (count >= m->maximum || !count_has_room(count, m->maximum, value)) {
			if (atomic64_read(m->consumed) == consumed)
				return -EAGAIN;
			continue;
		}
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->produced, produced, produced + value) == produced)
			return 0;
	}
	return -EBUSY;
}

/* 0; -EAGAIN: no count; -EBUSY: others were faster each time. */
static int mapped_try_take(struct flowfd_mapped *m, u64 *value)
{
	s64 consumed, produced;
	unsigned int tries;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		/* c: see mapped_count(). */
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		if (produced == consumed)
			return -EAGAIN;
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->consumed, consumed, produced) == consumed) {
			*value = produced - consumed;
			return 0;
		}
	}
	return -EBUSY;
}

/*
 * Programs change the words all the time: enables interrupts, lets others run, and looks
 * for signals, before the caller tries again.
 */
static int mapped_yield(struct flowfd_counter *c)
{
	spin_unlock_irq(&c->wqh.lock);
	cond_resched();
	spin_lock_irq(&c->wqh.lock);
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/* Readers are woken through the bucket. Without a token, adds make no more calls. */
static void mapped_tell_readers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!counter_has_queue(c))
		return;
	if (!bucket_is_limited(&c->bucket)) {
		flowfd_mapped_wake_readers(c);
		return;
	}
	/* A write of 0 takes no token. */
	if (!mapped_count(m))
		return;
	if (flowfd_bucket_admits(c))
		flowfd_mapped_wake_readers(c);
	else
		mapped_disarm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
}

/* With a bucket, pollers are told of room only if they wait for it: see counter.c. */
static bool mapped_keeps_writers(const struct flowfd_counter *c)
{
	return (READ_ONCE(c->mapped->edge_out) && !bucket_is_limited(&c->bucket)) ||
	       flowfd_mapped_ends_early(c);
}

/*
 * Disarms first, as flowfd_mapped_wake_readers(). Pollers that find no room arm again in
 * poll or in a write that fails; writers that still sleep do not run, so this arms.
 */
static void mapped_wake_writers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!counter_has_queue(c))
		return;
	if (!mapped_keeps_writers(c))
		mapped_disarm(m, FLOWFD_ARMED_WRITERS);
	/* Pairs with e. */
	if (mapped_keeps_writers(c))
		mapped_arm(m, FLOWFD_ARMED_WRITERS);
	flowfd_counter_wake(c, EPOLLOUT);
	if (flowfd_sleepers_want(c, EPOLLOUT)) {
		mapped_arm(m, FLOWFD_ARMED_WRITERS);
		flowfd_sleepers_wake(c, EPOLLOUT);
	}
}

/**
 * flowfd_mapped_tell_writers - wake those that wait for room, if some may have been taken
 * @c: locked mapped counter
 *
 * If nothing was taken since the last time, this is no edge.
 */
void flowfd_mapped_tell_writers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	s64 consumed = atomic64_read_acquire(m->consumed);

	if (!(atomic_read(m->armed) & FLOWFD_ARMED_WRITERS))
		return;
	/* If each take notifies. Else it may be equal after 2^64 was taken in all. */
	if (mapped_keeps_writers(c) && consumed == m->told_consumed)
		return;
	if (!mapped_has_room(m, 1)) {
		flowfd_sleepers_wake(c, EPOLLOUT);
		return;
	}
	m->told_consumed = consumed;
	mapped_wake_writers(c);
}

/*
 * What follows from the count as it is now. A level test: whoever calls this heals what
 * another left undone. Without a count the bits stay, for the next add.
 */
static void mapped_notify(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!counter_has_queue(c)) {
		/* The queue grows under the lock only; poll arms after it has joined. */
		WRITE_ONCE(m->edge_in, false);
		WRITE_ONCE(m->edge_out, false);
		mapped_disarm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS |
					 FLOWFD_ARMED_WATCHED);
		return;
	}
	if (atomic_read(m->armed) & FLOWFD_ARMED_READERS && mapped_count(m))
		mapped_tell_readers(c);
	flowfd_mapped_tell_writers(c);
}

/**
 * flowfd_mapped_notify - FLOWFD_IOC_COUNTER_NOTIFY
 * @c: mapped counter
 */
void flowfd_mapped_notify(struct flowfd_counter *c)
{
	spin_lock_irq(&c->wqh.lock);
	mapped_notify(c);
	spin_unlock_irq(&c->wqh.lock);
}

/**
 * flowfd_mapped_heal - do what processes that ended may have left undone
 * @work: of a mapped counter
 *
 * One may have died after an add or take and before it looked at the bits, or after it
 * was woken and before it looked at the count: so this wakes all again.
 */
void flowfd_mapped_heal(struct work_struct *work)
{
	struct flowfd_mapped *m = container_of(work, struct flowfd_mapped, heal);
	struct flowfd_counter *c = m->counter;

	spin_lock_irq(&c->wqh.lock);
	counter_arm_readers(c);
	/* With a bucket, an edge for room would let a poller see a count without a token. */
	if (!bucket_is_limited(&c->bucket)) {
		counter_arm_writers(c);
		/* Not what it was. */
		m->told_consumed = atomic64_read(m->consumed) - 1;
	}
	mapped_notify(c);
	spin_unlock_irq(&c->wqh.lock);
}

/**
 * flowfd_mapped_add - add to the count by a call
 * @c: locked mapped counter; the lock is released while this sleeps
 * @value: what to add
 * @nonblock: do not sleep
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_add(struct flowfd_counter *c, u64 value, bool nonblock)
{
	struct flowfd_mapped *m = c->mapped;
	bool refused = false;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	while ((err = mapped_try_add(m, value))) {
		if (err == -EAGAIN && !count_can_fit(m->maximum, value)) {
			err = -EINVAL;
		} else if (err == -EAGAIN && !nonblock) {
			err = flowfd_sleeper_wait(c, EPOLLOUT, value);
		} else if (err == -EAGAIN && !refused) {
			/* For pollers that were told of room and now find none. */
			refused = true;
			counter_arm_writers(c);
			continue;
		}
		if (err > 0 || err == -EBUSY)
			err = mapped_yield(c);
		if (err)
			break;
	}
	if (!err)
		mapped_tell_readers(c);
	return err;
}

/**
 * flowfd_mapped_take - take the count by a call
 * @c: locked mapped counter; the lock is released while this sleeps
 * @value: result
 * @nonblock: do not sleep
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_take(struct flowfd_counter *c, u64 *value, bool nonblock)
{
	struct flowfd_mapped *m = c->mapped;
	bool refused = false;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	while ((err = mapped_try_take(m, value))) {
		/* As in programs: each take makes up for one that was not finished. */
		if (err == -EAGAIN)
			flowfd_mapped_tell_writers(c);
		if (err == -EAGAIN && !nonblock) {
			err = flowfd_sleeper_wait(c, EPOLLIN, 0);
		} else if (err == -EAGAIN && !refused) {
			/* As in programs: this may follow a wakeup. */
			refused = true;
			counter_arm_readers(c);
			continue;
		}
		if (err > 0 || err == -EBUSY)
			err = mapped_yield(c);
		if (err)
			break;
	}
	if (!err) {
		counter_arm_readers(c);
		mapped_notify(c);
	}
	return err;
}

/**
 * flowfd_mapped_give_back - return what was taken with a bad buffer
 * @c: locked mapped counter
 * @value: what was taken
 *
 * One step, so that it cannot fail. Adds in memory at the same moment may raise the
 * count above the maximum, which poll reports as an overflow.
 */
void flowfd_mapped_give_back(struct flowfd_counter *c, u64 value)
{
	struct flowfd_mapped *m = c->mapped;
	u64 count = min(flowfd_mapped_count(m), m->maximum);

	lockdep_assert_held(&c->wqh.lock);

	atomic64_add(min(value, m->maximum - count), m->produced);
	/* a */
	smp_mb__after_atomic();
	mapped_tell_readers(c);
}

/**
 * flowfd_mapped_set_maximum - change the maximum
 * @c: locked mapped counter
 * @maximum: new maximum
 *
 * Return: 0, or -EINVAL if it is not above the count.
 */
int flowfd_mapped_set_maximum(struct flowfd_counter *c, u64 maximum)
{
	struct flowfd_mapped *m = c->mapped;
	bool raised = maximum > m->maximum;

	lockdep_assert_held(&c->wqh.lock);

	if (maximum <= flowfd_mapped_count(m))
		return -EINVAL;
	WRITE_ONCE(m->maximum, maximum);
	WRITE_ONCE(m->header->maximum, maximum);
	if (raised)
		mapped_wake_writers(c);
	else
		flowfd_sleepers_wake(c, EPOLLOUT);
	return 0;
}
