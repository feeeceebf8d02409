// SPDX-License-Identifier: GPL-2.0-only
/*
 * Child processes that were left behind: a read of a file of /proc blocks them, and no
 * signal ends them. As long as one exists, the user of that file's process is skipped;
 * otherwise each scan would leave one more.
 */
#include <sys/wait.h>

#include "look.h"

#define LEFT_MAX 8

/* A child process, the process that it was inspecting, and the user of that one. */
static struct left {
	pid_t child;
	pid_t at;
	uid_t uid;
} left[LEFT_MAX];
static size_t count;

/* left_add - remember a child process and the user it was inspecting */
void left_add(pid_t child, const struct view *view)
{
	left[count++] = (struct left){
		.child = child,
		.at = view->current,
		/* It had not come to a user yet. */
		.uid = view->turn ? view->turn->first->uid : (uid_t)-1,
	};
}

/* left_end - forget the child processes that have ended meanwhile */
void left_end(void)
{
	size_t i;

	for (i = count; i--;)
		if (waitpid(left[i].child, NULL, WNOHANG))
			left[i] = left[--count];
}

/* left_is_full - whether no more child processes may be left behind */
bool left_is_full(void)
{
	return count == LEFT_MAX;
}

/* left_at - the process that blocked the last of them; 0: there is none */
pid_t left_at(void)
{
	return count ? left[count - 1].at : 0;
}

/* left_has - whether to skip a user; when full, all but root, as users have many IDs */
bool left_has(uid_t uid)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (left[i].uid == uid)
			return true;
	return uid && count >= LEFT_MAX - 1;
}
