// SPDX-License-Identifier: GPL-2.0-only
/*
 * The token bucket, step by step: its settings, the burst, deferred wakeups and their
 * delivery. rate.c measures rates over time, bucket_timer.c and wakeup.c have the
 * races.
 */
#include "bucket_watch.h"
#include "fixtures.h"

static bool qos_equal(struct eventfd_qos a, __u32 capacity, __u32 rate)
{
	return a.token_capacity == capacity && a.token_rate == rate;
}

TEST_F(flowfd, settings_are_what_was_set)
{
	static const struct eventfd_qos good[] = {
		{ 1, 1 },
		{ 10, 1000 },
		{ UINT_MAX, 1 },
		{ UINT_MAX, FLOWFD_TOKEN_RATE_MAX },
		{ 1, FLOWFD_TOKEN_RATE_MAX },
		{ 5, 0 },
		{ 0, 0 },
	};

	EXPECT_TRUE(qos_equal(qos_of(self->fd), 0, 0));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_EQ(0, set_qos(self->fd, good[i].token_capacity,
				     good[i].token_rate));
		EXPECT_TRUE(qos_equal(qos_of(self->fd), good[i].token_capacity,
				      good[i].token_rate));
	}
}

TEST_F(flowfd, bad_settings_change_nothing)
{
	ASSERT_EQ(0, set_qos(self->fd, 3, 70));
	EXPECT_EQ(-EINVAL, set_qos(self->fd, 1, FLOWFD_TOKEN_RATE_MAX + 1));
	EXPECT_EQ(-EINVAL, set_qos(self->fd, 1, UINT_MAX));
	EXPECT_EQ(-EINVAL, set_qos(self->fd, 0, 1));
	EXPECT_EQ(-EINVAL, set_qos(self->fd, 0, FLOWFD_TOKEN_RATE_MAX));
	EXPECT_TRUE(qos_equal(qos_of(self->fd), 3, 70));
}

TEST(semaphore_has_no_bucket)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, set_qos(fd, 1, 1));
	EXPECT_EQ(-EINVAL, set_qos(fd, 1, 0));
	EXPECT_EQ(0, set_qos(fd, 0, 0));
	EXPECT_TRUE(qos_equal(qos_of(fd), 0, 0));
	close(fd);
}

/* Each write wakes, as with eventfd. */
TEST_F(flowfd, rate_of_zero_is_no_limit)
{
	struct watched w;

	ASSERT_TRUE(watched_open(&w, 1, 1, EPOLLIN));
	ASSERT_EQ(0, set_qos(w.fd, 5, 0));
	EXPECT_EQ(50, edges_of_writes(&w, 50));
	EXPECT_FALSE(wakeup_is_deferred(w.fd));
	watched_close(&w);
}

/*
 * A full bucket gives as many wakeups as its capacity, if the burst ends before the
 * first token is replaced.
 */
#define SLOW_RATE 4
#define SLOW_INTERVAL (NSEC_PER_SEC / SLOW_RATE)

static void expect_burst(struct __test_metadata *_metadata,
			 unsigned int capacity)
{
	unsigned int edges;
	struct watched w;
	__u64 end;

	for (int attempt = 0; attempt < 5; attempt++) {
		ASSERT_TRUE(watched_open(&w, capacity, SLOW_RATE, EPOLLIN));
		edges = edges_of_writes(&w, capacity + 5);
		end = now_ns();
		if (end - w.made < SLOW_INTERVAL)
			break;
		watched_close(&w);
	}
	ASSERT_GT(SLOW_INTERVAL, end - w.made);
	EXPECT_EQ(capacity, edges);
	EXPECT_EQ(EPOLLIN, epoll_take(w.ep, PATIENCE_MS));
	EXPECT_LE(SLOW_INTERVAL, now_ns() - w.made);
	EXPECT_FALSE(wakeup_is_deferred(w.fd));
	watched_close(&w);
}

TEST(burst)
{
	expect_burst(_metadata, 1);
	expect_burst(_metadata, 2);
	expect_burst(_metadata, 10);
}

TEST(deferred_wakeup_of_a_sleeping_read)
{
	struct call reader;
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open(&w, 1, 2, EPOLLIN));
	ASSERT_EQ(1, edges_of_writes(&w, 1));
	ASSERT_EQ(8, take(w.fd, &value));
	set_nonblock(w.fd, false);
	ASSERT_TRUE(start_read(&reader, w.fd));
	ASSERT_EQ(8, add(w.fd, 5));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(5, reader.value);
	EXPECT_LE(NSEC_PER_SEC / 2, now_ns() - w.made);
	watched_close(&w);
}

/* Only wakeups are limited: poll and read see the count at once. */
TEST(poll_and_read_see_a_deferred_count)
{
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open_deferred(&w, 1, EPOLLIN));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(w.fd));
	EXPECT_EQ(POLLIN, poll_for(w.fd, POLLIN, PATIENCE_MS));
	set_nonblock(w.fd, false);
	EXPECT_EQ(8, take(w.fd, &value));
	EXPECT_EQ(2, value);
	/* No token was needed so far. */
	EXPECT_GT(NSEC_PER_SEC, now_ns() - w.made);
	watched_close(&w);
}

/* The ioctl itself delivers: no time passes in which a timer could expire. */
static void expect_delivery(struct __test_metadata *_metadata, __u32 capacity,
			    __u32 rate)
{
	struct watched w;

	ASSERT_TRUE(watched_open_deferred(&w, SLOW_RATE, EPOLLIN));
	ASSERT_EQ(0, set_qos(w.fd, capacity, rate));
	EXPECT_EQ(EPOLLIN, epoll_take(w.ep, 0));
	EXPECT_FALSE(wakeup_is_deferred(w.fd));
	EXPECT_EQ(0, epoll_take(w.ep, 1500 / SLOW_RATE));
	watched_close(&w);
}

TEST(another_bucket_delivers)
{
	expect_delivery(_metadata, 2, 1);
}

TEST(no_bucket_delivers)
{
	expect_delivery(_metadata, 0, 0);
}

TEST(another_bucket_delivers_to_a_sleeping_read)
{
	struct call reader;
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open_deferred(&w, 1, EPOLLIN));
	ASSERT_EQ(8, take(w.fd, &value));
	set_nonblock(w.fd, false);
	ASSERT_TRUE(start_read(&reader, w.fd));
	ASSERT_EQ(8, add(w.fd, 5));
	ASSERT_EQ(0, set_qos(w.fd, 1, 1));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(5, reader.value);
	watched_close(&w);
}

TEST(another_bucket_has_nothing_to_deliver)
{
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open_deferred(&w, 1, EPOLLIN | EPOLLOUT));
	ASSERT_EQ(8, take(w.fd, &value));
	EXPECT_EQ(0, epoll_take(w.ep, 0));
	ASSERT_EQ(0, set_qos(w.fd, 1, 1));
	EXPECT_EQ(0, epoll_take(w.ep, 0));
	watched_close(&w);
}

/* A bucket that replaces another is full, even if it has the same settings. */
TEST(another_bucket_is_full)
{
	struct watched w;

	ASSERT_TRUE(watched_open(&w, 4, 1, EPOLLIN));
	EXPECT_EQ(4, edges_of_writes(&w, 4));
	ASSERT_EQ(0, set_qos(w.fd, 4, 1));
	EXPECT_EQ(4, edges_of_writes(&w, 4));
	watched_close(&w);
}

/*
 * The epoll asks for EPOLLOUT too: a counter that was emptied is writable, so any
 * wakeup shows as an event.
 */
TEST(no_wakeup_when_the_count_is_gone)
{
	struct call reader;
	struct watched w;
	__u64 value;
	long sleeps;

	ASSERT_TRUE(watched_open_deferred(&w, 10, EPOLLIN | EPOLLOUT));
	ASSERT_EQ(8, take(w.fd, &value));
	EXPECT_EQ(0, epoll_take(w.ep, 0));
	set_nonblock(w.fd, false);
	ASSERT_TRUE(start_read(&reader, w.fd));
	sleeps = thread_sleeps(reader.tid);
	EXPECT_EQ(0, epoll_take(w.ep, 300));
	EXPECT_EQ(sleeps, thread_sleeps(reader.tid));
	ASSERT_EQ(8, add(w.fd, 1));
	ASSERT_TRUE(call_join(&reader));
	watched_close(&w);
}

TEST(room_is_not_limited)
{
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open(&w, 1, 1, EPOLLOUT));
	ASSERT_EQ(0, set_maximum(w.fd, 2));
	epoll_take(w.ep, 0);
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(8, add(w.fd, 1));
		EXPECT_EQ(0, epoll_take(w.ep, 0));
		ASSERT_EQ(8, take(w.fd, &value));
		EXPECT_EQ(EPOLLOUT, epoll_take(w.ep, 0));
	}
	watched_close(&w);
}

/*
 * epoll polls again for every wakeup. If each read woke it for EPOLLOUT, it would
 * report each write as well, with or without a token.
 */
TEST(reads_do_not_report_writes)
{
	const unsigned int rate = 2;
	unsigned int edges = 0;
	struct watched w;
	__u64 value, tokens;

	ASSERT_TRUE(watched_open(&w, 1, rate, EPOLLIN | EPOLLOUT));
	for (int i = 0; i < 200; i++) {
		ASSERT_EQ(8, add(w.fd, 1));
		ASSERT_EQ(8, take(w.fd, &value));
		ASSERT_EQ(8, add(w.fd, 1));
		edges += !!(epoll_take(w.ep, 0) & EPOLLIN);
	}
	tokens = 1 + (now_ns() - w.made) * rate / NSEC_PER_SEC;
	EXPECT_LE(1, edges);
	EXPECT_GE(tokens, edges);
	watched_close(&w);
}

/*
 * There was room for 1 all the time, so POLLOUT did not change. Still, this writer
 * waits for more room and must be woken.
 */
TEST(room_after_a_refused_write)
{
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open(&w, 1, 1, EPOLLOUT));
	ASSERT_EQ(0, set_maximum(w.fd, 10));
	ASSERT_EQ(8, add(w.fd, 1));
	ASSERT_EQ(8, take(w.fd, &value));
	EXPECT_EQ(0, epoll_take(w.ep, 0));
	ASSERT_EQ(8, add(w.fd, 8));
	ASSERT_EQ(-EAGAIN, add(w.fd, 5));
	EXPECT_EQ(0, epoll_take(w.ep, 0));
	ASSERT_EQ(8, take(w.fd, &value));
	EXPECT_EQ(EPOLLOUT, epoll_take(w.ep, 0));
	ASSERT_EQ(8, add(w.fd, 5));
	watched_close(&w);
}

/* The poller that was woken last may be gone. */
TEST(room_for_an_exclusive_poller)
{
	struct watched w;
	__u64 value;

	ASSERT_TRUE(watched_open(&w, 1, 1, EPOLLOUT | EPOLLEXCLUSIVE));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(8, add(w.fd, 1));
		ASSERT_EQ(8, take(w.fd, &value));
		EXPECT_EQ(EPOLLOUT, epoll_take(w.ep, 0));
	}
	watched_close(&w);
}

/*
 * Some programs wait for edges and never read. So a wakeup must not be skipped because
 * no read followed the one before it.
 */
TEST(edges_without_a_read)
{
	struct watched w;

	ASSERT_TRUE(watched_open(&w, 1, 50, EPOLLIN));
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(8, add(w.fd, 1));
		ASSERT_EQ(EPOLLIN, epoll_take(w.ep, PATIENCE_MS));
	}
	EXPECT_LE(9 * (NSEC_PER_SEC / 50), now_ns() - w.made);
	watched_close(&w);
}

TEST_HARNESS_MAIN
