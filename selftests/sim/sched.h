/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler of a history: tasks, locks and timers in virtual time. Chance, which the
 * seed of the history decides, says at each step who goes on.
 */
#ifndef FLOWFD_SIM_SCHED_H
#define FLOWFD_SIM_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "fiber.h"

#define SIM_TASKS 40
#define SIM_SECOND 1000000000ULL
/* A history is over when nothing happens for so long: who sleeps until later, sleeps. */
#define SIM_HORIZON (20 * SIM_SECOND)

struct sim_lock {
	struct task_struct *owner;
	uint64_t since; /* step */
};

/* Names without sim are those that the kernel has, and the module may read. */
struct task_struct {
	unsigned int __state;
	unsigned int flags;
	unsigned int in_eventfd : 1;
	int prio, normal_prio;
	uint64_t timer_slack_ns;
	struct mm_struct *mm;
	int saved_sigmask;
	char comm[16];

	bool signalled;
	bool killed;
	bool done;
	bool asleep;
	bool slow;	/* others mostly go on first */
	bool mortal;	/* may die at any step in memory */
	bool interrupt; /* a handler, which must not sleep */
	int spinlocks;	/* that it holds */
	int faults_off;
	bool closed;	/* its process has closed the descriptor */
	int error;	/* its errno */
	uint64_t added; /* by its adds without the module, or lost */
	uint64_t until; /* when it wakes up by itself */
	const struct sim_lock *waits_for;
	bool (*ready)(void *arg); /* a task of the kernel: whether it has work */
	void (*run)(void *arg);
	void *arg;
	struct fiber fiber;
};

struct sim_timer {
	struct sim_timer *next; /* armed, in no order */
	uint64_t expires;
	bool armed;
	bool runs;
	bool known;
	void (*function)(struct sim_timer *timer);
};

extern struct task_struct *sim_current;
extern uint64_t sim_now;
extern uint64_t sim_steps; /* of all histories */
extern bool sim_verbose;   /* print what happens */
extern bool sim_failed;	   /* the history has ended by sim_fail() */

/* A number below @limit. */
unsigned int sim_random(unsigned int limit);
bool sim_chance(unsigned int one_in);

/* Begins a history. */
void sim_begin(uint64_t seed);
struct task_struct *sim_spawn(const char *name, void (*run)(void *arg), void *arg);
/* Until no task can go on; false if it never ends. */
bool sim_run(uint64_t steps);
/* Ends the task that runs. */
void sim_exit(void) __attribute__((noreturn));
/* The history has shown a fault: ends it. */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *sim_failure(void);

/* Another task may run here. */
void sim_step(void);
/* The caller must not hold a spinlock. */
void sim_may_sleep(void);
void sim_lock(struct sim_lock *lock);
void sim_unlock(struct sim_lock *lock);
void sim_mutex_lock(struct sim_lock *lock);
bool sim_trylock(struct sim_lock *lock);
void sim_mutex_unlock(struct sim_lock *lock);
void sim_assert_held(const struct sim_lock *lock);

/* Sleeps in the state that is set, until it is woken or @until; returns if that came. */
bool sim_sleep(uint64_t until);
/* Sleeps for a time, whatever happens. */
void sim_pause(uint64_t ns);
int wake_up_process(struct task_struct *task);

void sim_timer_start(struct sim_timer *timer, uint64_t expires);
bool sim_timer_cancel(struct sim_timer *timer);

#endif /* FLOWFD_SIM_SCHED_H */
