// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that looked and were left behind: a file of /proc keeps them, and no
 * signal ends them. As long as one is there, the user of that file is not looked
 * at, or each look would leave one more.
 */
#include <sys/wait.h>

#include "look.h"

#define LEFT_MAX 8

/* A process, the one that it looked at, and the user whose that is. */
static struct left {
	pid_t child;
	pid_t at;
	uid_t uid;
} left[LEFT_MAX];
static size_t count;

/* left_add - remember a process, of a look at a user */
void left_add(pid_t child, const struct view *view)
{
	left[count++] = (struct left){
		.child = child,
		.at = view->current,
		/* Nobody: it did not come so far. */
		.uid = view->turn ? view->turn->first->uid : (uid_t)-1,
	};
}

/* left_end - forget those that the kernel let go since */
void left_end(void)
{
	size_t i;

	for (i = count; i--;)
		if (waitpid(left[i].child, NULL, WNOHANG))
			left[i] = left[--count];
}

/* left_is_full - may there be no more? */
bool left_is_full(void)
{
	return count == LEFT_MAX;
}

/* left_at - the process that kept the last of them; 0: there is none */
pid_t left_at(void)
{
	return count ? left[count - 1].at : 0;
}

/* left_has - must a user not be looked at? Who has many names leaves us root. */
bool left_has(uid_t uid)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (left[i].uid == uid)
			return true;
	return uid && count >= LEFT_MAX - 1;
}
