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

static inline pid_t waits_once(int ep)
{
	pid_t child = fork();

	if (!child)
		_exit(epoll_take(ep, -1) != EPOLLIN);
	return child > 0 && wait_until_asleep(&child, EPOLL_CALL) ? child : -1;
}

/* From here on the victim cannot run until it is killed: all are on one processor. */
static inline void epoll_pair_start(struct __test_metadata *_metadata,
				    struct epoll_pair *pair, int ep)
{
	const struct sched_param first = { .sched_priority = 1 };
	cpu_set_t one;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(pair->all), &pair->all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
	pair->survivor = waits_once(ep);
	ASSERT_LT(0, pair->survivor);
	pair->victim = waits_once(ep);
	ASSERT_LT(0, pair->victim);
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
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

	for (int i = 0; i < PATIENCE_MS && !waitpid(pair->survivor, &status, WNOHANG); i++)
		sleep_ms(1);
	EXPECT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
	kill(pair->survivor, SIGKILL);
	waitpid(pair->survivor, NULL, 0);
	sched_setaffinity(0, sizeof(pair->all), &pair->all);
}

#endif /* EPOLL_PAIR_H */
