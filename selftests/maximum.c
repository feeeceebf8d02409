// SPDX-License-Identifier: GPL-2.0-only
/*
 * The maximum as a setting: which values it accepts, what poll reports. What fits below
 * it is in flow_overflow.c, blocked writers are in writers.c.
 */
#include "fixtures.h"

TEST_F(flowfd, maximum_is_what_was_set)
{
	static const __u64 values[] = { 1, 2, 10, 1ULL << 32, 1ULL << 63,
					ULLONG_MAX - 1, ULLONG_MAX, 3 };

	EXPECT_EQ(ULLONG_MAX, maximum_of(self->fd));
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		EXPECT_EQ(0, set_maximum(self->fd, values[i]));
		EXPECT_EQ(values[i], maximum_of(self->fd));
	}
}

TEST_F(flowfd, maximum_must_be_above_the_count)
{
	EXPECT_EQ(-EINVAL, set_maximum(self->fd, 0));
	EXPECT_EQ(ULLONG_MAX, maximum_of(self->fd));

	ASSERT_EQ(0, set_maximum(self->fd, 20));
	ASSERT_EQ(8, add(self->fd, 5));
	for (__u64 bad = 0; bad <= 5; bad++) {
		EXPECT_EQ(-EINVAL, set_maximum(self->fd, bad));
		EXPECT_EQ(20, maximum_of(self->fd));
		EXPECT_EQ(5, count_of(self->fd));
	}
	EXPECT_EQ(0, set_maximum(self->fd, 6));
	EXPECT_EQ(6, maximum_of(self->fd));
}

TEST_F(flowfd, poll_below_the_maximum)
{
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 4));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, add(self->fd, 2));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 5));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 4));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(3, value);
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

TEST_F(flowfd, maximum_of_one_admits_nothing)
{
	set_nonblock(self->fd, true);
	ASSERT_EQ(0, set_maximum(self->fd, 1));
	EXPECT_EQ(0, poll_now(self->fd));
	EXPECT_EQ(-EINVAL, add(self->fd, 1));
	EXPECT_EQ(8, add(self->fd, 0));
	EXPECT_EQ(0, poll_now(self->fd));
	EXPECT_EQ(0, poll_for(self->fd, POLLOUT, QUIET_MS));
	ASSERT_EQ(0, set_maximum(self->fd, 2));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_EQ(8, add(self->fd, 1));
}

TEST(semaphore_below_a_maximum)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE | EFD_NONBLOCK);
	__u64 value;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, set_maximum(fd, 4));
	ASSERT_EQ(8, add(fd, 3));
	EXPECT_EQ(-EAGAIN, add(fd, 1));
	EXPECT_EQ(POLLIN, poll_now(fd));
	ASSERT_EQ(8, take(fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(fd));
	EXPECT_EQ(8, add(fd, 1));
	close(fd);
}

/*
 * Cycles through (count, maximum) = (0, 100) (5, 100) (0, 100) (0, 5), so poll may see
 * OUT or IN | OUT. Only a count and a maximum of different moments give anything else:
 * (5, 5) would be IN | ERR. Those of a mapped counter are of different moments, and IN alone
 * is what a full one shows.
 */
struct hammer {
	int fd;
	bool stop;
};

static void *hammer_run(void *arg)
{
	struct hammer *h = arg;
	__u64 value;

	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		add(h->fd, 5);
		take(h->fd, &value);
		set_maximum(h->fd, 5);
		set_maximum(h->fd, 100);
	}
	return NULL;
}

/* Polls the same descriptor many times in one call: the moment to catch is short. */
#define LOOKS 256

TEST_F(flowfd, poll_sees_one_moment)
{
	__u64 end = ms_from_now(parameter("FLOWFD_HAMMER_MS", 1500));
	int full = variant->origin == MAPPED ? POLLIN : POLLOUT;
	struct hammer h = { .fd = self->fd };
	unsigned long readable = 0, looks = 0;
	struct pollfd fds[LOOKS];
	pthread_t thread;

	for (int i = 0; i < LOOKS; i++)
		fds[i] = (struct pollfd){ self->fd, POLLIN | POLLOUT, 0 };
	ASSERT_EQ(0, set_maximum(self->fd, 100));
	ASSERT_EQ(0, pthread_create(&thread, NULL, hammer_run, &h));
	while (now_ns() < end) {
		ASSERT_LT(0, poll(fds, LOOKS, 0));
		for (int i = 0; i < LOOKS; i++) {
			int events = fds[i].revents;

			readable += events == (POLLIN | POLLOUT);
			looks++;
			if (events == POLLOUT || events == (POLLIN | POLLOUT) ||
			    events == full)
				continue;
			EXPECT_EQ(POLLOUT, events);
			end = 0;
		}
	}
	__atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* Both threads ran at the same time. */
	EXPECT_LT(0, readable);
	EXPECT_LT(readable, looks);
}

TEST_HARNESS_MAIN
