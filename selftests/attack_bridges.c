// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users without privileges have bridges do as much as they can, at the lowest priority:
 * nobody is charged for what a work item does. Another user must get its part of the
 * processor, and its bridges their turns.
 */
#include "attack_user.h"
#include "bridge_user.h"

#include <sys/resource.h>

/* Of each of the classes that the module divides users into, a few. */
#define USERS 16
#define BRIDGES 2
#define POLLERS 50

/* The share of its processor, in percent, that a process without rest gets. */
static int share_of_processor(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	spin_ns(ATTACK_MS * 1000000ULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	return ((after.tv_sec - before.tv_sec) * 1000 +
		(after.tv_nsec - before.tv_nsec) / 1000000) * 100 / ATTACK_MS;
}

/* For each write a worker of the kernel wakes these pollers. */
static int bridge_to_pollers(void)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int counter = open_counter(CREATED, 0, EFD_NONBLOCK), event = new_eventfd();

	if (counter < 0 || sink(counter, event))
		return -1;
	for (int i = 0; i < POLLERS; i++) {
		if (epoll_ctl(epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD, event, &watched))
			return -1;
	}
	return counter;
}

/* Says that it is ready, and then writes to all of its bridges without rest. */
static void flood(uid_t uid, int processor, int ready, int go)
{
	int counters[BRIDGES];
	char byte;

	become(uid);
	for (int i = 0; i < BRIDGES; i++) {
		counters[i] = bridge_to_pollers();
		if (counters[i] < 0)
			_exit(1);
	}
	if (!run_on(processor) || setpriority(PRIO_PROCESS, 0, 19) ||
	    write(ready, "x", 1) != 1 || read(go, &byte, 1))
		_exit(2);
	for (;;)
		for (int i = 0; i < BRIDGES; i++)
			add(counters[i], 1);
}

static pid_t crowd[USERS];

/* All begin at once, when this closes the pipe that they wait for. */
static bool start_crowd(int processor)
{
	int ready[2], go[2], n = 0;
	char byte;

	if (pipe(ready) || pipe(go))
		return false;
	for (int i = 0; i < USERS; i++) {
		crowd[i] = fork();
		if (!crowd[i]) {
			close(ready[0]);
			close(go[1]);
			flood(ATTACKER + 100 + i, processor, ready[1], go[0]);
		}
	}
	close(ready[1]);
	close(go[0]);
	while (n < USERS && read(ready[0], &byte, 1) == 1)
		n++;
	close(ready[0]);
	close(go[1]);
	return n == USERS;
}

static void end_crowd(void)
{
	for (int i = 0; i < USERS; i++) {
		kill(crowd[i], SIGKILL);
		waitpid(crowd[i], NULL, 0);
	}
}

#define SIGNALS 50

/* In ns: how long the second slowest of some signals through a bridge takes. */
static __u64 signal_time(void)
{
	int counter = open_counter(CREATED, 0, EFD_NONBLOCK), out = new_eventfd();
	__u64 start, ns, longest = 0, second = 0, value;

	if (sink(counter, out))
		return ~0ULL;
	for (int i = 0; i < SIGNALS; i++) {
		start = now_ns();
		if (add(counter, 1) != 8 || poll_for(out, POLLIN, PATIENCE_MS) != POLLIN ||
		    take(out, &value) != 8)
			return ~0ULL;
		ns = now_ns() - start;
		if (ns > longest) {
			second = longest;
			longest = ns;
		} else if (ns > second) {
			second = ns;
		}
		sleep_ms(5);
	}
	close(counter);
	close(out);
	return second;
}

/* What another user on the first processor gets. */
struct victim {
	int share;
	__u64 ns;
};

static bool measure_victim(struct victim *v)
{
	int fds[2];
	pid_t child;
	bool done;

	if (pipe(fds))
		return false;
	child = fork();
	if (!child) {
		become(OTHER);
		if (!run_on(0))
			_exit(1);
		v->share = share_of_processor();
		v->ns = signal_time();
		_exit(write(fds[1], v, sizeof(*v)) != sizeof(*v));
	}
	close(fds[1]);
	done = read(fds[0], v, sizeof(*v)) == sizeof(*v);
	close(fds[0]);
	waitpid(child, NULL, 0);
	return done;
}

static bool attack_victim(const char *name, int processor, struct victim *v)
{
	bool done = start_crowd(processor) && measure_victim(v);

	end_crowd();
	printf("# %s: %d %% of a processor, a signal takes %llu us\n", name, v->share,
	       (unsigned long long)v->ns / 1000);
	fflush(stdout);
	return done;
}

FIXTURE(bridges)
{
	long users;
};

FIXTURE_SETUP(bridges)
{
	self->users = module_users();
}

FIXTURE_TEARDOWN(bridges)
{
	EXPECT_EQ(self->users, settled_module_users(self->users));
}

/* A thread of the kernel on each processor, of the usual priority: no more than a task. */
TEST_F(bridges, of_many_users_on_its_processor)
{
	struct victim victim = { 0 };

	ASSERT_TRUE(attack_victim("beside bridges of many users", 0, &victim));
	EXPECT_LE(40, victim.share);
	EXPECT_GT(20000000ULL, victim.ns);
}

/* What is signalled on another processor is passed on there. */
TEST_F(bridges, of_many_users_on_another_processor)
{
	struct victim victim = { 0 };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "it needs two processors");
	ASSERT_TRUE(attack_victim("beside bridges on another processor", 1, &victim));
	EXPECT_LE(95, victim.share);
	EXPECT_GT(20000000ULL, victim.ns);
}

TEST_HARNESS_MAIN
