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
	static const struct {
		const char *key, *unset, *set;
	} lines[] = {
		{ "eventfd-count", "                0", "             1234" },
		{ "eventfd-semaphore", " 0", " 0" },
		{ "eventfd-maximum", " ffffffffffffffff", "           abcdef" },
		{ "flowfd-token-capacity", " 0", " 7" },
		{ "flowfd-token-rate", " 0", " 1000" },
		{ "flowfd-wakeup-deferred", " 0", " 0" },
	};
	char line[64];

	for (int set = 0; set < 2; set++) {
		for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
			fdinfo_line(self->fd, lines[i].key, line, sizeof(line));
			EXPECT_STREQ(set ? lines[i].set : lines[i].unset, line);
		}
		ASSERT_EQ(8, add(self->fd, 0x1234));
		ASSERT_EQ(0, set_maximum(self->fd, 0xabcdef));
		ASSERT_EQ(0, set_qos(self->fd, 7, 1000));
	}
	EXPECT_LE(0, id_of(self->fd));
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

TEST_HARNESS_MAIN
