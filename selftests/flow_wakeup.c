// SPDX-License-Identifier: GPL-2.0-only
/*
 * No wakeup is lost in random bursts, whatever the settings: marks, delay, bucket, policy
 * for overflow, urgent or not, by calls or in memory, for each way of waiting. And each
 * comes in time.
 *
 * FLOWFD_ROUNDS sets the number of bursts.
 */
#include "fixtures.h"
#include "flow_sleeper.h"

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
	enum way way;
	enum origin origin;
	enum access writes, reads;
};

FIXTURE_VARIANT_ADD(burst, read) { READ, CREATED };
FIXTURE_VARIANT_ADD(burst, timed_read) { TIMED_READ, CREATED };
FIXTURE_VARIANT_ADD(burst, poll) { POLL, CREATED };
FIXTURE_VARIANT_ADD(burst, level) { LEVEL, CREATED };
FIXTURE_VARIANT_ADD(burst, edge) { EDGE, CREATED };
FIXTURE_VARIANT_ADD(burst, exclusive) { EXCLUSIVE, CREATED };
FIXTURE_VARIANT_ADD(burst, ring) { RING, CREATED };
FIXTURE_VARIANT_ADD(burst, mapped_read) { READ, MAPPED };
FIXTURE_VARIANT_ADD(burst, mapped_level) { LEVEL, MAPPED };
FIXTURE_VARIANT_ADD(burst, mapped_edge) { EDGE, MAPPED };
FIXTURE_VARIANT_ADD(burst, memory_read) { READ, MAPPED, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_timed_read) { TIMED_READ, MAPPED, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_poll) { POLL, MAPPED, IN_MEMORY, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_level) { LEVEL, MAPPED, IN_MEMORY, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_level_by_call) { LEVEL, MAPPED, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_edge) { EDGE, MAPPED, IN_MEMORY, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_edge_by_call) { EDGE, MAPPED, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_exclusive) { EXCLUSIVE, MAPPED, IN_MEMORY, IN_MEMORY };
FIXTURE_VARIANT_ADD(burst, memory_ring) { RING, MAPPED, IN_MEMORY, IN_MEMORY };

FIXTURE_SETUP(burst)
{
	struct flowfd_create_counter args = {
		.flags = variant->origin == MAPPED ? FLOWFD_MAPPED : 0,
	};

	self->f.fd = create_counter(&args);
	ASSERT_LE(0, self->f.fd);
	self->f.in_memory = variant->writes == IN_MEMORY;
	if (self->f.in_memory) {
		ASSERT_EQ(0, mapped_map(&self->f.m, self->f.fd));
	}
}

FIXTURE_TEARDOWN(burst)
{
	flow_close(&self->f);
}

/**
 * struct reader - a thread that takes everything
 * @f: its view of the counter
 * @w: how it waits
 * @stop: it ends after the next wakeup
 * @taken: sum
 */
struct reader {
	struct flow f;
	struct waiter w;
	pthread_t thread;
	bool stop;
	__u64 taken;
};

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	unsigned int seed = 7;
	__u64 value;

	while (!__atomic_load_n(&r->stop, __ATOMIC_SEQ_CST)) {
		waiter_take(&r->w, &value);
		/* An edge is for all that is there. */
		while (value) {
			__atomic_add_fetch(&r->taken, value, __ATOMIC_SEQ_CST);
			value = waiter_takes(&r->w) ? 0 : got(&r->f);
		}
		if (rand_r(&seed) % 2)
			spin_ns(rand_r(&seed) % 20000);
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

/* Adds the sum that it wrote; false: a write failed for another reason than room. */
static bool write_burst(struct flow *f, __u64 *written, unsigned int *seed)
{
	for (int n = rand_r(seed) % 6; n >= 0; n--) {
		__u64 value = 1 + rand_r(seed) % 4;
		long err;

		while ((err = write_somehow(f, value, seed)) == -EAGAIN)
			poll_for(f->fd, POLLOUT, PATIENCE_MS);
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
	if (flow->max_delay && rand_r(seed) % 4)
		return true;
	if (rand_r(seed) % 2) {
		*flow = (struct flowfd_flow){ 0 };
		return !set_flow(f->fd, *flow);
	}
	/* A policy may lose it, and with it its urgency; but then it makes ready as well. */
	while (add_urgent(f->fd, 1) == -EAGAIN)
		poll_for(f->fd, POLLOUT, PATIENCE_MS);
	*written += 1;
	return true;
}

/* From the last write to the wakeup. */
static __u64 longest_wait(const struct flowfd_flow *flow)
{
	__u64 token = flow->qos.token_rate ? 1000 * MSEC / flow->qos.token_rate : 0;

	return flow->max_delay + token;
}

TEST_F_TIMEOUT(burst, nothing_is_lost, 24 * 3600)
{
	unsigned long rounds = parameter("FLOWFD_ROUNDS", 2000) / 4 + 1, slow = 0;
	struct reader r = { .f = self->f };
	struct flowfd_flow flow = { 0 };
	unsigned int seed = 1;
	__u64 written = 0, start, late;

	r.f.in_memory = variant->reads == IN_MEMORY;
	ASSERT_EQ(0, waiter_open(&r.w, &r.f, variant->way));
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader_run, &r));
	for (unsigned long i = 0; i < rounds; i++) {
		if (i % 4 == 0 || rand_r(&seed) % 8 == 0) {
			flow = random_flow(variant->origin, &seed);
			ASSERT_EQ(0, set_flow(self->f.fd, flow));
		}
		ASSERT_TRUE(write_burst(&self->f, &written, &seed));
		ASSERT_TRUE(flush(&self->f, &flow, &written, &seed));
		start = now_ns();
		ASSERT_TRUE(wait_until_sum(&r.taken, written - lost_of(self->f.fd)))
			TH_LOG("round %lu: reader has %llu of %llu, %llu lost, count %llu, mark %llu, delay %llu, rate %u, maximum %llu",
			       i, r.taken, written, lost_of(self->f.fd),
			       count_of(self->f.fd), flow.read_mark, flow.max_delay,
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
	EXPECT_EQ(written + 4, r.taken + lost_of(self->f.fd) + count_of(self->f.fd));
	waiter_close(&r.w);
}

TEST_HARNESS_MAIN
