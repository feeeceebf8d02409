// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes or removes a bridge between descriptors of running processes. They are taken with
 * pidfd_getfd(2), perhaps from a hostile user, and each step can wait for ever: for a
 * process in the middle of execve(2), or a file server that is told of a close. So a child
 * process does it, and is left behind if it takes too long. It makes requests only to what
 * the kernel says is a counter.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "look.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* Time for all but the first step. */
#define CONNECT_NS 5000000000ULL

/*
 * After its start the child takes a slot; then the counter and the eventfd are each found,
 * taken, and checked; the rest is one step.
 */
enum step { START, ENTER, FIND, TAKE, CHECK, CONNECT };

enum file { OTHER_FILE, COUNTER_FILE, RING_FILE, EVENTFD_FILE };

/**
 * struct report - how far the child process is
 * @done: it is at its end
 * @error: negative error number of @step; 0: it has succeeded
 * @step: what it does, or did last
 * @at: with which of the two descriptors, unless @step is CONNECT
 * @file: what that descriptor is, once it was checked
 * @counter: the counter, once it was checked
 * @eventfd: number of the eventfd, once it was checked
 * @crowd: why no slot was taken, or counts
 */
struct report {
	bool done;
	int error;
	enum step step;
	enum { COUNTER_TARGET, EVENTFD_TARGET } at;
	enum file file;
	struct object counter;
	uint64_t eventfd;
	struct crowd crowd;
};

/* Of the child process: where its parent reads reports. */
static int reports;

static void tell(const struct report *report)
{
	/* Smaller than PIPE_BUF; if it fails, the parent sees the end without a report. */
	if (write(reports, report, sizeof(*report)) != sizeof(*report))
		_exit(EXIT_FAILURE);
}

static void step(struct report *report, enum step next)
{
	report->step = next;
	tell(report);
}

static _Noreturn void finish(struct report *report, int error)
{
	report->done = true;
	report->error = error;
	/* Closes what it took, which can take for ever: other calls must know then. */
	slot_end();
	tell(report);
	_exit(EXIT_SUCCESS);
}

/* The process, or the thread if it has a table of its own. */
static int open_process(pid_t pid)
{
	int handle = pidfd_open(pid, 0);

	if (handle < 0 && (errno == EINVAL || errno == ENOENT))
		handle = pidfd_open(pid, PIDFD_THREAD);
	return handle;
}

/* Takes a slot, which stays this process's until it has closed all that it takes. */
static void enter(struct report *report)
{
	volatile unsigned long steps = 0;
	int error;

	step(report, ENTER);
	error = slot_take(FOR_BRIDGE, now_ns() + SLOT_NS, &steps, &report->crowd);
	if (error)
		finish(report, error);
}

/* Returns the child's own descriptor of a file. */
static int take(struct report *report, const struct target *target)
{
	int handle, fd;

	step(report, FIND);
	/* The parent gives up earlier. */
	slot_at(target->pid, now_ns() + CONNECT_NS + STALL_NS);
	if (slots_have(target->pid))
		finish(report, -ETIMEDOUT);
	handle = open_process(target->pid);
	if (handle < 0)
		finish(report, -errno);
	step(report, TAKE);
	fd = pidfd_getfd(handle, target->fd, 0);
	if (fd < 0)
		finish(report, -errno);
	close(handle);
	return fd;
}

static enum file find_file(int fd, const char *link)
{
	struct stat st;

	if (link_is_eventfd(link))
		return EVENTFD_FILE;
	if (link_is_made_by_flowfd(link))
		return COUNTER_FILE;
	if (stat(FLOWFD_DEVICE, &st) || !S_ISCHR(st.st_mode) ||
	    !is_device(st.st_rdev, fd, ""))
		return OTHER_FILE;
	return COUNTER_FILE;
}

/* Nothing is asked of the file itself before the kernel says what it is. */
static void check(struct report *report, int fd)
{
	char name[32], link[64] = "", text[4096];
	enum fdinfo kind = FDINFO_OTHER;
	struct object object;

	step(report, CHECK);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (readlink(name, link, sizeof(link) - 1) < 0 && errno != ENAMETOOLONG)
		finish(report, -errno);
	report->file = find_file(fd, link);
	if (report->file == OTHER_FILE)
		return;
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	if (!file_read(AT_FDCWD, name, text, sizeof(text)))
		finish(report, -errno);
	if (report->file == EVENTFD_FILE) {
		if (!fdinfo_eventfd(text, &report->eventfd))
			finish(report, -EPROTO);
		return;
	}
	if (fdinfo_is_cut(text, sizeof(text)))
		finish(report, -EFBIG);
	kind = fdinfo_parse(text, &object, NULL, 0);
	if (kind == FDINFO_UNKNOWN)
		finish(report, -EPROTO);
	if (kind == FDINFO_OTHER)
		report->file = OTHER_FILE;
	else if (object.kind == RING)
		report->file = RING_FILE;
	else
		report->counter = object;
}

static int take_checked(struct report *report, const struct target *target,
			enum file wanted)
{
	int fd = take(report, target);

	check(report, fd);
	if (report->file != wanted)
		finish(report, -EINVAL);
	return fd;
}

static _Noreturn void connect_as_child(pid_t parent, const struct target *counter,
				       const struct target *eventfd, unsigned int flags)
{
	struct report report = { .step = START };
	int from, to = -1;

	child_begin(parent);
	/* A child that is left behind keeps nothing open that its caller waits for. */
	reports = dup2(reports, STDIN_FILENO);
	closefrom(STDERR_FILENO + 1);
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(EXIT_FAILURE);
	enter(&report);
	from = take_checked(&report, counter, COUNTER_FILE);
	if (!(flags & FLOWFD_BRIDGE_REMOVE)) {
		report.at = EVENTFD_TARGET;
		to = take_checked(&report, eventfd, EVENTFD_FILE);
	}
	step(&report, CONNECT);
	finish(&report, flowfd_bridge(from, to, flags));
}

static void read_report(int fd, struct report *report)
{
	ssize_t length = read(fd, report, sizeof(*report));

	if (length < 0)
		err(EXIT_FAILURE, "the process that takes descriptors");
	if (length != sizeof(*report))
		errx(EXIT_FAILURE, "the process that takes descriptors failed");
}

/* Reads reports until the last one. Returns false if it did not come in time. */
static bool follow(int fd, struct report *report)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ns(), end = now + SLOT_NS + CONNECT_NS, until;
	bool entered = false;
	int wait;

	stops_note();
	while (!report->done) {
		until = now + CHECK_NS;
		/* Also after the end: this program may have lacked the CPU. */
		wait = now < end ? CHECK_NS / 1000000 : 0;
		if (poll(&ready, 1, wait) > 0)
			read_report(fd, report);
		else if (!wait)
			break;
		now = now_ns();
		end += stops_lasted(until, now);
		if (!entered && report->step > ENTER) {
			entered = true;
			end = now + CONNECT_NS;
		}
	}
	return report->done;
}

/* Usually at once. Until then the next call would take it for blocked. */
static void wait_for_end(pid_t child)
{
	static const struct timespec retry = { .tv_nsec = 1000000 };
	uint64_t end = now_ns() + STALL_NS;

	while (!waitpid(child, NULL, WNOHANG) && now_ns() < end)
		nanosleep(&retry, NULL);
}

static const char *end_name(unsigned int flags)
{
	return flags & FLOWFD_BRIDGE_SOURCE ? "source" : "sink";
}

static const char *file_name(enum file file)
{
	static const char *const names[] = {
		[COUNTER_FILE] = "a counter of flowfd",
		[RING_FILE] = "a ring of flowfd",
		[EVENTFD_FILE] = "an eventfd of the kernel",
	};

	return names[file];
}

static _Noreturn void fail_to_enter(const struct report *report)
{
	switch (report->error) {
	case -EBUSY:
		crowd_print(&report->crowd, stderr, "flowfdctl: ");
		exit(EXIT_FAILURE);
	case -ETIMEDOUT:
		errx(EXIT_FAILURE, "the kernel did not answer about " SLOTS_FILE);
	default:
		errx(EXIT_FAILURE, SLOTS_FILE ": %s", strerror(-report->error));
	}
}

static _Noreturn void fail_to_find(const struct target *target, int error)
{
	switch (error) {
	case -ESRCH:
		errx(EXIT_FAILURE, "there is no process %d", target->pid);
	case -EINVAL:
	case -ENOENT:
		errx(EXIT_FAILURE,
		     "%d is a thread, and this kernel cannot take descriptors of one:"
		     " Linux 6.9 is needed",
		     target->pid);
	case -ENOSYS:
		errx(EXIT_FAILURE,
		     "this kernel has no pidfd_open(2), or forbids it here");
	default:
		errx(EXIT_FAILURE, "process %d: %s", target->pid, strerror(-error));
	}
}

static _Noreturn void fail_to_take(const struct target *target, int error)
{
	switch (error) {
	case -ESRCH:
		errx(EXIT_FAILURE, "process %d has ended", target->pid);
	case -EBADF:
		errx(EXIT_FAILURE, "process %d has no descriptor %d", target->pid,
		     target->fd);
	case -EPERM:
		errx(EXIT_FAILURE,
		     "this user may not take descriptors of process %d: that needs root,"
		     " or the permission to trace it (ptrace(2))",
		     target->pid);
	case -ENOSYS:
		errx(EXIT_FAILURE,
		     "this kernel has no pidfd_getfd(2), or forbids it here");
	default:
		errx(EXIT_FAILURE, "descriptor %d of process %d: %s", target->fd,
		     target->pid, strerror(-error));
	}
}

static _Noreturn void fail_to_check(const struct target *target,
				    const struct report *report)
{
	enum file wanted = report->at == COUNTER_TARGET ? COUNTER_FILE : EVENTFD_FILE;

	if (report->error == -EPROTO)
		errx(EXIT_FAILURE,
		     "%d:%d: flowfdctl " FLOWFD_VERSION " does not match the %s",
		     target->pid, target->fd,
		     report->file == EVENTFD_FILE ? "kernel" : "loaded module");
	if (report->file == wanted)
		errx(EXIT_FAILURE, "%d:%d: %s", target->pid, target->fd,
		     strerror(-report->error));
	if (report->file == OTHER_FILE)
		errx(EXIT_FAILURE, "%d:%d is not %s", target->pid, target->fd,
		     file_name(wanted));
	errx(EXIT_FAILURE, "%d:%d is %s, not %s", target->pid, target->fd,
	     file_name(report->file), file_name(wanted));
}

static _Noreturn void fail_if_busy(const struct report *report, unsigned int flags)
{
	enum value end = flags & FLOWFD_BRIDGE_SOURCE ? SOURCE : SINK;
	const char *name = end_name(flags);

	if (value_is_known(&report->counter, end))
		errx(EXIT_FAILURE, "counter %d has a %s already: eventfd %d",
		     (int)report->counter.id, name, (int)report->counter.value[end]);
	errx(EXIT_FAILURE, "eventfd %d is the %s of another counter already",
	     (int)report->eventfd, name);
}

static _Noreturn void fail_to_connect(const struct report *report, unsigned int flags)
{
	const char *name = end_name(flags);
	int id = (int)report->counter.id;

	switch (report->error) {
	case -EBADF:
		errx(EXIT_FAILURE, "counter %d is not open for %s here: it can get no %s",
		     id, flags & FLOWFD_BRIDGE_SOURCE ? "writing" : "reading", name);
	case -EBUSY:
		fail_if_busy(report, flags);
	case -EINVAL:
		errx(EXIT_FAILURE, "counter %d is a semaphore: it can have no sink", id);
	case -ELOOP:
		errx(EXIT_FAILURE,
		     "bridges would lead from counter %d back to it, or through more"
		     " than 16 counters",
		     id);
	case -ENOENT:
		errx(EXIT_FAILURE, "counter %d has no %s", id, name);
	case -ENOTTY:
		errx(EXIT_FAILURE,
		     "the loaded flowfd module is too old: it has no bridges");
	default:
		errx(EXIT_FAILURE, "counter %d: %s", id, strerror(-report->error));
	}
}

/* Ends the program with a message about what failed. */
static _Noreturn void fail(const struct report *report, const struct target *target,
			   unsigned int flags)
{
	if (report->step == START)
		errx(EXIT_FAILURE, "the process that takes descriptors " START_TEXT);
	if (report->step == ENTER)
		fail_to_enter(report);
	if (report->error == -ETIMEDOUT)
		errx(EXIT_FAILURE, "the kernel did not answer about process %d",
		     target->pid);
	switch (report->step) {
	case FIND:
		fail_to_find(target, report->error);
	case TAKE:
		fail_to_take(target, report->error);
	case CHECK:
		fail_to_check(target, report);
	default:
		fail_to_connect(report, flags);
	}
}

/**
 * connect_targets - make or remove a bridge
 * @counter: the counter
 * @eventfd: the eventfd; ignored with FLOWFD_BRIDGE_REMOVE
 * @flags: as for flowfd_bridge()
 *
 * Returns an exit status, or exits with a message.
 */
int connect_targets(const struct target *counter, const struct target *eventfd,
		    unsigned int flags)
{
	struct report report = { .step = START };
	const struct target *target;
	pid_t parent = getpid(), child;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		err(EXIT_FAILURE, "pipe");
	child = fork();
	if (child < 0)
		err(EXIT_FAILURE, "cannot create a process that takes descriptors");
	if (!child) {
		reports = ends[1];
		connect_as_child(parent, counter, eventfd, flags);
	}
	close(ends[1]);
	if (follow(ends[0], &report)) {
		wait_for_end(child);
	} else {
		kill(child, SIGKILL);
		report.error = -ETIMEDOUT;
	}
	crowd_warn(&report.crowd);
	target = report.at == COUNTER_TARGET ? counter : eventfd;
	if (report.error)
		fail(&report, target, flags);
	if (flags & FLOWFD_BRIDGE_REMOVE)
		printf("counter %d has no %s any more\n", (int)report.counter.id,
		       end_name(flags));
	else
		printf("counter %d has a %s: eventfd %d\n", (int)report.counter.id,
		       end_name(flags), (int)report.eventfd);
	return EXIT_SUCCESS;
}
