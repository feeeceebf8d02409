// SPDX-License-Identifier: GPL-2.0-only
/*
 * All processes, within a time. Each user gets the same share of it, in turns,
 * so that nobody can hide what others have behind a hundred thousand descriptors.
 * Root has the first turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "look.h"

/* In a turn, after which another user's comes. */
#define TURN_NS 20000000ULL

uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Half of the time is for the processes themselves. */
static size_t find_processes(struct view *view, DIR *proc)
{
	uint64_t now = now_ns(), end = now + (view->end - now) / 2;
	const char *pid;
	size_t count = 0;

	while ((pid = next_number(proc))) {
		if (count == PROCESSES_MAX || now_ns() >= end) {
			view->scan->too_many = true;
			return count;
		}
		view->process[count++] = (struct process){
			.pid = atoi(pid),
			.uid = process_user(view, pid),
		};
		view->steps++;
	}
	view->error = errno;
	return count;
}

static int compare(const void *left, const void *right)
{
	const struct process *a = left, *b = right;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Not those of whom it is known that the kernel does not answer. */
static void leave_out(struct view *view)
{
	size_t i;

	for (i = 0; i < view->users; i++)
		if (left_has(view->user[i].first->uid))
			view->user[i].count = 0;
}

static void find_users(struct view *view, DIR *proc)
{
	size_t count = find_processes(view, proc), i;
	struct process *process = view->process;

	qsort(process, count, sizeof(*process), compare);
	for (i = 0; i < count; i++) {
		if (!i || process[i].uid != process[i - 1].uid)
			view->user[view->users++].first = &process[i];
		view->user[view->users - 1].count++;
	}
	view->scan->processes = (unsigned int)count;
	leave_out(view);
	view->turn = view->user;
}

/* Looks at a process, and forgets it if it is finished. */
static void look_at_next(struct view *view, struct user *user, uint64_t until)
{
	struct process *process;

	if (user->next >= user->count)
		user->next = 0;
	process = &user->first[user->next];
	if (!process_look(view, process, &user->account, until)) {
		user->next++;
		return;
	}
	view->scan->finished++;
	*process = user->first[--user->count];
}

/* A turn is shorter by what the one before took too long. */
static void take_turn(struct view *view, struct user *user, uint64_t share)
{
	uint64_t start = now_ns(), now = start, until;

	while (user->count && user->spent < share && now < view->end) {
		until = now + share - user->spent;
		if (until > view->end)
			until = view->end;
		look_at_next(view, user, until);
		now = now_ns();
		user->spent += now - start;
		start = now;
	}
}

/* One for each user; returns false if there is nothing left to be looked at. */
static bool take_turns(struct view *view, uint64_t share)
{
	bool more = false;
	size_t i;

	for (i = 0; i < view->users; i++) {
		view->turn = &view->user[i];
		take_turn(view, view->turn, share);
		more |= view->turn->count;
	}
	return more;
}

/* processes_look - look at every process, or go on with that */
void processes_look(struct view *view)
{
	DIR *proc = opendir("/proc");
	uint64_t share = TURN_NS;

	if (!proc) {
		view->error = errno;
		return;
	}
	view->proc = dirfd(proc);
	if (!view->turn)
		find_users(view, proc);
	while (take_turns(view, share) && now_ns() < view->end)
		share += TURN_NS;
	closedir(proc);
}

/**
 * processes_skip - go on without the user whose process keeps us
 * @view: of a look that was left
 *
 * Returns whether that is possible.
 */
bool processes_skip(struct view *view)
{
	if (!view->turn)
		return false;
	view->turn->count = 0;
	leave_out(view);
	return now_ns() < view->end;
}
