// SPDX-License-Identifier: GPL-2.0-only
/* Bridges left alone: how much they move without a program, and where. */
#include <sys/resource.h>

#include "bridge_fixture.h"
#include "flow_user.h"
#include "tracefs.h"

/* It would take years, and nobody needs to be there. */
TEST_F(bridge, source_that_is_a_huge_semaphore)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	__u64 moved;

	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, ULLONG_MAX - 2));
	sleep_ms(1000);
	moved = count_of(self->fd);
	EXPECT_LT(64, moved);
	/* Each rest is twice as long as the one before, and there are 1000 ticks at most. */
	EXPECT_GT(12 * 1024, moved);
	/* A signal makes it begin anew, once. */
	EXPECT_EQ(8, add(in, 1));
	sleep_ms(1000);
	EXPECT_LT(moved + 2 * 1024, count_of(self->fd));
	EXPECT_GT(moved + 12 * 1024, count_of(self->fd));
	close(in);
	EXPECT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
}

/* Counters, each with a sink to the eventfd after it, which is the source of the next. */
struct chain {
	unsigned int stages;
	int fds[64], eventfds[65];
};

static struct chain chain_open(unsigned int stages)
{
	struct chain c = { .stages = stages };

	for (unsigned int i = 0; i < stages; i++) {
		c.fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		c.eventfds[i] = new_eventfd();
	}
	c.eventfds[stages] = new_eventfd();
	return c;
}

static void chain_close(struct chain *c)
{
	for (unsigned int i = 0; i < c->stages; i++) {
		close(c->fds[i]);
		close(c->eventfds[i]);
	}
	close(c->eventfds[c->stages]);
}

/* By how much a number of a counter grows, after it was left alone for a time. */
static __u64 growth(int fd, const char *name, unsigned int alone_ms, unsigned int ms)
{
	__u64 before;

	sleep_ms(alone_ms);
	before = fdinfo_number(fd, name, 10);
	sleep_ms(ms);
	return fdinfo_number(fd, name, 10) - before;
}

#define STAGES 8

/*
 * Each signals the next, and none needs a program. Every other one passes on 1 at a time,
 * so that each of many makes a signal. The last must not be faster than the first.
 */
TEST(chain_of_sources_left_alone)
{
	struct chain c = chain_open(STAGES);
	__u64 passed_on;

	for (int i = 0; i <= STAGES; i += 2) {
		close(c.eventfds[i]);
		c.eventfds[i] = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
		ASSERT_EQ(8, add(c.eventfds[i], 1ULL << 62));
	}
	for (int i = 0; i < STAGES; i++) {
		if (i % 2)
			ASSERT_EQ(0, set_maximum(c.fds[i], 2));
		ASSERT_EQ(0, source(c.fds[i], c.eventfds[i]));
		ASSERT_EQ(0, sink(c.fds[i], c.eventfds[i + 1]));
	}
	/* All of them rest before. */
	passed_on = growth(c.fds[STAGES - 2], "flowfd-produced", 6000, 3000);
	EXPECT_GT(100, passed_on);
	EXPECT_LT(0, fdinfo_number(c.fds[STAGES - 2], "flowfd-produced", 10));
	chain_close(&c);
}

/*
 * Up to 6.7 a signal adds the whole count. The first still passes on 3200 in each second
 * when it rests, and the second is not left behind for the next, nor the third, as the
 * tokens are slow. Each signal of the second could be worth 64 of the third.
 */
TEST(chain_of_large_counts_left_alone)
{
	static const __u64 maxima[] = { 3201, 65, 2 };
	struct chain c = chain_open(3);
	__u64 count;

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, set_maximum(c.fds[i], maxima[i]));
		ASSERT_EQ(0, sink(c.fds[i], c.eventfds[i + 1]));
	}
	ASSERT_EQ(0, set_qos(c.fds[1], 1, 60));
	ASSERT_EQ(0, source(c.fds[2], c.eventfds[2]));
	ASSERT_EQ(8, add(c.eventfds[0], 1ULL << 62));
	ASSERT_EQ(0, source(c.fds[0], c.eventfds[0]));
	ASSERT_TRUE(source_rests(c.fds[0]));
	ASSERT_EQ(8, take(c.eventfds[1], &count));
	ASSERT_EQ(0, source(c.fds[1], c.eventfds[1]));
	EXPECT_GT(100, growth(c.fds[2], "flowfd-produced", 7000, 3000));
	EXPECT_LT(0, fdinfo_number(c.fds[2], "flowfd-produced", 10));
	chain_close(&c);
}

#define LINKS 16

/* Rests that end together must not add up: each is a signal for the next. */
TEST(long_chain_left_alone)
{
	struct chain c = chain_open(LINKS);
	__u64 passed_on;

	for (int i = 0; i < LINKS; i++)
		ASSERT_EQ(8, add(c.eventfds[i], 1ULL << 62));
	ASSERT_EQ(8, add(c.eventfds[LINKS], 1));
	for (int i = 0; i < LINKS; i++) {
		ASSERT_EQ(0, set_maximum(c.fds[i], 2));
		ASSERT_EQ(0, source(c.fds[i], c.eventfds[i]));
		ASSERT_EQ(0, sink(c.fds[i], c.eventfds[i + 1]));
	}
	passed_on = growth(c.fds[LINKS - 1], "flowfd-produced", 8000, 4000);
	EXPECT_GE(8, passed_on);
	EXPECT_LT(0, fdinfo_number(c.fds[LINKS - 1], "flowfd-produced", 10));
	chain_close(&c);
}

#define PARTS 8

/*
 * Up to 6.7: each has a little less room than the one before, and so makes two signals of
 * each one that is large, as soon as it has used its turns.
 */
TEST(chain_that_splits_left_alone)
{
	struct chain c = chain_open(PARTS);
	__u64 value, writes;

	ASSERT_EQ(8, add(c.eventfds[0], 1ULL << 62));
	for (int i = 0; i < PARTS; i++) {
		ASSERT_EQ(0, set_maximum(c.fds[i], 21 - i));
		ASSERT_EQ(0, sink(c.fds[i], c.eventfds[i + 1]));
		if (i)
			take(c.eventfds[i], &value);
		ASSERT_EQ(0, source(c.fds[i], c.eventfds[i]));
		if (!i)
			ASSERT_TRUE(source_rests(c.fds[i]));
	}
	writes = growth(c.fds[PARTS - 1], "flowfd-writes", 8000, 4000);
	EXPECT_GE(12, writes);
	EXPECT_LT(0, fdinfo_number(c.fds[PARTS - 1], "flowfd-writes", 10));
	chain_close(&c);
}

#define COSTLY 64
#define EPOLLS 1500

/* In ns: what a signal costs that wakes all who poll an eventfd. */
static __u64 cost_of_signal(int event)
{
	__u64 start = now_ns();

	for (int i = 0; i < 16; i++)
		add(event, 1);
	return (now_ns() - start) / 16;
}

static __u64 rounds_of(const struct chain *c)
{
	__u64 rounds = 0;

	for (unsigned int i = 0; i < c->stages; i++)
		rounds += fdinfo_number(c->fds[i], "flowfd-produced", 10);
	return rounds;
}

FIXTURE(costly)
{
};

FIXTURE_SETUP(costly)
{
}

FIXTURE_TEARDOWN(costly)
{
}

/*
 * Each round wakes very many epolls. However long that takes, all of the bridges together
 * must keep a kernel thread busy for a small part of the time only, when what was granted
 * has been used.
 */
TEST_F_TIMEOUT(costly, bridges_left_alone, 120)
{
	struct rlimit files = { 2 * EPOLLS, 2 * EPOLLS };
	struct epoll_event watched = { .events = EPOLLIN };
	struct chain c = chain_open(COSTLY);
	__u64 cost, start = now_ns(), until, rounds, ns;
	int epolls[EPOLLS], in;

	if (setrlimit(RLIMIT_NOFILE, &files))
		SKIP(return, "too many files");
	for (int e = 0; e < EPOLLS; e++) {
		epolls[e] = epoll_create1(EPOLL_CLOEXEC);
		for (int i = 0; i < COSTLY; i++)
			ASSERT_EQ(0, epoll_ctl(epolls[e], EPOLL_CTL_ADD, c.eventfds[i],
					       &watched));
		/* As with KASAN. */
		if (now_ns() > start + 12000000000ULL)
			SKIP(goto end, "the machine is too slow for so many");
	}
	cost = cost_of_signal(c.eventfds[0]);
	for (int i = 0; i < COSTLY; i++) {
		in = new_eventfd();
		ASSERT_EQ(8, add(in, 1ULL << 62));
		ASSERT_EQ(0, set_maximum(c.fds[i], 2));
		ASSERT_EQ(0, sink(c.fds[i], c.eventfds[i]));
		ASSERT_EQ(0, source(c.fds[i], in));
		close(in);
	}
	until = now_ns() + 60000000000ULL;
	do {
		start = now_ns();
		rounds = rounds_of(&c);
		sleep_ms(6000);
		rounds = rounds_of(&c) - rounds;
		ns = now_ns() - start;
		TH_LOG("%llu rounds of more than %llu ns", rounds, cost);
	} while (rounds * cost > ns / 40 && now_ns() < until);
	EXPECT_GE(ns / 40, rounds * cost);
	EXPECT_LT(0, rounds_of(&c));
end:
	chain_close(&c);
}

#define DELAYED 1024

static __u64 wakeups_of(const int *fds)
{
	__u64 wakeups = 0;

	for (int i = 0; i < DELAYED; i++)
		wakeups += fdinfo_number(fds[i], "flowfd-wakeups", 10);
	return wakeups;
}

/* With a sink; the delay makes the count of its source ready. */
static int open_delayed(int inner)
{
	struct epoll_event watched = { .events = EPOLLIN };
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	int fd = open_counter(CREATED, 0, EFD_NONBLOCK);

	if (SET_FLOW(fd, .maximum = 1000000, .read_mark = 100000, .write_mark = 1,
		     .max_delay = 10 * MSEC) ||
	    add(in, 1ULL << 62) != 8 || source(fd, in) || sink(fd, new_eventfd()) ||
	    epoll_ctl(inner, EPOLL_CTL_ADD, fd, &watched))
		return -1;
	close(in);
	return fd;
}

/* The same, if it is the timer of the counter that wakes very many epolls. */
TEST_F_TIMEOUT(costly, bridges_with_a_delay_left_alone, 120)
{
	struct rlimit files = { 3 * DELAYED + OUTER_EPOLLS + 100,
				3 * DELAYED + OUTER_EPOLLS + 100 };
	struct epoll_event watched = { .events = EPOLLIN };
	int event = new_eventfd(), inner;
	__u64 cost, start, until, rounds, ns;
	static int fds[DELAYED];

	if (setrlimit(RLIMIT_NOFILE, &files))
		SKIP(return, "too many files");
	inner = epoll_that_others_watch();
	ASSERT_LE(0, inner);
	ASSERT_EQ(0, epoll_ctl(inner, EPOLL_CTL_ADD, event, &watched));
	cost = cost_of_signal(event);
	for (int i = 0; i < DELAYED; i++) {
		fds[i] = open_delayed(inner);
		ASSERT_LE(0, fds[i]);
	}
	until = now_ns() + 60000000000ULL;
	do {
		start = now_ns();
		rounds = wakeups_of(fds);
		sleep_ms(6000);
		rounds = wakeups_of(fds) - rounds;
		ns = now_ns() - start;
		TH_LOG("%llu wakeups of more than %llu ns", rounds, cost);
	} while (rounds * cost > ns / 40 && now_ns() < until);
	EXPECT_GE(ns / 40, rounds * cost);
	EXPECT_LT(0, wakeups_of(fds));
}

/* Its adds tell those who wait for room that there is still some: not itself. */
TEST(source_beside_a_sleeping_writer)
{
	int fd = open_counter(MAPPED, 1ULL << 62, 0);
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	struct call call;
	__u64 before, value;

	/* Tokens tell them, too. */
	EXPECT_EQ(0, set_qos(fd, 1, 1000));
	EXPECT_EQ(8, add(in, 1ULL << 62));
	ASSERT_TRUE(start_write(&call, fd, ULLONG_MAX - (1ULL << 62)));
	ASSERT_EQ(0, source(fd, in));
	sleep_ms(3000);
	before = fdinfo_number(fd, "flowfd-produced", 10);
	sleep_ms(1000);
	EXPECT_GT(before + 2 * 1024, fdinfo_number(fd, "flowfd-produced", 10));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_TRUE(call_join(&call));
	close(fd);
	close(in);
}

static void *keep_busy(void *arg)
{
	while (run_on(1))
		pthread_testcancel();
	return NULL;
}

/*
 * From 6.9 on, a processor that is busy may look at the timers of one that idles. The rests
 * are those of a program on the first, and it sleeps meanwhile.
 */
TEST(rests_end_on_their_processor)
{
	int fd = open_counter(CREATED, 0, EFD_NONBLOCK), in = new_eventfd();
	int out = new_eventfd();
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(goto end, "it needs two processors");
	ASSERT_TRUE(run_on(0));
	if (!tracefs_begin(fd))
		SKIP(goto end, "no tracepoints");
	ASSERT_EQ(0, pthread_create(&thread, NULL, keep_busy, NULL));
	ASSERT_EQ(0, set_maximum(fd, 2));
	ASSERT_EQ(0, source(fd, in));
	ASSERT_EQ(0, sink(fd, out));
	EXPECT_EQ(8, add(in, 275));
	sleep_ms(4000);
	EXPECT_LT(256, tracefs_entries(0));
	EXPECT_EQ(0, tracefs_entries(1));
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	tracefs_end();
end:
	close(fd);
	close(in);
	close(out);
}

TEST_HARNESS_MAIN
