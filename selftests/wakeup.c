// SPDX-License-Identifier: GPL-2.0-only
/*
 * No wakeup is lost in random bursts, whatever the settings: marks, delay, bucket, policy
 * for overflow, urgent or not, by calls or in memory, for each way of waiting. And each
 * comes in time. A writer waits after each burst until the reader has taken everything:
 * if its wakeup is lost it sleeps for ever, as nothing else would wake it.
 *
 * FLOWFD_ROUNDS sets the number of bursts.
 */
#include <error.h>
#include <liburing.h>

#include "flow_sleeper.h"

/* More ways of waiting. */
enum { NESTED = WAYS, URING };

/* Later than the settings allow: what a busy machine takes to run a thread. */
#define SLACK (2000 * MSEC)
/* Most of them are faster than this. */
#define USUAL_SLACK (20 * MSEC)

FIXTURE(burst)
{
	struct flow f;
};

FIXTURE_VARIANT(burst)
{
	int way;
	enum origin origin;
	enum access writes, reads;
	bool polled;	/* by another thread all the time, which takes nothing */
	struct flowfd_flow flow; /* no random settings, if there is a maximum */
};

#define BURST(name, ...) FIXTURE_VARIANT_ADD(burst, name) { __VA_ARGS__ }
/* Little room: writers that block sleep in many rounds. */
#define SMALL .flow = { .maximum = 5, .qos = { 2, 20000 } }
BURST(small_read, READ, CREATED, SMALL);
BURST(small_edge, EDGE, MAPPED, SMALL);
BURST(read, READ, CREATED);
BURST(timed_read, TIMED_READ, CREATED);
BURST(poll, POLL, CREATED);
BURST(level, LEVEL, CREATED);
BURST(edge, EDGE, CREATED);
BURST(exclusive, EXCLUSIVE, CREATED);
BURST(ring, RING, CREATED);
BURST(nested, NESTED, CREATED);
BURST(uring, URING, CREATED);
BURST(mapped_read, READ, MAPPED);
BURST(mapped_level, LEVEL, MAPPED);
BURST(mapped_edge, EDGE, MAPPED);
BURST(memory_read, READ, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_read_by_call, READ, MAPPED, IN_MEMORY);
BURST(memory_timed_read, TIMED_READ, MAPPED, IN_MEMORY);
BURST(memory_poll, POLL, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_level, LEVEL, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_level_by_call, LEVEL, MAPPED, IN_MEMORY);
BURST(memory_edge, EDGE, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_edge_by_call, EDGE, MAPPED, IN_MEMORY);
BURST(memory_edge_polled, EDGE, MAPPED, IN_MEMORY, IN_MEMORY, true);
BURST(memory_exclusive, EXCLUSIVE, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_ring, RING, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_ring_polled, RING, MAPPED, IN_MEMORY, IN_MEMORY, true);
BURST(memory_nested, NESTED, MAPPED, IN_MEMORY, IN_MEMORY);
BURST(memory_nested_polled, NESTED, MAPPED, IN_MEMORY, IN_MEMORY, true);
BURST(memory_uring, URING, MAPPED, IN_MEMORY, IN_MEMORY);

FIXTURE_SETUP(burst)
{
	ASSERT_EQ(0, flow_open(&self->f, variant->origin, variant->writes));
}

FIXTURE_TEARDOWN(burst)
{
	flow_close(&self->f);
}

/**
 * struct reader - a thread that takes everything
 * @f: its view of the counter
 * @way: how it waits
 * @w: the same; of NESTED, the inner epoll
 * @outer: of NESTED, edge-triggered
 * @stop: it ends after the next wakeup
 * @taken: sum
 */
struct reader {
	struct flow f;
	int way;
	struct waiter w;
	int outer;
	struct io_uring uring;
	pthread_t thread;
	bool stop;
	__u64 taken;
};

static void reader_submit(struct reader *r)
{
	int submitted;

	io_uring_prep_poll_multishot(io_uring_get_sqe(&r->uring), r->f.fd, POLLIN);
	submitted = io_uring_submit(&r->uring);
	/* Ends the test: without a reader, the writer would wait for ever. */
	if (submitted != 1)
		error(1, -submitted, "io_uring_submit: %d", submitted);
}

/* Returns 0 or a negative errno. */
static int reader_open(struct reader *r)
{
	enum way way = r->way < WAYS ? r->way : r->way == NESTED ? LEVEL : POLL;
	int err = waiter_open(&r->w, &r->f, way);

	if (err || r->way != NESTED)
		return err;
	r->outer = epoll_on(r->w.ep, EPOLLIN | EPOLLET);
	return r->outer < 0 ? -errno : 0;
}

static void reader_wait_uring(struct reader *r)
{
	struct io_uring_cqe *cqe;
	bool more = true;
	int err = io_uring_wait_cqe(&r->uring, &cqe);

	if (err == -EINTR)
		return;
	if (err)
		error(1, -err, "io_uring_wait_cqe");
	do {
		if (cqe->res < 0)
			error(1, -cqe->res, "the poll of io_uring");
		more &= !!(cqe->flags & IORING_CQE_F_MORE);
		io_uring_cqe_seen(&r->uring, cqe);
	} while (!io_uring_peek_cqe(&r->uring, &cqe));
	if (!more)
		reader_submit(r);
}

/* Sleeps until there may be a count, and returns what it takes then; 0: nothing. */
static __u64 reader_take(struct reader *r)
{
	struct epoll_event event;
	__u64 value;

	switch (r->way) {
	case NESTED:
		epoll_wait(r->outer, &event, 1, -1);
		epoll_wait(r->w.ep, &event, 1, 0);
		return got(&r->f);
	case URING:
		reader_wait_uring(r);
		return got(&r->f);
	default:
		return waiter_take(&r->w, &value) == 8 ? value : 0;
	}
}

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	/* A read by a call sleeps until there is more; an edge is for all that is there. */
	bool goes_on = r->f.in_memory || !waiter_takes(&r->w);
	unsigned int seed = 7;
	__u64 value;

	/* Not the thread that writes: io_uring interrupts the one that submits. */
	if (r->way == URING)
		reader_submit(r);
	while (!__atomic_load_n(&r->stop, __ATOMIC_SEQ_CST)) {
		value = reader_take(r);
		while (value) {
			__atomic_add_fetch(&r->taken, value, __ATOMIC_SEQ_CST);
			value = goes_on ? got(&r->f) : 0;
		}
		if (rand_r(&seed) % 2)
			spin_ns(rand_r(&seed) % 20000);
	}
	return NULL;
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

/* Any setting that suits the counter; a maximum admits each value of a burst. */
static struct flowfd_flow random_flow(enum origin origin, unsigned int *seed)
{
	static const __u32 rates[] = { 2000, 20000, 1000000, FLOWFD_TOKEN_RATE_MAX };
	struct flowfd_flow flow = { 0 };

	if (rand_r(seed) % 2)
		flow.maximum = 5 + rand_r(seed) % 12;
	if (origin != MAPPED) {
		if (rand_r(seed) % 4)
			flow.read_mark = rand_r(seed) % (flow.maximum ?: 12);
		if (rand_r(seed) % 2)
			flow.write_mark = rand_r(seed) % (flow.maximum ?: 12);
		if (rand_r(seed) % 2)
			flow.max_delay = 1ULL << rand_r(seed) % 21;
	}
	if (rand_r(seed) % 2)
		flow.qos = (struct eventfd_qos){ 1 + rand_r(seed) % 3,
						 rates[rand_r(seed) % ARRAY_SIZE(rates)] };
	flow.overflow = rand_r(seed) % 4;
	return flow;
}

/* Returns 0 or a negative errno. */
static long write_somehow(struct flow *f, __u64 value, unsigned int *seed)
{
	long result;

	switch (rand_r(seed) % 8) {
	case 0:
		return write_with(f->fd, value, FLOW_TIMEOUT, 0);
	case 1:
		return write_with(f->fd, value, 0, FLOWFD_NONBLOCK);
	case 2:
		return write_with(f->fd, value, 0, FLOWFD_URGENT);
	case 3:
		result = add(f->fd, value);
		break;
	default:
		result = put(f, value);
	}
	return result < 0 ? result : 0;
}

static void pause_somehow(unsigned int *seed)
{
	switch (rand_r(seed) % 6) {
	case 0:
		spin_ns(rand_r(seed) % 50000);
		break;
	case 1:
		sched_yield();
		break;
	}
}

/* Adds the sum that it wrote; false: a write failed, or was not told of room. */
static bool write_burst(struct flow *f, __u64 *written, unsigned int *seed)
{
	for (int n = rand_r(seed) % 6; n >= 0; n--) {
		__u64 value = 1 + rand_r(seed) % 4;
		long err;

		while ((err = write_somehow(f, value, seed)) == -EAGAIN)
			if (!(poll_for(f->fd, POLLOUT, PATIENCE_MS) & POLLOUT))
				return false;
		if (err)
			return false;
		*written += value;
		pause_somehow(seed);
	}
	return true;
}

/* Makes the counter ready whatever its mark, if no delay does. False: it cannot. */
static bool flush(struct flow *f, struct flowfd_flow *flow, __u64 *written,
		  unsigned int *seed)
{
	/* It would make up for a wakeup that is lost. */
	if (flow->read_mark <= 1)
		return true;
	if (flow->max_delay && rand_r(seed) % 4)
		return true;
	if (rand_r(seed) % 2) {
		*flow = (struct flowfd_flow){ 0 };
		return !set_flow(f->fd, *flow);
	}
	/* A policy may lose it, and with it its urgency; but then it makes ready as well. */
	while (add_urgent(f->fd, 1) == -EAGAIN)
		if (!(poll_for(f->fd, POLLOUT, PATIENCE_MS) & POLLOUT))
			return false;
	*written += 1;
	return true;
}

/* From the last write to the wakeup. */
static __u64 longest_wait(const struct flowfd_flow *flow)
{
	__u64 token = flow->qos.token_rate ? 1000 * MSEC / flow->qos.token_rate : 0;

	return flow->max_delay + token;
}

/* Not limited in time: a large number of rounds is limited by its caller. */
TEST_F_TIMEOUT(burst, nothing_is_lost, 24 * 3600)
{
	unsigned long rounds = parameter("FLOWFD_ROUNDS", 2000), slow = 0;
	struct reader r = { .f = self->f, .way = variant->way };
	struct onlooker onlooker = { .fd = self->f.fd };
	struct flowfd_flow flow = { 0 };
	unsigned int seed = 1;
	__u64 written = 0, start, late;

	r.f.in_memory = variant->reads == IN_MEMORY;
	if (r.way == URING && io_uring_queue_init(64, &r.uring, 0))
		SKIP(return, "io_uring is not available here");
	ASSERT_EQ(0, reader_open(&r));
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader_run, &r));
	if (variant->polled) {
		ASSERT_EQ(0, pthread_create(&onlooker.thread, NULL, onlooker_run,
					    &onlooker));
	}
	for (unsigned long i = 0; i < rounds; i++) {
		if (i % 16 == 0 || rand_r(&seed) % 16 == 0) {
			flow = variant->flow.maximum ? variant->flow :
				random_flow(variant->origin, &seed);
			ASSERT_EQ(0, set_flow(self->f.fd, flow));
		}
		ASSERT_TRUE(write_burst(&self->f, &written, &seed));
		ASSERT_TRUE(flush(&self->f, &flow, &written, &seed));
		start = now_ns();
		ASSERT_TRUE(wait_until_sum(&r.taken, written - lost_of(self->f.fd)))
			TH_LOG("round %lu: reader has %llu of %llu, %llu lost, count %llu, armed %u, mark %llu, delay %llu, rate %u, maximum %llu",
			       i, r.taken, written, lost_of(self->f.fd),
			       count_of(self->f.fd),
			       self->f.in_memory ? mapped_armed(&self->f.m) : 0,
			       flow.read_mark, flow.max_delay,
			       flow.qos.token_rate, flow.maximum);
		late = now_ns() - start;
		slow += late > longest_wait(&flow) + USUAL_SLACK;
		EXPECT_GT(longest_wait(&flow) + SLACK, late)
			TH_LOG("round %lu: %llu us after the last write", i, late / 1000);
	}
	EXPECT_GT(rounds / 4 + 5, slow);
	ASSERT_EQ(0, SET_FLOW(self->f.fd, 0));
	__atomic_store_n(&r.stop, true, __ATOMIC_SEQ_CST);
	ASSERT_EQ(8, put(&self->f, 4));
	pthread_join(r.thread, NULL);
	if (variant->polled) {
		__atomic_store_n(&onlooker.stop, true, __ATOMIC_RELEASE);
		pthread_join(onlooker.thread, NULL);
	}
	EXPECT_EQ(written + 4, r.taken + lost_of(self->f.fd) + count_of(self->f.fd));
}

TEST_HARNESS_MAIN
