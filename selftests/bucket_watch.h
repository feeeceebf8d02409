/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A counter with a bucket, and an epoll that sees each wakeup of its readers as an
 * edge. For the tests of the bucket.
 */
#ifndef BUCKET_WATCH_H
#define BUCKET_WATCH_H

#include "selftest.h"

#define NSEC_PER_SEC 1000000000ULL

struct watched {
	int fd;
	int ep;
	__u64 made;	/* time of creation: the first tokens are not older */
};

static inline bool watched_open(struct watched *w, __u32 capacity, __u32 rate,
				__u32 events)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_NONBLOCK,
					      .qos = { capacity, rate } };

	w->made = now_ns();
	w->fd = create_counter(&args);
	if (w->fd < 0)
		return false;
	w->ep = epoll_on(w->fd, events | EPOLLET);
	epoll_take(w->ep, 0);	/* events that are true already are no wakeups */
	return w->ep >= 0;
}

static inline void watched_close(struct watched *w)
{
	close(w->ep);
	close(w->fd);
}

/* Returns how many of these writes caused a wakeup at once. */
static inline unsigned int edges_of_writes(struct watched *w,
					   unsigned int writes)
{
	unsigned int edges = 0;

	while (writes--) {
		add(w->fd, 1);
		edges += epoll_take(w->ep, 0) != 0;
	}
	return edges;
}

/*
 * A new counter of capacity one whose next wakeup is deferred. Tries again if this
 * machine was so slow that the next token was there already.
 */
static inline bool watched_open_deferred(struct watched *w, __u32 rate,
					 __u32 events)
{
	for (int attempt = 0; attempt < 10; attempt++) {
		if (!watched_open(w, 1, rate, events))
			return false;
		if (edges_of_writes(w, 2) == 1 && wakeup_is_deferred(w->fd))
			return true;
		watched_close(w);
	}
	return false;
}

#endif /* BUCKET_WATCH_H */
