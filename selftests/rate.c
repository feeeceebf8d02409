// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many wakeups a bucket gives over time. The upper bound is a promise and must
 * always hold. The lower bound suffers on a busy machine, more so with short intervals,
 * and cannot be judged from one run: the best of a few runs counts.
 */
#include "bucket_watch.h"

#define ATTEMPTS 4

FIXTURE(bucket)
{
	struct watched w;
};

FIXTURE_VARIANT(bucket)
{
	__u32 capacity;
	__u32 rate;
	unsigned int least;	/* % of the wakeups that this machine can do */
};

FIXTURE_VARIANT_ADD(bucket, capacity_1_rate_100) { 1, 100, 70 };
FIXTURE_VARIANT_ADD(bucket, capacity_2_rate_1000) { 2, 1000, 10 };
FIXTURE_VARIANT_ADD(bucket, capacity_10_rate_200) { 10, 200, 50 };

FIXTURE_SETUP(bucket)
{
	ASSERT_TRUE(watched_open(&self->w, variant->capacity, variant->rate,
				 EPOLLIN));
}

FIXTURE_TEARDOWN(bucket)
{
	watched_close(&self->w);
}

struct writer {
	pthread_t thread;
	int fd;
	bool stop;
};

static void *write_flat_out(void *arg)
{
	struct writer *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED))
		add(w->fd, 1);
	return NULL;
}

/* Counts wakeups for *@ns, and stores how long it really took. */
static unsigned long count_edges(struct watched *w, __u64 *ns)
{
	__u64 start = now_ns(), elapsed;
	unsigned long edges = 0;

	do {
		edges += epoll_take(w->ep, 10) != 0;
		elapsed = now_ns() - start;
	} while (elapsed < *ns);
	*ns = elapsed;
	return edges;
}

/*
 * How often a thread that sleeps for the interval of a token runs in that time: on a
 * busy or emulated machine less often than requested.
 */
static unsigned long count_sleeps(__u64 interval, __u64 ns)
{
	__u64 end = now_ns() + ns;
	unsigned long sleeps = 0;

	while (now_ns() < end) {
		sleep_until_ns(now_ns() + interval);
		sleeps++;
	}
	return sleeps;
}

TEST_F(bucket, rate_holds_under_a_flat_out_writer)
{
	unsigned long edges = 0, enough = 0;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		__u64 elapsed = parameter("FLOWFD_RATE_MS", 600) * 1000000ULL;
		struct writer writer = { .fd = self->w.fd };
		unsigned long possible;

		ASSERT_EQ(0, set_qos(self->w.fd, variant->capacity,
				     variant->rate));
		while (epoll_take(self->w.ep, 0))
			;
		ASSERT_EQ(0, pthread_create(&writer.thread, NULL,
					    write_flat_out, &writer));
		edges = count_edges(&self->w, &elapsed);
		possible = count_sleeps(NSEC_PER_SEC / variant->rate, elapsed);
		__atomic_store_n(&writer.stop, true, __ATOMIC_RELAXED);
		pthread_join(writer.thread, NULL);

		EXPECT_GE(elapsed * variant->rate / NSEC_PER_SEC +
				  variant->capacity + 1,
			  edges);
		enough = possible * variant->least / 100;
		if (edges >= enough)
			break;
	}
	EXPECT_LE(enough, edges);
}

/* The wakeups of an ideal bucket for writes at these times. */
static unsigned int perfect_wakeups(const __u64 *written, unsigned int writes,
				    __u64 interval, __u64 until)
{
	__u64 next = written[0], due = 0;
	unsigned int wakeups = 0;

	for (unsigned int i = 0; i <= writes; i++) {
		__u64 now = i < writes ? written[i] : until;

		if (due && due <= now) {
			wakeups++;
			next = due + interval;
			due = 0;
		}
		if (i == writes || due)
			continue;
		if (next > now) {
			due = next;
			continue;
		}
		wakeups++;
		next = now + interval;
	}
	return wakeups;
}

/*
 * A writer that is a little faster than the tokens arrive. Credit for part of a token
 * must be kept, or every other token is lost.
 */
TEST(steady_writer_earns_its_tokens)
{
	enum { WRITES = 70, INTERVAL = 20000000, PERIOD = 18000000 };
	unsigned int edges = 0, perfect = 0;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		__u64 written[WRITES], next, end;
		struct watched w;

		ASSERT_TRUE(watched_open(&w, 1, NSEC_PER_SEC / INTERVAL,
					 EPOLLIN));
		edges = 0;
		next = now_ns();
		for (int i = 0; i < WRITES; i++) {
			written[i] = now_ns();
			ASSERT_EQ(8, add(w.fd, 1));
			next += PERIOD;
			do {
				edges += epoll_take(w.ep, 1) != 0;
			} while (now_ns() < next);
		}
		end = now_ns();
		watched_close(&w);

		perfect = perfect_wakeups(written, WRITES, INTERVAL, end);
		EXPECT_GE((end - written[0]) / INTERVAL + 2, edges);
		if (edges >= perfect * 8 / 10)
			break;
	}
	EXPECT_LE(perfect * 8 / 10, edges);
}

/* An idle bucket fills up to its capacity. */
TEST(idle_bucket_fills_up)
{
	enum { CAPACITY = 3, RATE = 20 };
	unsigned int edges = 0;
	bool quick = false;
	struct watched w;
	__u64 value, start;

	ASSERT_TRUE(watched_open(&w, CAPACITY, RATE, EPOLLIN));
	for (int attempt = 0; attempt < 5 && !quick; attempt++) {
		edges_of_writes(&w, CAPACITY + 1);
		ASSERT_EQ(8, take(w.fd, &value));
		sleep_ms(10 * 1000 / RATE);
		while (epoll_take(w.ep, 0))
			;
		start = now_ns();
		edges = edges_of_writes(&w, CAPACITY + 7);
		quick = now_ns() - start < NSEC_PER_SEC / RATE;
		/* Let the deferred wakeup arrive. */
		sleep_ms(2 * 1000 / RATE);
	}
	ASSERT_TRUE(quick);
	EXPECT_EQ(CAPACITY, edges);
	watched_close(&w);
}

/*
 * Idle for less time than it takes to fill the bucket: as many tokens as time passed.
 */
TEST(idle_bucket_fills_in_part)
{
	enum { CAPACITY = 50, RATE = 20, IDLE_MS = 500 };
	unsigned int edges;
	struct watched w;
	__u64 value, start, elapsed;

	ASSERT_TRUE(watched_open(&w, CAPACITY, RATE, EPOLLIN));
	start = now_ns();
	edges = edges_of_writes(&w, CAPACITY);
	EXPECT_EQ(CAPACITY, edges);
	ASSERT_EQ(8, take(w.fd, &value));
	sleep_ms(IDLE_MS);
	edges = edges_of_writes(&w, 2 * CAPACITY);
	elapsed = now_ns() - start;
	EXPECT_LE(IDLE_MS * RATE / 1000, edges);
	EXPECT_GE(elapsed * RATE / NSEC_PER_SEC + 1, edges);
	watched_close(&w);
}

TEST_HARNESS_MAIN
