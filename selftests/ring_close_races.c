// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closes of watched files while they wake, while the other end is closed, and while the
 * ring ends. Closes beside adds and changes are in races.c.
 */
#include "ring_user.h"

#include <sys/socket.h>

/* A fixture, as only tests of a fixture can have a time limit of their own. */
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

/* A thread that writes to a watched socket, or closes it, when told to. */
struct partner {
	pthread_t thread;
	unsigned int round;	/* that was started */
	unsigned int done;
	int wake;		/* in each round: written to, */
	int close;		/* or closed; negative: not */
	bool stop;
};

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

/* At least a thousand closes, each while the other side writes. */
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
		/* No event from here on, although the other side still writes. */
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
 * Either close can end the watches of both ends. Still, no close returns before the
 * watches of its own file have ended: their items must be free at once. The pipe wakes
 * without a key, so that a close has to wait for a worker that polls the file.
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
 * The watches of the other end were added first. They are looked at once, not once for
 * each watch that ends, so closing takes no longer than adding.
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

#define REOPENED 300

/* The shortest time of a close of @fd, opened again: another file of the same inode. */
static __u64 ns_to_close_reopened(int fd)
{
	__u64 best = ~0ULL;
	char path[32];

	sprintf(path, "/proc/self/fd/%d", fd);
	for (int i = 0; i < REOPENED; i++) {
		int other = open(path, O_RDONLY | O_NONBLOCK);
		__u64 began = now_ns();

		if (close(other))
			return 0;
		if (now_ns() - began < best)
			best = now_ns() - began;
	}
	return best;
}

/*
 * Whoever has a pipe can open it any number of times. If each close looked at all watches
 * of the pipe, many closes would keep the lock that closes of other files need.
 */
TEST_F(races, of_a_reopened_pipe_with_many_watches)
{
	struct user_ring rings[RINGS];
	int ends[2], fds[DUPS];
	__u64 one, many;

	ASSERT_EQ(0, pipe(ends));
	for (int r = 0; r < RINGS; r++)
		ASSERT_EQ(0, ring_open(&rings[r], DUPS));
	ASSERT_EQ(0, ring_add(&rings[0], ends[0], EPOLLIN, 0));
	one = ns_to_close_reopened(ends[0]);
	for (int i = 0; i < DUPS; i++) {
		fds[i] = dup(ends[0]);
		ASSERT_LE(0, fds[i]);
		for (int r = i ? 0 : 1; r < RINGS; r++)
			ASSERT_EQ(0, ring_add(&rings[r], fds[i], EPOLLIN, i));
	}
	many = ns_to_close_reopened(ends[0]);
	TH_LOG("a close takes %llu ns with one watch of the pipe, %llu ns with %d", one,
	       many, RINGS * DUPS);
	EXPECT_LT(0, one);
	EXPECT_LT(many, 8 * one);
	for (int r = 0; r < RINGS; r++)
		ring_close(&rings[r]);
	for (int i = 0; i < DUPS; i++)
		close(fds[i]);
	close(ends[0]);
	close(ends[1]);
}

/* The ring and a watched file are closed at the same time. */
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
		/* With another watch of the same file in every second round. */
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
