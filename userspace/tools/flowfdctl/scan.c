// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every descriptor of flowfd that /proc shows. A child looks: what it finds is in
 * memory that is shared with it. If a file of /proc keeps it, it is left behind, and
 * another child goes on, without the process of that file. We ourselves look nothing
 * up in /proc, /sys or /dev: any user can keep these for ever.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "look.h"

/* For a look at all processes, and what is left of that when it is waited for. */
#define LOOK_NS 4000000000ULL
#define GRACE_NS 500000000ULL
/* So long nothing can be done only if the kernel does not answer ... */
#define STALL_NS 1000000000ULL
/* ... which is seen to so often. If that took longer by so much, we were stopped. */
#define CHECK_NS 100000000ULL
#define LATE_NS 500000000ULL
/* Until a process that was killed does nothing any more, if it can at all. */
#define KILL_MS 50

/* Time of the CPU that a process got. */
static uint64_t cpu_ns(pid_t child)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Does it wait for nothing but the CPU? Its own descriptor says so. */
static bool can_run(const struct view *view, int handle)
{
	int fd = pidfd_getfd(handle, view->stat, 0);
	char text[1024] = "";
	const char *rest;

	if (fd < 0)
		return false;
	text_read_on(fd, text, sizeof(text));
	close(fd);
	rest = strrchr(text, ')');
	return rest && !strncmp(rest, ") R", 3);
}

/* Returns false if it gets no further, though it got the CPU, or has no time left. */
static bool has_ended(const struct view *view, pid_t child, int handle)
{
	struct pollfd ended = {.fd = handle, .events = POLLIN};
	uint64_t now = now_ns(), end = view->end + GRACE_NS, until, late;
	uint64_t moved = now, cpu = 0;
	unsigned long steps = view->steps;

	while (now < end) {
		until = now + CHECK_NS < end ? now + CHECK_NS : end;
		if (poll(&ended, 1, (until - now) / 1000000 + 1) > 0)
			return true;
		now = now_ns();
		late = now > until ? now - until : 0;
		/* By Ctrl-Z, for instance, as the child was. */
		if (late > LATE_NS)
			end += late;
		if (late > LATE_NS || view->steps != steps) {
			moved = now;
			cpu = cpu_ns(child);
			steps = view->steps;
		} else if (now - moved >= STALL_NS &&
			   (!can_run(view, handle) ||
			    cpu_ns(child) - cpu >= STALL_NS)) {
			break;
		}
	}
	return false;
}

/* Returns whether the child did all that it had to do. */
static bool end_child(struct view *view, pid_t child, int handle)
{
	struct pollfd end = {.fd = handle, .events = POLLIN};
	pid_t ended;
	int status;

	if (!has_ended(view, child, handle)) {
		kill(child, SIGKILL);
		poll(&end, 1, KILL_MS);
	}
	ended = waitpid(child, &status, WNOHANG);
	if (ended < 0)
		err(EXIT_FAILURE, "a process that looks");
	if (!ended) {
		left_add(child, view->current);
		return false;
	}
	if (view->error) {
		errno = view->error;
		err(EXIT_FAILURE, "/proc");
	}
	if (WIFEXITED(status) && WEXITSTATUS(status))
		errx(EXIT_FAILURE, "no look was possible");
	return WIFEXITED(status);
}

/*
 * It can be left behind, and then has what it has open for as long as the kernel
 * likes: a pipe that standard output goes to must not be among that.
 */
static _Noreturn void look_as_child(struct view *view)
{
	int null;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	closefrom(0);
	/* The lowest numbers: standard input, which nobody reads, output and error. */
	view->stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	do {
		null = open("/dev/null", O_RDWR);
	} while (null >= 0 && null < STDERR_FILENO);
	processes_look(view);
	_exit(EXIT_SUCCESS);
}

/* Returns false if a process kept whoever looked at it. */
static bool look_elsewhere(struct view *view)
{
	pid_t child;
	bool done;
	int handle;

	view->current = AT_PROC;
	view->stat = -1;
	child = fork();
	if (!child)
		look_as_child(view);
	/* Not by ourselves: a look may never end. */
	if (child < 0)
		err(EXIT_FAILURE, "no process can be made to look with");
	handle = pidfd_open(child, 0);
	done = end_child(view, child, handle);
	if (handle >= 0)
		close(handle);
	return done;
}

static void look(struct view *view)
{
	left_end();
	view->scan->stuck_at = left_at();
	view->scan->stuck = left_count();
	view->asked = left_has(AT_MODULE);
	while (left_count() < LEFT_MAX && !left_has(AT_PROC) &&
	       !look_elsewhere(view)) {
		view->scan->stuck++;
		view->scan->stuck_at = view->current;
		if (!processes_skip(view))
			break;
	}
}

static void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		err(EXIT_FAILURE, "memory");
	return memory;
}

/* Also what a process that was left behind has of it. */
static void free_shared(void *memory, size_t size)
{
	madvise(memory, size, MADV_REMOVE);
	munmap(memory, size);
}

static int compare(const void *left, const void *right)
{
	const struct descriptor *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->fd > b->fd) - (a->fd < b->fd);
}

/**
 * scan_all - look at every process
 * @watches: also for the files that rings watch
 *
 * Returns what was found, to be freed by scan_free().
 */
struct scan *scan_all(bool watches)
{
	struct view *view = shared_memory(sizeof(*view));
	struct scan *scan = shared_memory(sizeof(*scan));

	view->scan = scan;
	view->watches = watches;
	view->end = now_ns() + LOOK_NS;
	look(view);
	free_shared(view, sizeof(*view));
	qsort(scan->descriptor,
	      __atomic_load_n(&scan->count, __ATOMIC_ACQUIRE),
	      sizeof(*scan->descriptor), compare);
	return scan;
}

void scan_free(struct scan *scan)
{
	free_shared(scan, sizeof(*scan));
}
