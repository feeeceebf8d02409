/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * No wakeup is lost. A writer makes random bursts on a counter with a random bucket,
 * and after each burst waits until the reader has taken everything. If the reader's
 * wakeup is lost it sleeps for ever, as nothing else would wake it.
 */
#ifndef BURST_H
#define BURST_H

#include "bucket_watch.h"

/* The value that ends the test; it fits below any maximum used here. */
#define BURST_LAST 4

/**
 * struct burst - a counter, its reader, and how both sides use it
 * @fd: the counter; non-blocking, unless @take_sleeps
 * @take_sleeps: there is nothing to wait for before a take
 * @stop: the reader ends after the next value
 * @taken: sum
 * @armed: of a mapped counter, for messages; or NULL
 * @wait: sleeps until there may be a count
 * @take: false: there is no count
 * @add: true: @value was added
 */
struct burst {
	int fd;
	bool take_sleeps;
	pthread_t thread;
	bool stop;
	__u64 taken;
	const __u32 *armed;
	void (*wait)(struct burst *b);
	bool (*take)(struct burst *b, __u64 *value);
	bool (*add)(struct burst *b, __u64 value, unsigned int *seed);
};

static inline void *burst_reader_run(void *arg)
{
	struct burst *b = arg;
	unsigned int seed = 7;
	__u64 value;

	while (!__atomic_load_n(&b->stop, __ATOMIC_SEQ_CST)) {
		b->wait(b);
		while (b->take(b, &value)) {
			__atomic_add_fetch(&b->taken, value, __ATOMIC_SEQ_CST);
			if (b->take_sleeps &&
			    __atomic_load_n(&b->stop, __ATOMIC_SEQ_CST))
				break;
		}
		if (rand_r(&seed) % 2)
			spin_ns(rand_r(&seed) % 20000);
	}
	return NULL;
}

/* Intervals of tokens from a nanosecond to half a millisecond, and no limit. */
static inline void random_bucket(int fd, unsigned int *seed)
{
	static const __u32 rates[] = { 0, 2000, 5000, 20000, 100000, 1000000,
				       FLOWFD_TOKEN_RATE_MAX };

	set_qos(fd, 1 + rand_r(seed) % 3, rates[rand_r(seed) % ARRAY_SIZE(rates)]);
}

/* Returns the sum that it added. */
static inline __u64 burst_once(struct burst *b, unsigned int *seed)
{
	__u64 written = 0;

	for (int n = rand_r(seed) % 5; n >= 0; n--) {
		__u64 value = 1 + rand_r(seed) % 3;

		/* Fails if it is non-blocking and there is too little room. */
		while (!b->add(b, value, seed))
			poll_for(b->fd, POLLOUT, PATIENCE_MS);
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

static inline void burst_run(struct __test_metadata *_metadata, struct burst *b,
			     bool limited)
{
	unsigned long rounds = parameter("FLOWFD_ROUNDS", 2000);
	unsigned int seed = 1;
	__u64 written = 0;

	ASSERT_EQ(0, pthread_create(&b->thread, NULL, burst_reader_run, b));
	for (unsigned long i = 0; i < rounds; i++) {
		if (limited && i % 16 == 0)
			random_bucket(b->fd, &seed);
		written += burst_once(b, &seed);
		ASSERT_TRUE(wait_until_sum(&b->taken, written))
			TH_LOG("round %lu: reader has %llu of %llu, armed %u", i,
			       b->taken, written, b->armed ? *b->armed : 0);
	}
	if (limited) {
		ASSERT_EQ(0, set_qos(b->fd, 0, 0));
	}
	__atomic_store_n(&b->stop, true, __ATOMIC_SEQ_CST);
	ASSERT_TRUE(b->add(b, BURST_LAST, &seed));
	pthread_join(b->thread, NULL);
	EXPECT_EQ(written + BURST_LAST, b->taken + count_of(b->fd));
}

#endif /* BURST_H */
