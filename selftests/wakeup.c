// SPDX-License-Identifier: GPL-2.0-only
/*
 * No wakeup is lost in random bursts: the reader sleeps in read, poll or epoll.
 *
 * FLOWFD_ROUNDS sets the number of bursts.
 */
#include "burst.h"

enum way {
	READ,
	POLL,
	EPOLL,
};

FIXTURE(race)
{
	int fd;
};

FIXTURE_VARIANT(race)
{
	enum origin origin;
	enum way way;
	__u64 maximum;
	bool limited;
};

FIXTURE_VARIANT_ADD(race, eventfd_read) { EVENTFD, READ, 0, false };
FIXTURE_VARIANT_ADD(race, eventfd_poll) { EVENTFD, POLL, 0, false };
FIXTURE_VARIANT_ADD(race, eventfd_epoll) { EVENTFD, EPOLL, 0, false };
FIXTURE_VARIANT_ADD(race, limited_read) { CREATED, READ, 0, true };
FIXTURE_VARIANT_ADD(race, limited_poll) { CREATED, POLL, 0, true };
FIXTURE_VARIANT_ADD(race, limited_epoll) { CREATED, EPOLL, 0, true };
FIXTURE_VARIANT_ADD(race, both_read) { CREATED, READ, 5, true };
FIXTURE_VARIANT_ADD(race, both_poll) { CREATED, POLL, 5, true };
FIXTURE_VARIANT_ADD(race, both_epoll) { CREATED, EPOLL, 5, true };
FIXTURE_VARIANT_ADD(race, mapped_read) { MAPPED, READ, 5, true };
FIXTURE_VARIANT_ADD(race, mapped_poll) { MAPPED, POLL, 5, true };
FIXTURE_VARIANT_ADD(race, mapped_epoll) { MAPPED, EPOLL, 5, true };

FIXTURE_SETUP(race)
{
	self->fd = open_counter(variant->origin, 0, 0);
	ASSERT_LE(0, self->fd);
	if (variant->maximum) {
		ASSERT_EQ(0, set_maximum(self->fd, variant->maximum));
	}
}

FIXTURE_TEARDOWN(race)
{
	close(self->fd);
}

struct reader {
	struct burst burst;
	int ep;
};

static void wait_in_poll(struct burst *b)
{
	poll_for(b->fd, POLLIN, -1);
}

static void wait_in_epoll(struct burst *b)
{
	struct epoll_event event;

	epoll_wait(((struct reader *)b)->ep, &event, 1, -1);
}

static void wait_in_read(struct burst *b)
{
}

static bool take_by_call(struct burst *b, __u64 *value)
{
	return take(b->fd, value) == 8;
}

static bool add_by_call(struct burst *b, __u64 value, unsigned int *seed)
{
	return add(b->fd, value) == 8;
}

/* Not limited in time: a large number of rounds is limited by its caller. */
TEST_F_TIMEOUT(race, nothing_is_lost, 24 * 3600)
{
	static void (*const ways[])(struct burst *b) = {
		[READ] = wait_in_read, [POLL] = wait_in_poll, [EPOLL] = wait_in_epoll,
	};
	struct reader r = {
		.burst = {
			.fd = self->fd, .take_sleeps = variant->way == READ,
			.wait = ways[variant->way], .take = take_by_call,
			.add = add_by_call,
		},
		.ep = epoll_on(self->fd, EPOLLIN | EPOLLET),
	};

	set_nonblock(self->fd, variant->way != READ);
	burst_run(_metadata, &r.burst, variant->limited);
	close(r.ep);
}

TEST_HARNESS_MAIN
