// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files, and epolls that watch them, are closed in every order and concurrently, while
 * other threads add items. The same program runs before, with and after the livepatch,
 * and during its transitions.
 */
#include <kselftest_harness.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "clock.h"

#define EPOLLS 4
#define FILES 4

/* How long each race is run. */
static unsigned long race_ms(void)
{
	const char *text = getenv("FLOWFD_STRESS_MS");

	return text ? strtoul(text, NULL, 10) : 1500;
}

static int add(int ep, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
}

static int ready(int ep)
{
	struct epoll_event events[FILES];

	return epoll_wait(ep, events, FILES, 0);
}

/* Files of several kinds, all of them ready. */
static int open_file(int i)
{
	int ends[2];

	switch (i % 3) {
	case 0:
		return eventfd(1, EFD_CLOEXEC);
	case 1:
		if (pipe2(ends, O_CLOEXEC))
			return -1;
		break;
	default:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
			return -1;
	}
	if (write(ends[1], "x", 1) != 1)
		return -1;
	close(ends[1]);
	return ends[0];
}

FIXTURE(closes)
{
};

FIXTURE_SETUP(closes)
{
}

FIXTURE_TEARDOWN(closes)
{
}

TEST_F(closes, a_file_goes_from_all_epolls)
{
	int ep[EPOLLS], fd = open_file(0), other = open_file(1);

	for (int i = 0; i < EPOLLS; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_EQ(0, add(ep[i], fd));
		ASSERT_EQ(0, add(ep[i], other));
		ASSERT_EQ(2, ready(ep[i]));
	}
	close(fd);
	for (int i = 0; i < EPOLLS; i++) {
		EXPECT_EQ(1, ready(ep[i]));
		close(ep[i]);
	}
	close(other);
}

TEST_F(closes, nested_epolls_in_any_order)
{
	/* In which order outer, middle, inner and the file are closed. */
	for (int order = 0; order < 24; order++) {
		int left[4] = { 0, 1, 2, 3 }, fd[4], rest = order;

		for (int i = 0; i < 3; i++)
			fd[i] = epoll_create1(EPOLL_CLOEXEC);
		fd[3] = open_file(order);
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(0, add(fd[i], fd[i + 1]));
		ASSERT_EQ(1, ready(fd[0]));
		ASSERT_EQ(-1, add(fd[2], fd[0]));
		ASSERT_EQ(ELOOP, errno);
		for (int n = 4; n > 0; n--) {
			int at = rest % n;

			rest /= n;
			ASSERT_EQ(0, close(fd[left[at]]));
			memmove(left + at, left + at + 1, (n - at - 1) * sizeof(*left));
			for (int i = 0; i < n - 1; i++) {
				if (left[i] < 3)
					ASSERT_LE(0, ready(fd[left[i]]));
			}
		}
	}
}

/* Two sets of descriptors that several threads go through at once. */
struct race {
	pthread_barrier_t begin, end;
	int ep[EPOLLS];
	int fd[FILES];
	int kept, inner;	/* a file and an epoll that are never closed */
	bool nested;		/* the files are epolls */
	bool stop;
	bool wrong;
};

enum part { CLOSE_FILES, CLOSE_EPOLLS, ADD, PARTS };

struct racer {
	struct race *race;
	enum part part;
};

static void pause_a_while(unsigned int *random)
{
	for (int i = rand_r(random) % 2000; i > 0; i--)
		__asm__ volatile("");
}

static bool add_all(struct race *r)
{
	/* This walks upwards to all epolls that watch the file. */
	for (int j = 0; r->nested && j < FILES; j++) {
		if (add(r->fd[j], r->inner) && errno != EBADF)
			return false;
	}
	for (int i = 0; i < EPOLLS; i++) {
		for (int j = 0; j < FILES; j++) {
			/* The other threads may have closed either. */
			if (add(r->ep[i], r->fd[j]) && errno != EBADF &&
			    errno != EEXIST && errno != ENOENT)
				return false;
		}
		if (add(r->ep[i], r->kept) && errno != EBADF && errno != EEXIST)
			return false;
	}
	return true;
}

static void *racer_run(void *arg)
{
	struct racer *racer = arg;
	struct race *r = racer->race;
	unsigned int random = racer->part + 1;

	for (;;) {
		pthread_barrier_wait(&r->begin);
		if (r->stop)
			return NULL;
		pause_a_while(&random);
		switch (racer->part) {
		case CLOSE_FILES:
			for (int i = 0; i < FILES; i++)
				close(r->fd[i]);
			break;
		case CLOSE_EPOLLS:
			for (int i = 0; i < EPOLLS; i++)
				close(r->ep[i]);
			break;
		default:
			if (!add_all(r))
				r->wrong = true;
		}
		pthread_barrier_wait(&r->end);
	}
}

/* Half of the items exist before the race begins. */
static bool race_open(struct race *r, int round)
{
	for (int j = 0; j < FILES; j++) {
		r->fd[j] = r->nested ? epoll_create1(EPOLL_CLOEXEC) :
				       open_file(j + round);
		if (r->fd[j] < 0 || (r->nested && add(r->fd[j], r->kept)))
			return false;
	}
	for (int i = 0; i < EPOLLS; i++) {
		r->ep[i] = epoll_create1(EPOLL_CLOEXEC);
		if (r->ep[i] < 0)
			return false;
		for (int j = 0; j < FILES; j++) {
			if ((i + j + round) % 2 && add(r->ep[i], r->fd[j]))
				return false;
		}
	}
	return true;
}

static void race_test(struct __test_metadata *_metadata, bool nested)
{
	struct race race = { .nested = nested }, *r = &race;
	struct racer racers[PARTS];
	pthread_t threads[PARTS];
	double end = now_ms(CLOCK_MONOTONIC) + race_ms();
	unsigned long rounds = 0;

	r->kept = open_file(0);
	r->inner = epoll_create1(EPOLL_CLOEXEC);
	pthread_barrier_init(&r->begin, NULL, PARTS + 1);
	pthread_barrier_init(&r->end, NULL, PARTS + 1);
	for (int i = 0; i < PARTS; i++) {
		racers[i] = (struct racer){ r, i };
		pthread_create(&threads[i], NULL, racer_run, &racers[i]);
	}
	do {
		if (!race_open(r, rounds++)) {
			r->wrong = true;
			break;
		}
		pthread_barrier_wait(&r->begin);
		pthread_barrier_wait(&r->end);
	} while (!r->wrong && now_ms(CLOCK_MONOTONIC) < end);
	r->stop = true;
	pthread_barrier_wait(&r->begin);
	for (int i = 0; i < PARTS; i++)
		pthread_join(threads[i], NULL);
	close(r->kept);
	close(r->inner);
	EXPECT_FALSE(r->wrong);
	TH_LOG("%lu rounds", rounds);
}

TEST_F_TIMEOUT(closes, of_files_race, 24 * 3600)
{
	race_test(_metadata, false);
}

TEST_F_TIMEOUT(closes, of_epolls_race, 24 * 3600)
{
	race_test(_metadata, true);
}

TEST_HARNESS_MAIN
