// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring on a counter. Unlike with eventfd, io_uring arms a poll for a write that has
 * to wait for room, and needs no worker thread.
 */
#include <dirent.h>
#include <liburing.h>

#include "bridge_user.h"
#include "fixtures.h"

static struct io_uring ring;

static bool ring_open(void)
{
	return !io_uring_queue_init(16, &ring, 0);
}

/* A macro, as SKIP returns from the test. */
#define NEED_RING()                                                     \
	do {                                                            \
		if (!ring_open())                                       \
			SKIP(return, "io_uring is not available here"); \
	} while (0)

/* The id comes last, as preparing a request may clear all of it. */
static void submit(struct io_uring_sqe *sqe, __u64 id)
{
	sqe->user_data = id;
	io_uring_submit(&ring);
}

static void submit_write(int fd, const __u64 *value, __u64 id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_write(sqe, fd, value, sizeof(*value), 0);
	submit(sqe, id);
}

static void submit_read(int fd, __u64 *value, __u64 id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_read(sqe, fd, value, sizeof(*value), 0);
	submit(sqe, id);
}

static void submit_cancel(__u64 target, __u64 id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_cancel64(sqe, target, 0);
	submit(sqe, id);
}

struct completion {
	__u64 id;
	int result;
	unsigned int flags;
};

/* The next completion; id 0: none in time. */
static struct completion complete(unsigned int ms)
{
	struct __kernel_timespec patience = { ms / 1000, ms % 1000 * 1000000 };
	struct io_uring_cqe *cqe;
	struct completion c = { 0 };

	if (io_uring_wait_cqe_timeout(&ring, &cqe, &patience))
		return c;
	c.id = cqe->user_data;
	c.result = cqe->res;
	c.flags = cqe->flags;
	io_uring_cqe_seen(&ring, cqe);
	return c;
}

static void expect_complete(struct __test_metadata *_metadata, __u64 id, int result)
{
	struct completion c = complete(PATIENCE_MS);

	EXPECT_EQ(id, c.id);
	EXPECT_EQ(result, c.result);
}

/* Request 2 cancels request 1. */
static void expect_cancelled(struct __test_metadata *_metadata)
{
	__u64 ids = 0;

	for (int i = 0; i < 2; i++) {
		struct completion c = complete(PATIENCE_MS);

		ids |= c.id;
		EXPECT_EQ(c.id == 1 ? -ECANCELED : 0, c.result);
	}
	EXPECT_EQ(3, ids);
}

static int workers(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int n = 0;

	while (tasks && (task = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 task->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strncmp(name, "iou-wrk", 7))
			n++;
		fclose(f);
	}
	closedir(tasks);
	return n;
}

TEST_F(counter, read_comes_before_the_write)
{
	__u64 value = 0;

	NEED_RING();
	submit_read(self->fd, &value, 1);
	EXPECT_EQ(0, complete(QUIET_MS).id);
	EXPECT_EQ(0, workers());
	ASSERT_EQ(8, add(self->fd, 5));
	expect_complete(_metadata, 1, 8);
	EXPECT_EQ(5, value);
	EXPECT_EQ(0, count_of(self->fd));
}

/* Depends on the kernel: the read fails, or waits in spite of O_NONBLOCK. */
TEST_F(flowfd, nonblocking_as_eventfd)
{
	int theirs = open_counter(EVENTFD, 0, EFD_NONBLOCK);
	struct completion expected, c;
	__u64 value = 0;

	NEED_RING();
	set_nonblock(self->fd, true);
	submit_read(theirs, &value, 1);
	expected = complete(QUIET_MS);
	submit_read(self->fd, &value, 1);
	c = complete(QUIET_MS);
	EXPECT_EQ(expected.id, c.id);
	EXPECT_EQ(expected.result, c.result);
	close(theirs);
}

TEST_F(counter, write_that_fits)
{
	__u64 value = 5;

	NEED_RING();
	submit_write(self->fd, &value, 1);
	expect_complete(_metadata, 1, 8);
	EXPECT_EQ(5, count_of(self->fd));
	value = ULLONG_MAX;
	submit_write(self->fd, &value, 2);
	expect_complete(_metadata, 2, -EINVAL);
}

TEST_F(counter, poll_many_times)
{
	struct io_uring_sqe *sqe;
	struct completion c;

	NEED_RING();
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_poll_multishot(sqe, self->fd, POLLIN);
	submit(sqe, 1);
	EXPECT_EQ(0, complete(QUIET_MS).id);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(8, add(self->fd, 1));
		c = complete(PATIENCE_MS);
		EXPECT_EQ(1, c.id);
		EXPECT_EQ(POLLIN, c.result);
		EXPECT_EQ(IORING_CQE_F_MORE, c.flags);
	}
	EXPECT_EQ(0, complete(QUIET_MS).id);
}

TEST_F(counter, cancelled_read_takes_nothing)
{
	__u64 value = 42;

	NEED_RING();
	submit_read(self->fd, &value, 1);
	submit_cancel(1, 2);
	expect_cancelled(_metadata);
	ASSERT_EQ(8, add(self->fd, 5));
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(42, value);
}

TEST_F(counter, registered_file)
{
	struct io_uring_sqe *sqe;
	__u64 value = 7;

	NEED_RING();
	ASSERT_EQ(0, io_uring_register_files(&ring, &self->fd, 1));
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_write(sqe, 0, &value, sizeof(value), 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	submit(sqe, 1);
	expect_complete(_metadata, 1, 8);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read(sqe, 0, &value, sizeof(value), 0);
	sqe->flags |= IOSQE_FIXED_FILE;
	value = 0;
	submit(sqe, 2);
	expect_complete(_metadata, 2, 8);
	EXPECT_EQ(7, value);
}

/* The request holds the open file description when the descriptor is closed. */
TEST_F(counter, pending_read_outlives_the_descriptor)
{
	int copy = dup(self->fd);
	struct completion c;
	__u64 value = 0;

	NEED_RING();
	submit_read(copy, &value, 1);
	close(copy);
	ASSERT_EQ(8, add(self->fd, 5));
	c = complete(PATIENCE_MS);
	EXPECT_EQ(1, c.id);
	EXPECT_EQ(5, value);
}

/* Not compared from here on: with an eventfd, io_uring uses a worker or blocks. */
TEST_F(flowfd, write_waits_for_a_higher_maximum)
{
	__u64 value = 1;

	NEED_RING();
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	submit_write(self->fd, &value, 1);
	EXPECT_EQ(0, complete(QUIET_MS).id);
	ASSERT_EQ(0, set_maximum(self->fd, 11));
	expect_complete(_metadata, 1, 8);
	EXPECT_EQ(0, workers());
	EXPECT_EQ(10, count_of(self->fd));
}

/*
 * There is room, but too little for this value, which poll cannot know. The write must
 * complete all the same.
 */
TEST_F(flowfd, write_that_needs_more_room)
{
	__u64 value = 8, taken;

	NEED_RING();
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 5));
	submit_write(self->fd, &value, 1);
	EXPECT_EQ(0, complete(QUIET_MS).id);
	EXPECT_EQ(5, count_of(self->fd));
	ASSERT_EQ(8, take(self->fd, &taken));
	expect_complete(_metadata, 1, 8);
	EXPECT_EQ(8, count_of(self->fd));
}

TEST_F(flowfd, write_waits_without_a_worker)
{
	__u64 values[8], ids = 0;

	NEED_RING();
	ASSERT_EQ(0, set_maximum(self->fd, 2));
	for (int i = 0; i < 8; i++) {
		values[i] = 1;
		submit_write(self->fd, &values[i], 1 << i);
	}
	/* There is room for the first. */
	expect_complete(_metadata, 1, 8);
	EXPECT_EQ(0, complete(QUIET_MS).id);
	EXPECT_EQ(0, workers());
	for (int i = 1; i < 8; i++) {
		__u64 value;

		ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
		ASSERT_EQ(8, take(self->fd, &value));
		EXPECT_EQ(1, value);
		/* Completions are made when the task enters the io_uring. */
		struct completion c = complete(PATIENCE_MS);

		EXPECT_EQ(8, c.result);
		ids |= c.id;
	}
	EXPECT_EQ(254, ids);
	EXPECT_EQ(0, workers());
	EXPECT_EQ(1, count_of(self->fd));
}

TEST_F(flowfd, cancelled_write_adds_nothing)
{
	__u64 value = 1, taken;

	NEED_RING();
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	submit_write(self->fd, &value, 1);
	submit_cancel(1, 2);
	expect_cancelled(_metadata);
	ASSERT_EQ(8, take(self->fd, &taken));
	EXPECT_EQ(0, complete(QUIET_MS).id);
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_F(flowfd, failed_read_loses_nothing)
{

	NEED_RING();
	ASSERT_EQ(8, add(self->fd, 5));
	submit_read(self->fd, (__u64 *)16, 1);
	expect_complete(_metadata, 1, -EFAULT);
	EXPECT_EQ(5, count_of(self->fd));
}

/* The io_uring is closed while its write waits. */
TEST_F(flowfd, ring_goes_first)
{
	__u64 value = 1, taken;

	NEED_RING();
	ASSERT_EQ(0, set_maximum(self->fd, 2));
	ASSERT_EQ(8, add(self->fd, 1));
	submit_write(self->fd, &value, 1);
	io_uring_queue_exit(&ring);
	sleep_ms(QUIET_MS);
	ASSERT_EQ(8, take(self->fd, &taken));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, count_of(self->fd));
}

/* The bucket defers a request's wakeup, too, and delivers it. */
TEST_F(flowfd, limited_wakeups_arrive)
{
	__u64 value = 0;

	NEED_RING();
	ASSERT_EQ(0, set_qos(self->fd, 1, 20));
	for (int i = 1; i <= 5; i++) {
		struct completion c;

		submit_read(self->fd, &value, i);
		ASSERT_EQ(8, add(self->fd, i));
		c = complete(PATIENCE_MS);
		EXPECT_EQ(i, c.id);
		EXPECT_EQ(8, c.result);
		EXPECT_EQ(i, value);
	}
}

/* Plain write(2) fails then; io_uring does not even call an eventfd. */
TEST_F(counter, write_of_nothing)
{
	struct io_uring_sqe *sqe;
	__u64 value = 1;

	NEED_RING();
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_write(sqe, self->fd, &value, 0, 0);
	submit(sqe, 1);
	expect_complete(_metadata, 1, 0);
	EXPECT_EQ(0, count_of(self->fd));
}

/*
 * Each completion signals an eventfd that feeds a counter. A poll of that counter
 * completes by that, too: it ends when the completion queue is full, and goes on when
 * somebody empties that.
 */
TEST(poll_that_feeds_itself)
{
	int fd = open_counter(CREATED, 0, EFD_NONBLOCK), event = new_eventfd();
	struct io_uring_sqe *sqe;
	__u64 value, before;

	NEED_RING();
	ASSERT_EQ(0, io_uring_register_eventfd(&ring, event));
	ASSERT_EQ(0, source(fd, event));
	for (int i = 1; i <= 100; i++) {
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_nop(sqe);
		submit(sqe, i);
		expect_complete(_metadata, i, 0);
	}
	EXPECT_TRUE(count_becomes(fd, 100));
	ASSERT_EQ(8, take(fd, &value));
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	submit(sqe, 1);
	EXPECT_EQ(8, add(fd, 1));
	sleep_ms(3 * QUIET_MS);
	before = count_of(fd);
	sleep_ms(3 * QUIET_MS);
	EXPECT_EQ(before, count_of(fd));
	EXPECT_LT(1, before);
	EXPECT_GE(100, before);
	for (int i = 0; i < 100 && complete(QUIET_MS).id; i++)
		;
	EXPECT_LT(before, count_of(fd));
	io_uring_queue_exit(&ring);
	close(fd);
	close(event);
}

TEST_HARNESS_MAIN
