// SPDX-License-Identifier: GPL-2.0-only
/*
 * The workers of a server, and how many connections each accepts: counted by the kernel's
 * tracepoints of accept(2) and accept4(2), on all their listening sockets together.
 */
#include <err.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "balance.h"
#include "flowfdctl.h"

static const char *const calls[] = { "sys_exit_accept", "sys_exit_accept4" };
#define CALLS (int)(sizeof(calls) / sizeof(*calls))

static unsigned long call_ids[CALLS];

/* Returns 0 and sets errno if there is none, EPERM where the kernel is locked down. */
static unsigned long tracepoint_id(const char *name)
{
	unsigned long id = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/syscalls/%s/id", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lu", &id) != 1)
		id = 0;
	fclose(file);
	return id;
}

/*
 * workers_open - get ready to count, or say what is missing
 *
 * Return: whether connections can be counted.
 */
bool workers_open(void)
{
	int i;

	for (i = 0; i < CALLS; i++) {
		call_ids[i] = tracepoint_id(calls[i]);
		if (call_ids[i])
			continue;
		if (errno == EPERM)
			warnx("this kernel is locked down (lockdown=confidentiality), and"
			      " has no tracepoints to count connections with");
		else
			warnx("the tracepoint syscalls:%s, which counts connections,"
			      " is not there: mount tracefs at /sys/kernel/tracing,"
			      " and run this as root",
			      calls[i]);
		return false;
	}
	return true;
}

/* The last 16 descriptors are left to the looks for sockets. */
static int unreserved(int fd)
{
	if (fd < sysconf(_SC_OPEN_MAX) - 16)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

/* Says so once. Of a process or thread that has ended there is nothing to count. */
static void not_counted(pid_t pid)
{
	static bool warned;

	if (warned || errno == ESRCH)
		return;
	warn("process %d: not all connections are counted", pid);
	warned = true;
}

/*
 * Counts the calls of a thread, and of those that it starts, that returned a connection. A
 * process that it starts is a worker of its own. What cannot be counted does not end the
 * balance.
 */
static int count_calls(pid_t thread, unsigned long id)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
		.inherit = 1,
		.inherit_thread = 1,
		.disabled = 1,
	};
	int fd = unreserved(syscall(SYS_perf_event_open, &attr, thread, -1, -1,
				    PERF_FLAG_FD_CLOEXEC));

	if (fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "ret >= 0") &&
	    !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return fd;
	not_counted(thread);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* First all are found: what one starts after it is counted is counted with it. */
static void add_threads(struct worker *w)
{
	pid_t *threads;
	ssize_t i, count = process_numbers(w->pid, "task", &threads);

	for (i = 0; i < count * CALLS; i++) {
		int fd = count_calls(threads[i / CALLS], call_ids[i % CALLS]);

		if (fd < 0)
			continue;
		w->counters = grow(w->counters, w->count, sizeof(*w->counters));
		w->counters[w->count++] = fd;
	}
	free(threads);
}

static uint64_t accepted(const struct worker *w)
{
	uint64_t number, sum = 0;
	size_t i;

	for (i = 0; i < w->count; i++)
		if (read(w->counters[i], &number, sizeof(number)) == sizeof(number))
			sum += number;
	return sum;
}

static bool is_known(const struct workers *workers, pid_t pid)
{
	size_t i;

	for (i = 0; i < workers->count; i++)
		if (workers->worker[i].pid == pid && workers->worker[i].pidfd >= 0)
			return true;
	return false;
}

static void close_worker(struct worker *w)
{
	while (w->count)
		close(w->counters[--w->count]);
	free(w->counters);
	w->counters = NULL;
	close(w->pidfd);
	w->pidfd = -1;
}

/* @server: it must have one of its listeners; NULL: it is the server. */
static void add(struct workers *workers, pid_t pid, const struct server *server)
{
	struct worker w = { .pid = pid,
			    .pidfd = unreserved(syscall(SYS_pidfd_open, pid, 0)) };

	if (w.pidfd < 0) {
		not_counted(pid);
	} else if (!server || process_has_listener(pid, server)) {
		add_threads(&w);
		/* Otherwise what was looked at may have been another process. */
		if (!process_has_ended(w.pidfd)) {
			workers->worker =
				grow(workers->worker, workers->count, sizeof(w));
			workers->worker[workers->count++] = w;
			return;
		}
	}
	close_worker(&w);
}

/* Of one thread. The file names them in one line. */
static void add_children(struct workers *workers, const struct server *server,
			 pid_t thread)
{
	char path[64];
	FILE *file;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", server->pid, thread);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		if (!is_known(workers, child))
			add(workers, child, server);
	if (file)
		fclose(file);
}

/*
 * workers_find - look for new workers
 * @workers: those that are known; empty at first
 * @server: it and its children may be workers; a worker has one of its listeners
 */
void workers_find(struct workers *workers, const struct server *server)
{
	pid_t *threads;
	ssize_t i, count = process_numbers(server->pid, "task", &threads);

	workers_count(workers);
	if (!workers->count)
		add(workers, server->pid, NULL);
	for (i = 0; i < count; i++)
		add_children(workers, server, threads[i]);
	free(threads);
}

/* workers_count - count what all have accepted */
void workers_count(struct workers *workers)
{
	size_t i;

	for (i = 0; i < workers->count; i++) {
		struct worker *w = &workers->worker[i];
		/* First, so that the count is final if it has. */
		bool ended = process_has_ended(w->pidfd);

		if (w->pidfd >= 0)
			w->accepted = accepted(w) - w->before;
		if (ended)
			close_worker(w);
	}
}

/* workers_reset - count from 0 again, without those that have ended */
void workers_reset(struct workers *workers)
{
	size_t i, kept = 0;

	for (i = 0; i < workers->count; i++) {
		struct worker *w = &workers->worker[i];

		/* The count of threads that have ended cannot be reset. */
		w->before += w->accepted;
		if (w->pidfd >= 0)
			workers->worker[kept++] = *w;
	}
	workers->count = kept;
}
