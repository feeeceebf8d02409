// SPDX-License-Identifier: MIT
/*
 * The doorbell of a ring without the module: an eventfd(2) that a post rings if somebody
 * may sleep. docs/ring.md has the protocol, and why no wakeup is lost.
 */
#include "bell.h"
#include "eventfd.h"
#include "watches.h"

/*
 * States of @armed: odd, the next post must ring; even, a thread rings, and if it does
 * not end, the next post does. Each time that the consumer arms has its own two numbers,
 * so that a late poster does not end the ringing of another, which may have been killed.
 */
#define RUNG 0 /* it is readable */

/* As the module's flowfd_ring_has_posts(). */
bool flowfd__bell_has_posts(const struct flowfd_ring *ring)
{
	const struct flowfd_ring_header *header = ring->header;

	return __atomic_load_n(&header->posted, __ATOMIC_SEQ_CST) &
		       FLOWFD_RING_POSTED_ITEM ||
	       __atomic_load_n(&header->taken, __ATOMIC_RELAXED);
}

static void exchange_armed(const struct flowfd_ring *ring, uint32_t from, uint32_t to)
{
	__atomic_compare_exchange_n(&ring->header->armed, &from, to, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Announces it, rings, and then announces that: a process can be killed in between. */
int flowfd__bell_notify(const struct flowfd_ring *ring)
{
	uint32_t armed, ringing;
	int ret;

	if (!flowfd__bell_has_posts(ring))
		return 0;
	armed = __atomic_load_n(&ring->header->armed, __ATOMIC_SEQ_CST);
	ringing = armed + armed % 2;
	exchange_armed(ring, armed, ringing);
	ret = flowfd__eventfd_write(ring->doorbell, 1);
	if (!ret)
		exchange_armed(ring, ringing, RUNG);
	return ret;
}

/* The next post rings: also if the doorbell is readable, for an edge. */
void flowfd__bell_arm(const struct flowfd_ring *ring)
{
	uint32_t armed = ring->watches->arms++ * 2 + 1;

	/* So that the number of ringing is never RUNG. */
	__atomic_exchange_n(&ring->header->armed, armed & INT32_MAX, __ATOMIC_SEQ_CST);
}

/* Drains the doorbell, which is to be readable as long as there are posts. */
void flowfd__bell_drain(const struct flowfd_ring *ring)
{
	uint64_t value;

	if (flowfd__bell_has_posts(ring))
		return;
	flowfd__eventfd_drain(ring->doorbell, &value);
	flowfd__bell_arm(ring);
	if (flowfd__bell_has_posts(ring))
		flowfd__eventfd_write(ring->doorbell, 1);
}
