// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling a mapped counter: what a poller sees, and what it has programs tell it. Without
 * the lock of the wait queue, except before it reports an overflow or a count that is not
 * ready, and for the first edge-triggered poller.
 */
#include "counter.h"

/* How often poll arms before it returns what it saw. */
#define MAPPED_POLLS 4

/* As counter_is_ready(), without the lock. */
static bool mapped_is_ready(const struct flowfd_counter *c, u64 count, u64 maximum)
{
	if (!count)
		return false;
	if (count >= READ_ONCE(c->flow.read_mark) || !list_empty(&c->writers) ||
	    !count_has_room(count, maximum, READ_ONCE(c->flow.write_mark)))
		return true;
	/* Pairs with g. */
	return smp_load_acquire(&c->flow.forced) && mapped_is_forced(c->mapped);
}

static __poll_t mapped_events_of(const struct flowfd_counter *c, u64 count, u64 maximum)
{
	return count_events_at(count, maximum, mapped_is_ready(c, count, maximum),
			       READ_ONCE(c->flow.write_mark));
}

/*
 * By a count, a maximum and marks of one moment; @events are those without the lock. If
 * programs take all the time, it is ready, and has room if it had with a count too high.
 */
static noinline __poll_t mapped_events_locked(struct flowfd_counter *c, __poll_t events)
{
	struct flowfd_mapped *m = c->mapped;
	unsigned long flags;
	u64 count;

	events = EPOLLIN | (events & EPOLLOUT);
	spin_lock_irqsave(&c->wqh.lock, flags);
	if (flowfd_mapped_count_exactly(m, &count))
		events = mapped_events_of(c, min(count, m->maximum), m->maximum);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return events;
}

/*
 * That a count is not ready is said only under the lock. It may have been ready and told
 * for one reason, and be ready for another after a change of settings, or when a writer
 * leaves: who looked at the reasons one by one may have seen none, and is not told again.
 */
static __poll_t mapped_events(struct flowfd_counter *c)
{
	u64 maximum = READ_ONCE(c->mapped->maximum);
	u64 count = mapped_count(c->mapped);
	__poll_t events = mapped_events_of(c, count, maximum);

	if (unlikely(count >= maximum || (count && !(events & EPOLLIN))))
		return mapped_events_locked(c, events);
	return events;
}

/*
 * For a poller that sees a count below the mark: it is told when the delay has passed. An
 * add that came before the poller is not seen by anybody else.
 */
static noinline __poll_t mapped_begin_delay(struct flowfd_counter *c)
{
	unsigned long flags;
	bool ready;

	spin_lock_irqsave(&c->wqh.lock, flags);
	ready = flowfd_pace_is_ready(c);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return ready ? EPOLLIN : 0;
}

/* Which bits must be set for a poller that sees these events. */
static int mapped_wanted(const struct flowfd_counter *c, const poll_table *wait,
			 __poll_t events)
{
	const struct flowfd_mapped *m = c->mapped;
	/* Without the lock: the next notification corrects a wrong answer. */
	bool limited = data_race(bucket_is_limited(&c->bucket));
	__poll_t key = poll_requested_events(wait);
	int bits = 0;

	if (key & EPOLLIN && !READ_ONCE(c->wakeup_deferred)) {
		bits |= FLOWFD_ARMED_WATCHED;
		if (!(events & EPOLLIN) || READ_ONCE(m->edge_in))
			bits |= FLOWFD_ARMED_READERS;
	}
	if (key & EPOLLOUT &&
	    (!(events & EPOLLOUT) || (READ_ONCE(m->edge_out) && !limited)))
		bits |= FLOWFD_ARMED_WRITERS;
	return bits;
}

/*
 * From here on each take is an edge. One that others wait for may not have notified yet,
 * and would not be told apart from this.
 */
static noinline void mapped_note_edge_out(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	unsigned long flags;
	s64 consumed;

	spin_lock_irqsave(&c->wqh.lock, flags);
	consumed = atomic64_read_acquire(m->consumed);
	flowfd_mapped_tell_writers(c);
	m->told_consumed = consumed;
	WRITE_ONCE(m->edge_out, true);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
}

/*
 * A poller with EPOLLET gets an edge for each add, as from an eventfd: some never take.
 * With EPOLLONESHOT as well it gets one event, and polls again before the next.
 */
static void mapped_note_edges(struct flowfd_counter *c, const poll_table *wait)
{
	struct flowfd_mapped *m = c->mapped;
	__poll_t key = wait ? poll_requested_events(wait) : 0;

	if (m->edge_per_take || (key & (EPOLLET | EPOLLONESHOT)) != EPOLLET)
		return;
	if (key & EPOLLIN && !READ_ONCE(m->edge_in))
		WRITE_ONCE(m->edge_in, true);
	if (key & EPOLLOUT && !READ_ONCE(m->edge_out))
		mapped_note_edge_out(c);
	/* e: before the look at the bits, also if another poller made the note. */
	smp_mb();
}

/**
 * flowfd_mapped_poll - poll(2), epoll and all other pollers
 * @c: mapped counter; the caller is in its queue if it wants to be woken
 * @wait: poll table, or NULL
 *
 * Whoever clears a bit wakes the queue afterwards. So bits that were set before this
 * looked at the count are enough; if a bit goes meanwhile, the caller is woken.
 *
 * Return: events.
 */
__poll_t flowfd_mapped_poll(struct flowfd_counter *c, const poll_table *wait)
{
	struct flowfd_mapped *m = c->mapped;
	unsigned int tries;
	__poll_t events;
	int armed, wanted;

	if (!counter_has_queue(c))
		return mapped_events(c);
	mapped_note_edges(c, wait);
	for (tries = 0; tries < MAPPED_POLLS; tries++) {
		armed = atomic_read(m->armed);
		/* f */
		smp_mb();
		events = mapped_events(c);
		wanted = mapped_wanted(c, wait, events);
		if (!(wanted & ~armed))
			break;
		mapped_arm(m, wanted);
	}
	if (!(events & EPOLLIN) && READ_ONCE(c->flow.max_delay) &&
	    poll_requested_events(wait) & EPOLLIN && mapped_count(m))
		events |= mapped_begin_delay(c);
	return events;
}
