// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll and epoll on a ring: one poller and many, also while a consumer harvests.
 * Pollers that call back are in ring_nested.c.
 */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "epoll_pair.h"
#include "ring_fixtures.h"

#define MANY_ROUNDS 3000

TEST_F(wait, poll)
{
	EXPECT_EQ(0, poll_now(self->ring.fd));
	add(self->events[0], 1);
	EXPECT_EQ(POLLIN, poll_now(self->ring.fd));
	EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
	EXPECT_EQ(0, poll_now(self->ring.fd));
}

TEST_F(wait, nested_in_epoll)
{
	int level = epoll_on(self->ring.fd, EPOLLIN);
	int edge = epoll_on(self->ring.fd, EPOLLIN | EPOLLET);

	EXPECT_EQ(0, epoll_take(level, 0));
	EXPECT_EQ(0, epoll_take(edge, 0));
	for (int i = 0; i < 20; i++) {
		add(self->events[i % 3], 1);
		EXPECT_EQ(EPOLLIN, epoll_take(level, 0));
		EXPECT_EQ(EPOLLIN, epoll_take(edge, 0));
		EXPECT_EQ(EPOLLIN, epoll_take(level, 0));
		EXPECT_EQ(0, epoll_take(edge, 0));
		EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
		EXPECT_EQ(0, epoll_take(level, 0));
	}
	close(level);
	close(edge);
}

/*
 * Another thread polls the ring, as a multishot poll of io_uring does, when the
 * consumer has emptied a slot and has not stored the head yet.
 */
TEST_F(wait, poll_while_entries_are_taken)
{
	struct user_ring *r = &self->ring;

	add(self->events[0], 1);
	ASSERT_NE(0, r->index[0]);
	r->index[0] = 0;
	__atomic_exchange_n((__u64 *)&r->items[0], 0, __ATOMIC_SEQ_CST);
	add(self->events[1], 1);
	EXPECT_EQ(POLLIN, poll_now(r->fd));
	r->header->head = 1;
	EXPECT_EQ(POLLIN, poll_now(r->fd));
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	EXPECT_EQ(0, poll_now(r->fd));
}

/* More pollers than a publisher wakes itself: all must be woken, in every round. */
TEST_F(wait, many_pollers)
{
	enum { POLLERS = 150 };
	int eps[POLLERS];

	for (int i = 0; i < POLLERS; i++)
		eps[i] = epoll_on(self->ring.fd, EPOLLIN | EPOLLET |
				  (i % 3 ? 0 : EPOLLEXCLUSIVE));
	for (int round = 0; round < 5; round++) {
		add(self->events[round % 3], 1);
		for (int i = 0; i < POLLERS; i++)
			ASSERT_EQ(EPOLLIN, epoll_take(eps[i], PATIENCE_MS));
		ASSERT_EQ(EPOLLIN, ring_take_only(&self->ring));
	}
	for (int i = 0; i < POLLERS; i++)
		close(eps[i]);
}

static int rounds_taken;

/* Adds as soon as the event of the round before was taken. */
static void *add_when_taken(void *arg)
{
	for (int round = 0; round < MANY_ROUNDS; round++) {
		while (__atomic_load_n(&rounds_taken, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		add(*(int *)arg, 1);
	}
	return NULL;
}

/* The next event comes while a work item still wakes pollers for the one before. */
TEST_F(wait, events_while_many_pollers_are_woken)
{
	enum { POLLERS = 600 };
	int eps[POLLERS], ep;
	__u32 events;
	pthread_t thread;

	for (int i = 0; i < POLLERS; i++)
		eps[i] = epoll_on(self->ring.fd, EPOLLIN | EPOLLET);
	ep = eps[POLLERS / 2];
	pthread_create(&thread, NULL, add_when_taken, &self->events[0]);
	for (int round = 0; round < MANY_ROUNDS; round++) {
		events = epoll_take(ep, PATIENCE_MS);
		EXPECT_EQ(EPOLLIN, events);
		if (!events)
			break;
		EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
		__atomic_store_n(&rounds_taken, round + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&rounds_taken, MANY_ROUNDS, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	for (int i = 0; i < POLLERS; i++)
		close(eps[i]);
}

static void *add_soon(void *arg)
{
	sleep_ms(QUIET_MS);
	add(*(int *)arg, 1);
	return NULL;
}

TEST_F(wait, epoll_sleeps_on_it)
{
	int ep = epoll_on(self->ring.fd, EPOLLIN);
	pthread_t thread;

	pthread_create(&thread, NULL, add_soon, &self->events[2]);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, add_soon, &self->events[2]);
	ring_take_only(&self->ring);
	EXPECT_EQ(POLLIN, poll_for(self->ring.fd, POLLIN, PATIENCE_MS));
	pthread_join(thread, NULL);
	close(ep);
}

/*
 * Two tasks wait on one epoll that polls the ring, and the one that is woken is killed
 * before it runs. The next event must find the other.
 */
TEST_F(wait, one_of_two_waiters_is_killed)
{
	int ep = epoll_on(self->ring.fd, EPOLLIN), status;
	struct epoll_pair pair;

	epoll_pair_start(_metadata, &pair, ep);
	add(self->events[0], 1);
	epoll_pair_kill(_metadata, &pair);
	ASSERT_EQ(0, waitpid(pair.survivor, &status, WNOHANG));
	/* The first event was lost with the victim, as it is with any other file. */
	sleep_ms(QUIET_MS);
	add(self->events[1], 1);
	epoll_pair_end(_metadata, &pair);
	close(ep);
}

TEST_HARNESS_MAIN
