/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that waits for a counter to be ready, in each way in which programs do, and
 * then takes what is there.
 */
#ifndef FLOW_SLEEPER_H
#define FLOW_SLEEPER_H

#include "flow_user.h"
#include "ring_user.h"

enum way { READ, TIMED_READ, POLL, LEVEL, EDGE, EXCLUSIVE, RING, WAYS };

static const char *const way_names[] = {
	[READ] = "read", [TIMED_READ] = "timed read", [POLL] = "poll", [LEVEL] = "level",
	[EDGE] = "edge", [EXCLUSIVE] = "exclusive", [RING] = "ring",
};

/* Longer than anybody waits here: a wakeup that is lost is no timeout. */
#define FLOW_TIMEOUT (10 * PATIENCE_MS * MSEC)

/* What a way of waiting needs beside the counter. */
struct waiter {
	struct flow *f;
	enum way way;
	int ep;
	struct user_ring ring;
};

/* Returns 0 or a negative errno. */
static inline int waiter_open(struct waiter *w, struct flow *f, enum way way)
{
	static const __u32 events[WAYS] = {
		[LEVEL] = EPOLLIN, [EDGE] = EPOLLIN | EPOLLET,
		[EXCLUSIVE] = EPOLLIN | EPOLLEXCLUSIVE,
	};
	int err;

	*w = (struct waiter){ .f = f, .way = way, .ep = -1 };
	if (way == RING) {
		err = ring_open(&w->ring, 2);
		if (err)
			return err;
		err = ring_add(&w->ring, f->fd, EPOLLIN, 0);
		return err < 0 ? err : 0;
	}
	if (events[way])
		w->ep = epoll_on(f->fd, events[way]);
	return events[way] && w->ep < 0 ? -errno : 0;
}

static inline void waiter_close(struct waiter *w)
{
	if (w->way == RING)
		ring_close(&w->ring);
	else if (w->ep >= 0)
		close(w->ep);
}

static inline bool waiter_takes(const struct waiter *w)
{
	return w->way == READ || w->way == TIMED_READ;
}

/* The system call that it sleeps in. */
static inline long waiter_call(const struct waiter *w)
{
	static const long calls[WAYS] = {
		[READ] = SYS_read, [TIMED_READ] = SYS_ioctl, [POLL] = POLL_CALL,
		[LEVEL] = EPOLL_CALL, [EDGE] = EPOLL_CALL,
		[EXCLUSIVE] = EPOLL_CALL, [RING] = SYS_ioctl,
	};

	return calls[w->way];
}

static inline bool waiter_harvest(struct waiter *w, __u64 timeout)
{
	struct ring_event event;
	bool found = false;

	if (timeout)
		ring_wait_with(&w->ring, (struct flowfd_ring_wait){ .timeout = timeout });
	while (ring_take(&w->ring, &event))
		found |= event.events & EPOLLIN;
	return found;
}

/*
 * Sleeps until the counter is ready, and takes what is there. Returns 8 or a negative
 * errno; 0 if there was a wakeup and nothing to take.
 */
static inline long waiter_take(struct waiter *w, __u64 *value)
{
	struct epoll_event event;

	*value = 0;
	switch (w->way) {
	case READ:
		return take(w->f->fd, value);
	case TIMED_READ:
		return read_with(w->f->fd, value, FLOW_TIMEOUT, 0) ?: 8;
	case POLL:
		poll_for(w->f->fd, POLLIN, -1);
		break;
	case RING:
		waiter_harvest(w, FLOWFD_RING_FOREVER);
		break;
	default:
		epoll_wait(w->ep, &event, 1, -1);
	}
	*value = got(w->f);
	return *value ? 8 : 0;
}

/* Whether this way of waiting would go on now. Takes nothing. Not for reads. */
static inline bool waiter_sees(struct waiter *w)
{
	switch (w->way) {
	case POLL:
		return poll_for(w->f->fd, POLLIN, 0) == POLLIN;
	case RING:
		return waiter_harvest(w, 0);
	default:
		return epoll_take(w->ep, 0) == EPOLLIN;
	}
}

/* A thread that waits once. */
struct flow_sleeper {
	struct waiter w;
	pthread_t thread;
	pid_t tid;
	bool finished;
	long result;
	__u64 value;
	__u64 woken;	/* when, in ns */
};

static inline void *flow_sleeper_run(void *arg)
{
	struct flow_sleeper *s = arg;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	s->result = waiter_take(&s->w, &s->value);
	s->woken = now_ns();
	__atomic_store_n(&s->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

static inline bool flow_sleeper_finished(const struct flow_sleeper *s)
{
	return __atomic_load_n(&s->finished, __ATOMIC_ACQUIRE);
}

/* For a counter that may be ready. False: there is no thread. */
static inline bool flow_sleeper_begin(struct flow_sleeper *s, struct flow *f, enum way way)
{
	*s = (struct flow_sleeper){ 0 };
	return !waiter_open(&s->w, f, way) &&
	       !pthread_create(&s->thread, NULL, flow_sleeper_run, s);
}

/* Returns when it sleeps in the kernel. False: it does not. */
static inline bool flow_sleeper_start(struct flow_sleeper *s, struct flow *f, enum way way)
{
	return flow_sleeper_begin(s, f, way) &&
	       wait_until_asleep(&s->tid, waiter_call(&s->w));
}

/* False: it is not finished in time. */
static inline bool flow_sleeper_join(struct flow_sleeper *s)
{
	if (!wait_until_set(&s->finished))
		return false;
	pthread_join(s->thread, NULL);
	waiter_close(&s->w);
	return true;
}

/* With the way of waiting, if it fails. */
#define ASSERT_SLEEPS(s, f, way) \
	ASSERT_TRUE(flow_sleeper_start(s, f, way)) TH_LOG("%s", way_names[way])
#define ASSERT_WOKEN(s) \
	ASSERT_TRUE(flow_sleeper_join(s)) TH_LOG("%s", way_names[(s)->w.way])
#define EXPECT_ASLEEP(s) \
	EXPECT_FALSE(flow_sleeper_finished(s)) TH_LOG("%s", way_names[(s)->w.way])

#endif /* FLOW_SLEEPER_H */
