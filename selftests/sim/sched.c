// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler: which task goes on, and when time passes. All that decides is the seed.
 */
#include "sched.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* No lock is held for so many steps: a bound on what happens with interrupts off. */
#define LOCK_STEPS 20000

struct task_struct *sim_current;
uint64_t sim_now, sim_steps;
bool sim_verbose, sim_failed;

static struct task_struct program; /* main(): not a task of a history */
static struct task_struct tasks[SIM_TASKS];
static unsigned int task_count;
static struct task_struct *ticker;
static struct sim_timer *timers;
static char *stacks;
static char failure[160];
static uint64_t state, last_step;
static unsigned int rate;

unsigned int sim_random(unsigned int limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	/* As a division would take longer than most steps. */
	return (uint64_t)(uint32_t)(state >> 16) * limit >> 32;
}

bool sim_chance(unsigned int one_in)
{
	return !sim_random(one_in);
}

void sim_note(const char *format, ...)
{
	va_list args;

	if (!sim_verbose)
		return;
	printf("# %12llu %-14s ", (unsigned long long)sim_now, sim_current->comm);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

const char *sim_failure(void)
{
	return sim_failed ? failure : NULL;
}

/* Back to main(), for good if the history has failed. */
static void leave(void)
{
	struct task_struct *me = sim_current;

	sim_current = &program;
	fiber_switch(&me->fiber, &program.fiber);
}

void sim_fail(const char *format, ...)
{
	va_list args;

	if (!sim_failed) {
		va_start(args, format);
		vsnprintf(failure, sizeof(failure), format, args);
		va_end(args);
		sim_note("FAULT: %s", failure);
		sim_failed = true;
	}
	if (sim_current != &program)
		leave();
}

static bool is_runnable(const struct task_struct *t)
{
	if (t->done)
		return false;
	if (t->waits_for)
		return !t->waits_for->owner;
	if (t->ready)
		return t->ready(t->arg);
	if (!t->asleep)
		return true;
	return !t->__state || t->signalled || t->killed || sim_now >= t->until;
}

/* When the first sleeper or timer is due. */
static uint64_t next_event(void)
{
	const struct sim_timer *timer;
	uint64_t next = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < task_count; i++)
		if (!tasks[i].done && tasks[i].asleep && tasks[i].until < next)
			next = tasks[i].until;
	for (timer = timers; timer; timer = timer->next)
		if (timer->armed && timer->expires < next)
			next = timer->expires;
	return next;
}

/* NULL: nobody can go on any more. */
static struct task_struct *choose(void)
{
	struct task_struct *can[SIM_TASKS], *t;
	unsigned int i, n;
	uint64_t next;

	for (;;) {
		for (n = i = 0; i < task_count; i++)
			if (is_runnable(&tasks[i]))
				can[n++] = &tasks[i];
		if (n) {
			t = can[sim_random(n)];
			return t->slow && sim_random(16) ? can[sim_random(n)] : t;
		}
		next = next_event();
		if (next == UINT64_MAX || next > sim_now + SIM_HORIZON)
			return NULL;
		if (next > sim_now)
			sim_now = next;
	}
}

static void schedule(void)
{
	struct task_struct *me = sim_current, *next;

	if (sim_steps > last_step) {
		sim_fail("does not end");
		return;
	}
	next = choose();
	if (next == me)
		return;
	if (!next) {
		if (me != &program)
			leave();
		return;
	}
	sim_current = next;
	fiber_switch(&me->fiber, &next->fiber);
}

void sim_step(void)
{
	if (sim_current == &program)
		return;
	sim_steps++;
	sim_now += 5 + sim_random(30);
	if (!sim_random(rate))
		schedule();
}

void sim_may_sleep(void)
{
	if (sim_current->spinlocks || sim_current->interrupt)
		sim_fail("sleeps with a spinlock or in an interrupt");
}

static void own(struct sim_lock *lock)
{
	lock->owner = sim_current;
	lock->since = sim_steps;
}

static void take_lock(struct sim_lock *lock)
{
	sim_step();
	while (lock->owner) {
		if (lock->owner == sim_current || sim_current == &program) {
			sim_fail("deadlock: takes a lock that it has");
			return;
		}
		sim_current->waits_for = lock;
		schedule();
		sim_current->waits_for = NULL;
	}
	own(lock);
}

static void release_lock(struct sim_lock *lock)
{
	if (lock->owner != sim_current)
		sim_fail("releases a lock that it does not have");
	lock->owner = NULL;
}

void sim_lock(struct sim_lock *lock)
{
	take_lock(lock);
	sim_current->spinlocks++;
}

void sim_unlock(struct sim_lock *lock)
{
	release_lock(lock);
	sim_current->spinlocks--;
	sim_step();
}

void sim_mutex_lock(struct sim_lock *lock)
{
	sim_may_sleep();
	take_lock(lock);
}

bool sim_trylock(struct sim_lock *lock)
{
	sim_step();
	if (lock->owner)
		return false;
	own(lock);
	return true;
}

void sim_mutex_unlock(struct sim_lock *lock)
{
	release_lock(lock);
	sim_step();
}

void sim_assert_held(const struct sim_lock *lock)
{
	if (lock->owner != sim_current && sim_current != &program)
		sim_fail("a lock is not held");
	if (sim_steps - lock->since > LOCK_STEPS)
		sim_fail("a lock is held for too long");
}

bool sim_sleep(uint64_t until)
{
	struct task_struct *t = sim_current;
	bool over;

	sim_may_sleep();
	sim_step();
	t->until = until;
	t->asleep = true;
	if (!is_runnable(t))
		schedule();
	t->asleep = false;
	over = t->__state && !t->signalled && !t->killed && sim_now >= until;
	t->__state = 0;
	sim_step();
	return over;
}

void sim_pause(uint64_t ns)
{
	struct task_struct *t = sim_current;
	bool signalled = t->signalled;

	t->signalled = false;
	t->__state = 1;
	sim_sleep(sim_now + ns);
	t->signalled |= signalled;
}

int wake_up_process(struct task_struct *task)
{
	bool slept = task->__state;

	task->__state = 0;
	if (slept)
		sim_note("wakes %s", task->comm);
	return slept;
}

static struct sim_timer *due_timer(void)
{
	struct sim_timer *timer;

	for (timer = timers; timer; timer = timer->next)
		if (timer->armed && sim_now >= timer->expires)
			return timer;
	return NULL;
}

static bool timer_is_due(void *arg)
{
	(void)arg;
	return due_timer();
}

static void run_timers(void *arg)
{
	struct sim_timer *timer;

	(void)arg;
	for (;;) {
		timer = due_timer();
		if (timer) {
			/* From here on it is in the middle of work. */
			ticker->ready = NULL;
			timer->armed = false;
			timer->runs = true;
			timer->function(timer);
			timer->runs = false;
			ticker->ready = timer_is_due;
		}
		schedule();
	}
}

void sim_timer_start(struct sim_timer *timer, uint64_t expires)
{
	timer->expires = expires;
	timer->armed = true;
	if (timer->known)
		return;
	timer->known = true;
	timer->next = timers;
	timers = timer;
}

bool sim_timer_cancel(struct sim_timer *timer)
{
	bool armed = timer->armed;
	struct sim_timer **link;

	timer->armed = false;
	while (timer->runs && sim_current != &program)
		schedule();
	for (link = &timers; *link; link = &(*link)->next) {
		if (*link != timer)
			continue;
		*link = timer->next;
		timer->known = false;
		break;
	}
	return armed;
}

void sim_exit(void)
{
	sim_current->done = true;
	for (;;)
		schedule();
}

static void enter(void)
{
	fiber_entered(&program.fiber);
	sim_current->run(sim_current->arg);
	sim_exit();
}

struct task_struct *sim_spawn(const char *name, void (*run)(void *arg), void *arg)
{
	struct task_struct *t = &tasks[task_count];

	if (task_count == SIM_TASKS) {
		sim_fail("too many tasks");
		return &tasks[0];
	}
	memset(t, 0, sizeof(*t));
	snprintf(t->comm, sizeof(t->comm), "%s", name);
	t->prio = t->normal_prio = 120;
	t->run = run;
	t->arg = arg;
	fiber_init(&t->fiber, stacks + (size_t)task_count * FIBER_STACK, enter);
	task_count++;
	return t;
}

void sim_begin(uint64_t seed)
{
	unsigned int i;

	if (!stacks)
		stacks = mmap(NULL, SIM_TASKS * FIBER_STACK, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sim_current = &program;
	snprintf(program.comm, sizeof(program.comm), "main");
	program.spinlocks = 0;
	state = seed * 0x9E3779B97F4A7C15ULL + 1234567;
	for (i = 0; i < 8; i++)
		sim_random(1);
	rate = 1 + sim_random(2) * sim_random(8) + sim_random(3);
	sim_now = SIM_SECOND;
	sim_failed = false;
	task_count = 0;
	timers = NULL;
	ticker = sim_spawn("timer", run_timers, NULL);
	ticker->interrupt = true;
	ticker->ready = timer_is_due;
}

bool sim_run(uint64_t steps)
{
	last_step = sim_steps + steps;
	schedule();
	return !sim_failed;
}
