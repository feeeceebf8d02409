// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is counted of a counter: each number exactly, by request and in fdinfo, on each
 * kind of counter, by calls and in memory; and the errors of the request.
 */
#include <stddef.h>
#include <sys/uio.h>

#include "fixtures.h"
#include "bridge_user.h"
#include "flow_user.h"
#include "ring_user.h"
#include "stats_user.h"

static bool stats_become(int fd, size_t offset, __u64 value)
{
	__u64 until = ms_from_now(PATIENCE_MS);
	struct flowfd_counter_stats stats;

	do {
		stats = stats_of(fd);
		if (*(__u64 *)((char *)&stats + offset) == value)
			return true;
		sleep_ms(1);
	} while (now_ns() < until);
	return false;
}

#define STATS_BECOME(fd, member, value) \
	stats_become(fd, offsetof(struct flowfd_counter_stats, member), value)

TEST_F(flowfd, writes_and_reads)
{
	__u64 value;

	EXPECT_EQ(8, add(self->fd, 3));
	EXPECT_STATS(self->fd, .produced = 3, .writes = 1, .highest = 3);
	EXPECT_EQ(8, add(self->fd, 4));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(8, add(self->fd, 0));
	EXPECT_EQ(8, add(self->fd, 2));
	EXPECT_STATS(self->fd, .produced = 9, .writes = 4, .reads = 1, .highest = 7);
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(8, add(self->fd, 8));
	EXPECT_STATS(self->fd, .produced = 17, .writes = 5, .reads = 2, .highest = 8);
}

/* The ioctls, and calls with several segments, go other ways. */
TEST_F(flowfd, other_calls)
{
	__u64 values[2] = { 5, 6 }, value;
	struct iovec parts[2] = { { &values[0], 8 }, { &values[1], 8 } };

	EXPECT_EQ(0, write_with(self->fd, 2, 0, FLOWFD_URGENT));
	EXPECT_EQ(0, write_with(self->fd, 1, 0, FLOWFD_NONBLOCK));
	EXPECT_EQ(16, result_of(writev(self->fd, parts, 2)));
	EXPECT_EQ(0, read_with(self->fd, &value, 0, 0));
	EXPECT_STATS(self->fd, .produced = 14, .writes = 4, .reads = 1, .highest = 14);
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, result_of(readv(self->fd, parts, 1)));
	EXPECT_STATS(self->fd, .produced = 15, .writes = 5, .reads = 2, .highest = 14);
}

/* An initial count was added, by no write. */
TEST(initial)
{
	struct flowfd_create_counter args = { .initial = 7 };
	__u64 value;
	int fd;

	for (int i = 0; i < 3; i++) {
		args.flags = i == 1 ? FLOWFD_MAPPED : 0;
		fd = i == 2 ? setup_counter(&args) : create_counter(&args);
		ASSERT_LE(0, fd);
		EXPECT_STATS(fd, .produced = 7, .highest = 7);
		EXPECT_EQ(8, take(fd, &value));
		EXPECT_STATS(fd, .produced = 7, .reads = 1, .highest = 7);
		close(fd);
	}
}

TEST(semaphore)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE | EFD_NONBLOCK);
	__u64 value;

	EXPECT_EQ(8, add(fd, 2));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(8, add(fd, 3));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(0, read_with(fd, &value, 0, 0));
	EXPECT_STATS(fd, .produced = 5, .writes = 2, .reads = 3, .highest = 4);
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(-EAGAIN, take(fd, &value));
	EXPECT_STATS(fd, .produced = 5, .writes = 2, .reads = 5, .highest = 4, .again = 1);
	close(fd);
}

TEST_F(flowfd, again)
{
	__u64 value;

	EXPECT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(-EAGAIN, take_now(self->fd, &value));
	EXPECT_STATS(self->fd, .again = 1);
	EXPECT_EQ(8, add(self->fd, 4));
	EXPECT_EQ(-EAGAIN, write_with(self->fd, 1, 0, FLOWFD_NONBLOCK));
	set_nonblock(self->fd, true);
	EXPECT_EQ(-EAGAIN, add(self->fd, 3));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(-EAGAIN, take(self->fd, &value));
	EXPECT_STATS(self->fd, .produced = 4, .writes = 1, .reads = 1, .again = 4,
		     .highest = 4);
	set_nonblock(self->fd, false);
	EXPECT_EQ(0, SET_FLOW(self->fd, .maximum = 5, .overflow = FLOWFD_OVERFLOW_FAIL));
	EXPECT_EQ(8, add(self->fd, 4));
	EXPECT_EQ(-EAGAIN, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 8, .writes = 2, .reads = 1, .again = 5,
		     .highest = 4);
}

/* A read that cannot store what is there takes nothing. */
TEST_F(flowfd, failed_calls)
{
	char *page = page_before_a_hole();
	void *bad = page + PAGE - 4;
	__u64 value;

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(-EINVAL, add(self->fd, 10));
	EXPECT_EQ(-EINVAL, add(self->fd, ULLONG_MAX));
	EXPECT_EQ(-EFAULT, result_of(write(self->fd, bad, 8)));
	EXPECT_EQ(-EINVAL, result_of(write(self->fd, &value, 7)));
	/* A reader that sleeps is no writer that waits for room. */
	EXPECT_EQ(-ETIMEDOUT, read_with(self->fd, &value, MSEC, 0));
	EXPECT_STATS(self->fd, 0);
	EXPECT_EQ(0, stats_of(self->fd).wait_ns);
	EXPECT_EQ(8, add(self->fd, 6));
	EXPECT_EQ(-EFAULT, result_of(read(self->fd, bad, 8)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(self->fd, FLOWFD_IOC_COUNTER_READ, NULL)));
	EXPECT_STATS(self->fd, .produced = 6, .writes = 1, .highest = 6);
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(6, value);
	EXPECT_STATS(self->fd, .produced = 6, .writes = 1, .reads = 1, .highest = 6);
}

TEST_F(flowfd, wakeups_of_pollers)
{
	int ep = epoll_on(self->fd, EPOLLIN);
	__u64 value;

	ASSERT_LE(0, ep);
	EXPECT_STATS(self->fd, 0);
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 2, .writes = 2, .wakeups = 2, .highest = 2);
	/* Writers are told of a read. */
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_STATS(self->fd, .produced = 2, .writes = 2, .reads = 1, .wakeups = 2,
		     .highest = 2);
	close(ep);
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 3, .writes = 3, .reads = 1, .wakeups = 2,
		     .highest = 2);
}

/* One wakeup, whoever is woken. */
TEST_F(flowfd, wakeups_of_sleepers)
{
	struct call call;
	int ep;

	ASSERT_TRUE(start_read(&call, self->fd));
	EXPECT_STATS(self->fd, 0);
	EXPECT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(call_join(&call));
	EXPECT_STATS(self->fd, .produced = 3, .writes = 1, .reads = 1, .wakeups = 1,
		     .highest = 3);
	ep = epoll_on(self->fd, EPOLLIN);
	ASSERT_TRUE(start_read(&call, self->fd));
	EXPECT_EQ(8, add(self->fd, 2));
	ASSERT_TRUE(call_join(&call));
	EXPECT_STATS(self->fd, .produced = 5, .writes = 2, .reads = 2, .wakeups = 2,
		     .highest = 3);
	close(ep);
}

TEST(wakeups_of_a_semaphore)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);
	struct call calls[2];

	ASSERT_TRUE(start_read(&calls[0], fd));
	ASSERT_TRUE(start_read(&calls[1], fd));
	EXPECT_EQ(8, add(fd, 2));
	ASSERT_TRUE(call_join(&calls[0]));
	ASSERT_TRUE(call_join(&calls[1]));
	EXPECT_STATS(fd, .produced = 2, .writes = 1, .reads = 2, .wakeups = 1,
		     .highest = 2);
	close(fd);
}

TEST_F(flowfd, wakeups_of_rings)
{
	struct user_ring ring = { 0 };

	ASSERT_EQ(0, ring_open(&ring, 1));
	ASSERT_LE(0, ring_add(&ring, self->fd, EPOLLIN, 0));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 2, .writes = 2, .wakeups = 2, .highest = 2);
	ring_close(&ring);
}

TEST_F(marked, held_back_by_a_mark)
{
	int ep;

	EXPECT_EQ(0, SET_FLOW(self->fd, .read_mark = 4));
	/* Nobody is there to be woken. */
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 1, .writes = 1, .highest = 1);
	ep = epoll_on(self->fd, EPOLLIN);
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 3, .writes = 3, .held_back = 2, .highest = 3);
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 4, .writes = 4, .held_back = 2, .wakeups = 1,
		     .highest = 4);
	close(ep);
}

TEST_F(marked, held_back_by_a_delay)
{
	int ep = epoll_on(self->fd, EPOLLIN);

	EXPECT_EQ(0, SET_FLOW(self->fd, .read_mark = 4, .max_delay = 50 * MSEC));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(1, stats_of(self->fd).held_back);
	EXPECT_TRUE(STATS_BECOME(self->fd, wakeups, 1));
	EXPECT_STATS(self->fd, .produced = 1, .writes = 1, .held_back = 1, .wakeups = 1,
		     .highest = 1);
	close(ep);
}

TEST_F(flowfd, held_back_by_a_bucket)
{
	int ep = epoll_on(self->fd, EPOLLIN);

	EXPECT_EQ(0, set_qos(self->fd, 1, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(2, stats_of(self->fd).held_back);
	EXPECT_TRUE(STATS_BECOME(self->fd, wakeups, 2));
	EXPECT_EQ(0, set_qos(self->fd, 1, 1));
	EXPECT_EQ(8, add(self->fd, 1));
	/* An urgent one needs no token. */
	EXPECT_EQ(0, add_urgent(self->fd, 1));
	EXPECT_STATS(self->fd, .produced = 5, .writes = 5, .held_back = 2, .wakeups = 4,
		     .highest = 5);
	close(ep);
}

/* The timer of the delay finds no token. */
TEST_F(marked, held_back_by_a_delay_and_then_a_bucket)
{
	int ep = epoll_on(self->fd, EPOLLIN);
	__u64 value;

	EXPECT_EQ(0, SET_FLOW(self->fd, .read_mark = 4, .max_delay = 20 * MSEC,
			      .qos = { 1, 1 }));
	EXPECT_EQ(8, add(self->fd, 4));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(1, stats_of(self->fd).wakeups);
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(1, stats_of(self->fd).held_back);
	EXPECT_TRUE(STATS_BECOME(self->fd, held_back, 2));
	EXPECT_EQ(1, stats_of(self->fd).wakeups);
	close(ep);
}

/* Who sleeps for room is no reader. */
TEST_F(flowfd, not_held_back_from_writers)
{
	struct call calls[3];
	__u64 value;

	EXPECT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(0, set_qos(self->fd, 1, 1));
	EXPECT_EQ(8, add(self->fd, 4));
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(start_write(&calls[i], self->fd, 3));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(8, take(self->fd, &value));
		ASSERT_TRUE(call_join(&calls[i]));
	}
	EXPECT_STATS(self->fd, .produced = 13, .writes = 4, .reads = 3, .waits = 3,
		     .highest = 4);
}

/* Nor do they take a token. */
TEST_F(flowfd, no_token_for_writers)
{
	struct call calls[2];
	__u64 value;
	int ep;

	EXPECT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(0, set_qos(self->fd, 1, 1));
	EXPECT_EQ(8, add(self->fd, 4));
	for (int i = 0; i < 2; i++)
		ASSERT_TRUE(start_write(&calls[i], self->fd, 3));
	EXPECT_EQ(8, take(self->fd, &value));
	ep = epoll_on(self->fd, EPOLLIN);
	EXPECT_EQ(8, take(self->fd, &value));
	for (int i = 0; i < 2; i++)
		ASSERT_TRUE(call_join(&calls[i]));
	EXPECT_EQ(1, stats_of(self->fd).wakeups);
	close(ep);
}

/* Also while it sleeps. */
TEST_F(flowfd, waits)
{
	struct call call;
	__u64 before, after, first, value;

	EXPECT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(8, add(self->fd, 4));
	before = now_ns();
	ASSERT_TRUE(start_write(&call, self->fd, 3));
	EXPECT_STATS(self->fd, .produced = 4, .writes = 1, .waits = 1, .highest = 4);
	first = stats_of(self->fd).wait_ns;
	sleep_ms(50);
	EXPECT_LE(first + 50 * MSEC, stats_of(self->fd).wait_ns);
	EXPECT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&call));
	after = now_ns();
	EXPECT_STATS(self->fd, .produced = 7, .writes = 2, .reads = 1, .waits = 1,
		     .highest = 4);
	first = stats_of(self->fd).wait_ns;
	EXPECT_LE(50 * MSEC, first);
	EXPECT_GE(after - before, first);
	sleep_ms(10);
	EXPECT_EQ(first, stats_of(self->fd).wait_ns);
}

/* The timeout begins a little before the sleep. */
TEST_F(flowfd, waits_that_fail)
{
	__u64 before = now_ns(), first;

	EXPECT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(8, add(self->fd, 4));
	EXPECT_EQ(-ETIMEDOUT, write_with(self->fd, 3, 20 * MSEC, 0));
	EXPECT_STATS(self->fd, .produced = 4, .writes = 1, .waits = 1, .highest = 4);
	first = stats_of(self->fd).wait_ns;
	EXPECT_EQ(-ETIMEDOUT, write_with(self->fd, 3, 30 * MSEC, 0));
	EXPECT_STATS(self->fd, .produced = 4, .writes = 1, .waits = 2, .highest = 4);
	EXPECT_LT(first, stats_of(self->fd).wait_ns);
	EXPECT_GE(now_ns() - before, stats_of(self->fd).wait_ns);
}

/* All that wait at the same time count. */
TEST_F(flowfd, waits_of_several)
{
	struct call calls[3];
	__u64 first, value;

	EXPECT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(8, add(self->fd, 4));
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(start_write(&calls[i], self->fd, 4));
	first = stats_of(self->fd).wait_ns;
	sleep_ms(50);
	EXPECT_LE(first + 150 * MSEC, stats_of(self->fd).wait_ns);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(8, take(self->fd, &value));
		ASSERT_TRUE(call_join(&calls[i]));
	}
	EXPECT_STATS(self->fd, .produced = 16, .writes = 4, .reads = 3, .waits = 3,
		     .highest = 4);
}

TEST_F(flowfd, what_is_lost)
{
	__u64 value;

	EXPECT_EQ(0, SET_FLOW(self->fd, .maximum = 10,
			      .overflow = FLOWFD_OVERFLOW_SATURATE));
	EXPECT_EQ(8, add(self->fd, 7));
	EXPECT_EQ(8, add(self->fd, 7));
	EXPECT_STATS(self->fd, .produced = 9, .writes = 2, .highest = 9, .lost = 5);
	EXPECT_EQ(0, SET_FLOW(self->fd, .maximum = 10,
			      .overflow = FLOWFD_OVERFLOW_DROP));
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_STATS(self->fd, .produced = 9, .writes = 3, .reads = 1, .highest = 9,
		     .lost = 6);
}

TEST_F(flowfd, numbers_of_64_bits)
{
	const __u64 big = 0xf000000000000000, more = 0x2345678900000000;
	__u64 value;

	EXPECT_EQ(8, add(self->fd, big));
	EXPECT_STATS(self->fd, .produced = big, .writes = 1, .highest = big);
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(8, add(self->fd, more));
	/* The sum begins again at 0. */
	EXPECT_STATS(self->fd, .produced = 0x1345678900000000, .writes = 2, .reads = 1,
		     .highest = big);
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_STATS(self->fd, .produced = 0x1345678900000000, .writes = 2, .reads = 2,
		     .highest = big);
}

#define THREADS 3
#define WRITES	5000

static void *write_many(void *arg)
{
	for (int i = 0; i < WRITES; i++)
		add(*(int *)arg, 2);
	return NULL;
}

/* Nothing is missed if several write and read at the same time. */
TEST_F(flowfd, all_of_several_threads)
{
	__u64 value, sum = 0, reads = 0;
	struct flowfd_counter_stats stats;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, write_many, &self->fd));
	while (sum < 2 * THREADS * WRITES) {
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
		reads++;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	stats = stats_of(self->fd);
	EXPECT_EQ(2 * THREADS * WRITES, sum);
	EXPECT_EQ(sum, stats.produced);
	EXPECT_EQ(THREADS * WRITES, stats.writes);
	EXPECT_EQ(reads, stats.reads);
}

TEST_F(flowfd, bridges_write_and_read)
{
	int in = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int out = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	EXPECT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, 5));
	EXPECT_STATS(self->fd, .produced = 5, .writes = 1, .highest = 5);
	EXPECT_EQ(8, add(in, 2));
	EXPECT_STATS(self->fd, .produced = 7, .writes = 2, .highest = 7);
	EXPECT_EQ(0, sink(self->fd, out));
	EXPECT_TRUE(count_becomes(self->fd, 0));
	EXPECT_STATS(self->fd, .produced = 7, .writes = 2, .reads = 1, .highest = 7,
		     .wakeups = 1);
	EXPECT_EQ(8, add(in, 4));
	EXPECT_TRUE(count_becomes(self->fd, 0));
	EXPECT_STATS(self->fd, .produced = 11, .writes = 3, .reads = 2, .highest = 7,
		     .wakeups = 2);
	close(in);
	close(out);
}

MAPPED_FIXTURE(mapped, .maximum = 100)

/* In memory only the sum is counted, and the highest count that somebody asks for. */
TEST_F(mapped, memory)
{
	__u64 value;

	EXPECT_EQ(8, mapped_add(&self->m, 5));
	EXPECT_EQ(8, mapped_add(&self->m, 6));
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	EXPECT_EQ(8, mapped_add(&self->m, 2));
	EXPECT_EQ(0, self->m.calls);
	EXPECT_STATS(self->m.fd, .produced = 13, .highest = 2);
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	EXPECT_STATS(self->m.fd, .produced = 13, .highest = 2);
	EXPECT_EQ(8, add(self->m.fd, 1));
	EXPECT_EQ(8, mapped_add(&self->m, 30));
	EXPECT_EQ(8, take(self->m.fd, &value));
	EXPECT_STATS(self->m.fd, .produced = 44, .writes = 1, .reads = 1, .highest = 31);
}

TEST_F(mapped, notifications)
{
	int ep = epoll_on(self->m.fd, EPOLLIN);
	__u64 value;

	EXPECT_EQ(8, mapped_add(&self->m, 5));
	EXPECT_EQ(1, self->m.calls);
	EXPECT_STATS(self->m.fd, .produced = 5, .wakeups = 1, .highest = 5);
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	EXPECT_EQ(0, set_qos(self->m.fd, 1, 1));
	EXPECT_EQ(8, mapped_add(&self->m, 3));
	EXPECT_STATS(self->m.fd, .produced = 8, .wakeups = 2, .highest = 5);
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	/* Without a token, the next adds make no calls. */
	EXPECT_EQ(8, mapped_add(&self->m, 4));
	EXPECT_EQ(8, mapped_add(&self->m, 4));
	EXPECT_EQ(3, self->m.calls);
	EXPECT_STATS(self->m.fd, .produced = 16, .wakeups = 2, .held_back = 1,
		     .highest = 8);
	close(ep);
}

/* No call but its own sees what is added for it. */
TEST_F(mapped, writer_that_is_served)
{
	struct call call;
	__u64 value;

	EXPECT_EQ(8, mapped_add(&self->m, 60));
	ASSERT_TRUE(start_write(&call, self->m.fd, 90));
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	ASSERT_TRUE(call_join(&call));
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	EXPECT_EQ(90, value);
	EXPECT_STATS(self->m.fd, .produced = 150, .writes = 1, .waits = 1, .highest = 90);
}

TEST_F(mapped, writer_that_is_refused)
{
	__u64 value;

	EXPECT_EQ(8, mapped_add(&self->m, 98));
	EXPECT_EQ(-EAGAIN, write_with(self->m.fd, 5, 0, FLOWFD_NONBLOCK));
	EXPECT_EQ(8, mapped_take(&self->m, &value));
	EXPECT_STATS(self->m.fd, .produced = 98, .again = 1, .highest = 98);
}

/* A sleeper is given what another adds in memory. */
TEST_F(mapped, sleeper)
{
	struct call call;

	ASSERT_TRUE(start_read(&call, self->m.fd));
	EXPECT_EQ(8, mapped_add(&self->m, 5));
	ASSERT_TRUE(call_join(&call));
	EXPECT_EQ(5, call.value);
	EXPECT_STATS(self->m.fd, .produced = 5, .reads = 1, .wakeups = 1, .highest = 5);
}

/* What programs store is what they are told; above the maximum, too. */
TEST_F(mapped, nonsense)
{
	__atomic_store_n(&self->m.producer->produced, 1ULL << 63, __ATOMIC_SEQ_CST);
	EXPECT_STATS(self->m.fd, .produced = 1ULL << 63, .highest = 1ULL << 63);
	__atomic_store_n(&self->m.consumer->consumed, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&self->m.producer->produced, 0, __ATOMIC_SEQ_CST);
	EXPECT_STATS(self->m.fd, .produced = 0, .highest = ULLONG_MAX);
}

/* Whoever has a descriptor may look. */
TEST(read_only_and_write_only)
{
	struct flowfd_counter_stats stats = { .highest = 1 };

	for (int mode = O_RDONLY; mode <= O_WRONLY; mode++) {
		int fd = open(DEVICE, mode | O_CLOEXEC);

		EXPECT_EQ(0, result_of(ioctl(fd, FLOWFD_IOC_COUNTER_STATS, &stats)));
		EXPECT_EQ(0, stats.highest);
		close(fd);
	}
}

/* The lines of fdinfo are where programs look for them. */
TEST_F(flowfd, order_in_fdinfo)
{
	static const char *const names[] = {
		"flowfd-lost", "flowfd-produced", "flowfd-writes", "flowfd-reads",
		"flowfd-wakeups", "flowfd-held-back", "flowfd-again", "flowfd-waits",
		"flowfd-wait-ns", "flowfd-highest",
	};
	char path[64], line[256];
	size_t found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	while (found < ARRAY_SIZE(names) && fgets(line, sizeof(line), f)) {
		if (!found && strncmp(line, "flowfd-lost:", 12))
			continue;
		EXPECT_EQ(0, strncmp(line, names[found], strlen(names[found])));
		EXPECT_EQ(0, strncmp(line + strlen(names[found]), ": 0\n", 4));
		found++;
	}
	EXPECT_EQ(ARRAY_SIZE(names), found);
	fclose(f);
}

TEST_HARNESS_MAIN
