// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling a mapped counter: what a poller sees, and what it has programs tell it. Without
 * the lock of the wait queue, except before it reports an overflow.
 */
#include "counter.h"

/* How often poll arms before it returns what it saw. */
#define MAPPED_POLLS 4

/*
 * By a count and a maximum of one moment; @events were read without the lock. If programs
 * take all the time, there is a count, and room if there was with a count too high.
 */
static noinline __poll_t mapped_events_locked(struct flowfd_counter *c, __poll_t events)
{
	struct flowfd_mapped *m = c->store.mapped;
	unsigned long flags;
	u64 count;

	events = EPOLLIN | (events & EPOLLOUT);
	spin_lock_irqsave(&c->wqh.lock, flags);
	if (flowfd_mapped_count(m, &count))
		events = count_events(min(count, m->maximum), m->maximum);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return events;
}

/* An overflow is said only under the lock. */
static __poll_t mapped_events(struct flowfd_counter *c)
{
	u64 maximum = READ_ONCE(c->store.mapped->maximum);
	u64 count = mapped_count(c->store.mapped);
	__poll_t events = count_events(count, maximum);

	if (unlikely(count >= maximum))
		return mapped_events_locked(c, events);
	return events;
}

/* Which bits must be set for a poller that sees these events. */
static int mapped_wanted(const struct flowfd_counter *c, const poll_table *wait,
			 __poll_t events)
{
	__poll_t key = poll_requested_events(wait);
	int bits = 0;

	if (key & EPOLLIN && !READ_ONCE(c->ready.bucket.deferred)) {
		bits |= FLOWFD_ARMED_WATCHED;
		if (!(events & EPOLLIN))
			bits |= FLOWFD_ARMED_READERS;
	}
	if (key & EPOLLOUT && !(events & EPOLLOUT))
		bits |= FLOWFD_ARMED_WRITERS;
	return bits;
}

/*
 * Returns the events for poll(2), epoll and all other pollers. The caller is in the queue
 * if it wants to be woken; @wait may be NULL.
 *
 * A task that clears a bit wakes the queue afterwards. So bits that were set before this
 * looked at the count are enough; if a bit goes meanwhile, the caller is woken.
 */
__poll_t flowfd_mapped_poll(struct flowfd_counter *c, const poll_table *wait)
{
	struct flowfd_mapped *m = c->store.mapped;
	unsigned int tries;
	__poll_t events;
	int armed, wanted;

	if (!counter_has_pollers(c))
		return mapped_events(c);
	for (tries = 0; tries < MAPPED_POLLS; tries++) {
		armed = atomic_read(m->armed);
		/* e */
		smp_mb();
		events = mapped_events(c);
		wanted = mapped_wanted(c, wait, events);
		if (!(wanted & ~armed))
			break;
		mapped_arm(m, wanted);
	}
	return events;
}
