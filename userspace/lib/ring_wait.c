// SPDX-License-Identifier: MIT
/*
 * Waiting for a ring without the module: moves the events of epoll(7) into the memory
 * from which they are harvested. Only the consumer does it.
 */
#include <errno.h>

#include "bell.h"
#include "deadline.h"
#include "epoll.h"
#include "ring_epoll.h"
#include "watches.h"

/* Events that a system call takes from epoll at most. */
#define BATCH 64

/* As flowfd_publish() of the module: P1 to P4. */
static void publish(const struct flowfd_ring *ring, uint32_t number, uint32_t bits)
{
	struct flowfd_ring_item *item = &ring->items[number];
	uint32_t position;

	__atomic_fetch_or(&item->ready, bits, __ATOMIC_SEQ_CST);
	if (__atomic_fetch_or(&item->queued, FLOWFD_RING_IN_INDEX, __ATOMIC_SEQ_CST))
		return;
	position = ring->watches->tail++;
	__atomic_store_n(&ring->index[position & ring->mask], number + 1,
			 __ATOMIC_RELEASE);
}

/* Files that were changed or removed since then have another tag. */
static void move_events(const struct flowfd_ring *ring, const struct epoll_event *events,
			int count)
{
	bool rung = false;
	int i, number;

	pthread_mutex_lock(&ring->watches->lock);
	for (i = 0; i < count; i++) {
		number = flowfd__watches_number(ring->watches, events[i].data.u64);
		if (number >= 0)
			publish(ring, (uint32_t)number, events[i].events);
		rung |= events[i].data.u64 == FLOWFD__TAG_DOORBELL;
	}
	pthread_mutex_unlock(&ring->watches->lock);
	if (rung)
		flowfd__bell_drain(ring);
}

struct taking {
	const struct flowfd_ring *ring;
	struct epoll_event *events;
};

static void move_cancelled(void *argument)
{
	const struct taking *taking = argument;

	move_events(taking->ring, taking->events, BATCH);
}

/*
 * Before 2.41, glibc can cancel the system call when it has taken events already. They
 * would be lost for the next thread that waits.
 */
static int wait_cancellably(const struct flowfd_ring *ring, struct epoll_event *events,
			    bool for_ever)
{
	struct taking taking = { .ring = ring, .events = events };
	int count;

	for (int i = 0; i < BATCH; i++)
		events[i].data.u64 = FLOWFD__TAG_NOBODY;
	pthread_cleanup_push(move_cancelled, &taking);
	count = flowfd__epoll_wait_cancellably(ring->fd, events, BATCH, for_ever);
	pthread_cleanup_pop(0);
	return count;
}

/* Moves all that epoll has; waits for the first. Returns 0 or a negative errno. */
static int fetch(const struct flowfd_ring *ring, struct flowfd__epoll_sleep sleep,
		 bool cancellable)
{
	/* Each file once, however fast it announces more. */
	uint32_t left = ring->max_items / BATCH + 1;
	struct epoll_event events[BATCH];
	int count, moved = 0;

	do {
		count = cancellable ? wait_cancellably(ring, events, sleep.timeout) :
				      flowfd__epoll_wait(ring->fd, events, BATCH, &sleep);
		if (count < 0)
			return moved ? 0 : count;
		move_events(ring, events, count);
		moved += count;
		sleep.timeout = 0;
		cancellable = false;
	} while (count == BATCH && left--);
	return 0;
}

static bool has_enough(const struct flowfd_ring *ring, uint32_t wanted, int *result)
{
	uint32_t pending = ring->watches->tail -
			   __atomic_load_n(&ring->header->head, __ATOMIC_RELAXED);

	*result = (int)pending;
	if (pending >= wanted)
		return true;
	if (!flowfd__bell_has_posts(ring))
		return false;
	*result = pending ? (int)pending : 1;
	return true;
}

static int check_args(const struct flowfd_ring *ring, const struct flowfd_ring_wait *args)
{
	if (args->flags || args->reserved || args->min_events > ring->mask + 1)
		return -EINVAL;
	if (args->sigmask_size != (args->sigmask ? sizeof(uint64_t) : 0))
		return -EINVAL;
	return 0;
}

/* How long to sleep for what is wanted; 0: not at all, or not any more. */
static uint64_t time_left(const struct flowfd_ring_wait *args, uint64_t passed,
			  uint32_t wanted)
{
	uint64_t limit = args->timeout;

	if (wanted > 1 && args->min_wait && args->min_wait < limit)
		limit = args->min_wait;
	if (limit == FLOWFD_RING_FOREVER)
		return limit;
	return limit > passed ? limit - passed : 0;
}

int flowfd__ring_epoll_wait(const struct flowfd_ring *ring,
			    const struct flowfd_ring_wait *args, int cancellable)
{
	struct flowfd__epoll_sleep sleep = { .sigmask = args->sigmask };
	uint32_t wanted = args->min_events ? args->min_events : 1;
	uint64_t start = 0, passed = 0;
	int ret, result;
	bool enough;

	if (!ring->watches->alive)
		return -ECHILD;
	ret = check_args(ring, args);
	if (ret)
		return ret;
	if (args->timeout != FLOWFD_RING_FOREVER || args->min_wait)
		start = flowfd__now();
	for (;;) {
		flowfd__bell_arm(ring);
		/* If there is enough, epoll is looked at, but not slept in. */
		enough = has_enough(ring, wanted, &result);
		sleep.timeout = enough ? 0 : time_left(args, passed, wanted);
		ret = fetch(ring, sleep, cancellable);
		if (ret < 0)
			return ret;
		if (has_enough(ring, wanted, &result) || enough)
			return result;
		/* Without a clock, all of it. */
		passed = start ? flowfd__now() - start : UINT64_MAX;
		if (args->timeout != FLOWFD_RING_FOREVER && passed >= args->timeout)
			return result;
		if (args->min_wait && passed >= args->min_wait)
			wanted = 1;
	}
}
