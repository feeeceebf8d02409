/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tasks of a history do, each of its kind again and again. */
#ifndef FLOWFD_SIM_TASKS_H
#define FLOWFD_SIM_TASKS_H

#include <stdbool.h>
#include <stdint.h>

/* What a waiter that sleeps waits for. */
enum {
	FOR_COUNT = 1,
	FOR_ROOM = 2,
	FOR_FIT = 4,  /* a write that sleeps, for room for its value */
	FOR_NEWS = 8, /* an edge-triggered poller, after its value was refused */
	FOR_EDGE = 16,
	EXCLUSIVE = 32,
};

struct waiter {
	const struct kind *kind;
	struct task_struct *task;
	struct poller *poller;
	uint64_t value; /* that it wants to add */
	bool waits;
};

#define WAITERS_MAX 8
extern struct waiter waiters[WAITERS_MAX];
extern unsigned int waiter_count;

/* Makes tasks by chance: waiters, and actors that end. */
void tasks_begin(bool dying, bool hostile);
/* An actor has ended: after the last, waiters end as well, but for those that sleep. */
void tasks_one_ended(void);
/* One more add: it does what a task did not that had closed its descriptor. */
bool tasks_act_once(void);
/* Ends all waiters by a signal that kills; false: one does not end. */
bool tasks_end(void);
const char *waiter_name(const struct waiter *w);
unsigned int waiter_waits_for(const struct waiter *w);

#endif /* FLOWFD_SIM_TASKS_H */
