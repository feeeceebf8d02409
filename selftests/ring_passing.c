// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings and watched files that are passed to other processes: over sockets, by fork and
 * by exec.
 */
#include "files.h"
#include "ring_user.h"
#include "sockets.h"

#include <sys/wait.h>

/* Receives and maps a ring. */
static bool receive_ring(struct user_ring *r, int socket)
{
	int fd = receive_descriptor(socket, 0);

	return fd >= 0 && !ring_map(r, fd);
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
	ASSERT_TRUE(receive_ring(&r, carrier[1]));
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

/* The message that holds the ring also wakes it. */
TEST(ring_received_over_a_watched_socket)
{
	struct user_ring r, received;
	struct ring_event event;
	int ends[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	ASSERT_EQ(0, ring_open(&r, 4));
	ASSERT_EQ(0, ring_add(&r, ends[1], EPOLLIN, 1));
	ASSERT_TRUE(send_descriptor(ends[0], r.fd, 0));
	close(r.fd);
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	munmap(r.header, r.map_size);
	/* Only the message holds the ring now. */
	ASSERT_EQ(1, write(ends[0], "x", 1));
	ASSERT_TRUE(receive_ring(&received, ends[1]));
	EXPECT_EQ(1, ring_watched(received.fd));
	ASSERT_TRUE(ring_take(&received, &event));
	EXPECT_EQ(1, event.data);
	close(ends[1]);
	EXPECT_EQ(0, ring_watched(received.fd));
	ring_close(&received);
	close(ends[0]);
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

/* Only a message holds the watched file, and no process. */
TEST_F(flight, stays_watched)
{
	struct user_ring *r = &self->ring;
	int received;

	ASSERT_TRUE(send_descriptor(self->carrier[0], self->ends[0], 0));
	close(self->ends[0]);
	EXPECT_EQ(1, ring_watched(r->fd));
	EXPECT_EQ(0, poll_for(self->ends[1], POLLRDHUP, 0));
	ASSERT_EQ(1, write(self->ends[1], "x", 1));
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	received = receive_descriptor(self->carrier[1], 0);
	ASSERT_LE(0, received);
	EXPECT_EQ(1, ring_watched(r->fd));
	close(received);
	EXPECT_EQ(0, ring_watched(r->fd));
	EXPECT_NE(0, poll_for(self->ends[1], POLLRDHUP, PATIENCE_MS));
}

TEST_F(flight, ends_with_the_message)
{
	ASSERT_TRUE(send_descriptor(self->carrier[0], self->ends[0], 0));
	close(self->ends[0]);
	close(self->carrier[0]);
	EXPECT_EQ(1, ring_watched(self->ring.fd));
	close(self->carrier[1]);
	EXPECT_EQ(POLLHUP | POLLRDHUP,
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

/*
 * A watch belongs to the open file description and a number: the new number has none.
 */
TEST_F(flight, comes_back_with_another_number)
{
	struct user_ring *r = &self->ring;
	int old = self->ends[0], received;

	ASSERT_TRUE(send_descriptor(self->carrier[0], old, 0));
	received = receive_descriptor(self->carrier[1], 0);
	close(old);
	ASSERT_NE(old, received);
	EXPECT_EQ(-ENOENT, ring_del(r, received));
	EXPECT_EQ(0, ring_add(r, received, EPOLLIN, 2));
	EXPECT_EQ(2, ring_watched(r->fd));
	ASSERT_EQ(old, dup2(received, old));
	EXPECT_EQ(0, ring_del(r, old));
	EXPECT_EQ(0, ring_del(r, received));
}

/*
 * The read end of a named pipe that only the ring keeps open. Its writer sees whether
 * the ring exists.
 */
struct pinned {
	int reader;
	int writer;
};

static bool pinned_open(struct pinned *p)
{
	char name[FIFO_NAME_SIZE];

	if (!fifo_make(name))
		return false;
	p->reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	p->writer = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return !unlink(name) && p->writer >= 0;
}

static bool pinned_is_open(const struct pinned *p, int timeout)
{
	return !(poll_for(p->writer, 0, timeout) & POLLERR);
}

TEST(child_keeps_the_ring)
{
	int go[2], status;
	struct user_ring r;
	struct pinned p;
	pid_t child;
	char byte;

	ASSERT_TRUE(pinned_open(&p));
	ASSERT_EQ(0, pipe2(go, O_CLOEXEC));
	ASSERT_EQ(0, ring_open(&r, 1));
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(&r, p.reader, EPOLLIN, 1));
	close(p.reader);
	child = fork();
	if (!child) {
		close(go[1]);
		if (read(go[0], &byte, 1) || !ring_wait_ms(&r, 1, PATIENCE_MS))
			_exit(1);
		_exit(ring_take_only(&r) != EPOLLIN);
	}
	ring_close(&r);
	EXPECT_TRUE(pinned_is_open(&p, QUIET_MS));
	EXPECT_EQ(1, write(p.writer, "x", 1));
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_FALSE(pinned_is_open(&p, PATIENCE_MS));
}

static void exec_with_ring(const struct pinned *p, __u32 flags,
			   const int input[2], const int output[2])
{
	struct flowfd_create_ring args = { .max_items = 1, .flags = flags };
	struct user_ring r = { .fd = ring_create(&args) };

	if (ring_add(&r, p->reader, EPOLLIN, 1) != FLOWFD_RING_PINNED ||
	    dup2(input[0], 0) || dup2(output[1], 1) != 1)
		_exit(1);
	execlp("cat", "cat", NULL);
	_exit(1);
}

static void through_exec(struct __test_metadata *_metadata, __u32 flags)
{
	int input[2], output[2];
	struct pinned p;
	pid_t child;
	char byte;

	ASSERT_TRUE(pinned_open(&p));
	ASSERT_EQ(0, pipe2(input, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(output, O_CLOEXEC));
	child = fork();
	if (!child)
		exec_with_ring(&p, flags, input, output);
	close(p.reader);
	/* It has executed the other program once that answers. */
	ASSERT_EQ(1, write(input[1], "x", 1));
	ASSERT_EQ(1, read(output[0], &byte, 1));
	EXPECT_EQ(flags == FLOWFD_KEEP_ON_EXEC, pinned_is_open(&p, 0));
	close(input[1]);
	waitpid(child, NULL, 0);
	EXPECT_FALSE(pinned_is_open(&p, 0));
}

TEST(exec_closes_the_ring)
{
	through_exec(_metadata, 0);
}

TEST(exec_keeps_the_ring)
{
	through_exec(_metadata, FLOWFD_KEEP_ON_EXEC);
}

TEST_HARNESS_MAIN
