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
	struct user_ring *ring;
	struct flowfd_ring_wait args;
	long result;
	__u64 woken;
};

/* The number of filled slots, by read. */
static inline long ring_read_pending(struct user_ring *r)
{
	__u64 pending[2] = { 0, 42 };
	long size = result_of(read(r->fd, pending, sizeof(pending)));

	if (size < 0)
		return size;
	return size == 8 && pending[1] == 42 ? (long)pending[0] : -12345;
}

static inline void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->result = w->reads ? ring_read_pending(w->ring) :
			       ring_wait_with(w->ring, w->args);
	w->woken = now_ns();
	__atomic_store_n(&w->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

/* May not sleep, or no longer, when this returns. */
static inline bool waiter_begin(struct waiter *w, struct user_ring *r,
				struct flowfd_ring_wait args, bool reads)
{
	*w = (struct waiter){ .ring = r, .args = args, .reads = reads };
	return !pthread_create(&w->thread, NULL, waiter_run, w);
}

static inline bool waiter_start_with(struct waiter *w, struct user_ring *r,
				     struct flowfd_ring_wait args)
{
	return waiter_begin(w, r, args, false) && wait_until_asleep(&w->tid, SYS_ioctl);
}

static inline bool waiter_start(struct waiter *w, struct user_ring *r, __u32 min_events,
				bool reads)
{
	struct flowfd_ring_wait args = { .timeout = FLOWFD_RING_FOREVER,
					 .min_events = min_events };

	return waiter_begin(w, r, args, reads) &&
	       wait_until_asleep(&w->tid, reads ? SYS_read : SYS_ioctl);
}

static inline bool waiter_finished(struct waiter *w)
{
	return __atomic_load_n(&w->finished, __ATOMIC_ACQUIRE);
}

static inline bool waiter_ends(struct waiter *w)
{
	return wait_until_set(&w->finished) && !pthread_join(w->thread, NULL);
}

static inline bool waiter_sleeps(struct waiter *w)
{
	sleep_ms(QUIET_MS);
	return !waiter_finished(w);
}

#endif /* RING_WAITER_H */
