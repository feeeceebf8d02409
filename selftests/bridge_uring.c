// SPDX-License-Identifier: GPL-2.0-only
/*
 * The eventfd of an io_uring as the source of a counter, and what a poll of that counter
 * by the same ring does.
 */
#include <liburing.h>

#include "bridge_user.h"
#include "racers.h"

FIXTURE(bridge_uring)
{
	struct io_uring ring;
	bool there;
	int fd;
	int eventfd;
};

FIXTURE_SETUP(bridge_uring)
{
	self->there = !io_uring_queue_init(16, &self->ring, 0);
	if (!self->there)
		SKIP(return, "io_uring is not available here");
	self->fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	self->eventfd = new_eventfd();
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->eventfd);
	ASSERT_EQ(0, io_uring_register_eventfd(&self->ring, self->eventfd));
	ASSERT_EQ(0, source(self->fd, self->eventfd));
}

FIXTURE_TEARDOWN(bridge_uring)
{
	if (!self->there)
		return;
	io_uring_queue_exit(&self->ring);
	close(self->fd);
	close(self->eventfd);
}

static void submit_nops(struct io_uring *ring, unsigned int count)
{
	while (count--)
		io_uring_prep_nop(io_uring_get_sqe(ring));
	io_uring_submit(ring);
}

static unsigned int harvest(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int n = 0;

	while (!io_uring_peek_cqe(ring, &cqe)) {
		io_uring_cqe_seen(ring, cqe);
		n++;
	}
	return n;
}

TEST_F(bridge_uring, completions_feed_the_counter)
{
	__u64 value;

	submit_nops(&self->ring, 1);
	ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_EQ(1, harvest(&self->ring));
	for (int i = 0; i < 100; i++) {
		submit_nops(&self->ring, 1);
		ASSERT_EQ(1, harvest(&self->ring));
	}
	EXPECT_TRUE(count_becomes(self->fd, 100));
}

/* Through a bucket: as many completions as there are, and fewer wakeups. */
TEST_F(bridge_uring, completions_are_moderated)
{
	__u64 value, sum = 0;
	unsigned int wakeups = 0;
	int ep;

	ASSERT_EQ(0, set_qos(self->fd, 1, 20));
	ep = epoll_on(self->fd, EPOLLIN | EPOLLET);
	for (int i = 0; i < 200; i++) {
		submit_nops(&self->ring, 1);
		harvest(&self->ring);
	}
	while (sum < 200 && epoll_take(ep, PATIENCE_MS)) {
		wakeups++;
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	EXPECT_EQ(200, sum);
	EXPECT_LT(wakeups, 50);
	close(ep);
}

/*
 * A poll of the counter completes, the completion signals the eventfd, and that adds to
 * the counter. It ends when the completion queue is full, and not before somebody
 * empties it does it go on.
 */
TEST_F(bridge_uring, poll_that_feeds_itself)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	__u64 first, second;

	io_uring_prep_poll_multishot(sqe, self->fd, POLLIN);
	io_uring_submit(&self->ring);
	EXPECT_EQ(8, add(self->fd, 1));
	sleep_ms(3 * QUIET_MS);
	first = count_of(self->fd);
	sleep_ms(3 * QUIET_MS);
	second = count_of(self->fd);
	EXPECT_EQ(first, second);
	EXPECT_GE(100, second);
}

/* What two threads use, while one of the ends goes. */
struct scene {
	struct io_uring ring;
	int fd;
	int eventfd;
	int out;
};

static bool scene_open(struct scene *s)
{
	s->fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	s->eventfd = new_eventfd();
	s->out = new_eventfd();
	return !io_uring_queue_init(16, &s->ring, 0) &&
	       !io_uring_register_eventfd(&s->ring, s->eventfd) &&
	       !source(s->fd, s->eventfd) && !sink(s->fd, s->out);
}

static void scene_close(struct scene *s)
{
	io_uring_queue_exit(&s->ring);
	close(s->fd);
	close(s->eventfd);
	close(s->out);
}

static void do_complete(struct scene *s)
{
	submit_nops(&s->ring, 8);
	harvest(&s->ring);
}

static void do_close_source(struct scene *s)
{
	close(s->eventfd);
}

static void do_close_counter(struct scene *s)
{
	close(s->fd);
}

static void do_close_sink(struct scene *s)
{
	close(s->out);
}

static void do_remove_source(struct scene *s)
{
	bridge(s->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE);
}

static void do_unregister(struct scene *s)
{
	io_uring_unregister_eventfd(&s->ring);
}

static void do_close_ring(struct scene *s)
{
	close(s->ring.ring_fd);
}

static operation_run *const operations[] = {
	do_close_source, do_close_counter, do_close_sink,
	do_remove_source, do_unregister, do_close_ring,
};

TEST_F(bridge_uring, ends_at_any_time)
{
	unsigned long rounds = parameter("FLOWFD_RACES", 5) * 10;
	long users = module_users();
	struct racers racers;
	struct scene scene;

	ASSERT_TRUE(racers_start(&racers, &scene));
	for (unsigned int i = 0; i < ARRAY_SIZE(operations); i++) {
		for (unsigned long round = 0; round < rounds; round++) {
			ASSERT_TRUE(scene_open(&scene));
			racers_race(&racers, round, do_complete, operations[i]);
			scene_close(&scene);
		}
	}
	racers_end(&racers);
	EXPECT_EQ(users, settled_module_users(users));
}

TEST_HARNESS_MAIN
