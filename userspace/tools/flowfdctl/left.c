// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that looked and were left behind: a file of /proc keeps them, and no
 * signal ends them. As long as one is there, what it looked at is left out, or each
 * look would leave one more.
 */
#include <sys/wait.h>

#include "look.h"

/* A process, and the one that it looked at, or one of enum stuck_at. */
static struct left {
	pid_t child;
	pid_t at;
} left[LEFT_MAX];
static unsigned int count;

/* left_add - remember a process, and what it looked at */
void left_add(pid_t child, pid_t at)
{
	left[count++] = (struct left){.child = child, .at = at};
}

/* left_end - forget those that the kernel let go since */
void left_end(void)
{
	unsigned int i;

	for (i = count; i--;)
		if (waitpid(left[i].child, NULL, WNOHANG))
			left[i] = left[--count];
}

/* left_count - how many there are; there must not be more than LEFT_MAX */
unsigned int left_count(void)
{
	return count;
}

/* left_at - what the last of them looked at */
pid_t left_at(void)
{
	return count ? left[count - 1].at : 0;
}

/* left_has - must this not be looked at? */
bool left_has(pid_t at)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (left[i].at == at)
			return true;
	return false;
}
