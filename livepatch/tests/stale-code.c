// SPDX-License-Identifier: GPL-2.0-only
/*
 * stale-code SECONDS: whether this machine, which may be emulated, can go on executing an
 * instruction that another processor has replaced. One thread puts a breakpoint in place
 * of a nop, and the nop back; the other one calls it, each time after an instruction that
 * serializes. A trap in a call that began and ended while the nop was there is an error of
 * the machine. Patching of a running kernel needs the same guarantee. It exits with 1 then.
 * As in a kernel, there is other code in the page, which is used and does not change.
 */
#include <cpuid.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"

#define NOP	   0x90
#define BREAKPOINT 0xcc
#define RET	   0xc3
#define OTHER	   64	/* offset of a function that does not change */

static unsigned char *code;
/* Odd: from before the breakpoint is written until the nop is there again. */
static _Atomic unsigned long period;
static _Atomic unsigned long calls;
static volatile unsigned long called_in;
static volatile unsigned long last_wrong = 1;
static volatile unsigned long traps, wrong_periods;

static void on_trap(int signal)
{
	traps++;
	if (called_in % 2 || period != called_in || last_wrong == called_in)
		return;
	last_wrong = called_in;
	wrong_periods++;
}

static void *call(void *unused)
{
	unsigned int a, b, c, d;

	for (;;) {
		called_in = period;
		((void (*)(void))(code + OTHER))();
		__cpuid(0, a, b, c, d);
		((void (*)(void))code)();
		calls++;
	}
	return NULL;
}

static void write_code(unsigned char instruction)
{
	*(volatile unsigned char *)code = instruction;
	atomic_thread_fence(memory_order_seq_cst);
}

/* Until the other thread has called it again, and once more from the beginning. */
static void let_call(void)
{
	unsigned long before = calls;

	while (calls < before + 2)
		;
}

int main(int argc, char **argv)
{
	double end = now_ms(CLOCK_MONOTONIC) + 1e3 * (argc > 1 ? atof(argv[1]) : 10);
	struct sigaction action = { .sa_handler = on_trap };
	unsigned long changes;
	pthread_t thread;

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 2;
	memcpy(code, (unsigned char[]){ NOP, RET }, 2);
	code[OTHER] = RET;
	sigaction(SIGTRAP, &action, NULL);
	if (pthread_create(&thread, NULL, call, NULL))
		return 2;
	for (changes = 0; now_ms(CLOCK_MONOTONIC) < end; changes++) {
		period++;
		write_code(BREAKPOINT);
		for (volatile int i = rand() % 200; i > 0; i--)
			;
		write_code(NOP);
		period++;
		let_call();
	}
	printf("%lu changes, %lu traps; after %lu changes the old instruction was executed\n",
	       changes, traps, wrong_periods);
	return wrong_periods > 0;
}
