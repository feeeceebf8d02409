// SPDX-License-Identifier: GPL-2.0-only
/*
 * What close does: sockets, pipes and counters are not kept open by a ring, and their
 * last close ends the watch; other files are pinned. Also of rings and watched files that
 * other processes have, by fork and over sockets.
 */
#include "files.h"
#include "ring_user.h"
#include "sockets.h"

#include <sys/wait.h>

FIXTURE(closing)
{
	struct user_ring ring;
	int ends[2];	/* the first is watched */
};

FIXTURE_VARIANT(closing)
{
	char kind;
};

FIXTURE_VARIANT_ADD(closing, stream) { .kind = 's' };
FIXTURE_VARIANT_ADD(closing, pipe_reader) { .kind = 'r' };
FIXTURE_VARIANT_ADD(closing, pipe_writer) { .kind = 'w' };
FIXTURE_VARIANT_ADD(closing, tcp) { .kind = 't' };

FIXTURE_SETUP(closing)
{
	int *ends = self->ends, other;

	switch (variant->kind) {
	case 's':
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		break;
	case 't':
		if (tcp_pair(ends))
			SKIP(return, "no loopback");
		break;
	default:
		ASSERT_EQ(0, pipe(ends));
	}
	if (variant->kind == 'w') {
		other = ends[0];
		ends[0] = ends[1];
		ends[1] = other;
	}
	ASSERT_EQ(0, ring_open(&self->ring, 4));
}

FIXTURE_TEARDOWN(closing)
{
	ring_close(&self->ring);
}

static bool other_side_noticed(int fd, int timeout)
{
	return poll_for(fd, POLLRDHUP, timeout) &
	       (POLLHUP | POLLERR | POLLRDHUP);
}

TEST_F(closing, is_not_held_up)
{
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0], EPOLLIN | EPOLLOUT, 1));
	ASSERT_EQ(1, ring_watched(self->ring.fd));
	close(self->ends[0]);
	EXPECT_TRUE(other_side_noticed(self->ends[1], PATIENCE_MS));
	EXPECT_EQ(0, ring_watched(self->ring.fd));
	EXPECT_EQ(0, ring_take_only(&self->ring));
}

/* Pinned (UNIX sockets never are), and closed before the watch is removed. */
TEST_F(closing, removed_by_data_after_close)
{
	int result = ring_add_pinned(&self->ring, self->ends[0], EPOLLIN, 5);

	ASSERT_LE(0, result);
	close(self->ends[0]);
	EXPECT_EQ(-EBADF, ring_del(&self->ring, self->ends[0]));
	if (result == FLOWFD_RING_PINNED) {
		EXPECT_FALSE(other_side_noticed(self->ends[1], 0));
		EXPECT_EQ(1, ring_del_data(&self->ring, 5));
	}
	EXPECT_TRUE(other_side_noticed(self->ends[1], PATIENCE_MS));
	EXPECT_EQ(-ENOENT, ring_del_data(&self->ring, 5));
	EXPECT_EQ(0, ring_watched(self->ring.fd));
}

TEST_F(closing, child_keeps_it)
{
	int go[2], status;
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0], EPOLLIN, 1));
	child = fork();
	if (!child) {
		close(go[1]);
		_exit(read(go[0], &byte, 1));
	}
	close(self->ends[0]);
	EXPECT_EQ(1, ring_watched(self->ring.fd));
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, ring_watched(self->ring.fd));
}

TEST_F(closing, other_end_is_another_file)
{
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0], EPOLLIN, 1));
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[1], EPOLLIN, 2));
	ASSERT_EQ(2, ring_watched(self->ring.fd));
	close(self->ends[1]);
	EXPECT_EQ(1, ring_watched(self->ring.fd));
	EXPECT_EQ(0, ring_del(&self->ring, self->ends[0]));
}

TEST_F(closing, makes_room)
{
	int fds[4];

	for (int round = 0; round < 10; round++) {
		int *ends = self->ends, more[2];

		for (int i = 0; i < 4; i++)
			fds[i] = dup(ends[0]);
		for (int i = 0; i < 4; i++) {
			ASSERT_EQ(0, ring_add(&self->ring, fds[i], EPOLLIN, i));
		}
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, more));
		ASSERT_EQ(-ENOSPC, ring_add(&self->ring, more[0], EPOLLIN, 0));
		for (int i = 0; i < 4; i++)
			close(fds[i]);
		close(ends[0]);
		close(ends[1]);
		ends[0] = more[0];
		ends[1] = more[1];
	}
}

/* On request a watch keeps a file open, but never a UNIX socket. */
TEST_F(closing, pin_on_request)
{
	int pinned = variant->kind == 's' ? 0 : FLOWFD_RING_PINNED;
	struct user_ring other;

	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_EQ(pinned, ring_add_pinned(&other, self->ends[0], EPOLLIN, 1));
	EXPECT_EQ(-EEXIST, ring_add(&other, self->ends[0], EPOLLIN, 1));
	EXPECT_EQ(0, ring_del(&other, self->ends[0]));
	ASSERT_EQ(pinned, ring_add_pinned(&other, self->ends[0], EPOLLIN, 1));
	close(self->ends[0]);
	EXPECT_EQ(!!pinned, ring_watched(other.fd));
	EXPECT_EQ(!pinned, other_side_noticed(self->ends[1], pinned ?
					      QUIET_MS : PATIENCE_MS));
	ring_close(&other);
	EXPECT_TRUE(other_side_noticed(self->ends[1], PATIENCE_MS));
}

static int compare_times(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

#define ENDS 31

/* Median of the times from a close to its end at the other side. 0: no loopback. */
static __u64 ns_until_other_side_notices(struct user_ring *watcher)
{
	__u64 times[ENDS];

	for (int i = 0; i < ENDS; i++) {
		int ends[2];

		if (tcp_pair(ends))
			return 0;
		if (watcher && ring_add(watcher, ends[0], EPOLLIN | EPOLLOUT, 1))
			return ~0ULL;
		times[i] = now_ns();
		close(ends[0]);
		other_side_noticed(ends[1], PATIENCE_MS);
		times[i] = now_ns() - times[i];
		close(ends[1]);
	}
	qsort(times, ENDS, sizeof(*times), compare_times);
	return times[ENDS / 2];
}

TEST(end_of_tcp_is_seen_at_once)
{
	__u64 alone = ns_until_other_side_notices(NULL), watched;
	struct user_ring ring;

	if (!alone)
		SKIP(return, "no loopback");
	ASSERT_EQ(0, ring_open(&ring, ENDS));
	watched = ns_until_other_side_notices(&ring);
	TH_LOG("%llu ns, watched %llu ns", alone, watched);
	EXPECT_LT(watched, 3 * alone + 10000000);
	ring_close(&ring);
}

TEST(counter_is_forgotten)
{
	struct user_ring ring;

	ASSERT_EQ(0, ring_open(&ring, 4));
	for (int i = 0; i < 20; i++) {
		int fd = open_counter(i % 2 ? OPENED : CREATED, 0, 0);

		ASSERT_EQ(0, ring_add(&ring, fd, EPOLLIN, 1));
		add(fd, 1);
		ASSERT_EQ(1, ring_watched(ring.fd));
		close(fd);
		EXPECT_EQ(0, ring_watched(ring.fd));
		EXPECT_EQ(0, ring_take_only(&ring));
	}
	ring_close(&ring);
}

TEST(counter_is_pinned_on_request)
{
	struct user_ring ring;
	long users;

	ASSERT_EQ(0, ring_open(&ring, 4));
	users = module_users();
	for (int i = 0; i < 4; i++) {
		int fd = open_counter(i % 2 ? OPENED : CREATED, 0, 0);

		ASSERT_EQ(FLOWFD_RING_PINNED,
			  ring_add_pinned(&ring, fd, EPOLLIN, i));
		close(fd);
		EXPECT_EQ(i + 1, ring_watched(ring.fd));
	}
	/* An opened counter also holds a reference to the device. */
	EXPECT_EQ(users + 2 + 2 * 2, module_users());
	ring_close(&ring);
	EXPECT_EQ(users - 1, module_users());
}

/* A ring in the queue of a socket that it watches: both are released. */
TEST(ring_sent_over_a_watched_socket_goes)
{
	long users = module_users();

	ASSERT_LE(0, users);
	for (int i = 0; i < 20; i++) {
		struct user_ring ring;
		int ends[2];

		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		ASSERT_EQ(0, ring_open(&ring, 4));
		ASSERT_EQ(0, ring_add(&ring, ends[0], EPOLLIN, 1));
		ASSERT_EQ(0, ring_add_pinned(&ring, ends[1], EPOLLIN, 1));
		ASSERT_TRUE(send_descriptor(ends[0], ring.fd, 0));
		ASSERT_TRUE(send_descriptor(ends[1], ring.fd, 0));
		ring_close(&ring);
		close(ends[0]);
		close(ends[1]);
	}
	EXPECT_EQ(users, settled_module_users(users));
}

/* A ring that watches a file of both processes, and one of its own. */
static int make_and_send_ring(int carrier, int event)
{
	struct user_ring ring;
	int ends[2];

	return ring_open(&ring, 4) || ring_add(&ring, event, EPOLLIN, 1) < 0 ||
	       socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	       ring_add(&ring, ends[0], EPOLLIN, 2) < 0 ||
	       !send_descriptor(carrier, ring.fd, 0) ||
	       !send_descriptor(carrier, ends[1], 0);
}

TEST(ring_outlives_its_sender)
{
	int event = eventfd(0, EFD_CLOEXEC), carrier[2], other, status;
	struct user_ring r;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, carrier));
	child = fork();
	if (!child)
		_exit(make_and_send_ring(carrier[0], event));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, ring_map(&r, receive_descriptor(carrier[1], 0)));
	other = receive_descriptor(carrier[1], 0);
	ASSERT_LE(0, other);
	/* The sender's own socket was closed at its exit, although it was watched. */
	EXPECT_EQ(POLLHUP | POLLRDHUP, poll_for(other, POLLRDHUP, 0));
	EXPECT_EQ(1, ring_watched(r.fd));
	add(event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	/* The watch has the number that the file had when it was added. */
	EXPECT_EQ(0, ring_del(&r, event));
	EXPECT_EQ(0, ring_watched(r.fd));
	ring_close(&r);
}

FIXTURE(flight)
{
	struct user_ring ring;
	int carrier[2];
	int ends[2];	/* the first is watched */
};

FIXTURE_SETUP(flight)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, self->carrier));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, self->ends));
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0], EPOLLIN, 1));
}

FIXTURE_TEARDOWN(flight)
{
	ring_close(&self->ring);
}

/* Only a message holds the watched file, and no process: it stays watched. */
TEST_F(flight, ends_with_the_message)
{
	ASSERT_TRUE(send_descriptor(self->carrier[0], self->ends[0], 0));
	close(self->ends[0]);
	close(self->carrier[0]);
	EXPECT_EQ(1, ring_watched(self->ring.fd));
	EXPECT_EQ(0, poll_for(self->ends[1], POLLRDHUP, 0));
	ASSERT_EQ(1, write(self->ends[1], "x", 1));
	EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
	close(self->carrier[1]);
	/* An error, too: nobody has read the byte. */
	EXPECT_EQ(POLLHUP | POLLERR | POLLRDHUP,
		  poll_for(self->ends[1], POLLRDHUP, PATIENCE_MS));
	EXPECT_EQ(0, ring_watched(self->ring.fd));
}

/* The socket is in its own queue: only the garbage collector finds it. */
TEST_F(flight, of_a_socket_in_itself)
{
	__u64 end = ms_from_now(PATIENCE_MS);
	struct user_ring *r = &self->ring;
	int ends[2];

	ASSERT_TRUE(send_descriptor(self->ends[1], self->ends[0], 0));
	ASSERT_EQ(EPOLLIN, ring_take_only(r));
	close(self->ends[0]);
	close(self->ends[1]);
	while (ring_watched(r->fd) && now_ns() < end) {
		/* Closing a UNIX socket starts the garbage collector. */
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		close(ends[0]);
		close(ends[1]);
		sleep_ms(1);
	}
	EXPECT_EQ(0, ring_watched(r->fd));
}

/* The writer of a named pipe whose reader the ring pins sees whether there is a ring. */
TEST(child_keeps_the_ring)
{
	char name[FIFO_NAME_SIZE], byte;
	int go[2], status, reader, writer;
	struct user_ring r;
	pid_t child;

	ASSERT_TRUE(fifo_make(name));
	reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(name);
	ASSERT_LE(0, writer);
	ASSERT_EQ(0, pipe2(go, O_CLOEXEC));
	ASSERT_EQ(0, ring_open(&r, 1));
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(&r, reader, EPOLLIN, 1));
	close(reader);
	child = fork();
	if (!child) {
		close(go[1]);
		if (read(go[0], &byte, 1) || !ring_wait_ms(&r, 1, PATIENCE_MS))
			_exit(1);
		_exit(ring_take_only(&r) != EPOLLIN);
	}
	ring_close(&r);
	EXPECT_FALSE(poll_for(writer, 0, QUIET_MS) & POLLERR);
	EXPECT_EQ(1, write(writer, "x", 1));
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(poll_for(writer, 0, PATIENCE_MS) & POLLERR);
	close(writer);
}

TEST_HARNESS_MAIN
