// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failures on demand: the n-th step of a call that can fail (an allocation, a copy
 * from or to user memory) does. Each thread has its own file for that.
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

/* A step that was not reached is reached here. */
void fault_disarm(void)
{
	int tries = 4;

	while (possible && !store_text("/proc/thread-self/fail-nth", "0") && --tries)
		;
}
