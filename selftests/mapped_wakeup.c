// SPDX-License-Identifier: GPL-2.0-only
/*
 * No wakeup is lost in random bursts on a mapped counter, for any way of sleeping.
 *
 * FLOWFD_ROUNDS sets the number of bursts.
 */
#include <liburing.h>

#include "burst.h"
#include "mapped_user.h"
#include "ring_user.h"

enum way { READ, POLL, LEVEL, EDGE, EXCLUSIVE, NESTED, URING, RING };

FIXTURE(burst)
{
	struct mapped m;
};

FIXTURE_VARIANT(burst)
{
	enum way way;
	__u64 maximum;
	bool limited;
	bool by_call;	/* the reader takes by calls */
	bool polled;	/* by another thread all the time, which takes nothing */
};

FIXTURE_VARIANT_ADD(burst, read) { READ };
FIXTURE_VARIANT_ADD(burst, read_by_call) { READ, 0, false, true };
FIXTURE_VARIANT_ADD(burst, read_full) { READ, 5 };
FIXTURE_VARIANT_ADD(burst, read_limited) { READ, 0, true };
FIXTURE_VARIANT_ADD(burst, poll) { POLL };
FIXTURE_VARIANT_ADD(burst, poll_full) { POLL, 5 };
FIXTURE_VARIANT_ADD(burst, poll_limited) { POLL, 0, true };
FIXTURE_VARIANT_ADD(burst, level) { LEVEL };
FIXTURE_VARIANT_ADD(burst, level_by_call) { LEVEL, 0, false, true };
FIXTURE_VARIANT_ADD(burst, level_full) { LEVEL, 5 };
FIXTURE_VARIANT_ADD(burst, level_both) { LEVEL, 5, true };
FIXTURE_VARIANT_ADD(burst, edge) { EDGE };
FIXTURE_VARIANT_ADD(burst, edge_by_call) { EDGE, 0, false, true };
FIXTURE_VARIANT_ADD(burst, edge_full) { EDGE, 5 };
FIXTURE_VARIANT_ADD(burst, edge_limited) { EDGE, 0, true };
FIXTURE_VARIANT_ADD(burst, edge_polled) { EDGE, 0, false, false, true };
FIXTURE_VARIANT_ADD(burst, exclusive) { EXCLUSIVE };
FIXTURE_VARIANT_ADD(burst, nested) { NESTED };
FIXTURE_VARIANT_ADD(burst, nested_full) { NESTED, 5 };
FIXTURE_VARIANT_ADD(burst, nested_limited) { NESTED, 0, true };
FIXTURE_VARIANT_ADD(burst, nested_polled) { NESTED, 0, false, false, true };
FIXTURE_VARIANT_ADD(burst, uring) { URING };
FIXTURE_VARIANT_ADD(burst, ring) { RING };
FIXTURE_VARIANT_ADD(burst, ring_polled) { RING, 0, false, false, true };
FIXTURE_VARIANT_ADD(burst, ring_both) { RING, 5, true };

FIXTURE_SETUP(burst)
{
	ASSERT_EQ(0, MAPPED_CREATE(&self->m, .maximum = variant->maximum));
}

FIXTURE_TEARDOWN(burst)
{
	mapped_close(&self->m);
}

struct reader {
	struct burst burst;
	struct mapped *m;
	enum way way;
	bool by_call;
	int ep;
	int outer;
	struct io_uring uring;
	struct user_ring ring;
};

static bool reader_open(struct reader *r)
{
	static const __u32 events[] = {
		[LEVEL] = EPOLLIN, [EDGE] = EPOLLIN | EPOLLET,
		[EXCLUSIVE] = EPOLLIN | EPOLLEXCLUSIVE, [NESTED] = EPOLLIN,
	};
	int fd = r->m->fd;

	switch (r->way) {
	case NESTED:
		r->ep = epoll_on(fd, EPOLLIN);
		r->outer = epoll_on(r->ep, EPOLLIN | EPOLLET);
		return r->outer >= 0;
	case URING:
		if (io_uring_queue_init(64, &r->uring, 0))
			return false;
		io_uring_prep_poll_multishot(io_uring_get_sqe(&r->uring), fd, POLLIN);
		return io_uring_submit(&r->uring) == 1;
	case RING:
		return !ring_open(&r->ring, 4) &&
		       ring_add(&r->ring, fd, EPOLLIN, 0) >= 0;
	case READ:
	case POLL:
		return true;
	default:
		r->ep = epoll_on(fd, events[r->way]);
		return r->ep >= 0;
	}
}

static void reader_wait_uring(struct reader *r)
{
	struct io_uring_cqe *cqe;
	bool more = true;

	if (io_uring_wait_cqe(&r->uring, &cqe))
		return;
	do {
		more &= !!(cqe->flags & IORING_CQE_F_MORE);
		io_uring_cqe_seen(&r->uring, cqe);
	} while (!io_uring_peek_cqe(&r->uring, &cqe));
	if (more)
		return;
	io_uring_prep_poll_multishot(io_uring_get_sqe(&r->uring), r->m->fd, POLLIN);
	io_uring_submit(&r->uring);
}

static void reader_wait(struct burst *b)
{
	struct reader *r = (struct reader *)b;
	struct epoll_event event;
	struct ring_event harvested;

	switch (r->way) {
	case POLL:
		poll_for(r->m->fd, POLLIN, -1);
		break;
	case NESTED:
		epoll_wait(r->outer, &event, 1, -1);
		epoll_wait(r->ep, &event, 1, 0);
		break;
	case URING:
		reader_wait_uring(r);
		break;
	case RING:
		ring_wait_with(&r->ring, (struct flowfd_ring_wait){
			.timeout = FLOWFD_RING_FOREVER });
		while (ring_take(&r->ring, &harvested))
			;
		break;
	case READ:
		break;
	default:
		epoll_wait(r->ep, &event, 1, -1);
	}
}

static bool reader_take(struct burst *b, __u64 *value)
{
	struct reader *r = (struct reader *)b;

	if (!r->by_call && mapped_take(r->m, value) == 8)
		return true;
	/* Of the ways, only that of read blocks. */
	return (r->by_call || r->way == READ) && take(r->m->fd, value) == 8;
}

/* In memory or by calls. Without room it is a write; that fails if it is non-blocking. */
static bool writer_add(struct burst *b, __u64 value, unsigned int *seed)
{
	struct mapped *m = ((struct reader *)b)->m;

	return (rand_r(seed) % 8 ? mapped_add(m, value) : add(m->fd, value)) == 8;
}

struct onlooker {
	pthread_t thread;
	int fd;
	bool stop;
};

static void *onlooker_run(void *arg)
{
	struct onlooker *o = arg;

	while (!__atomic_load_n(&o->stop, __ATOMIC_ACQUIRE)) {
		poll_for(o->fd, POLLIN, 0);
		sched_yield();
	}
	return NULL;
}

/* Not limited in time: a large number of rounds is limited by its caller. */
TEST_F_TIMEOUT(burst, nothing_is_lost, 24 * 3600)
{
	struct reader r = {
		.burst = {
			.fd = self->m.fd, .take_sleeps = variant->way == READ,
			.armed = &self->m.consumer->armed, .wait = reader_wait,
			.take = reader_take, .add = writer_add,
		},
		.m = &self->m, .way = variant->way, .by_call = variant->by_call,
	};

	struct onlooker onlooker = { .fd = self->m.fd };

	set_nonblock(self->m.fd, variant->way != READ);
	if (!reader_open(&r))
		SKIP(return, "io_uring is not available here");
	if (variant->polled) {
		ASSERT_EQ(0, pthread_create(&onlooker.thread, NULL, onlooker_run,
					    &onlooker));
	}
	burst_run(_metadata, &r.burst, variant->limited);
	if (variant->polled) {
		__atomic_store_n(&onlooker.stop, true, __ATOMIC_RELEASE);
		pthread_join(onlooker.thread, NULL);
	}
}

TEST_HARNESS_MAIN
