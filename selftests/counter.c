// SPDX-License-Identifier: GPL-2.0-only
/*
 * The count as read, write, poll and fdinfo show it: values at the limits, semaphores,
 * the event mask for each count.
 */
#include "fixtures.h"

TEST_F(counter, starts_empty)
{
	__u64 value = 42;

	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_EQ(0, count_of(self->fd));
	set_nonblock(self->fd, true);
	EXPECT_EQ(-EAGAIN, take(self->fd, &value));
	EXPECT_EQ(42, value);
}

TEST_F(counter, read_takes_the_sum)
{
	__u64 value;

	ASSERT_EQ(8, add(self->fd, 1));
	ASSERT_EQ(8, add(self->fd, 41));
	EXPECT_EQ(42, count_of(self->fd));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(42, value);
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

TEST_F(counter, zero_adds_nothing)
{
	__u64 value;

	EXPECT_EQ(8, add(self->fd, 0));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	set_nonblock(self->fd, true);
	EXPECT_EQ(-EAGAIN, take(self->fd, &value));
	/* Even if no other value fits. */
	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	EXPECT_EQ(8, add(self->fd, 0));
	EXPECT_EQ(ULLONG_MAX - 1, count_of(self->fd));
}

TEST_F(counter, values_at_the_edge)
{
	__u64 value;

	set_nonblock(self->fd, true);
	EXPECT_EQ(-EINVAL, add(self->fd, ULLONG_MAX));
	EXPECT_EQ(0, count_of(self->fd));

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	EXPECT_EQ(-EAGAIN, add(self->fd, 1));
	EXPECT_EQ(-EAGAIN, add(self->fd, ULLONG_MAX - 1));
	EXPECT_EQ(-EINVAL, add(self->fd, ULLONG_MAX));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(ULLONG_MAX - 1, value);

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 2));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	EXPECT_EQ(-EAGAIN, add(self->fd, 2));
	EXPECT_EQ(8, add(self->fd, 1));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(ULLONG_MAX - 1, value);

	ASSERT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(-EAGAIN, add(self->fd, ULLONG_MAX - 1));
	EXPECT_EQ(8, add(self->fd, ULLONG_MAX - 2));
}

TEST_F(counter, nonblock_by_fcntl)
{
	struct call reader;
	__u64 value;

	EXPECT_EQ(0, fcntl(self->fd, F_GETFL) & O_NONBLOCK);
	set_nonblock(self->fd, true);
	EXPECT_EQ(-EAGAIN, take(self->fd, &value));
	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	EXPECT_EQ(-EAGAIN, add(self->fd, 1));
	ASSERT_EQ(8, take(self->fd, &value));

	set_nonblock(self->fd, false);
	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_EQ(8, add(self->fd, 7));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(8, reader.result);
	EXPECT_EQ(7, reader.value);
}

TEST_F(semaphore, read_takes_one)
{
	__u64 value;

	ASSERT_EQ(8, add(self->fd, 3));
	for (int left = 2; left >= 0; left--) {
		value = 0;
		ASSERT_EQ(8, take(self->fd, &value));
		EXPECT_EQ(1, value);
		EXPECT_EQ(left, count_of(self->fd));
	}
	set_nonblock(self->fd, true);
	EXPECT_EQ(-EAGAIN, take(self->fd, &value));
	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	EXPECT_EQ(-EAGAIN, add(self->fd, 1));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_EQ(8, add(self->fd, 1));
}

TEST_F(flowfd, fdinfo_shows_all_settings)
{
	char line[64];

	ASSERT_EQ(8, add(self->fd, 0x1234));
	ASSERT_EQ(0, set_maximum(self->fd, 0xabcdef));
	ASSERT_EQ(0, set_qos(self->fd, 7, 1000));

	fdinfo_line(self->fd, "eventfd-count", line, sizeof(line));
	EXPECT_STREQ("             1234", line);
	fdinfo_line(self->fd, "eventfd-semaphore", line, sizeof(line));
	EXPECT_STREQ(" 0", line);
	fdinfo_line(self->fd, "eventfd-maximum", line, sizeof(line));
	EXPECT_STREQ("           abcdef", line);
	fdinfo_line(self->fd, "flowfd-token-capacity", line, sizeof(line));
	EXPECT_STREQ(" 7", line);
	fdinfo_line(self->fd, "flowfd-token-rate", line, sizeof(line));
	EXPECT_STREQ(" 1000", line);
	fdinfo_line(self->fd, "flowfd-wakeup-deferred", line, sizeof(line));
	EXPECT_STREQ(" 0", line);
	EXPECT_LE(0, id_of(self->fd));
}

TEST_F(flowfd, fdinfo_default)
{
	char line[64];

	fdinfo_line(self->fd, "eventfd-maximum", line, sizeof(line));
	EXPECT_STREQ(" ffffffffffffffff", line);
	fdinfo_line(self->fd, "flowfd-token-capacity", line, sizeof(line));
	EXPECT_STREQ(" 0", line);
	fdinfo_line(self->fd, "flowfd-token-rate", line, sizeof(line));
	EXPECT_STREQ(" 0", line);
}

static unsigned long long references_of(int fd)
{
	return fdinfo_number(fd, "flowfd-references", 10);
}

/* Watches are not references. */
TEST_F(flowfd, fdinfo_counts_references)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int copy, child;

	EXPECT_EQ(1, references_of(self->fd));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &event));
	EXPECT_EQ(1, references_of(self->fd));
	copy = dup(self->fd);
	EXPECT_EQ(2, references_of(self->fd));
	EXPECT_EQ(2, references_of(copy));
	close(copy);
	EXPECT_EQ(1, references_of(self->fd));

	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	EXPECT_EQ(2, references_of(self->fd));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(1, references_of(self->fd));
	close(epoll);
}

/* The lines of an eventfd come first, in its order and format. */
TEST_F(flowfd, fdinfo_of_eventfd_comes_first)
{
	char path[64], theirs[64], ours[64];
	int fd = eventfd(0x99, 0);
	FILE *f, *g;

	ASSERT_EQ(8, add(self->fd, 0x99));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	g = fopen(path, "r");
	ASSERT_NE(NULL, g);

	while (fgets(theirs, sizeof(theirs), f)) {
		if (strncmp(theirs, "eventfd-", 8))
			continue;
		do {
			ASSERT_NE(NULL, fgets(ours, sizeof(ours), g));
		} while (strncmp(ours, "eventfd-", 8));
		if (!strncmp(theirs, "eventfd-id:", 11)) {
			EXPECT_EQ(0, strncmp(ours, "eventfd-id: ", 12));
		} else {
			EXPECT_STREQ(theirs, ours);
		}
	}
	fclose(f);
	fclose(g);
	close(fd);
}

TEST(fdinfo_of_semaphore)
{
	int fd = open_counter(CREATED, 1, EFD_SEMAPHORE);
	char line[64];

	ASSERT_LE(0, fd);
	fdinfo_line(fd, "eventfd-semaphore", line, sizeof(line));
	EXPECT_STREQ(" 1", line);
	close(fd);
}

TEST_HARNESS_MAIN
