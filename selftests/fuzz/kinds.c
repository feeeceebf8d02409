// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kinds of calls: a name for printing, a weight for choosing, a function. Also runs
 * one of them, with an injected fault if the call has one.
 */
#include "../fault_injection.h"
#include "calls.h"

#include <setjmp.h>
#include <signal.h>

#define KIND(name, weight) { #name, call_##name, weight },

static const struct kind {
	const char *name;
	void (*run)(const __u32 *arg);
	unsigned int weight;
} kinds[] = { CALLS(KIND) };

#define KINDS (sizeof(kinds) / sizeof(*kinds))

const char *kind_name(unsigned int kind)
{
	return kinds[kind].name;
}

/* -1: no such kind. */
int kind_find(const char *name)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		if (!strcmp(kinds[i].name, name))
			return i;
	}
	return -1;
}

unsigned int kind_random(void)
{
	unsigned int sum = 0, at, i;

	for (i = 0; i < KINDS; i++)
		sum += kinds[i].weight;
	at = random_below(sum);
	for (i = 0; at >= kinds[i].weight; i++)
		at -= kinds[i].weight;
	return i;
}

/* Another thread may unmap the memory that a call uses: the signal ends the call. */
static __thread sigjmp_buf *back;

static void on_bad_memory(int signal)
{
	if (!back)
		_exit(3);
	siglongjmp(*back, 1);
}

static void on_signal(int signal)
{
}

/*
 * The n-th step of a call that can fail (an allocation, a copy from or to user memory)
 * does. Each thread has its own file for that.
 */
static bool faults;

void kind_open(void)
{
	faults = faults_can_be_asked_for();
}

static void fault_arm(unsigned int step)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", step);
	store_text("/proc/thread-self/fail-nth", text);
}

/* The write counts as a step itself: if that is the one that fails, try again. */
static void fault_disarm(void)
{
	int tries = 4;

	while (!store_text("/proc/thread-self/fail-nth", "0") && --tries)
		;
}

void kind_init(void)
{
	struct sigaction bad = { .sa_handler = on_bad_memory };
	struct sigaction other = { .sa_handler = on_signal };

	sigaction(SIGSEGV, &bad, NULL);
	sigaction(SIGBUS, &bad, NULL);
	sigaction(SIGUSR1, &other, NULL);
	sigaction(SIGIO, &other, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void kind_call(const struct call *call)
{
	sigjmp_buf here;

	if (faults && call->fail)
		fault_arm(call->fail);
	if (!sigsetjmp(here, 1)) {
		back = &here;
		kinds[call->kind].run(call->arg);
	}
	back = NULL;
	if (faults && call->fail)
		fault_disarm();
}
