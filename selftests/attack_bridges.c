// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users without privileges have bridges do as much as they can: nobody is charged for what
 * a work item does. Another user must get its part of the processor, and its bridges their
 * turns, as beside one more task.
 */
#include "attack_user.h"
#include "bridge_user.h"

#include <sys/resource.h>

#define USERS_MAX 16
#define COUNTERS_MAX 200
#define POLLERS_MAX 1000

/* Programs that write to all of their counters without rest. */
struct crowd {
	int users;
	int counters; /* of each user */
	int pollers;  /* of each counter's eventfd, or 0: counters without bridges */
	int nice;
};

/*
 * Of each class of users but that of OTHER, a few: with PREEMPT_RT the bridge of OTHER would
 * wait for the locks of programs that are preempted.
 */
static const struct crowd many_users = { USERS_MAX, 2, 50, 19 };
static const struct crowd without_bridges = { USERS_MAX, 2, 0, 19 };
static const struct crowd one_user = { 1, COUNTERS_MAX, POLLERS_MAX, 0 };

/* For each write a worker of the kernel wakes these pollers. */
static int bridge_to_pollers(const int *epolls, int pollers)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int counter = open_counter(CREATED, 0, EFD_NONBLOCK), event = new_eventfd();

	if (counter < 0 || sink(counter, event))
		return -1;
	for (int i = 0; i < pollers; i++) {
		if (epoll_ctl(epolls[i], EPOLL_CTL_ADD, event, &watched))
			return -1;
	}
	return counter;
}

/* Says that it is ready, and then writes. */
static void flood(uid_t uid, const struct crowd *crowd, int processor, int ready, int go)
{
	int epolls[POLLERS_MAX], counters[COUNTERS_MAX];
	char byte;

	become(uid);
	for (int i = 0; i < crowd->pollers; i++)
		epolls[i] = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < crowd->counters; i++) {
		counters[i] = crowd->pollers ? bridge_to_pollers(epolls, crowd->pollers) :
					       open_counter(CREATED, 0, EFD_NONBLOCK);
		if (counters[i] < 0)
			_exit(1);
	}
	if (!run_on(processor) || setpriority(PRIO_PROCESS, 0, crowd->nice) ||
	    write(ready, "x", 1) != 1 || read(go, &byte, 1))
		_exit(2);
	for (;;)
		for (int i = 0; i < crowd->counters; i++)
			add(counters[i], 1);
}

static pid_t programs[USERS_MAX];

/* The fourth of eight has the class of OTHER. */
static uid_t uid_of_program(int i)
{
	return ATTACKER + 100 + i + (i % 8 == 3);
}

/* All begin at once, when this closes the pipe that they wait for. */
static bool start_crowd(const struct crowd *crowd, int processor)
{
	int ready[2], go[2], n = 0;
	char byte;

	if (pipe(ready) || pipe(go))
		return false;
	for (int i = 0; i < crowd->users; i++) {
		programs[i] = fork();
		if (!programs[i]) {
			close(ready[0]);
			close(go[1]);
			flood(uid_of_program(i), crowd, processor, ready[1], go[0]);
		}
	}
	close(ready[1]);
	close(go[0]);
	while (n < crowd->users && read(ready[0], &byte, 1) == 1)
		n++;
	close(ready[0]);
	close(go[1]);
	return n == crowd->users;
}

static void end_crowd(void)
{
	for (int i = 0; i < USERS_MAX; i++) {
		if (programs[i] > 0) {
			kill(programs[i], SIGKILL);
			waitpid(programs[i], NULL, 0);
		}
		programs[i] = 0;
	}
}

#define SIGNALS 30
#define SIGNALS_MS 5000

/* In ns: how long the second slowest of some signals takes from @in to @out. */
static __u64 signal_time(int in, int out)
{
	__u64 start, ns, longest = 0, second = 0, value, end = ms_from_now(SIGNALS_MS);

	for (int i = 0; i < SIGNALS && now_ns() < end; i++) {
		start = now_ns();
		if (add(in, 1) != 8 || poll_for(out, POLLIN, PATIENCE_MS) != POLLIN ||
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
	return second;
}

/* What another user on the first processor gets. */
struct victim {
	int share;
	__u64 ns;
};

/* @in and @out are bridged by another task, or by a bridge if they are negative. */
static bool measure_victim(struct victim *v, int in, int out)
{
	int fds[2];
	pid_t child;
	bool done;

	if (pipe(fds))
		return false;
	child = fork();
	if (!child) {
		become(OTHER);
		if (in < 0) {
			in = open_counter(CREATED, 0, EFD_NONBLOCK);
			out = new_eventfd();
			if (sink(in, out))
				_exit(1);
		}
		if (!run_on(0))
			_exit(2);
		v->share = share_of_processor();
		v->ns = signal_time(in, out);
		_exit(write(fds[1], v, sizeof(*v)) != sizeof(*v));
	}
	close(fds[1]);
	done = read(fds[0], v, sizeof(*v)) == sizeof(*v);
	close(fds[0]);
	waitpid(child, NULL, 0);
	return done;
}

static void show_victim(const char *name, const struct victim *v)
{
	printf("# %s: %d %% of a processor, a signal takes %llu us\n", name, v->share,
	       (unsigned long long)v->ns / 1000);
	fflush(stdout);
}

static bool attack_victim(const char *name, const struct crowd *crowd, int processor,
			  struct victim *v)
{
	bool done = start_crowd(crowd, processor) && measure_victim(v, -1, -1);

	end_crowd();
	show_victim(name, v);
	return done;
}

/* An ordinary task in the place of the kernel's worker: always busy, and passes signals on. */
static pid_t start_busy_task(int in, int out)
{
	pid_t child = fork();
	__u64 value;

	if (child)
		return child;
	become(ATTACKER);
	if (!run_on(0))
		_exit(1);
	for (;;) {
		if (take(in, &value) == 8)
			add(out, value);
		spin_ns(100000);
	}
}

/* The same beside a crowd without bridges, and one busy task. */
static bool attack_victim_of_task(struct victim *v)
{
	int in = new_eventfd(), out = new_eventfd();
	pid_t task = start_busy_task(in, out);
	bool done = task > 0 && start_crowd(&without_bridges, 0) && measure_victim(v, in, out);

	end_crowd();
	if (task > 0) {
		kill(task, SIGKILL);
		waitpid(task, NULL, 0);
	}
	close(in);
	close(out);
	show_victim("beside a busy task in place of the bridges", v);
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

#define SIGNAL_NS 20000000ULL

/*
 * A thread of the kernel on each processor, of the usual priority: no more than a task. The
 * scheduler of 6.6 and later lets tasks of the lowest priority run before a task of the
 * usual one that has had its part. So what any task passes on can take many ticks beside 16
 * that are always busy, and a signal that takes long is compared with that.
 */
TEST_F_TIMEOUT(bridges, of_many_users_on_its_processor, 100)
{
	struct victim victim = { 0 }, of_task = { .ns = SIGNAL_NS / 2 };
	bool within = false;

	for (int tries = 0; tries < 3 && !within; tries++) {
		ASSERT_TRUE(attack_victim("beside bridges of many users", &many_users, 0,
					  &victim));
		EXPECT_LE(40, victim.share);
		if (victim.ns > SIGNAL_NS)
			ASSERT_TRUE(attack_victim_of_task(&of_task));
		within = victim.ns <= 2 * of_task.ns;
	}
	EXPECT_TRUE(within);
}

/* An item waits for one of another class. With one class for all it takes twice as long. */
#define MANY_ITEMS_NS 50000000ULL

TEST_F_TIMEOUT(bridges, of_one_user_on_its_processor, 100)
{
	struct victim victim = { .ns = ~0ULL };

	for (int tries = 0; tries < 3 && victim.ns > MANY_ITEMS_NS; tries++)
		ASSERT_TRUE(attack_victim("beside many bridges of one user", &one_user, 0,
					  &victim));
	EXPECT_LE(20, victim.share);
	EXPECT_GT(MANY_ITEMS_NS, victim.ns);
}

/* A program of low priority must not have its work done before that of all others. */
TEST_F(bridges, at_the_usual_priority)
{
	struct worker_ticks before = ticks_of_workers(), after;

	ASSERT_TRUE(start_crowd(&many_users, 0));
	sleep_ms(ATTACK_MS);
	after = ticks_of_workers();
	end_crowd();
	EXPECT_EQ(before.urgent, after.urgent);
	EXPECT_LT(before.usual, after.usual);
}

/* What is signalled on another processor is passed on there. */
TEST_F(bridges, of_many_users_on_another_processor)
{
	struct victim victim = { 0 };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "it needs two processors");
	ASSERT_TRUE(attack_victim("beside bridges on another processor", &many_users, 1,
				  &victim));
	EXPECT_LE(95, victim.share);
	EXPECT_GT(SIGNAL_NS, victim.ns);
}

TEST_HARNESS_MAIN
