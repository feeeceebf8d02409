// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users without privileges have a ring wake as many pollers as possible, or pollers that
 * take as long as possible. A publisher must not wait for them, other users keep their
 * processors, and their pollers are told as soon as ever.
 */
#include "attack_user.h"

static struct user_ring ring;
static int slow;

/* Polls a ring all the time, so that its pollers are to be woken again. */
static void *look_again(void *arg)
{
	struct pollfd p = { .fd = ((struct user_ring *)arg)->fd, .events = POLLIN };

	for (;;)
		poll(&p, 1, 0);
	return NULL;
}

/* Sleeps for more entries than there will be, so each event finds a sleeper. */
static void *sleep_for_many(void *arg)
{
	struct user_ring *r = arg;

	ring_wait_ms(r, r->header->index_slots, 1000000);
	return NULL;
}

static __u64 time_of_write(int event)
{
	__u64 start = thread_ns();

	add(event, 1);
	return thread_ns() - start;
}

static void take_all(struct user_ring *r)
{
	struct ring_event taken;

	while (ring_take(r, &taken))
		;
}

/* The least time of a few writes that find the ring empty, and pollers asleep. */
static __u64 least_write_time(int event)
{
	__u64 least = ~0ULL, time;

	for (int i = 0; i < 5; i++) {
		take_all(&ring);
		sleep_ms(50);
		time = time_of_write(event);
		least = time < least ? time : least;
	}
	return least;
}

/* Watches one file many times. */
static int watch_often(int event, int times)
{
	int err = ring_open(&ring, times + 1);

	for (int i = 0; !err && i < times; i++)
		err = ring_add(&ring, dup(event), EPOLLIN, 0) < 0;
	return err;
}

static void poll_ring(int ep, const struct user_ring *r)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, r->fd, &watched))
		_exit(101);
}

/*
 * One file many times in a ring, and the ring in many epolls, which epoll itself would
 * not allow. A write must not cost the product.
 */
static int fan_out(void)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const int watches = 2000, pollers = 1000;
	pthread_t thread;
	__u64 alone, all;

	if (watch_often(event, watches))
		return 1;
	alone = least_write_time(event);
	for (int i = 0; i < pollers; i++)
		poll_ring(epoll_create1(EPOLL_CLOEXEC), &ring);
	if (pthread_create(&thread, NULL, look_again, &ring) ||
	    pthread_create(&thread, NULL, sleep_for_many, &ring))
		return 2;
	all = least_write_time(event);
	dprintf(1, "# a write to %d watches: %llu us, with %d pollers %llu us\n",
		watches, alone / 1000, pollers, all / 1000);
	return all < 3 * alone + 1000000 ? 0 : 3;
}

ATTACK(fan_out, fan_out)

/* Polls an epoll very often, so that each wakeup of it takes long. */
static void *poll_often(void *arg)
{
	enum { COPIES = 4000 };
	struct pollfd *copies = calloc(COPIES, sizeof(*copies));

	for (int i = 0; i < COPIES; i++)
		copies[i].fd = slow;
	for (;;)
		poll(copies, COPIES, -1);
	return NULL;
}

/* An epoll whose wakeup takes longer than a tick. */
static int open_slow_epoll(void)
{
	pthread_t thread;

	slow = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < 20; i++) {
		if (pthread_create(&thread, NULL, poll_often, NULL))
			_exit(102);
	}
	sleep_ms(10 * QUIET_MS);
	return slow;
}

/* Polls rings, and wakes the slow epoll. */
static int open_epoll_in_slow_one(void)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_ctl(slow, EPOLL_CTL_ADD, ep, &watched))
		_exit(103);
	return ep;
}

/* One file many times in a ring with a slow poller, and a thread that always looks. */
static int slow_poller(void)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const int watches = 1000;
	pthread_t thread;
	__u64 alone, all;

	if (watch_often(event, watches))
		return 1;
	alone = least_write_time(event);
	poll_ring(open_slow_epoll(), &ring);
	if (pthread_create(&thread, NULL, look_again, &ring))
		return 2;
	all = least_write_time(event);
	dprintf(1, "# a write to %d watches: %llu us, with a slow poller %llu us\n", watches,
		alone / 1000, all / 1000);
	return all < 3 * alone + 1000000 ? 0 : 3;
}

ATTACK(slow_poller, slow_poller)

enum { SLEEPERS = 60, MANY_SLEEPERS = 400 };

static void *sleep_for(void *entries)
{
	ring_wait_ms(&ring, (intptr_t)entries, 1000000);
	return NULL;
}

/*
 * The least time of a write each of whose events wakes one sleeper, soon after another
 * write that wakes all pollers.
 */
static __u64 least_time_with_sleepers(int event, int once)
{
	struct pollfd look = { .fd = ring.fd, .events = POLLIN };
	__u64 least = ~0ULL, time;

	for (int round = 0; round < 3; round++) {
		pthread_t threads[SLEEPERS];

		take_all(&ring);
		for (intptr_t i = 0; i < SLEEPERS; i++)
			pthread_create(&threads[i], NULL, sleep_for, (void *)(i + 2));
		sleep_ms(10 * QUIET_MS);
		poll(&look, 1, 0);
		add(once, 1);
		sleep_ms(20);
		time = time_of_write(event);
		least = time < least ? time : least;
		for (int i = 0; i < SLEEPERS; i++)
			pthread_join(threads[i], NULL);
	}
	return least;
}

/* A publisher must not wait for the pollers that are woken while it wakes sleepers. */
static int sleepers_beside_slow_pollers(void)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int once = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	__u64 alone, all;

	if (watch_often(event, SLEEPERS) || ring_add(&ring, once, EPOLLIN, 0) < 0)
		return 1;
	alone = least_time_with_sleepers(event, once);
	open_slow_epoll();
	for (int i = 0; i < 60; i++)
		poll_ring(open_epoll_in_slow_one(), &ring);
	all = least_time_with_sleepers(event, once);
	dprintf(1, "# a write that wakes %d sleepers: %llu us, beside slow pollers %llu us\n",
		SLEEPERS, alone / 1000, all / 1000);
	/* An emulated clock may stand still; each slow poller takes milliseconds. */
	return all < 3 * alone + 1000000 ? 0 : 2;
}

ATTACK(sleepers_beside_slow_pollers, sleepers_beside_slow_pollers)

/* The least time of a write that finds tasks asleep on the ring, which all wait for one entry. */
static __u64 least_time_to_wake(int event, int sleepers)
{
	pthread_t threads[MANY_SLEEPERS];
	__u64 least = ~0ULL, time;

	for (int round = 0; round < 5; round++) {
		take_all(&ring);
		for (int i = 0; i < sleepers; i++)
			pthread_create(&threads[i], NULL, sleep_for, (void *)1);
		sleep_ms(10 * QUIET_MS);
		time = time_of_write(event);
		least = time < least ? time : least;
		for (int i = 0; i < sleepers; i++)
			pthread_join(threads[i], NULL);
	}
	return least;
}

/* A publisher wakes one task. The others are woken, too, or this does not end. */
static int many_sleepers(void)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	__u64 one, all;

	if (watch_often(event, 1))
		return 1;
	one = least_time_to_wake(event, 1);
	all = least_time_to_wake(event, MANY_SLEEPERS);
	dprintf(1, "# a write that wakes a sleeper: %llu us, the first of %d: %llu us\n",
		one / 1000, MANY_SLEEPERS, all / 1000);
	/* To wake all takes milliseconds. An emulated clock may say that one took no time. */
	return all < 10 * one + 500000 ? 0 : 2;
}

ATTACK(many_sleepers, many_sleepers)

/* Many rings, each with slow pollers that are always to be woken. It never ends. */
static int many_rings(void)
{
	enum { RINGS = 64, POLLERS = 5 };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	static struct user_ring rings[RINGS];
	struct pollfd looks[RINGS];

	if (nice(19) != 19)
		return 1;
	open_slow_epoll();
	for (int i = 0; i < RINGS; i++) {
		if (ring_open(&rings[i], 4) || ring_add(&rings[i], event, EPOLLIN, 0) < 0)
			return 2;
		looks[i] = (struct pollfd){ .fd = rings[i].fd, .events = POLLIN };
	}
	for (int i = 0; i < POLLERS; i++) {
		int ep = open_epoll_in_slow_one();

		for (int j = 0; j < RINGS; j++)
			poll_ring(ep, &rings[j]);
	}
	begun(0);
	for (;;) {
		for (int i = 0; i < RINGS; i++)
			take_all(&rings[i]);
		poll(looks, RINGS, 0);
		add(event, 1);
		sleep_ms(20);
	}
}

/* Runs a function as another user, and returns its result. */
static int as_other_user(int (*function)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		become(OTHER);
		_exit(function());
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int share_of_the_first_processor(void)
{
	return run_on(0) ? share_of_processor() : 0;
}

/* After how many ms, nine times out of ten, all of five pollers are told of an event. */
static int time_to_tell_pollers(void)
{
	enum { POLLERS = 5, ROUNDS = 20 };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eps[POLLERS];
	__u64 times[ROUNDS];

	if (ring_open(&ring, 4) || ring_add(&ring, event, EPOLLIN, 0) < 0)
		return 255;
	for (int i = 0; i < POLLERS; i++) {
		eps[i] = epoll_create1(EPOLL_CLOEXEC);
		poll_ring(eps[i], &ring);
	}
	for (int round = 0; round < ROUNDS; round++) {
		take_all(&ring);
		times[round] = now_ns();
		add(event, 1);
		for (int i = 0; i < POLLERS; i++) {
			if (epoll_take(eps[i], PATIENCE_MS) != EPOLLIN)
				return 254;
		}
		times[round] = now_ns() - times[round];
		sleep_ms(10);
	}
	qsort(times, ROUNDS, sizeof(times[0]), by_number);
	return times[ROUNDS * 9 / 10 - 1] / 1000000;
}

TEST_F_TIMEOUT(attack, many_rings, 60)
{
	struct worker_ticks before = ticks_of_workers(), after;
	int share, ms;

	ASSERT_EQ(0, start_attack(self, many_rings));
	share = as_other_user(share_of_the_first_processor);
	ms = as_other_user(time_to_tell_pollers);
	TH_LOG("another user's task gets %d %% of its processor, its pollers are told in %d ms",
	       share, ms);
	EXPECT_LE(95, share);
	EXPECT_GE(20, ms);
	after = ticks_of_workers();
	EXPECT_EQ(before.urgent, after.urgent);
	EXPECT_LT(before.usual, after.usual);
	EXPECT_LT(0, work(ATTACK_MS));
}

TEST_HARNESS_MAIN
