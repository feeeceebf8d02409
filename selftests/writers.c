// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writers that wait for room below a maximum that changes, and what can never fit. Who
 * goes first is in handover.c, and the marks are in flow_marks.c.
 */
#include "fixtures.h"

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

/* Such a write would sleep for ever, or spin. */
TEST_F(flowfd, value_that_can_never_fit)
{
	ASSERT_EQ(0, set_maximum(self->fd, 1));
	EXPECT_EQ(-EINVAL, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 0));
	ASSERT_EQ(0, set_maximum(self->fd, 7));
	EXPECT_EQ(-EINVAL, add(self->fd, 7));
	EXPECT_EQ(-EINVAL, add(self->fd, 100));
	EXPECT_EQ(8, add(self->fd, 6));
	EXPECT_EQ(-EINVAL, add(self->fd, 7));
	EXPECT_EQ(6, count_of(self->fd));
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

TEST_F(flowfd, room_wakes_pollers)
{
	int level, edge;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	level = epoll_on(self->fd, EPOLLOUT);
	edge = epoll_on(self->fd, EPOLLOUT | EPOLLET);
	for (int by_read = 0; by_read < 2; by_read++) {
		EXPECT_EQ(0, epoll_take(level, 0));
		EXPECT_EQ(0, epoll_take(edge, 0));
		if (by_read) {
			ASSERT_EQ(8, take(self->fd, &value));
		} else {
			ASSERT_EQ(0, set_maximum(self->fd, 11));
		}
		EXPECT_EQ(EPOLLOUT, epoll_take(level, 0));
		EXPECT_EQ(EPOLLOUT, epoll_take(edge, 0));
		if (!by_read) {
			ASSERT_EQ(0, set_maximum(self->fd, 10));
		}
	}
	close(level);
	close(edge);
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
