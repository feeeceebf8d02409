// SPDX-License-Identifier: GPL-2.0-only
/*
 * One process and its tables of descriptors. Its user may be hostile: of /proc only
 * files are read that do not wait for the process (cmdline and environ do). No error
 * ends the program.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "look.h"

/* In the flags of proc(5): descriptors are being closed; a kernel thread has none. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/* process_failed - count a process that cannot be read; errno says why */
void process_failed(struct view *view, struct process *process)
{
	if (errno == EACCES || errno == EPERM) {
		process->hidden = true;
	} else if (errno != ENOENT && errno != ESRCH) {
		view->scan->unread++;
		view->scan->unread_errno = errno;
	}
}

/* process_missed - count a process that cannot even be opened; errno says why */
void process_missed(struct view *view, struct process *process)
{
	view->scan->ended += errno == ENOENT || errno == ESRCH;
	process_failed(view, process);
	view->scan->hidden += process->hidden;
}

static DIR *open_directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory;

	if (fd < 0)
		return NULL;
	/* It looks at the directory, which may have gone by then. */
	directory = fdopendir(fd);
	if (!directory)
		close(fd);
	return directory;
}

/* Returns the next entry that is a number; NULL: no more, or the process is gone. */
const char *next_number(DIR *directory)
{
	const struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(directory);
	} while (entry && !isdigit((unsigned char)*entry->d_name));
	return entry ? entry->d_name : NULL;
}

/* Returns false if there is more after @until. */
static bool look_at_table(struct place *place, uint64_t until)
{
	DIR *links = open_directory(place->directory, "fd");
	struct process *process = place->process;
	const char *number;

	if (!links) {
		process_failed(place->view, process);
		return true;
	}
	if (process->descriptor)
		seekdir(links, process->descriptor);
	process->descriptor = 0;
	while ((number = next_number(links))) {
		descriptor_look(place, dirfd(links), number);
		if (now_ns() < until)
			continue;
		process->descriptor = telldir(links);
		break;
	}
	if (!number && errno)
		process_failed(place->view, process);
	closedir(links);
	return !process->descriptor;
}

/*
 * Most threads have the table of their process. A thread has one of its own after
 * unshare(2), or if the main thread, which has ended, has none. If the kernel does not
 * tell, showing a table twice is better than not at all.
 */
static bool has_its_table(pid_t thread, pid_t other)
{
	long order = syscall(SYS_kcmp, thread, other, KCMP_FILES, 0, 0);

	if (order >= 0)
		return order;
	/* One of them has ended. If it is the other, nothing is known of this thread. */
	return errno != ESRCH || !syscall(SYS_kcmp, thread, thread, KCMP_FILES, 0, 0);
}

static bool look_at_thread(struct place *place, int threads, const char *number,
			   uint64_t until)
{
	bool done;

	place->directory = openat(threads, number, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->directory < 0) {
		process_failed(place->view, place->process);
		return true;
	}
	place->id = atoi(number);
	*place->command = '\0';
	done = look_at_table(place, until);
	close(place->directory);
	return done;
}

/*
 * Returns the thread to continue with. Positions change when threads end. If the thread
 * at which the turn before ended has ended itself, all begins again: showing a table
 * twice is better than not at all.
 */
static const char *find_thread(DIR *threads, struct process *process)
{
	const char *number;

	seekdir(threads, process->position);
	number = next_number(threads);
	if (!number || atoi(number) != process->thread) {
		rewinddir(threads);
		do {
			number = next_number(threads);
		} while (number && atoi(number) != process->thread);
	}
	if (number)
		return process->descriptor ? number : next_number(threads);
	process->descriptor = 0;
	process->table = process->pid;
	rewinddir(threads);
	return next_number(threads);
}

/* Returns false if there is more after @until. */
static bool look_at_threads(struct place *place, DIR *threads, uint64_t until)
{
	struct process *process = place->process;
	const char *number;
	pid_t thread;

	if (process->thread)
		number = find_thread(threads, process);
	else
		number = next_number(threads);
	while (number) {
		thread = atoi(number);
		process->thread = thread;
		if (process->descriptor || (has_its_table(thread, process->pid) &&
					    has_its_table(thread, process->table))) {
			if (!look_at_thread(place, dirfd(threads), number, until))
				return false;
			process->descriptor = 0;
			process->table = thread;
		}
		if (now_ns() >= until)
			return false;
		process->position = telldir(threads);
		number = next_number(threads);
	}
	return true;
}

/* The state of a process in proc(5); K: it is a kernel thread; X: it is gone, or going. */
static char read_state(int directory)
{
	char text[1024], state;
	unsigned int flags;
	const char *rest;

	if (!file_read(directory, "stat", text, sizeof(text)))
		return 'X';
	/* The name before can contain any byte, parentheses too. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return '?';
	if (flags & PF_EXITING)
		return 'X';
	return flags & PF_KTHREAD ? 'K' : state;
}

/* Whether a process has several threads; each is a directory. */
static bool has_threads(int directory)
{
	struct stat st;

	return !fstatat(directory, "task", &st, 0) && st.st_nlink > 3;
}

/* Whether a process that hides its descriptors can have any: its state is a thread's. */
static bool may_have_descriptors(int directory)
{
	char state = read_state(directory);

	return !strchr("KXZ", state) || (state != 'K' && has_threads(directory));
}

/* Whether a process has no descriptors any more; faster for one that has not ended. */
static bool has_ended(int directory)
{
	char link;

	return readlinkat(directory, "exe", &link, 1) < 0 &&
	       strchr("XZ", read_state(directory));
}

static bool look_on(struct view *view, struct process *process, int directory,
		    struct account *account, uint64_t until)
{
	struct place place = {
		.view = view,
		.process = process,
		.account = account,
		.directory = directory,
		.id = process->pid,
	};
	DIR *threads;
	bool done;

	if (!process->threads && !look_at_table(&place, until))
		return false;
	if (!process->threads && !has_threads(directory))
		return true;
	if (!process->threads) {
		process->threads = true;
		process->descriptor = 0;
		process->table = process->pid;
	}
	threads = open_directory(directory, "task");
	if (!threads) {
		process_failed(view, process);
		return true;
	}
	done = look_at_threads(&place, threads, until);
	closedir(threads);
	return done;
}

/**
 * process_look - inspect a process, or continue to
 * @view: the scan
 * @process: process
 * @account: of its user
 * @until: time to stop, as now_ns(); some progress is made in any case
 *
 * Returns whether the process was inspected completely.
 */
bool process_look(struct view *view, struct process *process, struct account *account,
		  uint64_t until)
{
	char pid[16];
	int directory;
	bool done;

	processes_at(view, process->pid);
	snprintf(pid, sizeof(pid), "%d", process->pid);
	/* All files are opened relative to it: not those of a later process. */
	directory = openat(view->proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0) {
		process_missed(view, process);
		return true;
	}
	done = look_on(view, process, directory, account, until);
	if (done && process->hidden && may_have_descriptors(directory))
		view->scan->hidden++;
	if (done && !process->hidden)
		view->scan->ended += has_ended(directory);
	close(directory);
	return done;
}

/*
 * process_is_setuid - whether another user started a process of root
 *
 * The owner of /proc/PID is the effective user, whether the process is dumpable or
 * not. For a set-user-ID program that is root, but all of its open files can come from
 * the user that started it.
 */
bool process_is_setuid(struct view *view, const struct process *process)
{
	char name[32], text[1024];
	const char *line;

	processes_at(view, process->pid);
	snprintf(name, sizeof(name), "%d/status", process->pid);
	if (!file_read(view->proc, name, text, sizeof(text)))
		return false;
	/* A newline in the name is written as \n here. */
	line = strstr(text, "\nUid:\t");
	return line && strtoul(line + 6, NULL, 10);
}
