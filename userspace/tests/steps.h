/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interference, instruction by instruction: a function is single-stepped, and in each run
 * something else happens before another of its instructions. This covers each order of
 * the two on one processor in which one runs as a whole, with the code that the compiler
 * made.
 */
#ifndef FLOWFD_TESTS_STEPS_H
#define FLOWFD_TESTS_STEPS_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#if (defined(__x86_64__) || defined(__i386__)) && !defined(__SANITIZE_THREAD__)
#define STEPS_TRAP_FLAG 0x100

static struct {
	void (*happen)(void);
	volatile sig_atomic_t inside;
	volatile sig_atomic_t instruction;
	volatile sig_atomic_t stop_at;
	volatile sig_atomic_t again_at;
	volatile sig_atomic_t happened;
	volatile sig_atomic_t each;
} steps;

/* More than a function needs that ends. */
#define STEPS_MANY 1000000

/* Runs after each instruction from the breakpoint on, until it has happened. */
static void steps_trap(int number, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)number;
	(void)info;
	*flags |= STEPS_TRAP_FLAG;
	if (steps.each) {
		if (steps.inside == 1)
			steps.happen();
		if (steps.inside == 2 || ++steps.instruction == STEPS_MANY)
			*flags &= ~STEPS_TRAP_FLAG;
		return;
	}
	if (steps.inside == 1 && (steps.instruction == steps.stop_at ||
				  steps.instruction == steps.again_at)) {
		steps.happened++;
		steps.happen();
	}
	steps.instruction += steps.inside == 1;
	if (steps.inside == 2 || steps.happened == 1 + (steps.again_at >= 0))
		*flags &= ~STEPS_TRAP_FLAG;
}

/*
 * Happens before two instructions, @stop_at and the later one @again_at, if that is not
 * negative. False if @run has fewer instructions.
 */
static inline bool steps_run_twice(void (*run)(void), void (*happen)(void), int stop_at,
				   int again_at)
{
	const struct sigaction action = { .sa_sigaction = steps_trap,
					  .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	steps.happen = happen;
	steps.stop_at = stop_at;
	steps.again_at = again_at;
	steps.inside = 0;
	steps.instruction = 0;
	steps.happened = 0;
	__asm__ volatile("int3" : : : "memory");
	steps.inside = 1;
	run();
	steps.inside = 2;
	signal(SIGTRAP, SIG_DFL);
	return steps.happened == 1 + (again_at >= 0);
}

static inline bool steps_run(void (*run)(void), void (*happen)(void), int stop_at)
{
	return steps_run_twice(run, happen, stop_at, -1);
}

/* Happens before each instruction. False if @run did not end while it did. */
static inline bool steps_run_each(void (*run)(void), void (*happen)(void))
{
	steps.each = 1;
	steps_run(run, happen, -1);
	steps.each = 0;
	return steps.instruction < STEPS_MANY;
}

static sigjmp_buf steps_end;

static void steps_jump(void)
{
	siglongjmp(steps_end, 1);
}

/* The same, but @run ends there, as if its process were killed. */
static inline bool steps_kill(void (*run)(void), int stop_at)
{
	if (!sigsetjmp(steps_end, 1))
		return steps_run(run, steps_jump, stop_at);
	signal(SIGTRAP, SIG_DFL);
	return true;
}
#else
#define STEPS_UNAVAILABLE "for x86 without ThreadSanitizer"

static inline bool steps_run_twice(void (*run)(void), void (*happen)(void), int stop_at,
				   int again_at)
{
	(void)happen;
	(void)stop_at;
	(void)again_at;
	run();
	return false;
}

static inline bool steps_run(void (*run)(void), void (*happen)(void), int stop_at)
{
	return steps_run_twice(run, happen, stop_at, -1);
}

static inline bool steps_run_each(void (*run)(void), void (*happen)(void))
{
	return steps_run(run, happen, 0);
}

static inline bool steps_kill(void (*run)(void), int stop_at)
{
	return steps_run(run, run, stop_at);
}
#endif

#endif /* FLOWFD_TESTS_STEPS_H */
