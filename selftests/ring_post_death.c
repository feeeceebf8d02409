// SPDX-License-Identifier: GPL-2.0-only
/* Posts: what makes up for a poster that dies, and for a task that dies when it was woken. */
#include "epoll_pair.h"
#include "post_user.h"
#include "ring_fixtures.h"
#include "ring_waiter.h"

#include <sys/wait.h>

/* What a process has when it dies, after a push and before its look at @armed. */
FIXTURE(death)
{
	struct user_ring ring;
	int post;
};

FIXTURE_VARIANT(death)
{
	bool keeps_fd;
	bool keeps_map;
};

FIXTURE_VARIANT_ADD(death, killed) { true, true };
FIXTURE_VARIANT_ADD(death, killed_without_fd) { false, true };
FIXTURE_VARIANT_ADD(death, killed_without_map) { true, false };

FIXTURE_SETUP(death)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	self->post = ring_add_post(&self->ring, 100);
	ASSERT_EQ(0, self->post);
}

FIXTURE_TEARDOWN(death)
{
	ring_close(&self->ring);
}

static pid_t start_dying_poster(struct user_ring *r, int post, bool keeps_fd,
				bool keeps_map)
{
	pid_t child = fork();

	if (!child) {
		ring_push(r, post, 1);
		if (!keeps_map)
			munmap(r->header, r->map_size);
		if (!keeps_fd)
			close(r->fd);
		kill(getpid(), SIGKILL);
	}
	return child;
}

TEST_F(death, sleeper_is_woken)
{
	struct user_ring *r = &self->ring;
	struct waiter w;
	pid_t child;

	ASSERT_TRUE(waiter_start(&w, r, 3, false));
	child = start_dying_poster(r, self->post, variant->keeps_fd,
				   variant->keeps_map);
	EXPECT_TRUE(waiter_ends(&w));
	EXPECT_EQ(1, w.result);
	EXPECT_EQ(100, next_post(r, 1));
	waitpid(child, NULL, 0);
}

TEST_F(death, poller_is_woken)
{
	struct user_ring *r = &self->ring;
	int ep = epoll_on(r->fd, EPOLLIN | EPOLLET);
	pid_t child;

	EXPECT_EQ(0, epoll_take(ep, 0));
	child = start_dying_poster(r, self->post, variant->keeps_fd,
				   variant->keeps_map);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	EXPECT_EQ(100, next_post(r, 1));
	waitpid(child, NULL, 0);
	close(ep);
}

/* @taken: another task has taken the post by then, and the next post must wake it. */
static void kill_one_of_two_waiters(struct __test_metadata *_metadata, struct user_ring *r,
				    bool taken)
{
	int post = ring_add_post(r, 100), ep = epoll_on(r->fd, EPOLLIN);
	struct epoll_pair pair;

	epoll_pair_start(_metadata, &pair, ep, -1);
	ring_post(r, post, 1);
	if (!epoll_pair_is_woken(&pair))
		TH_LOG("the victim was not woken");
	if (taken) {
		EXPECT_EQ(100, next_post(r, 1));
	}
	epoll_pair_kill(_metadata, &pair);
	/* It notifies if the ring is armed by now; else what arms it finds the post. */
	if (taken)
		ring_post(r, post, 1);
	epoll_pair_end(_metadata, &pair);
	close(ep);
}

TEST_F(ring, one_of_two_waiters_is_killed)
{
	kill_one_of_two_waiters(_metadata, &self->ring, false);
}

TEST_F(ring, one_of_two_waiters_is_killed_without_a_post)
{
	kill_one_of_two_waiters(_metadata, &self->ring, true);
}

TEST_HARNESS_MAIN
