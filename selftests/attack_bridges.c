// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user without privileges has bridges do as much as they can: nobody is charged for that.
 * Others must get their part of the processor, and their own bridges their turns.
 */
#include "attack_user.h"
#include "bridge_user.h"

#include <sched.h>

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
static int bridge_to_pollers(int pollers)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int counter = open_counter(CREATED, 0, EFD_NONBLOCK), event = new_eventfd();

	if (counter < 0 || sink(counter, event))
		return -1;
	while (pollers--) {
		if (epoll_ctl(epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD, event, &watched))
			return -1;
	}
	return counter;
}

/*
 * What a bridge wakes is charged to nobody. Three tasks compete for one processor: who
 * writes, the worker, and another.
 */
static int wake_many_by_a_bridge(void)
{
	int counter = bridge_to_pollers(1000), share;
	pid_t child;

	if (counter < 0 || !run_on(0))
		return 1;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			add(counter, 1);
	}
	share = share_of_processor();
	dprintf(1, "# beside a bridge to 1000 pollers: %d %% of a processor\n", share);
	begun(share >= 12 ? 0 : 2);
	waitpid(child, NULL, 0);
	return 0;
}

TEST_F(attack, bridges)
{
	ASSERT_EQ(0, start_attack(self, wake_many_by_a_bridge));
	EXPECT_LT(0, work(ATTACK_MS));
}

#define COSTLY_BRIDGES 1700

/*
 * Each has a source whose rounds are long. When all of them rest, a signal of each is cheap,
 * and gives all of them much to do.
 */
static int signal_costly_bridges_of(bool many_users)
{
	struct epoll_event watched = { .events = EPOLLIN };
	int inner = epoll_that_others_watch();
	static int ins[COSTLY_BRIDGES];
	int counter;

	if (inner < 0 || !run_on(0))
		return 1;
	for (int i = 0; i < COSTLY_BRIDGES; i++) {
		if (many_users && setresuid(1 + i, -1, -1))
			return 2;
		ins[i] = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
		counter = open_counter(CREATED, 0, EFD_NONBLOCK);
		if (counter < 0 || add(ins[i], 1ULL << 62) != 8 || source(counter, ins[i]) ||
		    epoll_ctl(inner, EPOLL_CTL_ADD, counter, &watched))
			return 3;
	}
	begun(0);
	for (;;) {
		for (int i = 0; i < COSTLY_BRIDGES; i++)
			add(ins[i], 1);
		sleep_ms(300);
	}
}

static int signal_costly_bridges(void)
{
	return signal_costly_bridges_of(false);
}

#define CANNOT_BE_MANY 77

/* The same as a user who has subordinate ids: each bridge is that of another. */
static int signal_costly_bridges_of_many(void)
{
	if (unshare(CLONE_NEWUSER))
		return CANNOT_BE_MANY;
	begun(0);
	/* Until it has them. */
	while (setresuid(1, -1, -1))
		sleep_ms(1);
	return signal_costly_bridges_of(true);
}

/* As newuidmap(1) does. */
static bool give_subordinate_ids(pid_t pid)
{
	static const char map[] = "0 1000000 65536";
	char path[64];
	ssize_t written;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	written = write(fd, map, strlen(map));
	close(fd);
	return written == (ssize_t)strlen(map);
}

#define SIGNALS 40
#define LATE_MS 100

/* How many signals of a bridge are late beside an attack on its processor. */
static int late_signals(void)
{
	int counter = open_counter(CREATED, 0, EFD_NONBLOCK), out = new_eventfd(), late = 0;
	__u64 start, ms, longest = 0, value;

	if (sink(counter, out) || !run_on(0))
		return SIGNALS;
	sleep_ms(1000);
	/* The machine may have been stopped for some. */
	for (int i = 0; i < SIGNALS && late < SIGNALS / 4; i++) {
		start = now_ns();
		if (add(counter, 1) != 8 || poll_for(out, POLLIN, PATIENCE_MS) != POLLIN ||
		    take(out, &value) != 8)
			return SIGNALS;
		ms = (now_ns() - start) / 1000000;
		longest = ms > longest ? ms : longest;
		late += ms > LATE_MS;
		sleep_ms(20);
	}
	dprintf(1, "# %d signals were late; the longest took %llu ms\n", late, longest);
	close(counter);
	close(out);
	return late;
}

/* A user with very many bridges does not keep those of others from their processor. */
TEST_F(attack, bridges_of_others)
{
	ASSERT_EQ(0, start_attack(self, signal_costly_bridges));
	EXPECT_GT(SIGNALS / 4, late_signals());
}

TEST_F(attack, bridges_of_many_users)
{
	int result = start_attack(self, signal_costly_bridges_of_many);

	if (result == CANNOT_BE_MANY)
		SKIP(return, "no user namespaces");
	ASSERT_EQ(0, result);
	ASSERT_TRUE(give_subordinate_ids(self->attacker));
	ASSERT_EQ(sizeof(result), read(self->answer[0], &result, sizeof(result)));
	ASSERT_EQ(0, result);
	EXPECT_GT(SIGNALS / 4, late_signals());
}

TEST_HARNESS_MAIN
