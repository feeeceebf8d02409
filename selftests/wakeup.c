// SPDX-License-Identifier: GPL-2.0-only
/*
 * No wakeup is lost. A writer makes random bursts on a counter with a random bucket,
 * and after each burst waits until the reader has taken everything. The reader sleeps
 * in read, poll or epoll. If its wakeup is lost it sleeps for ever, as nothing else
 * would wake it.
 *
 * FLOWFD_ROUNDS sets the number of bursts.
 */
#include "bucket_watch.h"

enum way {
	READ,
	POLL,
	EPOLL,
};

FIXTURE(race)
{
	int fd;
};

FIXTURE_VARIANT(race)
{
	enum origin origin;
	enum way way;
	__u64 maximum;
	bool limited;
};

FIXTURE_VARIANT_ADD(race, eventfd_read) { EVENTFD, READ, 0, false };
FIXTURE_VARIANT_ADD(race, eventfd_poll) { EVENTFD, POLL, 0, false };
FIXTURE_VARIANT_ADD(race, eventfd_epoll) { EVENTFD, EPOLL, 0, false };
FIXTURE_VARIANT_ADD(race, limited_read) { CREATED, READ, 0, true };
FIXTURE_VARIANT_ADD(race, limited_poll) { CREATED, POLL, 0, true };
FIXTURE_VARIANT_ADD(race, limited_epoll) { CREATED, EPOLL, 0, true };
FIXTURE_VARIANT_ADD(race, both_read) { CREATED, READ, 5, true };
FIXTURE_VARIANT_ADD(race, both_poll) { CREATED, POLL, 5, true };
FIXTURE_VARIANT_ADD(race, both_epoll) { CREATED, EPOLL, 5, true };
FIXTURE_VARIANT_ADD(race, mapped_read) { MAPPED, READ, 5, true };
FIXTURE_VARIANT_ADD(race, mapped_poll) { MAPPED, POLL, 5, true };
FIXTURE_VARIANT_ADD(race, mapped_epoll) { MAPPED, EPOLL, 5, true };

FIXTURE_SETUP(race)
{
	self->fd = open_counter(variant->origin, 0, 0);
	ASSERT_LE(0, self->fd);
	if (variant->maximum) {
		ASSERT_EQ(0, set_maximum(self->fd, variant->maximum));
	}
}

FIXTURE_TEARDOWN(race)
{
	close(self->fd);
}

/* The value that ends the test; it fits below any maximum used here. */
#define LAST 4

struct reader {
	pthread_t thread;
	int fd;
	int ep;
	enum way way;
	bool stop;
	__u64 taken;
};

static void reader_wait(struct reader *r)
{
	struct epoll_event event;
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	if (r->way == POLL)
		poll(&p, 1, -1);
	else if (r->way == EPOLL)
		epoll_wait(r->ep, &event, 1, -1);
}

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	unsigned int seed = 7;
	__u64 value;

	while (!__atomic_load_n(&r->stop, __ATOMIC_SEQ_CST)) {
		reader_wait(r);
		while (take(r->fd, &value) == 8) {
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

/* Intervals of tokens from a nanosecond to half a millisecond, and no limit. */
static void random_bucket(int fd, unsigned int *seed)
{
	static const __u32 rates[] = { 0, 2000, 5000, 20000, 100000, 1000000,
				       FLOWFD_TOKEN_RATE_MAX };

	set_qos(fd, 1 + rand_r(seed) % 3,
		rates[rand_r(seed) % ARRAY_SIZE(rates)]);
}

/* Returns the sum that it wrote. */
static __u64 random_burst(int fd, unsigned int *seed)
{
	__u64 written = 0;

	for (int n = rand_r(seed) % 5; n >= 0; n--) {
		__u64 value = 1 + rand_r(seed) % 3;

		/* Fails if it is non-blocking and there is too little room. */
		while (add(fd, value) != 8)
			poll_for(fd, POLLOUT, PATIENCE_MS);
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
TEST_F_TIMEOUT(race, nothing_is_lost, 24 * 3600)
{
	unsigned long rounds = parameter("FLOWFD_ROUNDS", 2000);
	struct reader r = { .fd = self->fd, .way = variant->way };
	unsigned int seed = 1;
	__u64 written = 0;

	set_nonblock(self->fd, variant->way != READ);
	r.ep = epoll_on(self->fd, EPOLLIN | EPOLLET);
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, reader_run, &r));
	for (unsigned long i = 0; i < rounds; i++) {
		if (variant->limited && i % 16 == 0)
			random_bucket(self->fd, &seed);
		written += random_burst(self->fd, &seed);
		ASSERT_TRUE(reader_has(&r, written))
			TH_LOG("round %lu: reader has %llu of %llu", i,
			       r.taken, written);
	}
	if (variant->limited) {
		ASSERT_EQ(0, set_qos(self->fd, 0, 0));
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_SEQ_CST);
	ASSERT_EQ(8, add(self->fd, LAST));
	pthread_join(r.thread, NULL);
	EXPECT_EQ(written + LAST, r.taken + count_of(self->fd));
	close(r.ep);
}

TEST_HARNESS_MAIN
