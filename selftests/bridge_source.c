// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges step by step: an eventfd that feeds a counter.
 */
#include "bridge_fixture.h"

#include <linux/aio_abi.h>

TEST_F(bridge, source_moves_the_count)
{
	__u64 value;

	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(id_of(self->in), bridged_id(self->fd, "flowfd-source"));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-sink"));
	EXPECT_EQ(8, add(self->in, 3));
	/* At once: no work item was needed. */
	EXPECT_EQ(3, count_of(self->fd));
	EXPECT_EQ(8, add(self->in, 4));
	/* For readers of the eventfd nothing is left. */
	EXPECT_EQ(-EAGAIN, take(self->in, &value));
	EXPECT_EQ(0, poll_for(self->in, POLLIN, 0));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(7, value);
	/* Others may write to the counter as before. */
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->in, ULLONG_MAX - 10));
	EXPECT_EQ(ULLONG_MAX - 9, count_of(self->fd));
}

TEST_F(bridge, source_takes_what_is_there)
{
	EXPECT_EQ(8, add(self->in, 5));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(0, count_of(self->in));
}

TEST_F(bridge, source_wakes_readers)
{
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLET);
	struct call reader;

	set_nonblock(self->fd, false);
	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 9));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(9, reader.value);
	/* The reader has taken it. */
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

/* What fits is moved, what was taken waits, and what comes then stays in the eventfd. */
TEST_F(bridge, source_waits_for_room)
{
	__u64 value, sum = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 25));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(16, waiting_of(self->fd));
	EXPECT_EQ(8, add(self->in, 5));
	EXPECT_EQ(5, count_of(self->in));
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(count_becomes(self->fd, 9));
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	ASSERT_TRUE(count_becomes(self->fd, 3));
	EXPECT_EQ(30, sum + 3);
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(0, count_of(self->in));
	/* And no work item is needed again. */
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_EQ(5, count_of(self->fd));
}

TEST_F(bridge, source_of_a_full_counter)
{
	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(8, add(self->in, 2));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 1));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(3, count_of(self->in));
	EXPECT_EQ(0, waiting_of(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 100));
	EXPECT_TRUE(count_becomes(self->fd, 12));
	EXPECT_EQ(0, count_of(self->in));
}

/* With a bucket, pollers are not told of each room. */
TEST_F(bridge, source_waits_for_room_with_a_bucket)
{
	__u64 value;

	ASSERT_EQ(0, set_qos(self->fd, 1, 1));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 25));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(count_becomes(self->fd, 9));
		ASSERT_EQ(8, take(self->fd, &value));
	}
	EXPECT_TRUE(count_becomes(self->fd, 7));
}

/* A reader that takes all that comes, until there was nothing for a while. */
struct drain {
	int fd;
	__u64 sum;
};

static void *drain_run(void *arg)
{
	struct drain *d = arg;
	struct flowfd_transfer args = { 0 };

	for (;;) {
		args.timeout = 500000000;
		if (result_of(ioctl(d->fd, FLOWFD_IOC_COUNTER_READ, &args)))
			return NULL;
		d->sum += args.value;
	}
}

/* What sleeping readers take at once is no wakeup that the source could still get. */
static __u64 drained(int fd, unsigned int readers, int in, __u64 value)
{
	struct drain drains[2] = { { .fd = fd }, { .fd = fd } };
	pthread_t threads[2];
	__u64 sum = 0;

	for (unsigned int i = 0; i < readers; i++)
		pthread_create(&threads[i], NULL, drain_run, &drains[i]);
	sleep_ms(QUIET_MS);
	add(in, value);
	for (unsigned int i = 0; i < readers; i++) {
		pthread_join(threads[i], NULL);
		sum += drains[i].sum;
	}
	return sum;
}

TEST_F(bridge, source_beside_sleeping_readers)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	set_nonblock(self->fd, false);
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(25, drained(self->fd, 1, self->in, 25));
	EXPECT_EQ(25, drained(self->fd, 2, self->in, 25));
	EXPECT_EQ(0, waiting_of(self->fd));
	ASSERT_EQ(0, remove_source(self->fd));
	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(25, drained(self->fd, 1, in, 25));
	EXPECT_EQ(25, drained(self->fd, 2, in, 25));
	ASSERT_EQ(0, set_maximum(self->fd, 101));
	EXPECT_EQ(777, drained(self->fd, 1, in, 777));
	EXPECT_EQ(0, count_of(in));
	close(in);
}

/* Others in the queue may know of no count: the wakeup is all they look at. */
TEST_F(bridge, source_leaves_wakeups_to_others)
{
	struct iocb poll = {
		.aio_fildes = self->in,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
	};
	struct timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct iocb *list[] = { &poll };
	aio_context_t context = 0;
	struct io_event done;

	if (syscall(SYS_io_setup, 8, &context))
		SKIP(return, "no AIO");
	ASSERT_EQ(1, syscall(SYS_io_submit, context, 1, list));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(1, count_of(self->fd));
	EXPECT_EQ(1, syscall(SYS_io_getevents, context, 1, 1, &done, &patience));
	syscall(SYS_io_destroy, context);
}

/* The eventfd was full: taking its count makes room for those that write to it. */
TEST_F(bridge, source_makes_room_in_the_eventfd)
{
	struct call writer;
	__u64 value;

	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(8, add(self->in, ULLONG_MAX - 1));
	EXPECT_EQ(-EAGAIN, add(self->in, 1));
	set_nonblock(self->in, false);
	ASSERT_TRUE(start_write(&writer, self->in, 5));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_TRUE(count_becomes(self->in, 5));
	EXPECT_EQ(ULLONG_MAX - 1 - 9, waiting_of(self->fd));
}

TEST_F(bridge, source_that_is_a_semaphore)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	__u64 value;

	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, 3));
	EXPECT_EQ(3, count_of(self->fd));
	/* More than a signal moves: the rest comes with the next ones. */
	EXPECT_EQ(8, add(in, 2 * SEMAPHORE_TAKES));
	EXPECT_EQ(SEMAPHORE_TAKES + 3, count_of(self->fd));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(SEMAPHORE_TAKES + 3, count_of(self->fd));
	EXPECT_EQ(SEMAPHORE_TAKES, count_of(in));
	EXPECT_EQ(8, add(in, 1));
	EXPECT_EQ(2 * SEMAPHORE_TAKES + 3, count_of(self->fd));
	EXPECT_EQ(8, add(in, 1));
	EXPECT_EQ(2 * SEMAPHORE_TAKES + 5, count_of(self->fd));
	EXPECT_EQ(0, count_of(in));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(8, add(in, 20));
	EXPECT_TRUE(count_becomes(self->fd, 9));
	/* None is taken that does not fit. */
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(11, count_of(in));
	close(in);
}

TEST_F(bridge, source_is_removed)
{
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(8, add(self->in, 1));
	ASSERT_EQ(0, remove_source(self->fd));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	/* What was taken is the counter's, the rest the eventfd's. */
	EXPECT_EQ(6, waiting_of(self->fd));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(2, count_of(self->in));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(9, value);
	EXPECT_TRUE(count_becomes(self->fd, 6));
	/* And it can be a source again, of this counter too. */
	EXPECT_EQ(0, source(self->fd, self->in));
	EXPECT_TRUE(count_becomes(self->fd, 8));
}

TEST_F(bridge, source_is_closed)
{
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 2));
	close(self->in);
	self->in = -1;
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
	EXPECT_EQ(2, count_of(self->fd));
	EXPECT_EQ(-ENOENT, remove_source(self->fd));
}

/* Another takes its place at once. */
TEST_F(bridge, ends_are_replaced)
{
	for (int i = 0; i < 100; i++) {
		int in = eventfd(0, EFD_CLOEXEC), out = eventfd(0, EFD_CLOEXEC);

		ASSERT_EQ(0, source(self->fd, in));
		ASSERT_EQ(0, sink(self->fd, out));
		close(in);
		close(out);
	}
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_TRUE(count_becomes(self->out, signalled(2)));
}

/* The last writer is gone, and what it wrote is not lost. */
TEST_F(bridge, source_is_closed_before_there_is_room)
{
	__u64 value, sum = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(8, add(self->in, 20));
	close(self->in);
	self->in = -1;
	sleep_ms(QUIET_MS);
	EXPECT_NE(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	while (sum < 35 && poll_for(self->fd, POLLIN, PATIENCE_MS) == POLLIN) {
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	EXPECT_EQ(35, sum);
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
}

/* Takes in memory make room for a source. */
TEST(mapped_source)
{
	int in = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct mapped m;
	__u64 value, sum = 0, until = ms_from_now(PATIENCE_MS);

	ASSERT_EQ(0, MAPPED_CREATE(&m, .flags = FLOWFD_NONBLOCK, .maximum = 10));
	ASSERT_EQ(0, source(m.fd, in));
	EXPECT_EQ(8, add(in, 100));
	while (sum < 100 && now_ns() < until)
		sum += mapped_take(&m, &value) == 8 ? value : 0;
	EXPECT_EQ(100, sum);
	mapped_unmap(&m);
	close(m.fd);
	close(in);
}

TEST_HARNESS_MAIN
