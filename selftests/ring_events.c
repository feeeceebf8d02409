// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which wakeups of a file become events of a ring: wakeups without a key, of files with
 * two wait queues, with bits that are not true; and edges, compared with those of epoll
 * on the same file.
 */
#include "files.h"
#include "ring_fixtures.h"
#include "sockets.h"

#include <sys/inotify.h>
#include <sys/timerfd.h>

/* inotify wakes without a key, so a work item polls it. */
TEST_F(ring, wakeup_without_a_key)
{
	int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct ring_event event;

	ASSERT_LE(0, inotify_add_watch(notify, "/tmp", IN_CREATE));
	ASSERT_EQ(FLOWFD_RING_PINNED,
		  ring_add(&self->ring, notify, EPOLLIN, 7));
	for (int i = 0; i < 10; i++) {
		char name[] = "/tmp/ring-XXXXXX", buffer[4096];
		int fd = mkstemp(name);

		ASSERT_LE(0, fd);
		ASSERT_TRUE(ring_take_wait(&self->ring, &event));
		EXPECT_EQ(EPOLLIN, event.events);
		EXPECT_EQ(7, event.data);
		EXPECT_LT(0, read(notify, buffer, sizeof(buffer)));
		close(fd);
		unlink(name);
	}
	close(notify);
}

TEST_F(ring, timer)
{
	struct itimerspec in_10_ms = { .it_value.tv_nsec = 10000000 };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct ring_event event;

	ASSERT_LE(0, ring_add(&self->ring, timer, EPOLLIN, 9));
	ASSERT_EQ(0, timerfd_settime(timer, 0, &in_10_ms, NULL));
	EXPECT_FALSE(ring_take(&self->ring, &event));
	ASSERT_LE(1, ring_wait_ms(&self->ring, 1, PATIENCE_MS));
	EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
	close(timer);
}

/* A named pipe: one wait queue to read, one to write. */
TEST_F(ring, file_with_two_queues)
{
	char name[FIFO_NAME_SIZE], page[4096] = "";
	int fd;

	ASSERT_TRUE(fifo_make(name));
	fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	unlink(name);
	ASSERT_LE(0, fd);
	ASSERT_EQ(FLOWFD_RING_PINNED,
		  ring_add(&self->ring, fd, EPOLLIN | EPOLLOUT, 1));
	EXPECT_EQ(EPOLLOUT, ring_take_only(&self->ring));
	ASSERT_EQ(1, write(fd, "x", 1));
	EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
	while (write(fd, page, sizeof(page)) > 0)
		;
	ring_take_only(&self->ring);
	while (read(fd, page, sizeof(page)) > 0)
		;
	EXPECT_EQ(EPOLLOUT, ring_take_only(&self->ring) & EPOLLOUT);
	EXPECT_EQ(0, ring_del(&self->ring, fd));
	ASSERT_EQ(1, write(fd, "x", 1));
	EXPECT_EQ(0, ring_take_only(&self->ring));
	close(fd);
}

TEST_F(ring, two_rings_are_both_woken)
{
	struct user_ring other;

	ASSERT_EQ(0, ring_open(&other, 1));
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 1));
	ASSERT_LE(0, ring_add(&other, self->event, EPOLLIN, 2));
	add(self->event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
	EXPECT_EQ(EPOLLIN, ring_take_only(&other));
	ring_close(&other);
}

/*
 * A socket has EPOLLPRI in every wait-queue key. Only bits that are true are published.
 */
TEST(only_bits_that_are_true)
{
	const __u32 asked = EPOLLIN | EPOLLPRI | EPOLLRDBAND;
	struct ring_event event;
	struct user_ring r;
	int ends[2], ep;

	ASSERT_EQ(0, tcp_pair(ends));
	ASSERT_EQ(0, ring_open(&r, 2));
	ep = epoll_on(ends[0], asked | EPOLLET);
	ASSERT_EQ(0, ring_add(&r, ends[0], asked, 1));
	ASSERT_EQ(1, write(ends[1], "x", 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	ASSERT_TRUE(ring_take_wait(&r, &event));
	EXPECT_EQ(EPOLLIN, event.events);
	sleep_ms(QUIET_MS);
	while (ring_take(&r, &event))
		EXPECT_EQ(EPOLLIN, event.events);
	/* Nor do they disarm a one-shot watch. */
	ASSERT_EQ(0, ring_mod(&r, ends[0], EPOLLPRI | EPOLLONESHOT, 2));
	ASSERT_EQ(1, write(ends[1], "x", 1));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, ring_take_only(&r));
	ASSERT_EQ(1, send(ends[1], "!", 1, MSG_OOB));
	ASSERT_TRUE(ring_take_wait(&r, &event));
	EXPECT_EQ(EPOLLPRI, event.events);
	EXPECT_EQ(2, event.data);
	ring_close(&r);
	close(ends[0]);
	close(ends[1]);
	close(ep);
}

/*
 * A listener that is shut down announces an error and has none; a refused connection has
 * one. Each as the epoll has it, without a wait of the worker's.
 */
TEST(only_errors_that_are_true)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	struct ring_event event;
	int listener, client, ep;
	struct user_ring r;

	ASSERT_EQ(0, ring_open(&r, 2));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ASSERT_EQ(0, bind(listener, (struct sockaddr *)&address, sizeof(address)));
	ASSERT_EQ(0, getsockname(listener, (struct sockaddr *)&address, &length));
	ASSERT_EQ(0, listen(listener, 1));
	ep = epoll_on(listener, EPOLLIN | EPOLLET);
	ASSERT_EQ(0, ring_add(&r, listener, EPOLLIN, 1));
	ASSERT_EQ(0, shutdown(listener, SHUT_RDWR));
	EXPECT_EQ(EPOLLHUP, epoll_take(ep, PATIENCE_MS) & (EPOLLHUP | EPOLLERR));
	sleep_ms(QUIET_MS);
	ASSERT_TRUE(ring_take_wait(&r, &event));
	EXPECT_EQ(EPOLLHUP, event.events & (EPOLLHUP | EPOLLERR));
	EXPECT_FALSE(ring_take(&r, &event));
	close(listener);
	close(ep);

	ep = epoll_on(client, EPOLLIN | EPOLLET);
	ASSERT_EQ(0, ring_add(&r, client, EPOLLIN, 2));
	while (ring_take(&r, &event))
		;
	epoll_take(ep, 0);
	connect(client, (struct sockaddr *)&address, sizeof(address));
	EXPECT_TRUE(epoll_take(ep, PATIENCE_MS) & EPOLLERR);
	ASSERT_TRUE(ring_take_wait(&r, &event));
	EXPECT_TRUE(event.events & EPOLLERR);
	EXPECT_EQ(2, event.data);
	ring_close(&r);
	close(client);
	close(ep);
}

/* After each step ring and epoll must report the same edge. */
FIXTURE(edges)
{
	struct user_ring ring;
	int ep;
	int ends[2];
};

FIXTURE_VARIANT(edges)
{
	int kind;
};

FIXTURE_VARIANT_ADD(edges, eventfd) { .kind = 0 };
FIXTURE_VARIANT_ADD(edges, counter) { .kind = 1 };
FIXTURE_VARIANT_ADD(edges, pipe) { .kind = 2 };
FIXTURE_VARIANT_ADD(edges, stream) { .kind = 3 };
FIXTURE_VARIANT_ADD(edges, datagram) { .kind = 4 };

FIXTURE_SETUP(edges)
{
	int *ends = self->ends;

	switch (variant->kind) {
	case 0:
	case 1:
		ends[0] = open_counter(variant->kind ? OPENED : EVENTFD, 0,
				       EFD_NONBLOCK);
		ends[1] = dup(ends[0]);
		break;
	case 2:
		ASSERT_EQ(0, pipe2(ends, O_NONBLOCK | O_CLOEXEC));
		break;
	default:
		ASSERT_EQ(0, socketpair(AF_UNIX, (variant->kind == 3 ?
						  SOCK_STREAM : SOCK_DGRAM) |
					SOCK_NONBLOCK, 0, ends));
	}
	ASSERT_LE(0, ends[0]);
	self->ep = epoll_on(ends[0], EPOLLIN | EPOLLRDHUP | EPOLLET);
	ASSERT_LE(0, self->ep);
	ASSERT_EQ(0, ring_open(&self->ring, 1));
	ASSERT_LE(0, ring_add(&self->ring, ends[0], EPOLLIN | EPOLLRDHUP, 1));
}

FIXTURE_TEARDOWN(edges)
{
	ring_close(&self->ring);
	close(self->ep);
	close(self->ends[0]);
}

TEST_F(edges, same_as_epoll)
{
	__u64 value = 1;

	EXPECT_EQ(epoll_take(self->ep, 0), ring_take_only(&self->ring));
	for (int i = 0; i < 50; i++) {
		if (i % 7 < 4) {
			ASSERT_EQ(8, write(self->ends[1], &value, 8));
		} else {
			read(self->ends[0], &value, 8);
		}
		value = 1;
		EXPECT_EQ(epoll_take(self->ep, 0), ring_take_only(&self->ring))
			TH_LOG("step %d", i);
		EXPECT_EQ(0, ring_take_only(&self->ring));
	}
}

TEST_F(edges, end_of_the_other_side)
{
	struct ring_event event;
	__u32 events;

	close(self->ends[1]);
	events = epoll_take(self->ep, QUIET_MS);
	if (!events) {
		EXPECT_EQ(0, ring_take_only(&self->ring));
		return;
	}
	ASSERT_TRUE(ring_take_wait(&self->ring, &event));
	EXPECT_EQ(events, event.events);
}

TEST_HARNESS_MAIN
