// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads and processes on mapped counters: no wakeup is lost for any way of sleeping,
 * the sum is kept, and a peer that writes everywhere disturbs nobody else.
 *
 * FLOWFD_ROUNDS sets the number of bursts, FLOWFD_STRESS_MS the time of the others.
 */
#include <liburing.h>

#include "bucket_watch.h"
#include "mapped_user.h"
#include "ring_user.h"

#include <sys/wait.h>

enum way { READ, POLL, LEVEL, EDGE, EXCLUSIVE, NESTED, URING, RING };

FIXTURE(burst)
{
	struct mapped m;
};

FIXTURE_VARIANT(burst)
{
	enum way way;
	__u32 flags;
	__u64 maximum;
	bool limited;
	bool by_call;	/* the reader takes by calls */
};

FIXTURE_VARIANT_ADD(burst, read) { READ };
FIXTURE_VARIANT_ADD(burst, read_by_call) { READ, 0, 0, false, true };
FIXTURE_VARIANT_ADD(burst, read_full) { READ, 0, 5 };
FIXTURE_VARIANT_ADD(burst, read_limited) { READ, 0, 0, true };
FIXTURE_VARIANT_ADD(burst, poll) { POLL };
FIXTURE_VARIANT_ADD(burst, poll_full) { POLL, 0, 5 };
FIXTURE_VARIANT_ADD(burst, poll_limited) { POLL, 0, 0, true };
FIXTURE_VARIANT_ADD(burst, level) { LEVEL };
FIXTURE_VARIANT_ADD(burst, level_by_call) { LEVEL, 0, 0, false, true };
FIXTURE_VARIANT_ADD(burst, level_full) { LEVEL, 0, 5 };
FIXTURE_VARIANT_ADD(burst, level_both) { LEVEL, 0, 5, true };
FIXTURE_VARIANT_ADD(burst, edge) { EDGE };
FIXTURE_VARIANT_ADD(burst, edge_full) { EDGE, 0, 5 };
FIXTURE_VARIANT_ADD(burst, edge_limited) { EDGE, 0, 0, true };
FIXTURE_VARIANT_ADD(burst, edge_per_take) { EDGE, FLOWFD_EDGE_PER_TAKE };
FIXTURE_VARIANT_ADD(burst, edge_per_take_by_call) {
	EDGE, FLOWFD_EDGE_PER_TAKE, 0, false, true };
FIXTURE_VARIANT_ADD(burst, edge_per_take_full) { EDGE, FLOWFD_EDGE_PER_TAKE, 5 };
FIXTURE_VARIANT_ADD(burst, edge_per_take_limited) {
	EDGE, FLOWFD_EDGE_PER_TAKE, 0, true };
FIXTURE_VARIANT_ADD(burst, exclusive) { EXCLUSIVE };
FIXTURE_VARIANT_ADD(burst, nested) { NESTED };
FIXTURE_VARIANT_ADD(burst, nested_full) { NESTED, 0, 5 };
FIXTURE_VARIANT_ADD(burst, nested_limited) { NESTED, 0, 0, true };
FIXTURE_VARIANT_ADD(burst, uring) { URING };
FIXTURE_VARIANT_ADD(burst, uring_per_take) { URING, FLOWFD_EDGE_PER_TAKE };
FIXTURE_VARIANT_ADD(burst, ring) { RING };
FIXTURE_VARIANT_ADD(burst, ring_per_take) { RING, FLOWFD_EDGE_PER_TAKE };
FIXTURE_VARIANT_ADD(burst, ring_both) { RING, FLOWFD_EDGE_PER_TAKE, 5, true };

FIXTURE_SETUP(burst)
{
	ASSERT_EQ(0, MAPPED_CREATE(&self->m, .flags = variant->flags,
				   .maximum = variant->maximum));
}

FIXTURE_TEARDOWN(burst)
{
	mapped_close(&self->m);
}

/* The value that ends the test; it fits below any maximum used here. */
#define LAST 4

struct reader {
	pthread_t thread;
	struct mapped *m;
	enum way way;
	bool by_call;
	bool stop;
	__u64 taken;
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

static void reader_wait(struct reader *r)
{
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

static bool reader_take(struct reader *r, __u64 *value)
{
	if (!r->by_call && mapped_take(r->m, value) == 8)
		return true;
	/* Of the ways, only that of read blocks. */
	return (r->by_call || r->way == READ) && take(r->m->fd, value) == 8;
}

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	unsigned int seed = 7;
	__u64 value;

	while (!__atomic_load_n(&r->stop, __ATOMIC_SEQ_CST)) {
		reader_wait(r);
		while (reader_take(r, &value)) {
			__atomic_add_fetch(&r->taken, value, __ATOMIC_SEQ_CST);
			if (r->way == READ &&
			    __atomic_load_n(&r->stop, __ATOMIC_SEQ_CST))
				break;
		}
		if (rand_r(&seed) % 2)
			spin_ns(rand_r(&seed) % 20000);
	}
	return NULL;
}

static bool reader_has(struct reader *r, __u64 written)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (__atomic_load_n(&r->taken, __ATOMIC_SEQ_CST) != written) {
		if (now_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

static void random_bucket(int fd, unsigned int *seed)
{
	static const __u32 rates[] = { 0, 2000, 5000, 20000, 100000, 1000000,
				       FLOWFD_TOKEN_RATE_MAX };

	set_qos(fd, 1 + rand_r(seed) % 3, rates[rand_r(seed) % ARRAY_SIZE(rates)]);
}

/* Returns the sum that it added, in memory or by calls. */
static __u64 random_burst(struct mapped *m, unsigned int *seed)
{
	__u64 written = 0;

	for (int n = rand_r(seed) % 5; n >= 0; n--) {
		__u64 value = 1 + rand_r(seed) % 3;

		/* Without room it is a write; fails if that is non-blocking. */
		while ((rand_r(seed) % 8 ? mapped_add(m, value) :
					   add(m->fd, value)) != 8)
			poll_for(m->fd, POLLOUT, PATIENCE_MS);
		written += value;
		switch (rand_r(seed) % 4) {
		case 0:
			spin_ns(rand_r(seed) % 50000);
			break;
		case 1:
			sched_yield();
			break;
		}
	}
	return written;
}

/* Not limited in time: a large number of rounds is limited by its caller. */
TEST_F_TIMEOUT(burst, nothing_is_lost, 24 * 3600)
{
	unsigned long rounds = parameter("FLOWFD_ROUNDS", 2000);
	struct reader r = { .m = &self->m, .way = variant->way,
			    .by_call = variant->by_call };
	unsigned int seed = 1;
	__u64 written = 0;

	set_nonblock(self->m.fd, variant->way != READ);
	if (!reader_open(&r))
		SKIP(return, "io_uring is not available here");
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader_run, &r));
	for (unsigned long i = 0; i < rounds; i++) {
		if (variant->limited && i % 16 == 0)
			random_bucket(self->m.fd, &seed);
		written += random_burst(&self->m, &seed);
		ASSERT_TRUE(reader_has(&r, written))
			TH_LOG("round %lu: reader has %llu of %llu, armed %u", i,
			       r.taken, written, mapped_armed(&self->m));
	}
	if (variant->limited) {
		ASSERT_EQ(0, set_qos(self->m.fd, 0, 0));
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_SEQ_CST);
	ASSERT_EQ(8, mapped_add(&self->m, LAST));
	pthread_join(r.thread, NULL);
	EXPECT_EQ(written + LAST, r.taken + count_of(self->m.fd));
}

/* Writers that sleep in write, poll, and edge-triggered epoll; the reader never sleeps. */
struct writer {
	pthread_t thread;
	struct mapped *m;
	int ep;
	__u64 value;
	unsigned long adds;
};

static void *writer_run(void *arg)
{
	struct writer *w = arg;

	for (unsigned long i = 0; i < w->adds; i++) {
		while (mapped_add(w->m, w->value) != 8)
			epoll_take(w->ep, -1);
	}
	return NULL;
}

static void run_writers(struct __test_metadata *_metadata, __u32 events, bool nonblock,
			__u32 flags)
{
	unsigned long adds = parameter("FLOWFD_ROUNDS", 2000);
	struct writer w[4];
	__u64 expected = 0, taken = 0, value, end = ms_from_now(3 * PATIENCE_MS);
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .maximum = 5, .flags = flags));
	set_nonblock(m.fd, nonblock);
	for (int i = 0; i < 4; i++) {
		w[i] = (struct writer){ .m = &m, .value = 1 + i, .adds = adds,
					.ep = epoll_on(m.fd, events) };
		expected += adds * (1 + i);
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, writer_run, &w[i]));
	}
	while (taken < expected && now_ns() < end) {
		if (mapped_take(&m, &value) == 8) {
			EXPECT_GE(4, value);
			taken += value;
			end = ms_from_now(3 * PATIENCE_MS);
		} else {
			sched_yield();
		}
	}
	EXPECT_EQ(expected, taken)
		TH_LOG("armed %u, count %llu", mapped_armed(&m), mapped_count(&m));
	for (int i = 0; i < 4 && taken == expected; i++) {
		pthread_join(w[i].thread, NULL);
		close(w[i].ep);
	}
	EXPECT_EQ(0, mapped_count(&m));
	mapped_close(&m);
}

TEST(writers_that_sleep_in_write)
{
	run_writers(_metadata, EPOLLERR, false, 0);
}

TEST(writers_that_sleep_in_level_triggered_epoll)
{
	run_writers(_metadata, EPOLLOUT, true, 0);
}

TEST(writers_that_sleep_in_edge_triggered_epoll)
{
	run_writers(_metadata, EPOLLOUT | EPOLLET, true, 0);
}

TEST(writers_that_sleep_for_an_edge_per_take)
{
	run_writers(_metadata, EPOLLOUT | EPOLLET, true, FLOWFD_EDGE_PER_TAKE);
}

/* Blocked readers and writers, half of them in memory. */
struct worker {
	pthread_t thread;
	struct mapped *m;
	unsigned int seed;
	bool *stop;
	__u64 sum;
};

static void *producer_run(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		__u64 value = 1 + rand_r(&w->seed) % 6;

		if ((w->seed & 0x100 ? mapped_add(w->m, value) :
				       add(w->m->fd, value)) == 8)
			w->sum += value;
	}
	return NULL;
}

static void *taker_run(void *arg)
{
	struct worker *w = arg;
	__u64 value;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		if ((w->seed & 0x100 && mapped_take(w->m, &value) == 8) ||
		    take(w->m->fd, &value) == 8)
			w->sum += value;
		rand_r(&w->seed);
	}
	return NULL;
}

static void *changer_run(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		set_maximum(w->m->fd, 7 + rand_r(&w->seed) % 20);
		if (rand_r(&w->seed) % 4 == 0)
			random_bucket(w->m->fd, &w->seed);
		notify(w->m->fd);
		spin_ns(rand_r(&w->seed) % 100000);
	}
	return NULL;
}

TEST(sum_of_eight_threads)
{
	struct worker w[9] = { 0 };
	__u64 value, added = 0, taken = 0;
	bool stop = false;
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .maximum = 10));
	for (int i = 0; i < 9; i++) {
		w[i].m = &m;
		w[i].seed = i + 1;
		w[i].stop = &stop;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, i == 8 ? changer_run :
					    i % 2 ? producer_run : taker_run, &w[i]));
	}
	sleep_until_ns(now_ns() + stress_ns());
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	/* Those that still sleep: with room and a count for all. */
	set_nonblock(m.fd, true);
	pthread_join(w[8].thread, NULL);
	set_qos(m.fd, 0, 0);
	for (int i = 0; i < 8; i++) {
		while (!pthread_tryjoin_np(w[i].thread, NULL) == false) {
			if (add(m.fd, 1) == 8)
				added++;
			if (take(m.fd, &value) == 8)
				taken += value;
		}
		*(i % 2 ? &added : &taken) += w[i].sum;
	}
	EXPECT_EQ(added, taken + mapped_count(&m));
	EXPECT_LT(1000, added);
	mapped_close(&m);
}

/* Writes everything that it may write. */
static void *hostile_run(void *arg)
{
	struct worker *w = arg;
	__u64 *words[] = { &w->m->producer->produced, &w->m->consumer->consumed };

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		__u64 value = (__u64)rand_r(&w->seed) << (rand_r(&w->seed) % 40);

		switch (rand_r(&w->seed) % 6) {
		case 0:
		case 1:
			__atomic_store_n(words[w->seed >> 8 & 1], value,
					 __ATOMIC_RELAXED);
			break;
		case 2:
			__atomic_store_n(words[0], *words[1], __ATOMIC_RELAXED);
			break;
		case 3:
			for (int i = 0; i < 1000; i++)
				__atomic_add_fetch(words[i & 1], 1, __ATOMIC_RELAXED);
			break;
		case 4:
			for (int i = 0; i < 1000; i++)
				__atomic_store_n(&w->m->consumer->armed, i,
						 __ATOMIC_RELAXED);
			break;
		default:
			memset(w->m->producer, rand_r(&w->seed), 4096);
			memset(w->m->consumer, rand_r(&w->seed), 4096);
		}
	}
	return NULL;
}

static void *victim_run(void *arg)
{
	struct worker *w = arg;
	int fd = w->m->fd, ep = epoll_on(fd, EPOLLIN | EPOLLOUT);
	int edge = epoll_on(fd, EPOLLIN | EPOLLOUT | EPOLLET);
	char *hole = page_before_a_hole() + 4096;
	__u64 value;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		switch (rand_r(&w->seed) % 9) {
		case 0:
			add(fd, rand_r(&w->seed) % 5);
			break;
		case 1:
			take(fd, &value);
			break;
		case 2:
			poll_for(fd, POLLIN | POLLOUT, rand_r(&w->seed) % 2);
			break;
		case 3:
			epoll_take(ep, 0);
			epoll_take(edge, 0);
			break;
		case 4:
			notify(fd);
			break;
		case 5:
			set_maximum(fd, 1 + rand_r(&w->seed) % 100);
			break;
		case 6:
			random_bucket(fd, &w->seed);
			break;
		case 7:
			count_of(fd);
			break;
		default:
			syscall(SYS_read, fd, hole, 8);
		}
		w->sum++;
	}
	close(ep);
	close(edge);
	return NULL;
}

/* Sleeps in read and write, until a signal ends it. */
static void hostile_sleeper(int fd, bool writes)
{
	__u64 value = 3;

	for (;;)
		writes ? add(fd, value) : take(fd, &value);
}

TEST(hostile_peer)
{
	struct worker w[5] = { 0 };
	struct mapped mapped, *m = &mapped;
	bool stop = false;
	pid_t children[2];
	__u64 value;
	int status;

	ASSERT_EQ(0, MAPPED_CREATE(m, 0));
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (!children[i])
			hostile_sleeper(m->fd, i);
	}
	for (int i = 0; i < 5; i++) {
		w[i] = (struct worker){ .m = m, .seed = i, .stop = &stop };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, i < 2 ? hostile_run :
					    victim_run, &w[i]));
	}
	set_nonblock(m->fd, true);
	sleep_until_ns(now_ns() + stress_ns());
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 5; i++)
		pthread_join(w[i].thread, NULL);
	for (int i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		EXPECT_EQ(children[i], waitpid(children[i], &status, 0));
	}
	for (int i = 2; i < 5; i++) {
		EXPECT_LT(0, w[i].sum);
	}
	/* It works again as soon as the words are right. */
	m->producer->produced = 0;
	m->consumer->consumed = 0;
	m->consumer->armed = ARMED_ALL;
	set_qos(m->fd, 0, 0);
	EXPECT_EQ(0, set_maximum(m->fd, 10));
	EXPECT_EQ(8, mapped_add(m, 3));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(3, value);
	EXPECT_EQ(POLLOUT, poll_now(m->fd));
	mapped_close(m);
}

/* A process that is killed at any point leaves nobody asleep on a count. */
TEST(killed_at_any_point)
{
	__u64 end = now_ns() + stress_ns(), kills = 0;
	unsigned int seed = 3;
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, 0));
	while (now_ns() < end) {
		struct call reader;
		__u64 value;
		int status;
		pid_t child = fork();

		if (!child) {
			for (;;) {
				mapped_add(&m, 1);
				mapped_take(&m, &value);
			}
		}
		spin_ns(rand_r(&seed) % 3000000);
		/* Sleeps, unless there is a count. */
		reader = (struct call){ .fd = m.fd };
		ASSERT_EQ(0, pthread_create(&reader.thread, NULL, call_run, &reader));
		spin_ns(rand_r(&seed) % 300000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		kills++;
		sleep_ms(1);
		if (!call_finished(&reader) && !mapped_count(&m)) {
			ASSERT_EQ(8, mapped_add(&m, 1));
		}
		ASSERT_TRUE(call_join(&reader))
			TH_LOG("kill %llu: count %llu, armed %u", kills,
			       mapped_count(&m), mapped_armed(&m));
	}
	EXPECT_LT(3, kills);
	mapped_close(&m);
}

TEST_HARNESS_MAIN
