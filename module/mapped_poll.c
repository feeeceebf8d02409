// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling a mapped counter: what a poller sees, and what it has programs tell it. Without
 * the lock of the wait queue.
 */
#include "counter.h"

/* How often poll arms before it returns what it saw. */
#define MAPPED_POLLS 4

/* By one count, which may be too high: then there is a count, and a take tells of the room. */
static __poll_t mapped_events(const struct flowfd_counter *c)
{
	u64 maximum = store_maximum(&c->store);
	u64 count = min(store_count(&c->store), maximum);

	return count_events(count, maximum);
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
