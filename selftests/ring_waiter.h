/* SPDX-License-Identifier: GPL-2.0-only */
/* A call that waits for a ring, in a thread of its own. */
#ifndef RING_WAITER_H
#define RING_WAITER_H

#include "ring_user.h"

/* FLOWFD_IOC_RING_WAIT or read. */
struct waiter {
	pthread_t thread;
	pid_t tid;
	bool finished;
	bool reads;
	__u32 min_events;
	struct user_ring *ring;
	long result;
};

static inline void *waiter_run(void *arg)
{
	struct waiter *w = arg;
	__u64 value = 0;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	if (w->reads)
		w->result = result_of(read(w->ring->fd, &value, 8)) == 8 ? (long)value : -1;
	else
		w->result = ring_wait_with(w->ring, (struct flowfd_ring_wait){
			.timeout = FLOWFD_RING_FOREVER, .min_events = w->min_events });
	__atomic_store_n(&w->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

static inline bool waiter_start(struct waiter *w, struct user_ring *r, __u32 min_events, bool reads)
{
	*w = (struct waiter){ .ring = r, .min_events = min_events, .reads = reads };
	return !pthread_create(&w->thread, NULL, waiter_run, w) &&
	       wait_until_asleep(&w->tid, reads ? SYS_read : SYS_ioctl);
}

static inline bool waiter_ends(struct waiter *w)
{
	return wait_until_set(&w->finished) && !pthread_join(w->thread, NULL);
}

static inline bool waiter_sleeps(struct waiter *w)
{
	sleep_ms(QUIET_MS);
	return !__atomic_load_n(&w->finished, __ATOMIC_ACQUIRE);
}

#endif /* RING_WAITER_H */
