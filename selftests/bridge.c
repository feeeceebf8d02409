// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges step by step: both ends, cycles, each error, and what happens when an end is
 * closed.
 */
#include "bridge_fixture.h"

#include <sys/timerfd.h>
#include <sys/wait.h>

/* Both. */

TEST_F(bridge, source_and_sink)
{
	__u64 sum;

	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(id_of(self->in), bridged_id(self->fd, "flowfd-source"));
	EXPECT_EQ(id_of(self->out), bridged_id(self->fd, "flowfd-sink"));
	for (int i = 1; i <= 1000; i++)
		ASSERT_EQ(8, add(self->in, i));
	EXPECT_TRUE(count_becomes(self->fd, 0));
	sum = sum_of_signals(self->out);
	if (signals_have_values()) {
		EXPECT_EQ(500500, sum);
	} else {
		EXPECT_LT(0, sum);
	}
}

/* A maximum between them: the sink makes the room that the source waits for. */
TEST_F(bridge, source_and_sink_with_a_maximum)
{
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->in, 1000));
	if (signals_have_values()) {
		EXPECT_TRUE(count_becomes(self->out, 1000));
	} else {
		EXPECT_TRUE(count_becomes(self->out, 112));
	}
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(0, count_of(self->fd));
}

/* Both ends move it without any program: they must not do so at full speed for years. */
TEST_F(bridge, source_and_sink_that_never_end)
{
	__u64 moved;

	ASSERT_EQ(0, set_maximum(self->fd, 2));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->in, ULLONG_MAX - 1));
	sleep_ms(1000);
	/* Each signal adds 1, in all kernels. */
	moved = count_of(self->out);
	EXPECT_LE(256, moved);
	EXPECT_GT(256 + 20, moved);
	/* A signal makes it begin anew, once. */
	EXPECT_EQ(8, add(self->in, 1));
	sleep_ms(1000);
	EXPECT_LE(moved + 256, count_of(self->out));
	EXPECT_GT(moved + 256 + 20, count_of(self->out));
	/* And what waits is moved as soon as it fits. */
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	EXPECT_TRUE(count_becomes(self->fd, 0));
	if (signals_have_values())
		EXPECT_TRUE(count_becomes(self->out, ULLONG_MAX));
}

TEST_F(bridge, source_and_sink_through_the_bucket)
{
	__u64 value, sum = 0, written = 0, begin;
	unsigned int signals = 0;

	ASSERT_EQ(0, set_qos(self->fd, 1, 1000));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	begin = now_ns();
	while (now_ns() < begin + 300000000) {
		ASSERT_EQ(8, add(self->in, 3));
		written += 3;
		if (take(self->out, &value) == 8) {
			signals++;
			sum += value;
		}
	}
	EXPECT_LE(signals, (now_ns() - begin) / 1000000 + 2);
	EXPECT_TRUE(count_becomes(self->fd, 0));
	if (signals_have_values())
		EXPECT_TRUE(count_becomes(self->out, written - sum));
}

TEST_F(bridge, chain)
{
	int second = open_counter(variant->origin, 0, EFD_NONBLOCK);
	int last = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	ASSERT_EQ(0, source(second, self->out));
	ASSERT_EQ(0, sink(second, last));
	EXPECT_EQ(8, add(self->in, 7));
	EXPECT_TRUE(count_becomes(last, signalled(7)));
	/* Nothing holds the ends: the middle goes, and the rest stays as it is. */
	close(self->out);
	self->out = -1;
	EXPECT_TRUE(end_goes(self->fd, "flowfd-sink"));
	EXPECT_TRUE(end_goes(second, "flowfd-source"));
	EXPECT_EQ(id_of(self->in), bridged_id(self->fd, "flowfd-source"));
	EXPECT_EQ(id_of(last), bridged_id(second, "flowfd-sink"));
	close(second);
	close(last);
}

/* A signal would wake each of the others, which is a product of two limits. */
TEST_F(bridge, sinks_share_no_eventfd)
{
	int second = open_counter(variant->origin, 0, EFD_NONBLOCK);

	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(-EBUSY, sink(second, self->out));
	EXPECT_EQ(NO_EVENTFD, bridged_id(second, "flowfd-sink"));
	/* A refusal leaves nothing behind. */
	ASSERT_EQ(0, sink(second, self->in));
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE));
	ASSERT_EQ(0, bridge(second, -1, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE));
	ASSERT_EQ(0, sink(second, self->out));
	EXPECT_EQ(8, add(second, 1));
	EXPECT_TRUE(count_becomes(self->out, 1));
	close(second);
}

/* Cycles. */

TEST_F(bridge, cycle_of_one)
{
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-ELOOP, sink(self->fd, self->in));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-sink"));
	ASSERT_EQ(0, sink(self->fd, self->out));
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(-ELOOP, source(self->fd, self->out));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	/* A refusal leaves nothing behind. */
	EXPECT_EQ(8, add(self->out, 3));
	EXPECT_EQ(3, count_of(self->out));
	EXPECT_EQ(0, source(self->fd, self->in));
}

TEST_F(bridge, cycle_of_two)
{
	int second = open_counter(variant->origin, 0, EFD_NONBLOCK);

	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	ASSERT_EQ(0, source(second, self->out));
	EXPECT_EQ(-ELOOP, sink(second, self->in));
	EXPECT_EQ(-EBUSY, sink(second, self->out));
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	ASSERT_EQ(0, sink(second, self->in));
	EXPECT_EQ(-ELOOP, source(self->fd, self->in));
	close(second);
	/* It was that counter's source. */
	EXPECT_EQ(0, source(self->fd, self->in));
}

#define LONGEST 16

/* However it is built: from its end, from its beginning, or of two parts. */
TEST(chain_that_is_too_long)
{
	int counters[LONGEST + 1], eventfds[LONGEST + 2], i;

	for (i = 0; i <= LONGEST + 1; i++)
		eventfds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (i = 0; i <= LONGEST; i++) {
		counters[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		ASSERT_EQ(0, sink(counters[i], eventfds[i + 1]));
	}
	for (i = LONGEST; i > 1; i--)
		ASSERT_EQ(0, source(counters[i], eventfds[i])) TH_LOG("%d", i);
	EXPECT_EQ(-ELOOP, source(counters[1], eventfds[1]));
	ASSERT_EQ(0, bridge(counters[LONGEST], -1,
			    FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(0, source(counters[1], eventfds[1]));
	EXPECT_EQ(-ELOOP, source(counters[LONGEST], eventfds[LONGEST]));
	ASSERT_EQ(0, bridge(counters[8], -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(0, source(counters[LONGEST], eventfds[LONGEST]));
	EXPECT_EQ(-ELOOP, source(counters[8], eventfds[8]));
	/* Two that are shorter, and what they pass on. */
	EXPECT_EQ(8, add(eventfds[1], 1));
	EXPECT_TRUE(count_becomes(eventfds[8], 1));
	EXPECT_EQ(8, add(counters[8], 1));
	EXPECT_TRUE(count_becomes(eventfds[LONGEST + 1], 1));
	for (i = 0; i <= LONGEST; i++) {
		close(counters[i]);
		close(eventfds[i]);
	}
	close(eventfds[i]);
}

/* Errors. */

TEST_F(bridge, wrong_flags)
{
	EXPECT_EQ(-EINVAL, bridge(self->fd, self->in, 0));
	EXPECT_EQ(-EINVAL, bridge(self->fd, self->in, FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(-EINVAL, bridge(self->fd, self->in,
				  FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_SINK));
	EXPECT_EQ(-EINVAL, bridge(self->fd, self->in, FLOWFD_BRIDGE_SOURCE | 8));
	EXPECT_EQ(-EINVAL, bridge(self->fd, self->in, FLOWFD_BRIDGE_SINK | 1U << 31));
	EXPECT_EQ(-ENOENT, bridge(self->fd, -1,
				  FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(-ENOENT, bridge(self->fd, -1,
				  FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
}

TEST_F(bridge, wrong_descriptors)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	int ep = epoll_create1(0);
	int wrong[] = { timer, ep, self->fd, STDIN_FILENO };
	int ends[2];

	ASSERT_EQ(0, pipe(ends));
	EXPECT_EQ(-EBADF, source(self->fd, -1));
	EXPECT_EQ(-EBADF, sink(self->fd, 12345));
	for (unsigned int i = 0; i < 4; i++) {
		EXPECT_EQ(-EINVAL, source(self->fd, wrong[i])) TH_LOG("%u", i);
		EXPECT_EQ(-EINVAL, sink(self->fd, wrong[i])) TH_LOG("%u", i);
	}
	EXPECT_EQ(-EINVAL, sink(self->fd, ends[1]));
	EXPECT_EQ(-ENOTTY, sink(self->in, self->out));
	close(timer);
	close(ep);
	close(ends[0]);
	close(ends[1]);
}

TEST_F(bridge, busy)
{
	int second = open_counter(variant->origin, 0, EFD_NONBLOCK);

	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-EBUSY, source(self->fd, self->in));
	EXPECT_EQ(-EBUSY, source(self->fd, self->out));
	EXPECT_EQ(-EBUSY, source(second, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(-EBUSY, sink(self->fd, self->out));
	/* The first are as they were. */
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_TRUE(count_becomes(self->out, signalled(2)));
	close(second);
}

TEST_F(bridge, semaphore)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE | EFD_NONBLOCK);
	__u64 value;

	EXPECT_EQ(-EINVAL, sink(fd, self->out));
	EXPECT_EQ(0, source(fd, self->in));
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_EQ(1, count_of(fd));
	close(fd);
}

/* A counter that was not set up can be until it has a bridge. */
TEST_F(bridge, set_up_later)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_SEMAPHORE };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	EXPECT_EQ(-EINVAL, source(fd, fd));
	EXPECT_EQ(0, source(fd, self->in));
	EXPECT_EQ(-ELOOP, sink(fd, self->in));
	EXPECT_EQ(-EBUSY, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	/* What the source has taken may still wait. */
	EXPECT_EQ(0, bridge(fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(-EBUSY, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	close(fd);
	/* One that was refused is none. */
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	EXPECT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-EBUSY, source(fd, self->in));
	EXPECT_EQ(0, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	EXPECT_EQ(-EINVAL, sink(fd, self->out));
	close(fd);
}

/* However many it has had. */
TEST_F(bridge, set_up_after_many_bridges)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_SEMAPHORE };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	for (unsigned int i = 0; i <= USHRT_MAX; i++) {
		ASSERT_EQ(0, source(fd, self->in));
		ASSERT_EQ(0, bridge(fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	}
	EXPECT_EQ(-EBUSY, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	close(fd);
}

TEST(directions)
{
	int efd = eventfd(0, EFD_CLOEXEC);
	int readable = open(DEVICE, O_RDONLY | O_CLOEXEC);
	int writable = open(DEVICE, O_WRONLY | O_CLOEXEC);

	EXPECT_EQ(-EBADF, source(readable, efd));
	EXPECT_EQ(-EBADF, sink(writable, efd));
	EXPECT_EQ(-EBADF, bridge(readable, efd, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(-EBADF, bridge(writable, efd, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(0, sink(readable, efd));
	close(readable);
	EXPECT_EQ(0, source(writable, efd));
	close(writable);
	close(efd);
}

TEST_F(bridge, sizes)
{
	struct {
		struct flowfd_bridge known;
		__u32 unknown;
	} args = { .known = { self->in, FLOWFD_BRIDGE_SOURCE } };
	unsigned long base = FLOWFD_IOC_COUNTER_BRIDGE &
			     ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT);
	unsigned long shorter = base | 4UL << _IOC_SIZESHIFT;
	unsigned long longer = base | sizeof(args) << _IOC_SIZESHIFT;

	EXPECT_EQ(-EINVAL, result_of(ioctl(self->fd, shorter, &args)));
	args.unknown = 1;
	EXPECT_EQ(-E2BIG, result_of(ioctl(self->fd, longer, &args)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(self->fd, FLOWFD_IOC_COUNTER_BRIDGE, NULL)));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	args.unknown = 0;
	EXPECT_EQ(0, result_of(ioctl(self->fd, longer, &args)));
}

TEST(feature)
{
	struct flowfd_query query = { 0 };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	ASSERT_EQ(0, ioctl(fd, FLOWFD_IOC_QUERY, &query));
	EXPECT_NE(0, query.features & FLOWFD_FEATURE_BRIDGE);
	close(fd);
}

/* Life. */

/* The counter goes first: the eventfds are ordinary ones again. */
TEST_F(bridge, counter_is_closed)
{
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(8, add(self->in, 20));
	EXPECT_EQ(8, take(self->in, &value));
	EXPECT_EQ(20, value);
	EXPECT_EQ(0, count_of(self->out));
}

TEST_F(bridge, holds_no_module)
{
	long users;

	close(self->fd);
	users = module_users();
	self->fd = open_counter(variant->origin, 0, EFD_NONBLOCK);
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->in, 100));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(users, settled_module_users(users));
}

/* The bridge belongs to the files, not to the process that made it. */
TEST_F(bridge, fork_and_exit)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(source(self->fd, self->in) || sink(self->fd, self->out));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(8, add(self->in, 6));
	EXPECT_TRUE(count_becomes(self->out, signalled(6)));
	/* A copy of the descriptor keeps the eventfd. */
	child = fork();
	if (!child) {
		close(self->fd);
		pause();
	}
	close(self->in);
	self->in = -1;
	sleep_ms(QUIET_MS);
	EXPECT_NE(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
}

TEST_F(bridge, exec_closes)
{
	pid_t child;
	int hold[2];

	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, pipe(hold));
	child = fork();
	if (!child) {
		dup2(hold[0], STDIN_FILENO);
		close(hold[0]);
		close(hold[1]);
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	close(self->in);
	self->in = -1;
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
	EXPECT_EQ(0, kill(child, 0));
	EXPECT_EQ(1, write(hold[1], "x", 1));
	close(hold[1]);
	close(hold[0]);
	waitpid(child, NULL, 0);
}

TEST_HARNESS_MAIN
