// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every descriptor of flowfd that /proc shows. A child process reads /proc, and stores
 * its results in shared memory. If a file of /proc blocks it, it is left behind, and
 * another child continues without the process of that file. The parent opens
 * no file and looks up no name: any user can block that for ever.
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

/* Time for a scan of all processes, and for waiting for the child that does it. */
#define LOOK_NS	 4000000000ULL
#define GRACE_NS 500000000ULL
/* Time for a killed child to end; a blocked one cannot. */
#define KILL_MS 50

/* CPU time of a process. */
static uint64_t cpu_ns(pid_t child)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/**
 * child_can_run - whether a child waits for nothing but the CPU
 * @handle: pidfd of the child
 * @stat: its descriptor of its own /proc/PID/stat
 */
bool child_can_run(int handle, int stat)
{
	int fd = pidfd_getfd(handle, stat, 0);
	char text[1024] = "";
	const char *rest;

	if (fd < 0)
		return false;
	/* The file position is the child's, and stays where a read leaves it. */
	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		*text = '\0';
	close(fd);
	rest = strrchr(text, ')');
	return rest && !strncmp(rest, ") R", 3);
}

/* Returns false if the child is blocked or out of time. */
static bool has_ended(const struct view *view, pid_t child, int handle)
{
	struct pollfd ended = { .fd = handle, .events = POLLIN };
	uint64_t now = now_ns(), moved = now, cpu = 0, stopped = 0, until, late;
	unsigned long steps = view->steps;

	while (now < view->end + GRACE_NS + stopped) {
		until = now + CHECK_NS;
		if (poll(&ended, 1, CHECK_NS / 1000000) > 0)
			return true;
		now = now_ns();
		late = stops_lasted(until, now);
		stopped += late;
		if (late || view->steps != steps) {
			moved = now;
			cpu = cpu_ns(child);
			steps = view->steps;
		} else if (now - moved >= STALL_NS &&
			   (!child_can_run(handle, view->stat) ||
			    cpu_ns(child) - cpu >= STALL_NS)) {
			break;
		}
	}
	return false;
}

/* Returns whether the child has ended by itself. */
static bool end_child(struct view *view, pid_t child, int handle)
{
	struct pollfd end = { .fd = handle, .events = POLLIN };
	pid_t ended;
	int status;

	if (!has_ended(view, child, handle)) {
		kill(child, SIGKILL);
		poll(&end, 1, KILL_MS);
	}
	ended = waitpid(child, &status, WNOHANG);
	if (ended < 0)
		err(EXIT_FAILURE, "the process that reads /proc");
	if (!ended) {
		left_add(child, view->current);
		return false;
	}
	if (view->error) {
		errno = view->error;
		err(EXIT_FAILURE, "%s", view->current == AT_SLOTS ? SLOTS_FILE : "/proc");
	}
	if (WIFEXITED(status) && WEXITSTATUS(status))
		errx(EXIT_FAILURE, "the process that reads /proc failed");
	return WIFEXITED(status);
}

/* Waiting for a slot does not shorten the scan. */
static bool take_slot(struct view *view)
{
	uint64_t start = now_ns(), waited;
	int error;

	view->end += SLOT_NS;
	error = slot_take(FOR_SCAN, start + SLOT_NS - view->waited, &view->steps,
			  &view->scan->crowd);
	waited = now_ns() - start;
	view->end -= SLOT_NS - waited;
	view->waited += waited;
	if (error && error != -EBUSY)
		view->error = -error;
	return !error;
}

/* child_begin - let a child process end with its parent, which may have ended already */
void child_begin(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
}

/*
 * A child that is left behind keeps its descriptors open for as long as it is blocked:
 * a pipe that standard output goes to must not be among them.
 */
static _Noreturn void look_as_child(struct view *view, pid_t parent)
{
	int null;

	child_begin(parent);
	closefrom(0);
	view->current = AT_SLOTS;
	if (!take_slot(view))
		_exit(EXIT_SUCCESS);
	processes_at(view, AT_PROC);
	do {
		null = open("/dev/null", O_RDWR);
	} while (null >= 0 && null < STDERR_FILENO);
	if (!slots_have(AT_PROC))
		view->stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	processes_look(view);
	_exit(EXIT_SUCCESS);
}

/* Returns false if a process blocked the child that inspected it. */
static bool look_elsewhere(struct view *view)
{
	pid_t parent = getpid(), child;
	bool done;
	int handle;

	view->current = AT_START;
	view->stat = -1;
	child = fork();
	if (!child)
		look_as_child(view, parent);
	/* This process must not scan in its place: it could block for ever. */
	if (child < 0)
		err(EXIT_FAILURE, "cannot create a process that reads /proc");
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
	while (left_count() < LEFT_MAX && !left_has(AT_PROC) && !left_has(AT_SLOTS) &&
	       !left_has(AT_START) && !look_elsewhere(view)) {
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

/* A child that was left behind still maps the memory: removes its pages, too. */
static void free_shared(void *memory, size_t size)
{
	madvise(memory, size, MADV_REMOVE);
	munmap(memory, size);
}

static int compare_eventfds(const void *left, const void *right)
{
	const struct eventfd *a = left, *b = right;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->fd > b->fd) - (a->fd < b->fd);
}

static int compare(const void *left, const void *right)
{
	const struct descriptor *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->fd > b->fd) - (a->fd < b->fd);
}

/**
 * scan_all - find all descriptors of flowfd in /proc
 * @also: SCAN_* bits
 *
 * Returns a scan that the caller must free with scan_free(). Exits on errors.
 */
struct scan *scan_all(unsigned int also)
{
	struct view *view = shared_memory(sizeof(*view));
	struct scan *scan = shared_memory(sizeof(*scan));

	stops_note();
	view->scan = scan;
	view->also = also;
	view->end = now_ns() + LOOK_NS;
	look(view);
	crowd_warn(&scan->crowd);
	free_shared(view, sizeof(*view));
	qsort(scan->descriptor, __atomic_load_n(&scan->count, __ATOMIC_ACQUIRE),
	      sizeof(*scan->descriptor), compare);
	qsort(scan->eventfd, __atomic_load_n(&scan->eventfds, __ATOMIC_ACQUIRE),
	      sizeof(*scan->eventfd), compare_eventfds);
	return scan;
}

void scan_free(struct scan *scan)
{
	free_shared(scan, sizeof(*scan));
}
