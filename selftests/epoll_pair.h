/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two tasks that wait on one epoll. An epoll wakes the one that came last, and that is
 * killed before it looks.
 */
#ifndef EPOLL_PAIR_H
#define EPOLL_PAIR_H

#include "selftest.h"

#include <sched.h>
#include <sys/wait.h>

struct epoll_pair {
	pid_t survivor;
	pid_t victim;
	cpu_set_t all;
};

static inline pid_t waits_once(int ep, int lacks)
{
	pid_t child = fork();

	if (!child) {
		close(lacks);
		_exit(epoll_take(ep, -1) != EPOLLIN);
	}
	return child > 0 && wait_until_asleep(&child, EPOLL_CALL) ? child : -1;
}

/*
 * From here on the victim cannot run until it is killed: all are on one processor. The two do
 * not have the descriptor @lacks; -1: they have all.
 */
static inline void epoll_pair_start(struct __test_metadata *_metadata,
				    struct epoll_pair *pair, int ep, int lacks)
{
	const struct sched_param first = { .sched_priority = 1 };
	cpu_set_t one;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(pair->all), &pair->all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
	pair->survivor = waits_once(ep, lacks);
	ASSERT_LT(0, pair->survivor);
	pair->victim = waits_once(ep, lacks);
	ASSERT_LT(0, pair->victim);
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
}

/*
 * Waits for what wakes the victim, on another processor. Not as long as real-time tasks may
 * run on end. False: it had to run here.
 */
static inline bool epoll_pair_is_woken(const struct epoll_pair *pair)
{
	__u64 end = ms_from_now(900);

	while (thread_sleeps_in(pair->victim, EPOLL_CALL))
		if (now_ns() > end)
			return false;
	return true;
}

static inline void epoll_pair_kill(struct __test_metadata *_metadata,
				   const struct epoll_pair *pair)
{
	const struct sched_param other = { 0 };
	int status = 0;

	kill(pair->victim, SIGKILL);
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_OTHER, &other));
	ASSERT_EQ(pair->victim, waitpid(pair->victim, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

/* The other one gets an event. */
static inline void epoll_pair_end(struct __test_metadata *_metadata,
				  const struct epoll_pair *pair)
{
	int status = 0;
	pid_t ended = 0;

	for (int i = 0; i < PATIENCE_MS && !ended; i++) {
		sleep_ms(1);
		ended = waitpid(pair->survivor, &status, WNOHANG);
	}
	EXPECT_EQ(pair->survivor, ended);
	EXPECT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
	if (!ended) {
		kill(pair->survivor, SIGKILL);
		waitpid(pair->survivor, NULL, 0);
	}
	sched_setaffinity(0, sizeof(pair->all), &pair->all);
}

#endif /* EPOLL_PAIR_H */
