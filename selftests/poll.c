// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll and select: what they report, and that pollers and sleeping reads do not disturb
 * each other. epoll is in epoll.c.
 */
#include <sys/select.h>

#include "fixtures.h"

/* A thread that polls, and the events that it gets. */
struct waiting {
	pthread_t thread;
	pid_t tid;
	int fd;
	short events;
	int result;
};

static void *waiting_run(void *arg)
{
	struct waiting *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->result = poll_for(w->fd, w->events, PATIENCE_MS);
	return NULL;
}

static bool waiting_start(struct waiting *w, int fd, short events)
{
	*w = (struct waiting){ .fd = fd, .events = events };
	if (pthread_create(&w->thread, NULL, waiting_run, w))
		return false;
	return wait_until_asleep(&w->tid, POLL_CALL);
}

TEST_F(counter, poll_wakes_for_room)
{
	struct waiting w;
	__u64 value;

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	ASSERT_TRUE(waiting_start(&w, self->fd, POLLOUT));
	ASSERT_EQ(8, take(self->fd, &value));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(POLLOUT, w.result);
}

TEST_F(counter, poll_wakes_everyone)
{
	struct waiting w[3];

	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(waiting_start(&w[i], self->fd, POLLIN));
	}
	ASSERT_EQ(8, add(self->fd, 1));
	for (int i = 0; i < 3; i++) {
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(POLLIN, w[i].result);
	}
	EXPECT_EQ(1, count_of(self->fd));
}

TEST_F(counter, poller_does_not_disturb_reader)
{
	struct waiting w;
	struct call reader;

	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_TRUE(waiting_start(&w, self->fd, POLLIN));
	ASSERT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_FALSE(call_finished(&reader));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(5, reader.value);
	/* The reader may have been first; then poll waits for the next write. */
	ASSERT_EQ(8, add(self->fd, 1));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(POLLIN, w.result);
}

TEST_F(counter, select_reports_both_directions)
{
	struct timeval now = { 0 };
	fd_set in, out, error;

	FD_ZERO(&in);
	FD_SET(self->fd, &in);
	out = in;
	error = in;
	EXPECT_EQ(1, select(self->fd + 1, &in, &out, &error, &now));
	EXPECT_FALSE(FD_ISSET(self->fd, &in));
	EXPECT_TRUE(FD_ISSET(self->fd, &out));

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	FD_SET(self->fd, &in);
	out = in;
	error = in;
	EXPECT_EQ(1, select(self->fd + 1, &in, &out, &error, &now));
	EXPECT_TRUE(FD_ISSET(self->fd, &in));
	EXPECT_FALSE(FD_ISSET(self->fd, &out));
	EXPECT_FALSE(FD_ISSET(self->fd, &error));
}

/*
 * A sleeping task is woken only if it can make progress. An eventfd wakes every sleeper
 * for every change, so there is nothing to compare with.
 */
TEST_F(flowfd, reader_sleeps_through_room)
{
	struct call reader;
	long sleeps;

	ASSERT_TRUE(start_read(&reader, self->fd));
	sleeps = thread_sleeps(reader.tid);
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(0, set_maximum(self->fd, 100 + i));
		ASSERT_EQ(8, add(self->fd, 0));
	}
	sleep_ms(QUIET_MS);
	EXPECT_EQ(sleeps, thread_sleeps(reader.tid));
	EXPECT_FALSE(call_finished(&reader));
	ASSERT_EQ(8, add(self->fd, 1));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(1, reader.value);
}

TEST_F(flowfd, writer_sleeps_through_input)
{
	struct call writer;
	__u64 value;
	long sleeps;

	ASSERT_EQ(0, set_maximum(self->fd, 60));
	ASSERT_EQ(8, add(self->fd, 1));
	ASSERT_TRUE(start_write(&writer, self->fd, 59));
	sleeps = thread_sleeps(writer.tid);
	/* A write that may sleep would wait behind that writer. */
	set_nonblock(self->fd, true);
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(8, add(self->fd, 1));
	}
	sleep_ms(QUIET_MS);
	EXPECT_EQ(sleeps, thread_sleeps(writer.tid));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(51, value);
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(59, count_of(self->fd));
}

TEST_HARNESS_MAIN
