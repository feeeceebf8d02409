// SPDX-License-Identifier: GPL-2.0-only
/*
 * What pollers of a mapped counter see: all that an eventfd shows, but edges for room that
 * was there, and for adds in memory between an edge and a take. Histories are random and
 * compared after each step.
 */
#include <liburing.h>

#include "mapped_user.h"
#include "ring_user.h"

/* What is watched, and what was seen since the last look. */
struct watched {
	int fd;
	int level;
	int edge;
	struct user_ring ring;
};

static bool watch_all(struct watched *w, int fd)
{
	w->fd = fd;
	w->level = epoll_on(fd, EPOLLIN | EPOLLOUT);
	w->edge = epoll_on(fd, EPOLLIN | EPOLLET);
	return !ring_open(&w->ring, 4) && ring_add(&w->ring, fd, EPOLLIN, 0) >= 0;
}

static void watch_none(struct watched *w)
{
	close(w->level);
	close(w->edge);
	ring_close(&w->ring);
	close(w->fd);
}

#define EDGES 0xffff

/* A digit for each: poll, level, edge, ring. */
static __u64 seen(struct watched *w)
{
	__u64 all = poll_now(w->fd);

	all = all << 8 | epoll_take(w->level, 0);
	all = all << 8 | epoll_take(w->edge, 0);
	/* An eventfd tells a ring of a write of 0, too. */
	return all << 8 | (ring_take_only(&w->ring) & poll_now(w->fd));
}

static long step(struct mapped *m, int fd, unsigned int what, __u64 *value)
{
	switch (what) {
	case 0:
		return m ? mapped_add(m, *value) : add(fd, *value);
	case 1:
		return m ? mapped_take(m, value) : take(fd, value);
	case 2:
		return add(fd, *value);
	default:
		return take(fd, value);
	}
}

/*
 * What a mapped counter shows after a step, if another one shows @model: an add in memory
 * is an edge only for the first after a take. *@told: an edge came since.
 */
static __u64 expected(__u64 model, unsigned int what, __u64 value, bool *told)
{
	/* One of 0 is a write. */
	if (what == 0 && value && *told)
		model &= ~(__u64)EDGES;
	if (what < 4)
		*told = what % 2 == 0 && (*told || model & EDGES);
	return model;
}

/* What a step is about: any value, or a small one below a maximum that changes. */
static __u64 random_value(bool has_maximum, unsigned int *seed)
{
	static const __u64 values[] = { 0, 1, 2, 7, 1ULL << 40, ULLONG_MAX - 1, ULLONG_MAX };

	if (has_maximum)
		return rand_r(seed) % 7;
	return values[rand_r(seed) % 7];
}

static void compare_histories(struct __test_metadata *_metadata, enum origin origin)
{
	unsigned int seed = parameter("FLOWFD_SEED", 1);
	bool has_maximum = origin != EVENTFD;

	for (int round = 0; round < 20; round++) {
		struct watched model, mapped;
		bool told = false;
		struct mapped m;

		ASSERT_EQ(0, MAPPED_CREATE(&m, .flags = FLOWFD_NONBLOCK));
		ASSERT_TRUE(watch_all(&mapped, m.fd));
		ASSERT_TRUE(watch_all(&model, open_counter(origin, 0, EFD_NONBLOCK)));
		ASSERT_EQ(seen(&model), seen(&mapped));
		for (int i = 0; i < 200; i++) {
			unsigned int what = rand_r(&seed) % (has_maximum ? 5 : 4);
			__u64 v = random_value(has_maximum, &seed), v2 = v;

			if (what == 4) {
				ASSERT_EQ(set_maximum(model.fd, v + 1),
					  set_maximum(m.fd, v + 1));
				ASSERT_EQ(maximum_of(model.fd), m.header->maximum);
			} else {
				long result = step(NULL, model.fd, what, &v);

				ASSERT_EQ(result, step(&m, m.fd, what, &v2));
				if (result == 8) {
					ASSERT_EQ(v, v2);
				}
			}
			ASSERT_EQ(count_of(model.fd), count_of(m.fd));
			ASSERT_EQ(expected(seen(&model), what, v, &told), seen(&mapped))
				TH_LOG("round %d, step %d: %u of %llu", round, i,
				       what, v);
		}
		watch_none(&model);
		watch_none(&mapped);
		mapped_unmap(&m);
	}
}

TEST(random_histories_as_on_eventfd)
{
	compare_histories(_metadata, EVENTFD);
}

/* Compared with a counter that is not mapped. */
TEST(random_histories_below_a_maximum)
{
	compare_histories(_metadata, CREATED);
}

MAPPED_FIXTURE(mapped, .flags = FLOWFD_NONBLOCK)

TEST_F(mapped, edges)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, EPOLLIN | EPOLLET);
	__u64 value;

	EXPECT_EQ(0, epoll_take(ep, 0));
	for (int i = 0; i < 10; i++) {
		m->calls = 0;
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(0, epoll_take(ep, 0));
		EXPECT_EQ(1, m->calls);
		/* By a call, each is an edge, as on an eventfd. */
		EXPECT_EQ(8, add(m->fd, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
		EXPECT_EQ(8, i % 2 ? mapped_take(m, &value) : take(m->fd, &value));
		EXPECT_EQ(0, epoll_take(ep, 0));
	}
	close(ep);
	/* The next notification finds that the epoll is gone. */
	mapped_add(m, 1);
	m->calls = 0;
	for (int i = 0; i < 10; i++)
		mapped_add(m, 1);
	EXPECT_EQ(0, m->calls);
}

/* What is added after the edge and after the take is 2^64 in all. */
TEST_F(mapped, edges_of_huge_values)
{
	int ep[] = { epoll_on(self->m.fd, EPOLLIN), epoll_on(self->m.fd, EPOLLIN | EPOLLET) };
	struct mapped *m = &self->m;
	__u64 value, half = 1ULL << 63;

	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(ep[0], 0));
		EXPECT_EQ(EPOLLIN, epoll_take(ep[1], 0));
		EXPECT_EQ(8, mapped_add(m, half));
		EXPECT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(half + 1, value);
		EXPECT_EQ(8, mapped_add(m, half));
		EXPECT_EQ(EPOLLIN, epoll_take(ep[0], 0));
		EXPECT_EQ(EPOLLIN, epoll_take(ep[1], 0));
		EXPECT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(0, epoll_take(ep[0], 0));
	}
	close(ep[0]);
	close(ep[1]);
}

/* A take that finds nothing, after an edge for what another took, loses no edge. */
TEST_F(mapped, edge_for_what_is_gone)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, EPOLLIN | EPOLLET);
	__u64 value;

	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(8, mapped_take(m, &value));
		epoll_take(ep, 0);
		EXPECT_EQ(-EAGAIN, mapped_take(m, &value));
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
		EXPECT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(0, epoll_take(ep, 0));
	}
	close(ep);
}

/* The count was there already, and is taken in memory. */
TEST_F(mapped, edge_after_a_present_count)
{
	struct mapped *m = &self->m;
	__u64 value;
	int ep;

	EXPECT_EQ(8, mapped_add(m, 1));
	ep = epoll_on(m->fd, EPOLLIN | EPOLLET);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

/* An edge of an outer epoll for the first add after each take, at least. */
TEST_F(mapped, edge_of_a_level)
{
	struct mapped *m = &self->m;
	int inner = epoll_on(m->fd, EPOLLIN);
	int outer = epoll_on(inner, EPOLLIN | EPOLLET);
	__u64 value;

	EXPECT_EQ(0, epoll_take(outer, 0));
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(outer, 0));
		EXPECT_EQ(EPOLLIN, epoll_take(inner, 0));
		EXPECT_EQ(8, i % 2 ? mapped_take(m, &value) : take(m->fd, &value));
		if (i % 3 == 0)
			epoll_take(inner, 0);
		epoll_take(outer, 0);
	}
	close(outer);
	close(inner);
}

TEST_F(mapped, one_shot)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT | EPOLLET };
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, event.events);
	__u64 value;

	for (int i = 0; i < 5; i++) {
		m->calls = 0;
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(1, m->calls);
		EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
		EXPECT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(0, epoll_take(ep, 0));
		EXPECT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, m->fd, &event));
	}
	close(ep);
}

/* The one that is woken may be gone: the next add wakes the next. */
TEST_F(mapped, exclusive)
{
	struct mapped *m = &self->m;
	int eps[3], woken;

	for (int i = 0; i < 3; i++)
		eps[i] = epoll_on(m->fd, EPOLLIN | EPOLLEXCLUSIVE);
	for (int adds = 1; adds <= 3; adds++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(adds, m->calls);
	}
	woken = 0;
	for (int i = 0; i < 3; i++) {
		woken += epoll_take(eps[i], 0) == EPOLLIN;
		close(eps[i]);
	}
	EXPECT_LT(0, woken);
}

struct waiter {
	pthread_t thread;
	pid_t tid;
	int ep;
	bool woken;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	if (epoll_take(w->ep, PATIENCE_MS) == EPOLLIN)
		__atomic_store_n(&w->woken, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Each of several exclusive epolls, whose tasks do not take, hears of an add. */
TEST_F(mapped, exclusive_sleepers)
{
	struct mapped *m = &self->m;
	struct waiter w[3];

	for (int i = 0; i < 3; i++) {
		w[i] = (struct waiter){
			.ep = epoll_on(m->fd, EPOLLIN | EPOLLEXCLUSIVE) };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, waiter_run, &w[i]));
		ASSERT_TRUE(wait_until_asleep(&w[i].tid, EPOLL_CALL));
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		sleep_ms(QUIET_MS);
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_TRUE(wait_until_set(&w[i].woken));
		pthread_join(w[i].thread, NULL);
		close(w[i].ep);
	}
}

TEST_F(mapped, one_shot_in_a_ring)
{
	struct mapped *m = &self->m;
	struct user_ring r;
	__u64 value;

	ASSERT_EQ(0, ring_open(&r, 4));
	ASSERT_LE(0, ring_add(&r, m->fd, EPOLLIN | EPOLLONESHOT, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(0, ring_mod(&r, m->fd, EPOLLIN, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	ring_close(&r);
}

/*
 * Another took what an event was for, and looked at the bits before the kernel cleared
 * READERS. The take that finds nothing must arm, in memory or by a call.
 */
TEST_F(mapped, ring_event_for_what_is_gone)
{
	struct mapped *m = &self->m;
	struct user_ring r;
	__u64 value;

	ASSERT_EQ(0, ring_open(&r, 4));
	ASSERT_LE(0, ring_add(&r, m->fd, EPOLLIN, 0));
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		mapped_consume(m, &value);
		EXPECT_EQ(1, value);
		EXPECT_EQ(EPOLLIN, ring_take_only(&r));
		EXPECT_EQ(-EAGAIN, i % 2 ? mapped_take(m, &value) :
					   take(m->fd, &value));
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(EPOLLIN, ring_take_only(&r));
		EXPECT_EQ(8, mapped_take(m, &value));
	}
	ring_close(&r);
}

/* The result of the next completion; -1: none. */
static int completion(struct io_uring *uring)
{
	struct __kernel_timespec t = { .tv_nsec = QUIET_MS * 1000000 };
	struct io_uring_cqe *cqe;
	int result;

	if (io_uring_wait_cqe_timeout(uring, &cqe, &t))
		return -1;
	result = cqe->res;
	io_uring_cqe_seen(uring, cqe);
	return result;
}

TEST_F(mapped, io_uring)
{
	struct mapped *m = &self->m;
	struct io_uring uring;
	__u64 value = 0, more;

	if (io_uring_queue_init(16, &uring, 0))
		SKIP(return, "io_uring is not available here");
	io_uring_prep_poll_multishot(io_uring_get_sqe(&uring), m->fd, POLLIN);
	io_uring_submit(&uring);
	EXPECT_EQ(-1, completion(&uring));
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(8, mapped_add(m, 1));
		EXPECT_EQ(POLLIN, completion(&uring));
		EXPECT_EQ(8, mapped_take(m, &more));
	}
	io_uring_queue_exit(&uring);
	mapped_take(m, &more);

	/* A read that waits. */
	ASSERT_EQ(0, io_uring_queue_init(16, &uring, 0));
	set_nonblock(m->fd, false);
	for (int i = 0; i < 5; i++) {
		io_uring_prep_read(io_uring_get_sqe(&uring), m->fd, &value, 8, 0);
		io_uring_submit(&uring);
		EXPECT_EQ(-1, completion(&uring));
		EXPECT_EQ(8, mapped_add(m, 3));
		EXPECT_EQ(8, completion(&uring));
		EXPECT_EQ(3, value);
	}
	io_uring_queue_exit(&uring);
}

struct consumer {
	struct mapped *m;
	int ep;
	bool stop;
	__u64 taken;
	unsigned long wakeups;
};

static void *consumer_run(void *arg)
{
	struct consumer *c = arg;
	__u64 value;

	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		if (!epoll_take(c->ep, 100))
			continue;
		c->wakeups++;
		while (mapped_take(c->m, &value) == 8)
			c->taken += value;
	}
	return NULL;
}

/* A producer that never rests makes no more calls than the bucket has tokens. */
TEST_F(mapped, calls_of_a_limited_producer)
{
	struct mapped *m = &self->m;
	struct consumer c = { .m = m, .ep = epoll_on(m->fd, EPOLLIN | EPOLLET) };
	__u64 begin, spent, adds = 0, value;
	pthread_t thread;

	ASSERT_EQ(0, set_qos(m->fd, 1, 1000));
	ASSERT_EQ(0, pthread_create(&thread, NULL, consumer_run, &c));
	begin = now_ns();
	while (now_ns() - begin < stress_ns()) {
		for (int i = 0; i < 100; i++)
			adds += mapped_add(m, 1) == 8;
	}
	spent = now_ns() - begin;
	__atomic_store_n(&c.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (mapped_take(m, &value) == 8)
		c.taken += value;
	EXPECT_EQ(adds, c.taken);
	TH_LOG("%llu ms: %llu adds, %lu calls, %lu wakeups", spent / 1000000, adds,
	       m->calls, c.wakeups);
	/* And some of the consumer, which may find an add as it arms. */
	EXPECT_GE(spent / 1000000 * 5 / 2 + 10, m->calls);
	EXPECT_GE(spent / 1000000 + 10, c.wakeups);
	EXPECT_LT(0, c.wakeups);
	close(c.ep);
}

/* Deferred, the count is there, and no call is made. */
TEST_F(mapped, bucket_step_by_step)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, EPOLLIN);
	__u64 value;

	ASSERT_EQ(0, set_qos(m->fd, 1, 5));
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(0, epoll_take(ep, 0));
	m->calls = 0;
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(1, m->calls);
	EXPECT_TRUE(wakeup_is_deferred(m->fd));
	EXPECT_EQ(0, mapped_armed(m));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(100, value);
	EXPECT_EQ(0, epoll_take(ep, 0));

	/* The timer finds nothing and arms. */
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_TRUE(wakeup_is_deferred(m->fd));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(0, epoll_take(ep, 1000));
	EXPECT_FALSE(wakeup_is_deferred(m->fd));
	EXPECT_EQ(FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED,
		  mapped_armed(m) & ~FLOWFD_ARMED_WRITERS);
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));

	/* Another bucket delivers. */
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_TRUE(wakeup_is_deferred(m->fd));
	ASSERT_EQ(0, set_qos(m->fd, 0, 0));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

/* Pollers are told of room only after there was none: a take makes no call otherwise. */
TEST_F(mapped, edges_of_takes)
{
	struct mapped *m = &self->m;
	unsigned long calls;
	__u64 value;
	int ep;

	ASSERT_EQ(0, set_maximum(m->fd, 5));
	ep = epoll_on(m->fd, EPOLLOUT | EPOLLET);
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	calls = m->calls;
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(8, mapped_add(m, 1));
		ASSERT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(0, epoll_take(ep, 0));
	}
	EXPECT_EQ(calls, m->calls);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(8, mapped_add(m, 4));
		EXPECT_EQ(-EAGAIN, add(m->fd, 1));
		ASSERT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	}
	close(ep);
}

TEST_HARNESS_MAIN
