// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writers that wait for room below the maximum: which operation wakes which of them,
 * and which must sleep on. Also each way to wait for POLLOUT.
 */
#include <sys/select.h>

#include "fixtures.h"

TEST_F(flowfd, writer_waits_for_a_read)
{
	struct call writer;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_TRUE(start_write(&writer, self->fd, 1));
	sleep_ms(QUIET_MS);
	EXPECT_FALSE(call_finished(&writer));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(9, value);
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_EQ(1, count_of(self->fd));
}

TEST_F(flowfd, writer_waits_for_a_higher_maximum)
{
	struct call writer;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 7));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	ASSERT_EQ(0, set_maximum(self->fd, 12));	/* 12 - 7 > 5 is false */
	sleep_ms(QUIET_MS);
	EXPECT_FALSE(call_finished(&writer));
	ASSERT_EQ(0, set_maximum(self->fd, 13));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_EQ(12, count_of(self->fd));
}

/* First come, first served: the one behind would fit, and is not even woken. */
TEST_F(flowfd, small_writer_waits_behind_a_large_one)
{
	struct call large, small;
	__u64 value;
	long sleeps;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 8));
	ASSERT_TRUE(start_write(&large, self->fd, 5));
	ASSERT_TRUE(start_write(&small, self->fd, 1));
	sleeps = thread_sleeps(small.tid);
	ASSERT_EQ(0, set_maximum(self->fd, 11));
	sleep_ms(QUIET_MS);
	EXPECT_FALSE(call_finished(&small));
	EXPECT_EQ(sleeps, thread_sleeps(small.tid));
	EXPECT_EQ(8, count_of(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(8, value);
	ASSERT_TRUE(call_join(&large));
	ASSERT_TRUE(call_join(&small));
	EXPECT_EQ(6, count_of(self->fd));
}

/* It needs no room, so it has no turn to wait for. */
TEST_F(flowfd, write_of_nothing_passes_writers)
{
	struct call writer, nothing;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 8));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	nothing = (struct call){ .fd = self->fd, .is_write = true };
	ASSERT_EQ(0, pthread_create(&nothing.thread, NULL, call_run, &nothing));
	ASSERT_TRUE(call_join(&nothing));
	EXPECT_EQ(8, nothing.result);
	EXPECT_EQ(8, count_of(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&writer));
}

TEST_F(flowfd, writers_of_different_values)
{
	static const __u64 values[] = { 9, 1, 4, 2 };
	struct call writer[ARRAY_SIZE(values)];
	__u64 value, taken = 0;

	set_nonblock(self->fd, false);
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		ASSERT_TRUE(start_write(&writer[i], self->fd, values[i]));
	}
	while (taken < 9 + 9 + 1 + 4 + 2) {
		ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
		ASSERT_EQ(8, take(self->fd, &value));
		EXPECT_GT(10, value);
		taken += value;
	}
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		ASSERT_TRUE(call_join(&writer[i]));
		EXPECT_EQ(8, writer[i].result);
	}
	EXPECT_EQ(25, taken);
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_F(flowfd, writer_under_a_lowered_maximum)
{
	struct call writer;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(start_write(&writer, self->fd, 6));
	ASSERT_EQ(0, set_maximum(self->fd, 7));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&writer));	/* 7 - 0 > 6 */
	EXPECT_EQ(6, count_of(self->fd));

	ASSERT_TRUE(start_write(&writer, self->fd, 6));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&writer));
}

/* Such a write would sleep for ever. */
TEST_F(flowfd, value_that_can_never_fit)
{
	ASSERT_EQ(0, set_maximum(self->fd, 7));
	EXPECT_EQ(-EINVAL, add(self->fd, 7));
	EXPECT_EQ(-EINVAL, add(self->fd, 100));
	EXPECT_EQ(8, add(self->fd, 6));
	EXPECT_EQ(-EINVAL, add(self->fd, 7));
	EXPECT_EQ(6, count_of(self->fd));
}

/* It must neither sleep nor spin. */
TEST_F(flowfd, maximum_of_one)
{
	ASSERT_EQ(0, set_maximum(self->fd, 1));
	EXPECT_EQ(-EINVAL, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 0));
}

/* The value fitted below the old maximum, and can never fit below the new one. */
TEST_F(flowfd, lowered_below_a_waiting_value)
{
	struct call writer, other;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(start_write(&writer, self->fd, 9));
	ASSERT_TRUE(start_write(&other, self->fd, 7));
	ASSERT_EQ(0, set_maximum(self->fd, 9));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(-EINVAL, writer.result);
	EXPECT_EQ(3, count_of(self->fd));
	EXPECT_FALSE(call_finished(&other));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&other));
	EXPECT_EQ(8, other.result);
	EXPECT_EQ(7, count_of(self->fd));
}

TEST_F(flowfd, interrupted_writer_adds_nothing)
{
	struct call writer;
	__u64 value;

	catch_signal(0);
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	pthread_kill(writer.thread, SIGUSR1);
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(-EINTR, writer.result);
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(5, value);
	EXPECT_EQ(0, count_of(self->fd));
}

static __u64 cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The value does not fit: the writer must sleep all the time. */
TEST_F(flowfd, waiting_does_not_spin)
{
	struct call writer;
	clockid_t clock;
	__u64 used;
	long sleeps;

	ASSERT_EQ(0, set_maximum(self->fd, 2));
	ASSERT_EQ(8, add(self->fd, 1));
	ASSERT_TRUE(start_write(&writer, self->fd, 1));
	ASSERT_EQ(0, pthread_getcpuclockid(writer.thread, &clock));
	sleeps = thread_sleeps(writer.tid);
	used = cpu_ns(clock);
	sleep_ms(3 * QUIET_MS);
	EXPECT_GT(QUIET_MS * 1000000ULL / 10, cpu_ns(clock) - used);
	EXPECT_EQ(sleeps, thread_sleeps(writer.tid));
	EXPECT_FALSE(call_finished(&writer));
	ASSERT_EQ(0, set_maximum(self->fd, 3));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(2, count_of(self->fd));
}

/* The ways to wait until a descriptor is writable. */
static void *by_poll(void *arg)
{
	int fd = *(int *)arg;

	return (void *)(long)(poll_for(fd, POLLOUT, PATIENCE_MS) == POLLOUT);
}

static void *by_select(void *arg)
{
	int fd = *(int *)arg;
	struct timeval patience = { PATIENCE_MS / 1000, 0 };
	fd_set writable;

	FD_ZERO(&writable);
	FD_SET(fd, &writable);
	return (void *)(long)(select(fd + 1, NULL, &writable, NULL,
				     &patience) == 1 &&
			      FD_ISSET(fd, &writable));
}

static void *by_epoll(int fd, __u32 flags)
{
	int ep = epoll_on(fd, EPOLLOUT | flags);
	__u32 events = epoll_take(ep, PATIENCE_MS);

	close(ep);
	return (void *)(long)(events == EPOLLOUT);
}

static void *by_epoll_level(void *arg)
{
	return by_epoll(*(int *)arg, 0);
}

static void *by_epoll_edge(void *arg)
{
	return by_epoll(*(int *)arg, EPOLLET);
}

static void expect_woken(struct __test_metadata *_metadata, int fd,
			 void *(*wait)(void *))
{
	pthread_t thread;
	__u64 value;
	void *woken;

	ASSERT_EQ(0, set_maximum(fd, 10));
	ASSERT_EQ(8, add(fd, 9));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait, &fd));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	ASSERT_EQ(0, set_maximum(fd, 11));
	ASSERT_EQ(0, pthread_join(thread, &woken));
	EXPECT_NE(NULL, woken);

	ASSERT_EQ(0, set_maximum(fd, 10));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait, &fd));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	ASSERT_EQ(8, take(fd, &value));
	ASSERT_EQ(0, pthread_join(thread, &woken));
	EXPECT_NE(NULL, woken);
}

TEST_F(flowfd, room_wakes_poll)
{
	expect_woken(_metadata, self->fd, by_poll);
}

TEST_F(flowfd, room_wakes_select)
{
	expect_woken(_metadata, self->fd, by_select);
}

TEST_F(flowfd, room_wakes_level_triggered_epoll)
{
	expect_woken(_metadata, self->fd, by_epoll_level);
}

TEST_F(flowfd, room_wakes_edge_triggered_epoll)
{
	expect_woken(_metadata, self->fd, by_epoll_edge);
}

/*
 * The maximum changes all the time while two threads write: no value is lost or added.
 */
struct traffic {
	int fd;
	unsigned int writes;
	__u64 written;
};

static void *traffic_write(void *arg)
{
	struct traffic *t = arg;

	for (unsigned int i = 0; i < t->writes; i++) {
		__u64 value = 1 + i % 5;

		if (add(t->fd, value) == 8)
			t->written += value;
	}
	return NULL;
}

TEST_F(flowfd, maximum_moves_under_writers)
{
	struct traffic t[2];
	pthread_t thread[2];
	unsigned int moves = 0;
	__u64 value, taken = 0;

	for (int i = 0; i < 2; i++) {
		t[i] = (struct traffic){ self->fd, 2000, 0 };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, traffic_write,
					    &t[i]));
	}
	set_maximum(self->fd, 20);
	/* Each thread writes 2000 times 1 to 5, in sum 6000. */
	while (taken < 12000) {
		ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
		set_maximum(self->fd, 6 + moves++ % 30);
		ASSERT_EQ(8, take(self->fd, &value));
		taken += value;
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	}
	EXPECT_EQ(12000, taken);
	EXPECT_EQ(12000, t[0].written + t[1].written);
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_HARNESS_MAIN
