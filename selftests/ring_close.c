// SPDX-License-Identifier: GPL-2.0-only
/*
 * What closing does: a ring does not keep sockets, pipes and counters open, and
 * forgets them with their last descriptor; other files it keeps.
 */
#include "ring_user.h"
#include "sockets.h"

#include <sys/stat.h>
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

TEST_F(closing, dup_keeps_it)
{
	int copy = dup(self->ends[0]);

	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0], EPOLLIN, 1));
	close(self->ends[0]);
	EXPECT_EQ(1, ring_watched(self->ring.fd));
	EXPECT_FALSE(other_side_noticed(self->ends[1], 0));
	close(copy);
	EXPECT_EQ(0, ring_watched(self->ring.fd));
	EXPECT_TRUE(other_side_noticed(self->ends[1], PATIENCE_MS));
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

TEST_F(closing, two_rings)
{
	struct user_ring other;

	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0], EPOLLIN, 1));
	ASSERT_EQ(0, ring_add(&other, self->ends[0], EPOLLIN, 1));
	close(self->ends[0]);
	EXPECT_EQ(0, ring_watched(self->ring.fd));
	EXPECT_EQ(0, ring_watched(other.fd));
	ring_close(&other);
}

TEST_F(closing, the_ring_first)
{
	struct user_ring other;

	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_EQ(0, ring_add(&other, self->ends[0], EPOLLIN | EPOLLOUT, 1));
	ring_close(&other);
	close(self->ends[0]);
	EXPECT_TRUE(other_side_noticed(self->ends[1], PATIENCE_MS));
}

TEST_F(closing, outstanding_event_goes_too)
{
	ASSERT_EQ(0, ring_add(&self->ring, self->ends[0],
			      EPOLLIN | EPOLLOUT, 1));
	close(self->ends[1]);
	sleep_ms(QUIET_MS);
	close(self->ends[0]);
	EXPECT_EQ(0, ring_take_only(&self->ring));
}

/* Asked to, a watch keeps a file open; a UNIX socket it does not. */
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

TEST_F(closing, pin_goes_with_its_removal)
{
	struct user_ring *r = &self->ring;

	ASSERT_LE(0, ring_add_pinned(r, self->ends[0], EPOLLIN | EPOLLOUT, 1));
	EXPECT_EQ(0, ring_del(r, self->ends[0]));
	EXPECT_EQ(0, ring_take_only(r));
	close(self->ends[0]);
	EXPECT_TRUE(other_side_noticed(self->ends[1], PATIENCE_MS));
}

static int compare_times(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* The median, as this machine can be busy with something else. */
TEST(end_of_tcp_is_seen_at_once)
{
	__u64 times[31];
	struct user_ring ring;

	ASSERT_EQ(0, ring_open(&ring, 4));
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		int ends[2];

		if (tcp_pair(ends))
			SKIP(return, "no loopback");
		ASSERT_EQ(0, ring_add(&ring, ends[0], EPOLLIN | EPOLLOUT, 1));
		times[i] = now_ns();
		close(ends[0]);
		ASSERT_TRUE(other_side_noticed(ends[1], PATIENCE_MS));
		times[i] = now_ns() - times[i];
		close(ends[1]);
	}
	qsort(times, ARRAY_SIZE(times), sizeof(*times), compare_times);
	EXPECT_GT(10000000, times[ARRAY_SIZE(times) / 2]);
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
	EXPECT_EQ(users + 4, module_users());
	ring_close(&ring);
	EXPECT_EQ(users - 1, module_users());
}

TEST(counter_outlives_its_ring)
{
	struct user_ring ring;
	int fd = open_counter(CREATED, 0, 0);

	ASSERT_EQ(0, ring_open(&ring, 4));
	ASSERT_EQ(0, ring_add(&ring, fd, EPOLLIN, 1));
	ring_close(&ring);
	EXPECT_EQ(8, add(fd, 1));
	close(fd);
}

/* The number is closed, the file is not: its events still come. */
TEST(eventfd_is_pinned)
{
	struct user_ring ring;
	int fd = eventfd(0, EFD_CLOEXEC), copy = dup(fd);

	ASSERT_EQ(0, ring_open(&ring, 4));
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(&ring, fd, EPOLLIN, 1));
	close(fd);
	add(copy, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&ring));
	close(copy);
	EXPECT_EQ(1, ring_watched(ring.fd));
	ring_close(&ring);
}

/* A named pipe is pinned; when the ring goes the writer gets its EPIPE. */
TEST(pin_ends_with_the_ring)
{
	char name[] = "/tmp/fifo-XXXXXX";
	struct user_ring ring;
	int reader, writer;

	signal(SIGPIPE, SIG_IGN);
	ASSERT_NE(NULL, mkdtemp(name));
	rmdir(name);
	ASSERT_EQ(0, mkfifo(name, 0600));
	reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(name);
	ASSERT_LE(0, writer);
	ASSERT_EQ(0, ring_open(&ring, 4));
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(&ring, reader, EPOLLIN, 1));
	close(reader);
	EXPECT_EQ(1, write(writer, "x", 1));
	ring_close(&ring);
	EXPECT_EQ(-EPIPE, result_of(write(writer, "x", 1)));
	close(writer);
}

/* A ring in the queue of a socket that it watches: both go. */
TEST(ring_sent_over_a_watched_socket_goes)
{
	long users = module_users();
	__u64 end = now_ns() + PATIENCE_MS * 1000000ULL;

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
	while (module_users() != users && now_ns() < end)
		sleep_ms(10);
	EXPECT_EQ(users, module_users());
}

static __u64 stress_ns(void)
{
	return parameter("FLOWFD_STRESS_MS", 1500) * 1000000ULL;
}

/* A fixture, for only its tests can take longer than 30 seconds. */
FIXTURE(races)
{
	int nothing;
};

FIXTURE_SETUP(races)
{
}

FIXTURE_TEARDOWN(races)
{
}

/* Closing, adding and the end of the ring at the same time. */
struct race {
	int fd;
	int stop;
};

static void *close_and_open(void *arg)
{
	struct race *race = arg;
	int ends[2];

	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		if (pipe(ends))
			continue;
		dup2(ends[0], race->fd);
		close(ends[0]);
		if (write(ends[1], "x", 1) != 1)
			break;
		close(ends[1]);
	}
	return NULL;
}

TEST_F_TIMEOUT(races, of_close, 24 * 3600)
{
	__u64 end = now_ns() + stress_ns();
	struct race races[2] = { { .fd = 500 }, { .fd = 501 } };
	pthread_t threads[2];
	unsigned long added = 0;

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, close_and_open,
					    &races[i]));
	}
	while (now_ns() < end) {
		struct ring_event event;
		struct user_ring ring;

		ASSERT_EQ(0, ring_open(&ring, 8));
		for (int i = 0; i < 50; i++) {
			int fd = 500 + i % 2;
			int result = ring_add(&ring, fd, EPOLLIN, 1);

			added += result >= 0;
			if (i % 5 == 0)
				ring_mod(&ring, fd, EPOLLIN | EPOLLOUT, 2);
			if (i % 9 == 0)
				ring_del(&ring, fd);
			while (ring_take(&ring, &event))
				;
		}
		ring_close(&ring);
	}
	for (int i = 0; i < 2; i++) {
		races[i].stop = 1;
		pthread_join(threads[i], NULL);
	}
	EXPECT_LT(0, added);
}

/* One thread that wakes a watched socket, or closes it, when it is told to. */
struct partner {
	pthread_t thread;
	unsigned int round;	/* that has begun */
	unsigned int done;
	int wake;		/* written to in each round, */
	int close;		/* or closed, unless negative */
	bool stop;
};

/* Both must run at the same time; yields if they cannot. */
static void spin_until(const unsigned int *word, unsigned int value)
{
	for (unsigned int i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) !=
				 value; i++) {
		if (i % 4096 == 0)
			sched_yield();
	}
}

static void *partner_run(void *arg)
{
	struct partner *p = arg;

	for (unsigned int round = 1;; round++) {
		spin_until(&p->round, round);
		if (p->stop)
			return NULL;
		for (int i = 0; p->wake >= 0 && i < 10; i++) {
			if (send(p->wake, "x", 1, MSG_NOSIGNAL) < 0)
				break;
		}
		if (p->close >= 0)
			close(p->close);
		__atomic_store_n(&p->done, round, __ATOMIC_RELEASE);
	}
}

static void partner_begin(struct partner *p)
{
	__atomic_store_n(&p->round, p->round + 1, __ATOMIC_RELEASE);
}

static void partner_wait(struct partner *p)
{
	spin_until(&p->done, p->round);
}

static void partner_stop(struct partner *p)
{
	p->stop = true;
	partner_begin(p);
	pthread_join(p->thread, NULL);
}

/* A thousand closes at least, each while the other side writes. */
TEST_F_TIMEOUT(races, of_close_and_wakeups, 24 * 3600)
{
	struct partner p = { .close = -1 };
	struct user_ring rings[2];
	__u64 end = now_ns() + stress_ns();
	struct ring_event event;
	int ends[2];

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ring_open(&rings[i], 4));
	}
	ASSERT_EQ(0, pthread_create(&p.thread, NULL, partner_run, &p));
	for (int round = 0; round < 1000 || now_ns() < end; round++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(0, ring_add(&rings[i], ends[0],
					      EPOLLIN | EPOLLRDHUP, round));
		}
		p.wake = ends[1];
		partner_begin(&p);
		if (round % 2)
			ring_wait_ms(&rings[0], 1, 1);
		close(ends[0]);
		/* Silent from here on, though it is still written to. */
		for (int i = 0; i < 2; i++) {
			ASSERT_FALSE(ring_take(&rings[i], &event));
		}
		partner_wait(&p);
		for (int i = 0; i < 2; i++) {
			ASSERT_FALSE(ring_take(&rings[i], &event));
		}
		close(ends[1]);
	}
	partner_stop(&p);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, ring_watched(rings[i].fd));
		ring_close(&rings[i]);
	}
}

/*
 * Either close can end the watches of both ends, and no close is over before the
 * watch of its own file is: its item can be used again at once. The pipe wakes without
 * saying for what, so that a close has to wait for somebody who polls the file.
 */
TEST_F_TIMEOUT(races, of_both_ends_of_a_pipe, 24 * 3600)
{
	struct partner p = { .wake = -1 };
	__u64 end = now_ns() + stress_ns();
	int ends[2], counter = open_counter(CREATED, 0, 0);
	struct user_ring ring;

	ASSERT_EQ(0, ring_open(&ring, 1));
	ASSERT_EQ(0, pthread_create(&p.thread, NULL, partner_run, &p));
	for (int round = 0; round < 1000 || now_ns() < end; round++) {
		ASSERT_EQ(0, pipe(ends));
		ASSERT_EQ(0, ring_add(&ring, ends[1], EPOLLOUT, round));
		p.close = ends[0];
		partner_begin(&p);
		fcntl(ends[1], F_SETPIPE_SZ, 4096 << round % 2);
		close(ends[1]);
		ASSERT_EQ(0, ring_add(&ring, counter, EPOLLIN, 1)) {
			TH_LOG("in round %d", round);
		}
		ASSERT_EQ(0, ring_del(&ring, counter));
		partner_wait(&p);
	}
	partner_stop(&p);
	ring_close(&ring);
	close(counter);
}

#define RINGS 32
#define DUPS 300

/*
 * The other end's watches were added first, and are looked at once, not once for each
 * that ends: closing takes no longer than adding.
 */
TEST_F_TIMEOUT(races, of_many_watches_of_a_pipe, 24 * 3600)
{
	struct user_ring rings[RINGS];
	int ends[2], fds[2][DUPS];
	__u64 began, added;

	ASSERT_EQ(0, pipe(ends));
	for (int i = 0; i < DUPS; i++) {
		for (int end = 0; end < 2; end++) {
			fds[end][i] = dup(ends[end]);
			ASSERT_LE(0, fds[end][i]);
		}
	}
	began = now_ns();
	for (int r = 0; r < RINGS; r++) {
		ASSERT_EQ(0, ring_open(&rings[r], 2 * DUPS));
	}
	for (int i = 0; i < 2 * DUPS * RINGS; i++) {
		ASSERT_EQ(0, ring_add(&rings[i % RINGS],
				      fds[i / (DUPS * RINGS)][i / RINGS % DUPS],
				      EPOLLIN, i));
	}
	added = now_ns();
	close(ends[1]);
	for (int i = 0; i < DUPS; i++)
		close(fds[1][i]);
	EXPECT_LT(now_ns() - added, added - began);
	TH_LOG("%llu ms to add, %llu ms to close", (added - began) / 1000000,
	       (now_ns() - added) / 1000000);
	EXPECT_EQ(DUPS, ring_watched(rings[0].fd));
	for (int r = 0; r < RINGS; r++)
		ring_close(&rings[r]);
	for (int i = 0; i < DUPS; i++)
		close(fds[0][i]);
	close(ends[0]);
}

/* The ring and what it watches go at the same time. */
TEST_F_TIMEOUT(races, of_close_and_the_end_of_the_ring, 24 * 3600)
{
	struct partner p = { .wake = -1 };
	__u64 end = now_ns() + stress_ns();
	struct user_ring ring, other;
	int ends[2];

	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_EQ(0, pthread_create(&p.thread, NULL, partner_run, &p));
	for (int round = 0; round < 1000 || now_ns() < end; round++) {
		ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		ASSERT_EQ(0, ring_open(&ring, 4));
		ASSERT_EQ(0, ring_add(&ring, ends[0], EPOLLIN, round));
		/* With another watch of the same file, or alone. */
		if (round % 2) {
			ASSERT_EQ(0, ring_add(&other, ends[0], EPOLLIN, 1));
		}
		p.close = ends[0];
		partner_begin(&p);
		ring_close(&ring);
		partner_wait(&p);
		EXPECT_EQ(POLLHUP | POLLRDHUP, poll_for(ends[1], POLLRDHUP, 0));
		ASSERT_EQ(0, ring_watched(other.fd));
		close(ends[1]);
	}
	partner_stop(&p);
	ring_close(&other);
}

TEST_HARNESS_MAIN
