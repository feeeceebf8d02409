// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users without privileges have a ring wake as many pollers as possible, or those that
 * take as long as possible: a wakeup must cost the sum of watches and pollers, and others
 * must make progress meanwhile.
 */
#include "attack_user.h"

#include <sys/utsname.h>

static struct user_ring fan_ring;

/* Polls a ring all the time, so that its pollers are to be woken again. */
static void *look_again(void *arg)
{
	struct pollfd p = { .fd = ((struct user_ring *)arg)->fd, .events = POLLIN };

	for (;;)
		poll(&p, 1, 0);
	return NULL;
}

/* Sleeps for more entries than there will be, so each event finds that somebody sleeps. */
static void *sleep_for_many(void *arg)
{
	struct user_ring *r = arg;

	ring_wait_ms(r, r->header->index_slots, 1000000);
	return NULL;
}

/* Processor time of the calling thread: with interrupts off, but not while others run. */
static __u64 thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void take_all(struct user_ring *r)
{
	struct ring_event taken;

	while (ring_take(r, &taken))
		;
}

/*
 * The least and the longest time of a few writes, in ns, each of which finds these rings
 * empty, and those who poll asleep.
 */
static void time_writes(int event, struct user_ring *rings, int n, __u64 *least,
			__u64 *longest)
{
	__u64 start, time;

	*least = ~0ULL;
	*longest = 0;
	for (int i = 0; i < 5; i++) {
		for (int ring = 0; ring < n; ring++)
			take_all(&rings[ring]);
		sleep_ms(50);
		start = thread_ns();
		add(event, 1);
		time = thread_ns() - start;
		*least = time < *least ? time : *least;
		*longest = time > *longest ? time : *longest;
	}
}

static __u64 least_write_time(int event)
{
	__u64 least, longest;

	time_writes(event, &fan_ring, 1, &least, &longest);
	return least;
}

/*
 * One file many times in a ring, and the ring in many epolls, which epoll itself would
 * not allow. A write must cost the sum of both, not the product.
 */
static int fan_out(void)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	const int watches = 2000, pollers = 1000;
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_t thread;
	__u64 alone, all;

	if (ring_open(&fan_ring, watches))
		return 1;
	for (int i = 0; i < watches; i++) {
		if (ring_add(&fan_ring, dup(event), EPOLLIN, 0) < 0)
			return 2;
	}
	alone = least_write_time(event);
	for (int i = 0; i < pollers; i++) {
		int ep = epoll_create1(EPOLL_CLOEXEC);

		if (epoll_ctl(ep, EPOLL_CTL_ADD, fan_ring.fd, &watched))
			return 3;
	}
	if (pthread_create(&thread, NULL, look_again, &fan_ring) ||
	    pthread_create(&thread, NULL, sleep_for_many, &fan_ring))
		return 4;
	all = least_write_time(event);
	dprintf(1, "# a write to %d watches: %llu us, with %d pollers %llu us\n",
		watches, alone / 1000, pollers, all / 1000);
	return all < 8 * alone + 2000000 ? 0 : 5;
}

TEST_F(attack, fan_out)
{
	ASSERT_EQ(0, start_attack(self, fan_out));
	EXPECT_LT(0, work(ATTACK_MS));
}

/* Polls an epoll very often, so that each wakeup of it takes long. */
static void *poll_often(void *arg)
{
	enum { COPIES = 4000 };
	struct pollfd *copies = calloc(COPIES, sizeof(*copies));

	for (int i = 0; i < COPIES; i++)
		copies[i].fd = *(int *)arg;
	poll(copies, COPIES, -1);
	free(copies);
	return NULL;
}

static void *keep_polling(void *arg)
{
	for (;;)
		poll_often(arg);
	return NULL;
}

/* Has a wakeup of this epoll take longer than a tick. */
static bool make_slow(int *ep)
{
	pthread_t thread;

	for (int i = 0; i < 40; i++) {
		if (pthread_create(&thread, NULL, keep_polling, ep))
			return false;
	}
	return true;
}

/*
 * One file many times in a ring that has a single poller, which takes long. It must not
 * take long for each watch.
 */
static int slow_poller(void)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int once = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	static int ep;
	const int watches = 1000;
	__u64 alone, one, all, longest;
	pthread_t thread;

	if (ring_open(&fan_ring, watches + 1) || ring_add(&fan_ring, once, EPOLLIN, 0) < 0)
		return 1;
	for (int i = 0; i < watches; i++) {
		if (ring_add(&fan_ring, dup(event), EPOLLIN, 0) < 0)
			return 2;
	}
	alone = least_write_time(event);
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fan_ring.fd, &watched))
		return 3;
	if (!make_slow(&ep))
		return 4;
	one = least_write_time(once);
	all = least_write_time(event);
	/* It looks beside some of the writes, as far as the machine runs both. */
	run_on(1);
	if (pthread_create(&thread, NULL, look_again, &fan_ring) || !run_on(0))
		return 5;
	dprintf(1, "# a write to %d watches: %llu us, with a poller %llu us", watches,
		alone / 1000, all / 1000);
	if (all > 8 * (alone + one) + 200000000)
		return 6;
	time_writes(event, &fan_ring, 1, &all, &longest);
	dprintf(1, ", and one that looks up to %llu us; a write to one watch %llu us\n",
		longest / 1000, one / 1000);
	return longest < 8 * (alone + one) + 200000000 ? 0 : 7;
}

/* There, pollers are woken with interrupts on. */
static bool is_preempt_rt(void)
{
	struct utsname name;

	return !uname(&name) && strstr(name.version, "PREEMPT_RT");
}

TEST_F(attack, slow_poller)
{
	if (is_preempt_rt())
		SKIP(return, "interrupts are on");
	ASSERT_EQ(0, start_attack(self, slow_poller));
	EXPECT_LT(0, work(ATTACK_MS));
}

enum { USERS = 3 };

static void *look_at_all(void *arg)
{
	struct user_ring *rings = arg;
	struct pollfd p[USERS];

	for (int i = 0; i < USERS; i++)
		p[i] = (struct pollfd){ .fd = rings[i].fd, .events = POLLIN };
	for (;;)
		poll(p, USERS, 0);
	return NULL;
}

/*
 * One file in rings of three users in turn, which one epoll polls. The time of one user
 * must not be a rest for the others.
 */
TEST(slow_poller_of_several_users)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	const struct rlimit memlock = { LOCKED_PAGES * PAGE, LOCKED_PAGES * PAGE };
	const struct rlimit files = { DESCRIPTORS, DESCRIPTORS };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct user_ring rings[USERS];
	const int watches = 1000;
	__u64 least, longest;
	pthread_t thread;
	static int ep;

	if (is_preempt_rt())
		SKIP(return, "interrupts are on");
	/* As poll(2) takes no more. */
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &memlock));
	ep = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < USERS; i++) {
		ASSERT_EQ(0, setresuid(ATTACKER + i, ATTACKER + i, 0));
		ASSERT_EQ(0, ring_open(&rings[i], watches));
		ASSERT_EQ(0, setresuid(0, 0, 0));
		ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, rings[i].fd, &watched));
	}
	for (int i = 0; i < watches; i++) {
		ASSERT_LE(0, ring_add(&rings[i % USERS], dup(event), EPOLLIN, 0));
	}
	ASSERT_TRUE(make_slow(&ep));
	run_on(1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, look_at_all, rings));
	ASSERT_TRUE(run_on(0));
	time_writes(event, rings, USERS, &least, &longest);
	TH_LOG("a write to %d watches: up to %llu us", watches, longest / 1000);
	EXPECT_GT(700000000ULL, longest);
}

static struct user_ring storm_ring;
static int storm_event;

/*
 * Has the only watch publish again and again, not much faster than pollers are woken. On
 * one processor: the scheduler must not leave all such threads on that of the work item.
 */
static void *publish_and_look(void *arg)
{
	struct pollfd p = { .fd = storm_ring.fd, .events = POLLIN };

	while (run_on((intptr_t)arg)) {
		poll(&p, 1, 0);
		storm_ring.items[0].queued = 0;
		storm_ring.header->head++;
		add(storm_event, 1);
		spin_ns(200000);
	}
	return NULL;
}

/* The time until this thread has run on each processor, in ns. */
static __u64 time_to_run_everywhere(void)
{
	__u64 start = now_ns();
	int processors = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < processors; cpu++)
		run_on(cpu);
	return now_ns() - start;
}

/*
 * A work item wakes five pollers, each of which takes long, and has more to do as soon as
 * it has done so. If some of the pollers go then, it must still let others have its
 * processor.
 */
static int leave_while_woken(void)
{
	static int eps[5];
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int processors = sysconf(_SC_NPROCESSORS_ONLN);
	__u64 time, longest = 0;
	pthread_t thread;

	storm_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring_open(&storm_ring, 8) ||
	    ring_add(&storm_ring, storm_event, EPOLLIN, 0) < 0)
		return 1;
	for (int i = 0; i < 5; i++) {
		eps[i] = epoll_create1(EPOLL_CLOEXEC);
		if (i < 3 && epoll_ctl(eps[i], EPOLL_CTL_ADD, storm_ring.fd, &watched))
			return 2;
	}
	for (int i = 0; i < 90; i++) {
		if (pthread_create(&thread, NULL, poll_often, &eps[i % 3]))
			return 3;
	}
	sleep_ms(10 * QUIET_MS);
	for (intptr_t cpu = 0; cpu < processors; cpu++) {
		if (pthread_create(&thread, NULL, publish_and_look, (void *)cpu))
			return 4;
	}
	for (int round = 0; round < 6; round++) {
		epoll_ctl(eps[3], EPOLL_CTL_ADD, storm_ring.fd, &watched);
		epoll_ctl(eps[4], EPOLL_CTL_ADD, storm_ring.fd, &watched);
		sleep_ms(150);
		epoll_ctl(eps[3], EPOLL_CTL_DEL, storm_ring.fd, NULL);
		epoll_ctl(eps[4], EPOLL_CTL_DEL, storm_ring.fd, NULL);
		sleep_ms(20);
		time = time_to_run_everywhere();
		longest = time > longest ? time : longest;
	}
	dprintf(1, "# a thread ran on each processor within %llu us\n", longest / 1000);
	return longest < 1000000000ULL ? 0 : 5;
}

TEST_F(attack, pollers_that_leave)
{
	ASSERT_EQ(0, start_attack(self, leave_while_woken));
	EXPECT_LT(0, work(ATTACK_MS));
}

TEST_HARNESS_MAIN
