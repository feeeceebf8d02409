// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of every kind in a ring: events are those of epoll, only with bits that are true;
 * and whether the file is pinned. subjects.h opens the files and makes them ready.
 */
#include "ring_waiter.h"
#include "subjects.h"

#include <sys/wait.h>

FIXTURE(file)
{
	struct user_ring ring;
	struct subject s;
};

FIXTURE_VARIANT(file)
{
	bool (*open)(struct subject *s);
	bool (*ready)(struct subject *s);
	/* NULL: stays ready */
	void (*drain)(struct subject *s);
	__u32 events;
	int result;
};

#define FILE_VARIANT(name, open_, ready_, drain_, events_, result_)        \
	FIXTURE_VARIANT_ADD(file, name) {                                  \
		.open = open_, .ready = ready_, .drain = drain_,           \
		.events = events_, .result = result_,                      \
	}

FILE_VARIANT(tcp, open_tcp, ready_by_write, drain_by_read, EPOLLIN, 0);
FILE_VARIANT(tcp_full, open_tcp, ready_by_read, drain_by_write, EPOLLOUT, 0);
FILE_VARIANT(tcp_listener, open_tcp_listener, ready_by_connect,
	     drain_by_accept, EPOLLIN, 0);
FILE_VARIANT(udp, open_udp, ready_by_write, drain_by_read, EPOLLIN, 0);
FILE_VARIANT(stream, open_stream, ready_by_write, drain_by_read, EPOLLIN, 0);
FILE_VARIANT(stream_full, open_stream, ready_by_read, drain_by_write,
	     EPOLLOUT, 0);
FILE_VARIANT(datagram, open_datagram, ready_by_write, drain_by_read,
	     EPOLLIN, 0);
FILE_VARIANT(packets, open_packets, ready_by_write, drain_by_read, EPOLLIN, 0);
FILE_VARIANT(unix_listener, open_unix_listener, ready_by_connect,
	     drain_by_accept, EPOLLIN, 0);
FILE_VARIANT(pipe_reader, open_pipe_reader, ready_by_write, drain_by_read,
	     EPOLLIN, 0);
FILE_VARIANT(pipe_writer, open_pipe_writer, ready_by_read, drain_by_write,
	     EPOLLOUT, 0);
FILE_VARIANT(counter_opened, open_opened, ready_by_count, drain_by_read,
	     EPOLLIN, 0);
FILE_VARIANT(counter_created, open_created, ready_by_count, drain_by_read,
	     EPOLLIN, 0);
FILE_VARIANT(fifo, open_fifo, ready_by_write, drain_by_read, EPOLLIN,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(eventfd, open_eventfd, ready_by_count, drain_by_read, EPOLLIN,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(timer, open_timer, ready_by_time, drain_by_read, EPOLLIN,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(inotify, open_inotify, ready_by_change, drain_by_read, EPOLLIN,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(fanotify, open_fanotify, ready_by_open, drain_by_descriptors,
	     EPOLLIN, FLOWFD_RING_PINNED);
FILE_VARIANT(group_events, open_group_events, ready_by_freeze,
	     drain_from_start, EPOLLPRI, FLOWFD_RING_PINNED);
/* The ends of connections say nothing when they wake. */
FILE_VARIANT(stream_end, open_stream, ready_by_close, NULL, EPOLLIN, 0);
FILE_VARIANT(packets_end, open_packets, ready_by_close, NULL, EPOLLIN, 0);
FILE_VARIANT(pipe_end, open_pipe_reader, ready_by_close, NULL, EPOLLHUP, 0);
FILE_VARIANT(fifo_end, open_fifo_reader, ready_by_close, NULL, EPOLLHUP,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(message_queue, open_queue, ready_by_message, drain_by_receive,
	     EPOLLIN, FLOWFD_RING_PINNED);
FILE_VARIANT(pidfd, open_pidfd, ready_by_exit, NULL, EPOLLIN,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(pty_master, open_master, ready_by_write, drain_by_read, EPOLLIN,
	     FLOWFD_RING_PINNED);
FILE_VARIANT(pty_slave, open_slave, ready_by_write, drain_by_read, EPOLLIN,
	     FLOWFD_RING_PINNED);

FIXTURE_SETUP(file)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	if (!variant->open(&self->s))
		SKIP(return, "there is none here, errno %d", errno);
	ASSERT_LE(0, self->s.fd);
	/* Fill it, so that it is not ready to be written. */
	if (variant->events == EPOLLOUT)
		variant->drain(&self->s);
}

FIXTURE_TEARDOWN(file)
{
	ring_close(&self->ring);
	if (variant->open == open_group_events)
		cgroup_remove(&group);
	if (variant->open == open_pidfd) {
		kill(self->s.other, SIGKILL);
		waitpid(self->s.other, NULL, 0);
	}
	if (variant->open == open_inotify || variant->open == open_fanotify)
		rmdir(self->s.name);
}

static int ring_add_file(struct user_ring *r, int fd, __u32 events)
{
	return ring_add(r, fd, events, 0xf11e);
}

/* Drops the events of both. */
static void forget(struct user_ring *r, int ep)
{
	struct ring_event event;

	while (ring_take(r, &event))
		;
	while (epoll_take(ep, 0))
		;
}

TEST_F(file, same_as_epoll)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;
	int ep = epoll_on(s->fd, variant->events | EPOLLRDHUP | EPOLLET);
	struct ring_event event;

	ASSERT_LE(0, ep);
	ASSERT_EQ(variant->result,
		  ring_add_file(r, s->fd, variant->events | EPOLLRDHUP));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, epoll_take(ep, 0));
		EXPECT_EQ(0, ring_take_only(r));
		ASSERT_TRUE(variant->ready(s));
		ASSERT_TRUE(ring_take_wait(r, &event));
		EXPECT_EQ(0xf11e, event.data);
		EXPECT_EQ(epoll_take(ep, PATIENCE_MS), event.events);
		if (!variant->drain)
			break;
		variant->drain(s);
		forget(r, ep);
	}
	close(ep);
}

/*
 * What epoll has when the call that caused it returns, a wait has as well, though some files
 * wake without saying what happened, and must be polled.
 */
static void look_at_once(struct __test_metadata *_metadata, FIXTURE_DATA(file) *self,
			 const FIXTURE_VARIANT(file) *variant)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;
	int ep = epoll_on(s->fd, variant->events | EPOLLET);
	__u32 events;

	ASSERT_EQ(variant->result, ring_add_file(r, s->fd, variant->events));
	for (int i = 0; i < 20; i++) {
		ASSERT_TRUE(variant->ready(s));
		events = epoll_take(ep, 0);
		if (events) {
			EXPECT_EQ(1, ring_wait_ms(r, 1, 0));
			EXPECT_EQ(events, ring_take_only(r));
		}
		if (!variant->drain)
			break;
		variant->drain(s);
		forget(r, ep);
	}
	close(ep);
}

TEST_F(file, at_once)
{
	look_at_once(_metadata, self, variant);
}

/* Such a task waits for no kernel thread of the usual priority. */
TEST_F(file, at_once_for_a_real_time_task)
{
	ASSERT_TRUE(keep_processor(true));
	look_at_once(_metadata, self, variant);
	keep_processor(false);
}

/* The events of a file and of a pipe that is written after that, also for a task that sleeps. */
static void look_for_order(struct __test_metadata *_metadata, FIXTURE_DATA(file) *self,
			   const FIXTURE_VARIANT(file) *variant, bool sleeps)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;
	struct ring_event event;
	struct waiter waiter;
	int ends[2];

	/* Poll can find room before there is a wakeup. */
	if (variant->events == EPOLLOUT)
		SKIP(return, "not for EPOLLOUT");
	ASSERT_EQ(0, pipe2(ends, O_NONBLOCK | O_CLOEXEC));
	ASSERT_EQ(variant->result, ring_add_file(r, s->fd, variant->events));
	ASSERT_EQ(0, ring_add(r, ends[0], EPOLLIN, 1));
	for (int i = 0; i < 20; i++) {
		if (sleeps) {
			ASSERT_TRUE(waiter_start(&waiter, r, 1, i % 2));
		}
		ASSERT_TRUE(variant->ready(s));
		/* Terminals and processes become ready with a delay. */
		ASSERT_LT(0, poll_for(s->fd, variant->events, PATIENCE_MS));
		ASSERT_EQ(1, write(ends[1], "x", 1));
		if (sleeps) {
			ASSERT_TRUE(waiter_ends(&waiter));
		} else {
			ASSERT_LT(0, ring_wait_ms(r, 1, 0));
		}
		ASSERT_TRUE(ring_take(r, &event));
		EXPECT_EQ(0xf11e, event.data);
		EXPECT_TRUE(ring_take(r, &event));
		ASSERT_EQ(1, read(ends[0], &(char){ 0 }, 1));
		if (!variant->drain)
			break;
		variant->drain(s);
		while (ring_wait_ms(r, 1, 0) > 0 && ring_take(r, &event))
			;
	}
	close(ends[0]);
	close(ends[1]);
}

TEST_F(file, in_order)
{
	look_for_order(_metadata, self, variant, false);
}

TEST_F(file, in_order_for_a_task_that_sleeps)
{
	look_for_order(_metadata, self, variant, true);
}

TEST_F(file, ready_before)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;
	int ep;

	ASSERT_TRUE(variant->ready(s));
	/* Terminals and processes become ready with a delay. */
	ASSERT_LT(0, poll_for(s->fd, variant->events, PATIENCE_MS));
	ep = epoll_on(s->fd, variant->events | EPOLLET);
	ASSERT_EQ(variant->result, ring_add_file(r, s->fd, variant->events));
	EXPECT_EQ(epoll_take(ep, 0), ring_take_only(r));
	close(ep);
}

TEST_F(file, silent_after_del)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;

	ASSERT_EQ(variant->result, ring_add_file(r, s->fd, variant->events));
	if (variant->drain) {
		ASSERT_TRUE(variant->ready(s));
		ASSERT_EQ(1, ring_wait_ms(r, 1, PATIENCE_MS));
		ASSERT_EQ(0, ring_del(r, s->fd));
		EXPECT_EQ(0, ring_take_only(r));
		variant->drain(s);
		ASSERT_EQ(variant->result,
			  ring_add_file(r, s->fd, variant->events));
		EXPECT_EQ(0, ring_take_only(r));
	}
	ASSERT_EQ(0, ring_del(r, s->fd));
	ASSERT_TRUE(variant->ready(s));
	ASSERT_LT(0, poll_for(s->fd, variant->events, PATIENCE_MS));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, ring_take_only(r));
	EXPECT_EQ(0, ring_watched(r->fd));
}

TEST_F(file, one_shot)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;
	__u32 events = variant->events | EPOLLONESHOT;
	struct ring_event event;

	ASSERT_EQ(variant->result, ring_add_file(r, s->fd, events));
	ASSERT_TRUE(variant->ready(s));
	ASSERT_TRUE(ring_take_wait(r, &event));
	if (variant->drain) {
		variant->drain(s);
		ASSERT_TRUE(variant->ready(s));
		ASSERT_LT(0, poll_for(s->fd, variant->events, PATIENCE_MS));
	}
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, ring_take_only(r));
	ASSERT_EQ(0, ring_mod(r, s->fd, events, 2));
	ASSERT_TRUE(ring_take(r, &event));
	EXPECT_EQ(2, event.data);
	EXPECT_EQ(variant->events, event.events & variant->events);
}

/*
 * The last descriptor is closed: the watch ends, or the file is pinned and its events
 * go on. The number of the descriptor can be used again in both cases.
 */
TEST_F(file, last_close)
{
	struct user_ring *r = &self->ring;
	struct subject *s = &self->s;
	int number = s->fd, copy = dup(s->fd);
	struct ring_event event;
	int pinned = variant->result == FLOWFD_RING_PINNED;

	ASSERT_EQ(variant->result, ring_add_file(r, number, variant->events));
	close(number);
	s->fd = copy;
	EXPECT_EQ(1, ring_watched(r->fd));
	ASSERT_TRUE(variant->ready(s));
	EXPECT_TRUE(ring_take_wait(r, &event));
	if (variant->drain)
		variant->drain(s);
	while (ring_take(r, &event))
		;
	/* Counters have one more descriptor: the other side is a dup. */
	if (variant->ready == ready_by_count) {
		close(s->other);
		s->other = -1;
	}
	close(copy);
	EXPECT_EQ(pinned, ring_watched(r->fd));
	EXPECT_EQ(0, ring_take_only(r));
	ASSERT_EQ(number, dup2(eventfd(1, EFD_CLOEXEC), number));
	EXPECT_EQ(FLOWFD_RING_PINNED, ring_add(r, number, EPOLLIN, 1));
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	EXPECT_EQ(1 + pinned, ring_watched(r->fd));
}

TEST_F(file, outlives_the_ring)
{
	struct subject *s = &self->s;
	struct user_ring other;

	ASSERT_EQ(0, ring_open(&other, 1));
	ASSERT_EQ(variant->result, ring_add_file(&other, s->fd,
						 variant->events));
	ring_close(&other);
	ASSERT_TRUE(variant->ready(s));
	EXPECT_LT(0, poll_for(s->fd, variant->events, PATIENCE_MS));
}

/* Each step is an edge of both or of neither, also where nothing is drained in between. */
TEST(each_step_as_epoll)
{
	static bool (* const opens[])(struct subject *s) = {
		open_eventfd, open_opened, open_pipe_reader, open_stream, open_datagram,
	};
	struct user_ring r;
	struct subject s;
	__u64 value;
	int ep;

	for (size_t i = 0; i < ARRAY_SIZE(opens); i++) {
		ASSERT_TRUE(opens[i](&s));
		set_nonblock(s.fd, true);
		ep = epoll_on(s.fd, EPOLLIN | EPOLLET);
		ASSERT_EQ(0, ring_open(&r, 1));
		ASSERT_LE(0, ring_add_file(&r, s.fd, EPOLLIN));
		for (int step = 0; step < 50; step++) {
			if (step % 7 < 4) {
				ASSERT_EQ(8, add(s.other, 1));
			} else {
				take(s.fd, &value);
			}
			EXPECT_EQ(epoll_take(ep, 0), ring_take_only(&r))
				TH_LOG("file %zu, step %d", i, step);
			EXPECT_EQ(0, ring_take_only(&r));
		}
		ring_close(&r);
		close(ep);
		close(s.fd);
		close(s.other);
	}
}

/* Hanging up a terminal replaces the file operations of the open file. */
TEST(terminal_is_hung_up)
{
	struct ring_event event;
	struct user_ring r;
	struct subject s;
	__u32 bits = 0;

	ASSERT_TRUE(open_slave(&s));
	ASSERT_EQ(0, ring_open(&r, 1));
	ASSERT_EQ(FLOWFD_RING_PINNED,
		  ring_add(&r, s.fd, EPOLLIN | EPOLLHUP, 1));
	close(s.other);
	while (!(bits & EPOLLHUP)) {
		ASSERT_TRUE(ring_take_wait(&r, &event));
		bits |= event.events;
	}
	EXPECT_EQ(0, ring_mod(&r, s.fd, EPOLLIN, 2));
	EXPECT_EQ(EPOLLHUP, ring_take_only(&r) & EPOLLHUP);
	EXPECT_EQ(0, ring_del(&r, s.fd));
	ring_close(&r);
	close(s.fd);
}

/* The end of a connection wakes without a key: a work item polls the socket. */
TEST(tcp_is_shut_down)
{
	struct ring_event event;
	struct user_ring r;
	int ends[2], ep;
	__u32 expected, bits = 0;

	ASSERT_EQ(0, tcp_pair(ends));
	ep = epoll_on(ends[0], EPOLLIN | EPOLLRDHUP | EPOLLET);
	ASSERT_EQ(0, ring_open(&r, 1));
	ASSERT_EQ(0, ring_add(&r, ends[0], EPOLLIN | EPOLLRDHUP, 1));
	shutdown(ends[1], SHUT_WR);
	expected = epoll_take(ep, PATIENCE_MS);
	while (bits != expected) {
		ASSERT_TRUE(ring_take_wait(&r, &event))
			TH_LOG("%#x of %#x", bits, expected);
		bits |= event.events;
	}
	EXPECT_EQ(EPOLLIN | EPOLLRDHUP, bits);
	ring_close(&r);
	close(ends[0]);
	close(ends[1]);
	close(ep);
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
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in address;
	int listener = tcp_listener(&address), ep;
	struct ring_event event;
	struct user_ring r;

	ASSERT_LE(0, listener);
	ASSERT_EQ(0, ring_open(&r, 2));
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
	connect(client, (void *)&address, sizeof(address));
	EXPECT_TRUE(epoll_take(ep, PATIENCE_MS) & EPOLLERR);
	ASSERT_TRUE(ring_take_wait(&r, &event));
	EXPECT_TRUE(event.events & EPOLLERR);
	EXPECT_EQ(2, event.data);
	ring_close(&r);
	close(client);
	close(ep);
}

static bool change_host_name(int i)
{
	return !sethostname(i % 2 ? "odd" : "even", 3 + !(i % 2));
}

/*
 * A change is told to one poll of each open file, so epoll has an open file of its own. A
 * change of any namespace's name is told to all.
 */
static void watch_host_name(struct __test_metadata *_metadata, bool real_time)
{
	static const char name[] = "/proc/sys/kernel/hostname";
	int fd = open(name, O_RDONLY | O_CLOEXEC), other = open(name, O_RDONLY | O_CLOEXEC);
	int ep = epoll_on(other, EPOLLPRI | EPOLLET);
	struct ring_event event;
	struct waiter waiter;
	struct user_ring r;
	int ends[2];

	ASSERT_EQ(0, unshare(CLONE_NEWUTS));
	ASSERT_EQ(0, ring_open(&r, 2));
	ASSERT_EQ(0, pipe2(ends, O_NONBLOCK | O_CLOEXEC));
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(&r, fd, EPOLLPRI, 1));
	ASSERT_EQ(0, ring_add(&r, ends[0], EPOLLIN, 2));
	ASSERT_TRUE(!real_time || keep_processor(true));
	for (int i = 0; i < 20; i++) {
		bool sleeps = i % 2 && !real_time;

		if (sleeps) {
			ASSERT_TRUE(waiter_start(&waiter, &r, 1, true));
		}
		ASSERT_TRUE(change_host_name(i));
		ASSERT_EQ(1, write(ends[1], "x", 1));
		if (sleeps) {
			ASSERT_TRUE(waiter_ends(&waiter));
		} else {
			ASSERT_LT(0, ring_wait_ms(&r, 1, 0));
		}
		ASSERT_TRUE(ring_take(&r, &event));
		EXPECT_EQ(1, event.data);
		EXPECT_EQ(epoll_take(ep, 0), event.events);
		ASSERT_TRUE(ring_take(&r, &event));
		EXPECT_EQ(2, event.data);
		ASSERT_EQ(1, read(ends[0], &(char){ 0 }, 1));
	}
	ASSERT_TRUE(!real_time || keep_processor(false));
	ring_close(&r);
	close(fd);
	close(other);
	close(ep);
	close(ends[0]);
	close(ends[1]);
}

/* Files of procfs wake without a key. */
TEST(host_name)
{
	watch_host_name(_metadata, false);
}

TEST(host_name_for_a_real_time_task)
{
	watch_host_name(_metadata, true);
}

/* A descriptor with O_PATH does not open its file. */
TEST(path_only)
{
	struct user_ring r;
	struct subject s;
	char path[64];
	int fd;

	ASSERT_TRUE(open_stream(&s));
	ASSERT_EQ(0, ring_open(&r, 1));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.fd);
	fd = open(path, O_PATH | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, ring_add(&r, fd, EPOLLIN, 1));
	/* Closing it does not close the socket. */
	ASSERT_EQ(0, ring_add(&r, s.fd, EPOLLIN, 1));
	close(fd);
	EXPECT_EQ(1, ring_watched(r.fd));
	ASSERT_TRUE(ready_by_write(&s));
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	ring_close(&r);
}

TEST_HARNESS_MAIN
