/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interference, point by point: a function is single-stepped, and in each run something
 * else happens before another of its points. These are its system calls, its accesses to
 * the memory that steps_watch() names, and its end: between them it does nothing that
 * others can see. So this covers each order of the two on one processor in which one runs
 * as a whole, with the code that the compiler made.
 */
#ifndef FLOWFD_TESTS_STEPS_H
#define FLOWFD_TESTS_STEPS_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

/* More points than a function has that ends. */
#define STEPS_MANY 1000000

#if (defined(__x86_64__) || defined(__i386__)) && !defined(__SANITIZE_THREAD__)
#define STEPS_TRAP_FLAG 0x100
#ifdef __x86_64__
#define STEPS_NEXT REG_RIP
#else
#define STEPS_NEXT REG_EIP
#endif

static struct {
	void (*happen)(void);
	struct {
		void *start;
		size_t size;
	} memory[2];
	struct sigaction segv; /* of before */
	volatile sig_atomic_t guarded;
	volatile sig_atomic_t inside;
	volatile sig_atomic_t points;
	volatile sig_atomic_t stop_at;
	volatile sig_atomic_t again_at;
	volatile sig_atomic_t each;
	volatile sig_atomic_t happened;
} steps;

/**
 * steps_watch - say what others can see
 * @number: 0 or 1, of two pieces of memory
 * @start: of a page that can be read and written
 * @size: bytes; 0: none, and if that is so for both, each instruction is a point
 */
static inline void steps_watch(int number, void *start, size_t size)
{
	steps.memory[number].start = start;
	steps.memory[number].size = size;
}

static void steps_guard(bool guarded)
{
	if (steps.guarded == guarded)
		return;
	for (int i = 0; i < 2; i++)
		if (steps.memory[i].size &&
		    mprotect(steps.memory[i].start, steps.memory[i].size,
			     guarded ? PROT_NONE : PROT_READ | PROT_WRITE))
			abort();
	steps.guarded = guarded;
}

static bool steps_is_point(const unsigned char *code)
{
	if (!steps.memory[0].size && !steps.memory[1].size)
		return true;
	/* syscall, sysenter and int $0x80 */
	return (code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34)) ||
	       (code[0] == 0xcd && code[1] == 0x80);
}

static void steps_point(greg_t *flags)
{
	int point = steps.points++;

	steps_guard(false);
	if (point == steps.stop_at || point == steps.again_at ||
	    (steps.each && point > steps.stop_at)) {
		steps.happened++;
		steps.happen();
	}
	if (steps.each ? steps.points == STEPS_MANY :
			 steps.happened == 1 + (steps.again_at >= 0))
		*flags &= ~STEPS_TRAP_FLAG;
}

/* Before each instruction from the breakpoint on, until all has happened. */
static void steps_trap(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	registers[REG_EFL] |= STEPS_TRAP_FLAG;
	if (steps.inside == 1 &&
	    !steps_is_point((const unsigned char *)registers[STEPS_NEXT]))
		steps_guard(true);
	else if (steps.inside)
		steps_point(&registers[REG_EFL]);
	if (steps.inside == 2)
		registers[REG_EFL] &= ~STEPS_TRAP_FLAG;
}

/* An access to what is watched. */
static void steps_fault(int number, siginfo_t *info, void *context)
{
	(void)info;
	if (steps.guarded)
		steps_point(&((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL]);
	else
		signal(number, SIG_DFL);
}

static void steps_end(void)
{
	signal(SIGTRAP, SIG_DFL);
	sigaction(SIGSEGV, &steps.segv, NULL);
}

static void steps_do(void (*run)(void), void (*happen)(void), int stop_at, int again_at)
{
	struct sigaction action = { .sa_sigaction = steps_trap, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	action.sa_sigaction = steps_fault;
	sigaction(SIGSEGV, &action, &steps.segv);
	steps.happen = happen;
	steps.stop_at = stop_at;
	steps.again_at = again_at;
	steps.inside = 0;
	steps.points = 0;
	steps.happened = 0;
	__asm__ volatile("int3" : : : "memory");
	steps.inside = 1;
	run();
	steps.inside = 2;
	steps_end();
}

/*
 * Happens before two points, @stop_at and the later one @again_at, if that is not
 * negative. False if @run has fewer.
 */
static inline bool steps_run_twice(void (*run)(void), void (*happen)(void), int stop_at,
				   int again_at)
{
	steps_do(run, happen, stop_at, again_at);
	return steps.happened == 1 + (again_at >= 0);
}

/* Happens before each point from @stop_at on. Returns how often; STEPS_MANY: for ever. */
static inline int steps_run_each(void (*run)(void), void (*happen)(void), int stop_at)
{
	steps.each = 1;
	steps_do(run, happen, stop_at, -1);
	steps.each = 0;
	return steps.points == STEPS_MANY ? STEPS_MANY : steps.happened;
}

static sigjmp_buf steps_killed;

static void steps_jump(void)
{
	siglongjmp(steps_killed, 1);
}

/* @run ends before a point, as if its process were killed. */
static inline bool steps_kill(void (*run)(void), int stop_at)
{
	if (!sigsetjmp(steps_killed, 1)) {
		steps_do(run, steps_jump, stop_at, -1);
		return false;
	}
	steps_end();
	return true;
}
#else
#define STEPS_UNAVAILABLE "for x86 without ThreadSanitizer"

static inline void steps_watch(int number, void *start, size_t size)
{
	(void)number;
	(void)start;
	(void)size;
}

static inline bool steps_run_twice(void (*run)(void), void (*happen)(void), int stop_at,
				   int again_at)
{
	(void)happen;
	(void)stop_at;
	(void)again_at;
	run();
	return false;
}

static inline int steps_run_each(void (*run)(void), void (*happen)(void), int stop_at)
{
	return steps_run_twice(run, happen, stop_at, -1);
}

static inline bool steps_kill(void (*run)(void), int stop_at)
{
	return steps_run_twice(run, run, stop_at, -1);
}
#endif

/* Happens before one point. False if @run has fewer. */
static inline bool steps_run(void (*run)(void), void (*happen)(void), int stop_at)
{
	return steps_run_twice(run, happen, stop_at, -1);
}

#endif /* FLOWFD_TESTS_STEPS_H */
