// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: the n-th step of a call that can fail (an allocation, a copy from or
 * to user memory) does. Each thread has its own file for that.
 */
#include "../fault_injection.h"
#include "fuzz.h"

static bool possible;

void fault_open(void)
{
	possible = faults_can_be_asked_for();
}

void fault_arm(unsigned int step)
{
	char text[16];

	if (!possible)
		return;
	snprintf(text, sizeof(text), "%u", step);
	store_text("/proc/thread-self/fail-nth", text);
}

/* The write counts as a step itself: if that is the one that fails, try again. */
void fault_disarm(void)
{
	int tries = 4;

	while (possible && !store_text("/proc/thread-self/fail-nth", "0") && --tries)
		;
}
