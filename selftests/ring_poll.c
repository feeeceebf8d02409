// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll and epoll on a ring: one poller and many, also while a consumer harvests.
 * Pollers that call back are in ring_nested.c.
 */
#include <sched.h>
#include <sys/wait.h>

#include "epoll_pair.h"
#include "post_user.h"
#include "ring_fixtures.h"
#include "sockets.h"

#define MANY_ROUNDS 500

TEST_F(wait, poll)
{
	EXPECT_EQ(0, poll_now(self->ring.fd));
	add(self->events[0], 1);
	EXPECT_EQ(POLLIN, poll_now(self->ring.fd));
	EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
	EXPECT_EQ(0, poll_now(self->ring.fd));
}

/* A work item wakes the epoll, so an event may be there a moment after the call. */
TEST_F(wait, nested_in_epoll)
{
	int level = epoll_on(self->ring.fd, EPOLLIN);
	int edge = epoll_on(self->ring.fd, EPOLLIN | EPOLLET);

	EXPECT_EQ(0, epoll_take(level, 0));
	EXPECT_EQ(0, epoll_take(edge, 0));
	for (int i = 0; i < 20; i++) {
		add(self->events[i % 3], 1);
		EXPECT_EQ(EPOLLIN, epoll_take(level, PATIENCE_MS));
		EXPECT_EQ(EPOLLIN, epoll_take(edge, PATIENCE_MS));
		EXPECT_EQ(EPOLLIN, epoll_take(level, 0));
		EXPECT_EQ(0, epoll_take(edge, 0));
		EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
		EXPECT_EQ(0, epoll_take(level, 0));
	}
	close(level);
	close(edge);
}

/*
 * A connection begins: the socket wakes without a key, and the poll finds nothing that was
 * asked for. The entry stays in the ring, and the next event must be told all the same.
 */
TEST_F(ring, poller_after_a_wakeup_for_nothing)
{
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in address;
	struct ring_event event;
	int listener, ep, server;

	listener = tcp_listener(&address);
	ASSERT_LE(0, listener);
	ASSERT_EQ(0, ring_add(&self->ring, client, EPOLLIN, 1));
	ring_take_only(&self->ring);
	ep = epoll_on(self->ring.fd, EPOLLIN | EPOLLET);
	EXPECT_EQ(0, epoll_take(ep, 0));
	connect(client, (void *)&address, sizeof(address));
	server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ASSERT_LE(0, server);
	sleep_ms(QUIET_MS);
	ASSERT_EQ(1, write(server, "x", 1));
	do {
		ASSERT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	} while (!ring_take(&self->ring, &event));
	EXPECT_EQ(EPOLLIN, event.events);
	close(ep);
	close(server);
	close(client);
	close(listener);
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

/* A file and a post wake all, in every round, also if epoll is to wake one only. */
TEST_F(wait, many_pollers)
{
	enum { POLLERS = 150 };
	int post = ring_add_post(&self->ring, 100), eps[POLLERS];

	ASSERT_LE(0, post);
	for (int i = 0; i < POLLERS; i++)
		eps[i] = epoll_on(self->ring.fd, EPOLLIN | EPOLLET |
				  (i % 3 ? 0 : EPOLLEXCLUSIVE));
	for (int round = 0; round < 10; round++) {
		if (round % 2)
			ring_post(&self->ring, post, 1);
		else
			add(self->events[round % 3], 1);
		for (int i = 0; i < POLLERS; i++)
			ASSERT_EQ(EPOLLIN, epoll_take(eps[i], PATIENCE_MS));
		if (round % 2) {
			ASSERT_EQ(100, next_post(&self->ring, 1));
		} else {
			ASSERT_EQ(EPOLLIN, ring_take_only(&self->ring));
		}
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

/*
 * Two tasks wait on one epoll that polls the ring, and the one that is woken is killed
 * before it runs. With its end, the other is told of the same event.
 */
TEST_F(wait, one_of_two_waiters_is_killed)
{
	int ep = epoll_on(self->ring.fd, EPOLLIN);
	struct epoll_pair pair;

	epoll_pair_start(_metadata, &pair, ep, -1);
	add(self->events[0], 1);
	if (!epoll_pair_is_woken(&pair))
		TH_LOG("the victim was not woken");
	epoll_pair_kill(_metadata, &pair);
	epoll_pair_end(_metadata, &pair);
	close(ep);
}

/* The end of tasks that do not have the ring is not seen: the next event finds the other. */
TEST_F(wait, one_of_two_that_have_only_the_epoll)
{
	int ep = epoll_on(self->ring.fd, EPOLLIN), status;
	struct epoll_pair pair;
	bool woken;

	ASSERT_EQ(0, madvise(self->ring.header, self->ring.map_size, MADV_DONTFORK));
	epoll_pair_start(_metadata, &pair, ep, self->ring.fd);
	add(self->events[0], 1);
	woken = epoll_pair_is_woken(&pair);
	epoll_pair_kill(_metadata, &pair);
	/* Or the work item found the survivor alone. */
	if (!woken)
		TH_LOG("the victim was not woken");
	else
		ASSERT_EQ(0, waitpid(pair.survivor, &status, WNOHANG));
	/* The first event was lost with the victim, as it is with any other file. */
	sleep_ms(QUIET_MS);
	add(self->events[1], 1);
	epoll_pair_end(_metadata, &pair);
	close(ep);
}

TEST_HARNESS_MAIN
