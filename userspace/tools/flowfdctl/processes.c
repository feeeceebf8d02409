// SPDX-License-Identifier: GPL-2.0-only
/*
 * All processes, within a limited time. Users get equal shares of it, in turns, so
 * that no user can hide the descriptors of others behind a hundred thousand own ones.
 * Root has the first turn. Users with processes that the kernel does not answer about
 * come after all others for a part of the time: each of these processes takes a second,
 * but any user can make the kernel not answer about another user's process.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <flowfd.h>

#include "look.h"

/* No user: for the processes that run as root and were started by other users. */
#define SETUID_ROOT ((uid_t)-1)

/* Length of a turn, after which another user's comes. */
#define TURN_NS 20000000ULL

uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* processes_at - say where the child process is, for its parent and for other calls */
void processes_at(struct view *view, pid_t at)
{
	view->steps++;
	view->current = at;
	/* Finding all processes can take most of the time. */
	slot_at(at, at == AT_PROC ? view->end + STALL_NS : now_ns() + STALL_NS);
}

/* Whether a child process of another call is blocked there; counts it as one of this. */
static bool is_blocked(struct view *view, pid_t at)
{
	if (!slots_have(at))
		return false;
	view->scan->stuck++;
	view->scan->stuck_at = at;
	return true;
}

/* Runs once: if it blocks the child, the next child continues without it. */
static void ask_for_module(struct view *view)
{
	char version[MODULE_VERSION_SIZE];
	struct stat st;

	view->asked = true;
	if (is_blocked(view, AT_MODULE))
		return;
	processes_at(view, AT_MODULE);
	if (!stat(FLOWFD_DEVICE, &st) && S_ISCHR(st.st_mode))
		view->device = st.st_rdev;
	view->scan->no_module = !module_version(version);
}

/* Returns whether a process was found before. */
static bool was_found(struct view *view, pid_t pid)
{
	uint8_t *byte = &view->found[pid / 8 % sizeof(view->found)];
	uint8_t before = *byte;

	*byte |= 1 << pid % 8;
	return *byte == before;
}

/*
 * Half of the time that is left is for finding processes. Nothing is looked up in their
 * own directories: any user can lock the directory of any process.
 */
static size_t find_processes(struct view *view, DIR *proc)
{
	uint64_t now = now_ns(), end = now + (view->end - now) / 2;
	const char *pid;
	size_t count = 0;
	struct stat st;

	while ((pid = next_number(proc))) {
		struct process process = { .pid = atoi(pid) };

		if (was_found(view, process.pid))
			continue;
		if (fstatat(view->proc, pid, &st, AT_SYMLINK_NOFOLLOW)) {
			process_missed(view, &process);
			continue;
		}
		if (view->scan->processes + count == PROCESSES_MAX || now_ns() >= end) {
			view->scan->too_many = true;
			return count;
		}
		process.uid = st.st_uid;
		view->process[count++] = process;
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

static void finish(struct view *view, struct user *user, size_t index)
{
	view->scan->finished++;
	user->first[index] = user->first[--user->count];
}

/* Skips the processes at which an earlier child is still blocked: they take no time. */
static void leave_out_known(struct view *view)
{
	size_t i, j;
	pid_t pid;

	for (i = 0; i < view->users; i++) {
		for (j = view->user[i].count; j--;) {
			pid = view->user[i].first[j].pid;
			if (left_has(pid) || is_blocked(view, pid))
				finish(view, &view->user[i], j);
		}
	}
}

static int compare_users(const void *left, const void *right)
{
	const struct user *a = left, *b = right;

	return (a->uid > b->uid) - (a->uid < b->uid);
}

/* Gives a user processes from @first on; the first @known users are sorted. */
static struct user *set_user(struct view *view, size_t known, uid_t uid,
			     struct process *first)
{
	struct user key = { .uid = uid }, *user;

	user = bsearch(&key, view->user, known, sizeof(key), compare_users);
	if (!user) {
		user = &view->user[view->users++];
		user->uid = uid;
	}
	user->first = first;
	return user;
}

/* Finds the processes that were not found before; none is left of those that were. */
static void find_users(struct view *view, DIR *proc)
{
	size_t count = find_processes(view, proc), known = view->users, i;
	struct process *process = view->process;
	struct user *user = NULL;
	size_t roots = 0;

	qsort(process, count, sizeof(*process), compare);
	for (i = 0; i < count; i++) {
		if (!i || process[i].uid != process[i - 1].uid)
			user = set_user(view, known, process[i].uid, &process[i]);
		user->count++;
		roots += !process[i].uid;
	}
	set_user(view, known, SETUID_ROOT, &process[roots]);
	qsort(view->user, view->users, sizeof(*view->user), compare_users);
	view->scan->processes += (unsigned int)count;
	leave_out_known(view);
	view->turn = view->user;
}

/* Moves a process to the last user, whose array begins where root's ends. */
static void hand_over(struct view *view, struct user *root, size_t index)
{
	struct user *last = &view->user[view->users - 1];
	struct process process = root->first[index];

	root->first[index] = root->first[--root->count];
	*--last->first = process;
	last->count++;
}

/* Inspects a process, and drops it if it is finished. */
static void look_at_next(struct view *view, struct user *user, uint64_t until)
{
	struct process *process;

	if (user->next >= user->count)
		user->next = 0;
	process = &user->first[user->next];
	if (!process->uid && !process->asked) {
		process->asked = true;
		if (process_is_setuid(view, process)) {
			hand_over(view, user, user->next);
			return;
		}
	}
	if (process_look(view, process, &user->account, until))
		finish(view, user, user->next);
	else
		user->next++;
}

/* A turn is shortened by the time that the user's turns before took too long. */
static void take_turn(struct view *view, struct user *user, uint64_t share, uint64_t end)
{
	uint64_t start = now_ns(), now = start, until;

	while (user->count && user->spent < share && now < end) {
		until = now + share - user->spent;
		if (until > end)
			until = end;
		look_at_next(view, user, until);
		now = now_ns();
		user->spent += now - start;
		start = now;
	}
}

/*
 * Gives turns to the users with up to @kept skipped processes, until @end or until none
 * of them has a process left.
 */
static void take_turns(struct view *view, unsigned int kept, uint64_t end)
{
	uint64_t share = TURN_NS;
	bool more = true;
	size_t i;

	for (; more && now_ns() < end; share += TURN_NS) {
		more = false;
		for (i = 0; i < view->users; i++) {
			if (view->user[i].kept > kept)
				continue;
			view->turn = &view->user[i];
			take_turn(view, view->turn, share, end);
			more |= view->turn->count;
		}
	}
}

static void look_at_users(struct view *view)
{
	unsigned int kept;
	uint64_t now;

	/* Users with more skipped processes wait for half of the time that is left. */
	for (kept = 0; kept < LEFT_MAX; kept++) {
		now = now_ns();
		if (now < view->end)
			take_turns(view, kept, now + (view->end - now) / 2);
	}
	take_turns(view, LEFT_MAX, view->end);
}

/* processes_look - inspect all processes, or continue to */
void processes_look(struct view *view)
{
	const struct scan *scan = view->scan;
	DIR *proc;

	if (!view->asked)
		ask_for_module(view);
	if (is_blocked(view, AT_PROC))
		return;
	processes_at(view, AT_PROC);
	proc = opendir("/proc");
	if (!proc) {
		view->error = errno;
		return;
	}
	view->proc = dirfd(proc);
	if (!view->turn)
		find_users(view, proc);
	look_at_users(view);
	/* What a process had that has ended can be in one that was started since. */
	while (scan->ended && scan->finished == scan->processes && now_ns() < view->end) {
		processes_at(view, AT_PROC);
		view->scan->ended = 0;
		rewinddir(proc);
		find_users(view, proc);
		look_at_users(view);
	}
	closedir(proc);
}

/**
 * processes_skip - drop the process that blocked the child process
 * @view: of the child process that was left behind
 *
 * Returns whether the scan can continue.
 */
bool processes_skip(struct view *view)
{
	struct user *user = view->turn;
	size_t i;

	if (view->current == AT_PROC || view->current == AT_SLOTS ||
	    view->current == AT_START)
		return false;
	for (i = 0; view->current != AT_MODULE && i < user->count; i++) {
		if (user->first[i].pid == view->current) {
			finish(view, user, i);
			user->kept++;
			break;
		}
	}
	return now_ns() < view->end;
}
