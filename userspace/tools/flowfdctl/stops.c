// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times at which this program was stopped, for instance by Ctrl-Z, and perhaps its child
 * process with it: they do not count for how long the kernel takes to answer.
 */
#include <signal.h>

#include "look.h"

static volatile sig_atomic_t continued;

static void note_continued(int number)
{
	(void)number;
	continued = 1;
}

/* stops_note - note stops from now on */
void stops_note(void)
{
	struct sigaction action = { .sa_handler = note_continued,
				    .sa_flags = SA_RESTART };

	/* A check that is only late can be so because other processes have the CPU. */
	sigaction(SIGCONT, &action, NULL);
}

/**
 * stops_lasted - how long this program was stopped since the last call
 * @wanted: when it wanted to go on, as now_ns()
 * @now: when it went on
 */
uint64_t stops_lasted(uint64_t wanted, uint64_t now)
{
	uint64_t late = continued && now > wanted ? now - wanted : 0;

	continued = 0;
	return late;
}
