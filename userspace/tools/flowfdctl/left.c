// SPDX-License-Identifier: GPL-2.0-only
/*
 * Child processes that were left behind: a file of /proc blocks them, and no signal
 * ends them. As long as one exists, the process that it was inspecting is skipped;
 * otherwise each scan would leave one more.
 */
#include <sys/wait.h>

#include "look.h"

/* A child process, and the process that it was inspecting or an enum stuck_at. */
static struct left {
	pid_t child;
	pid_t at;
} left[LEFT_MAX];
static unsigned int count;

/* left_add - remember a child process, and the process that it was inspecting */
void left_add(pid_t child, pid_t at)
{
	left[count++] = (struct left){ .child = child, .at = at };
}

/* left_end - forget the child processes that have ended meanwhile */
void left_end(void)
{
	unsigned int i;

	for (i = count; i--;)
		if (waitpid(left[i].child, NULL, WNOHANG))
			left[i] = left[--count];
}

/* left_count - number of child processes left behind; must not exceed LEFT_MAX */
unsigned int left_count(void)
{
	return count;
}

/* left_at - the process that blocked the last of them, or an enum stuck_at; 0: none */
pid_t left_at(void)
{
	return count ? left[count - 1].at : 0;
}

/* left_has - whether a process, or an enum stuck_at, must be skipped */
bool left_has(pid_t at)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (left[i].at == at)
			return true;
	return false;
}
