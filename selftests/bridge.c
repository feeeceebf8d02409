// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges step by step: both ends, each error, and what happens when an end is closed.
 */
#include "bridge_fixture.h"
#include "flow_user.h"

#include <sys/resource.h>
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

/* The sink would make room for the source, and no program would have to be there. */
TEST_F(bridge, no_maximum_between_eventfds)
{
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-EINVAL, sink(self->fd, self->out));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-sink"));
	ASSERT_EQ(0, remove_source(self->fd));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(-EINVAL, source(self->fd, self->in));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-EINVAL, set_maximum(self->fd, 10));
	EXPECT_EQ(-EINVAL, set_flow(self->fd, (struct flowfd_flow){ .maximum = 10 }));
	EXPECT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	EXPECT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.overflow = FLOWFD_OVERFLOW_FAIL }));
	/* What failed changed nothing. */
	EXPECT_EQ(8, add(self->in, 20));
	EXPECT_TRUE(count_becomes(self->out, signalled(20)));
	ASSERT_EQ(0, remove_source(self->fd));
	EXPECT_EQ(0, set_maximum(self->fd, 10));
}

/* What a source took is as good as a source. */
TEST_F(bridge, no_maximum_while_something_waits)
{
	__u64 value, sum = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 25));
	ASSERT_EQ(0, remove_source(self->fd));
	EXPECT_EQ(16, waiting_of(self->fd));
	EXPECT_EQ(-EINVAL, sink(self->fd, self->out));
	while (sum < 25 && poll_for(self->fd, POLLIN, PATIENCE_MS) == POLLIN) {
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	EXPECT_EQ(25, sum);
	EXPECT_EQ(0, sink(self->fd, self->out));
}

/* The same if the eventfd was closed, and still has something. */
TEST_F(bridge, no_maximum_while_a_closed_source_waits)
{
	__u64 value;

	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 5));
	close(self->in);
	self->in = -1;
	EXPECT_EQ(-EINVAL, sink(self->fd, self->out));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(count_becomes(self->fd, 5));
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
	EXPECT_EQ(0, sink(self->fd, self->out));
	EXPECT_TRUE(count_becomes(self->out, signalled(5)));
	EXPECT_EQ(0, set_maximum(self->fd, 100));
}

/* It would go on for years without a program. */
TEST_F(bridge, huge_semaphore_moves_once_for_a_signal)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	__u64 moved;

	ASSERT_EQ(8, add(in, 1ULL << 62));
	ASSERT_EQ(0, source(self->fd, in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	for (int i = 1; i <= 10; i++) {
		sleep_ms(QUIET_MS);
		moved = fdinfo_number(self->fd, "flowfd-produced", 10);
		EXPECT_EQ(i * SEMAPHORE_TAKES, moved);
		EXPECT_EQ(8, add(in, 1));
	}
	close(in);
}

/*
 * So no bridge leads to another one: there are no chains, and no cycles. And no signal
 * wakes many others, which would be a product of two limits.
 */
TEST_F(bridge, eventfd_in_one_bridge)
{
	int second = open_counter(variant->origin, 0, EFD_NONBLOCK);
	int other = new_eventfd();

	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-EBUSY, source(self->fd, self->in));
	EXPECT_EQ(-EBUSY, source(self->fd, other));
	EXPECT_EQ(-EBUSY, sink(self->fd, self->in));
	EXPECT_EQ(-EBUSY, sink(second, self->in));
	EXPECT_EQ(-EBUSY, source(second, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(-EBUSY, sink(self->fd, self->out));
	EXPECT_EQ(-EBUSY, sink(self->fd, other));
	EXPECT_EQ(-EBUSY, source(second, self->out));
	EXPECT_EQ(-EBUSY, sink(second, self->out));
	EXPECT_EQ(NO_EVENTFD, bridged_id(second, "flowfd-source"));
	EXPECT_EQ(NO_EVENTFD, bridged_id(second, "flowfd-sink"));
	/* A refusal leaves nothing behind. */
	ASSERT_EQ(0, source(second, other));
	EXPECT_EQ(8, add(other, 3));
	EXPECT_EQ(3, count_of(second));
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_TRUE(count_becomes(self->out, signalled(2)));
	/* An end that is removed, or whose counter is closed, makes the eventfd free. */
	ASSERT_EQ(0, remove_sink(self->fd));
	EXPECT_EQ(0, sink(second, self->out));
	close(second);
	EXPECT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(-EBUSY, source(self->fd, other));
	ASSERT_EQ(0, remove_source(self->fd));
	EXPECT_EQ(0, source(self->fd, other));
	close(other);
}

/* However many pollers are in the queue of the eventfd. */
TEST_F(bridge, eventfd_in_one_bridge_beside_pollers)
{
	int second = open_counter(variant->origin, 0, EFD_NONBLOCK);
	int epolls[200];

	for (int i = 0; i < 100; i++)
		epolls[i] = epoll_on(self->in, EPOLLIN | EPOLLET);
	ASSERT_EQ(0, source(self->fd, self->in));
	for (int i = 100; i < 200; i++)
		epolls[i] = epoll_on(self->in, EPOLLIN | EPOLLET);
	EXPECT_EQ(-EBUSY, sink(second, self->in));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(1, count_of(self->fd));
	for (int i = 0; i < 200; i++)
		close(epolls[i]);
	close(second);
}

/* Locked memory limits how many work items a user can have. */
TEST(limit_of_bridges)
{
	struct rlimit two = { 2 * PAGE, 2 * PAGE };
	int fds[4], ins[4], status;
	pid_t child;

	for (int i = 0; i < 4; i++) {
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		ins[i] = new_eventfd();
	}
	child = fork();
	if (!child) {
		/* A user who has no other locked memory. */
		if (setrlimit(RLIMIT_MEMLOCK, &two) || setuid(54410))
			_exit(1);
		if (source(fds[0], ins[0]) || source(fds[1], ins[1]))
			_exit(2);
		/* Of both ends of a counter, the first one is charged. */
		if (source(fds[2], ins[2]) != -ENOMEM || sink(fds[0], ins[3]))
			_exit(3);
		/* With the counter. */
		if (remove_source(fds[0]) || source(fds[2], ins[2]) != -ENOMEM)
			_exit(4);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("%d", WEXITSTATUS(status));
	close(fds[0]);
	child = fork();
	if (!child) {
		if (setrlimit(RLIMIT_MEMLOCK, &two) || setuid(54410))
			_exit(1);
		_exit(source(fds[2], ins[2]) ? 2 : 0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status) TH_LOG("%d", WEXITSTATUS(status));
	for (int i = 1; i < 4; i++) {
		close(fds[i]);
		close(ins[i]);
	}
	close(ins[0]);
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
	EXPECT_EQ(-ENOENT, remove_sink(self->fd));
	EXPECT_EQ(-ENOENT, remove_source(self->fd));
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

/* A counter that was not set up can be while it has no bridge. */
TEST_F(bridge, set_up_later)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_SEMAPHORE };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	EXPECT_EQ(-EINVAL, source(fd, fd));
	EXPECT_EQ(0, source(fd, self->in));
	EXPECT_EQ(-EBUSY, sink(fd, self->in));
	EXPECT_EQ(-EBUSY, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	EXPECT_EQ(0, remove_source(fd));
	EXPECT_EQ(0, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	close(fd);
	/* One that was refused is none. */
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	EXPECT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(-EBUSY, source(fd, self->in));
	EXPECT_EQ(0, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	EXPECT_EQ(-EINVAL, sink(fd, self->out));
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

/* Life. */

/* The counter goes first: the eventfds are ordinary ones again. */
TEST_F(bridge, counter_is_closed)
{
	__u64 value;

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
	EXPECT_EQ(8, add(self->in, 100));
	EXPECT_EQ(91, waiting_of(self->fd));
	close(self->fd);
	self->fd = open_counter(variant->origin, 0, EFD_NONBLOCK);
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

TEST_HARNESS_MAIN
