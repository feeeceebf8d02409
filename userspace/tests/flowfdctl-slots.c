// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slots of flowfdctl's child processes: how many there can be in all calls, and what
 * they know of one another. In a mount namespace with a /run of its own, as root.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/refuse.h"
#include "tests/tap.h"
#include "tools/flowfdctl/look.h"

#define SECOND 1000000000ULL
/* Of the machines that run host tests. */
#define PAGE 4096

/**
 * struct task - what a child process must do
 * @use: of its slot
 * @wait: how long it may wait for it
 * @at: where it then is
 * @blocked: when it is blocked there; 0: it does not say
 * @asked: a place about which it must ask
 * @last: it says that it was the last place
 */
struct task {
	enum slot_use use;
	uint64_t wait;
	pid_t at;
	uint64_t blocked;
	pid_t asked;
	bool last;
};

struct result {
	int error;
	bool taken;
	bool has;
	bool apart;
	struct crowd crowd;
	unsigned long steps;
};

/* What must happen before a child process takes a slot. */
static void (*prepare)(void);

static pid_t child[64];
static unsigned int children;

static _Noreturn void work(const struct task *task, int out)
{
	volatile unsigned long steps = 0;
	struct result result = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prepare)
		prepare();
	result.error = slot_take(task->use, now_ns() + task->wait, &steps, &result.crowd);
	result.taken = !result.error;
	result.apart = getsid(0) == getpid();
	result.steps = steps;
	if (result.taken && task->blocked)
		slot_at(task->at, task->blocked);
	result.has = slots_have(task->asked);
	if (task->last)
		slot_end();
	if (write(out, &result, sizeof(result)) != sizeof(result))
		abort();
	for (;;)
		pause();
}

/* A process that works, and keeps what it has until its end. Returns where it tells. */
static int begin(struct task task)
{
	int told[2];

	if (children == sizeof(child) / sizeof(*child) || pipe(told))
		abort();
	child[children] = fork();
	if (!child[children++])
		work(&task, told[1]);
	close(told[1]);
	return told[0];
}

static struct result result_of(int told)
{
	struct result result;

	if (read(told, &result, sizeof(result)) != sizeof(result))
		abort();
	close(told);
	return result;
}

static struct result start(struct task task)
{
	return result_of(begin(task));
}

/* As ps(1) shows it. */
static char state_of(pid_t pid)
{
	char name[32], text[256] = "";
	const char *state;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	fd = open(name, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) < 0)
		abort();
	close(fd);
	state = strrchr(text, ')');
	return state && state[1] ? state[2] : 0;
}

/* How many of @count processes get a slot. */
static unsigned int start_many(unsigned int count, struct task task)
{
	unsigned int taken = 0;

	while (count--)
		taken += start(task).taken;
	return taken;
}

static void end_last(void)
{
	kill(child[--children], SIGKILL);
	waitpid(child[children], NULL, 0);
}

/* Ends a process while this one does something else. */
static void end_later(pid_t pid)
{
	child[children] = fork();
	if (child[children++])
		return;
	usleep(2 * STALL_NS / 1000);
	kill(pid, SIGKILL);
	_exit(0);
}

static void end_all(void)
{
	while (children)
		end_last();
}

/* Blocked, but not for so long that others kill it. */
static struct task stuck(enum slot_use use, pid_t at)
{
	return (struct task){ .use = use, .at = at, .blocked = now_ns() };
}

/* What a call prints on standard error, and its exit status, when @prepare has run. */
static const char *message_of(void (*call)(void), int *status)
{
	static char text[1024];
	FILE *file = tmpfile();
	size_t length;
	pid_t pid = fork();

	if (!pid) {
		if (dup2(fileno(file), STDERR_FILENO) < 0)
			abort();
		if (prepare)
			prepare();
		call();
		_exit(0);
	}
	waitpid(pid, status, 0);
	*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
	rewind(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static bool fails_with(void (*call)(void), const char *wanted)
{
	int status;
	const char *text = message_of(call, &status), *own = strchr(text, ' ');

	if (status == EXIT_FAILURE && own && !strcmp(own + 1, wanted))
		return true;
	printf("# exit status %d: %s", status, text);
	return false;
}

static void call_scan(void)
{
	struct scan *scan;

	scan_free(scan_all(0));
	scan = scan_all(0);
	scan_remark(scan, stderr, "flowfdctl: ");
	exit(scan_is_complete(scan) ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void call_bridge(void)
{
	const struct target target = { .pid = 1 };

	connect_targets(&target, NULL, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE);
}

static void test_limit(void)
{
	struct result result;
	uint64_t start_ns;
	int told;

	result = start((struct task){ .use = FOR_SCAN });
	tap_ok(result.apart, "a process with a slot has no terminal that stops it");
	tap_is(start_many(SCAN_SLOTS - 1, (struct task){ .use = FOR_SCAN }), SCAN_SLOTS - 1,
	       "so many can scan");
	result = start((struct task){ .use = FOR_SCAN });
	tap_ok(!result.taken, "no more");
	tap_is(result.crowd.all, SCAN_SLOTS, "and they are counted");
	tap_is(result.crowd.blocked, 0, "none of them is blocked");
	tap_is(result.crowd.one, child[0], "one is named");
	end_last();
	tap_is(start_many(BRIDGE_SLOTS + 1, (struct task){ .use = FOR_BRIDGE }), BRIDGE_SLOTS,
	       "bridges have slots of their own");
	end_all();

	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN });
	told = begin((struct task){ .use = FOR_SCAN, .wait = 20 * SECOND });
	/* It runs until it waits. */
	while (state_of(child[children - 1]) != 'S')
		usleep(1000);
	kill(child[0], SIGKILL);
	result = result_of(told);
	tap_ok(result.taken && result.steps, "a process that waits gets a free slot");
	end_all();

	start_many(SCAN_SLOTS, stuck(FOR_SCAN, 77));
	start_ns = now_ns();
	result = start((struct task){ .use = FOR_SCAN, .wait = 60 * SECOND });
	tap_ok(!result.taken, "all are blocked");
	tap_is(result.crowd.blocked, SCAN_SLOTS, "which are counted");
	tap_ok(now_ns() - start_ns < 30 * SECOND, "nobody waits for them");
	end_all();
	tap_is(start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN }), SCAN_SLOTS,
	       "a process that has ended, has none");
	end_all();
}

/* As for lack of memory. */
static void refuse_locks(void)
{
	if (refuse_request(SYS_fcntl, F_OFD_SETLK, ENOLCK))
		abort();
}

static void test_no_locks(void)
{
	prepare = refuse_locks;
	tap_is(start((struct task){ .use = FOR_SCAN }).error, -ENOLCK, "no lock is possible");
	end_all();
	tap_ok(fails_with(call_scan, SLOTS_FILE ": No locks available\n"), "says a scan");
	tap_ok(fails_with(call_bridge, SLOTS_FILE ": No locks available\n"), "and a bridge");
	prepare = NULL;
}

static void stop(void)
{
	raise(SIGSTOP);
}

/* Each child of this process, before its first step. */
static void stop_children(void)
{
	if (pthread_atfork(NULL, NULL, stop))
		abort();
}

static void test_no_start(void)
{
	prepare = stop_children;
	tap_ok(fails_with(call_scan, "the process that reads /proc " START_TEXT
				     ": nothing was inspected\n"),
	       "a child that does not start");
	tap_ok(fails_with(call_bridge, "the process that takes descriptors " START_TEXT "\n"),
	       "one that makes a bridge");
	prepare = NULL;
}

/* Each child of this process waits for its end. */
static void wait_for_orphans(void)
{
	pid_t parent = getppid();

	kill(parent, SIGKILL);
	while (getppid() == parent)
		usleep(1000);
}

/* Whether the child of a call goes on without its parent. */
static bool goes_on(void (*call)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (pthread_atfork(NULL, NULL, wait_for_orphans))
			abort();
		call();
	}
	if (waitpid(pid, NULL, 0) != pid || waitpid(-1, &status, 0) < 0)
		abort();
	return !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_FAILURE;
}

static void test_no_parent(void)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		abort();
	tap_ok(!goes_on(call_scan), "no scan begins behind its call's end");
	tap_ok(!goes_on(call_bridge), "no bridge, either");
	if (prctl(PR_SET_CHILD_SUBREAPER, 0))
		abort();
}

static void test_places(void)
{
	start(stuck(FOR_SCAN, 77));
	start((struct task){ .use = FOR_SCAN, .at = 88, .blocked = now_ns() + 1000 * SECOND });
	start(stuck(FOR_BRIDGE, 99));
	tap_ok(start((struct task){ .use = FOR_SCAN, .asked = 77 }).has, "a process blocks");
	tap_ok(!start((struct task){ .use = FOR_SCAN, .asked = 88 }).has, "not yet");
	tap_ok(!start((struct task){ .use = FOR_SCAN, .asked = 99 }).has, "a bridge to it is");
	tap_ok(start((struct task){ .use = FOR_BRIDGE, .asked = 99 }).has, "for bridges");
	tap_ok(!start((struct task){ .use = FOR_BRIDGE, .asked = 77 }).has, "and for no scan");
	end_all();
	/* It takes the slot in which the first one was, and says nothing. */
	start((struct task){ .use = FOR_SCAN });
	tap_ok(!start((struct task){ .use = FOR_SCAN, .asked = 77 }).has,
	       "what an ended process said does not count");
	end_all();
	start(stuck(FOR_SCAN, AT_MODULE));
	tap_ok(start((struct task){ .use = FOR_SCAN, .asked = AT_MODULE }).has, "the module");
	end_all();
	start((struct task){ .use = FOR_BRIDGE, .at = 66, .last = true,
			     .blocked = now_ns() + 1000 * SECOND });
	tap_ok(start((struct task){ .use = FOR_BRIDGE, .asked = 66 }).has,
	       "a process that should end blocks at once");
	end_all();
}

/* Starts a process in a new PID namespace. */
static struct result start_elsewhere(struct task task)
{
	int here = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	struct result result;

	if (here < 0 || unshare(CLONE_NEWPID))
		abort();
	result = start(task);
	if (setns(here, CLONE_NEWPID) || close(here))
		abort();
	return result;
}

static void test_namespaces(void)
{
	struct task task = { .use = FOR_SCAN, .at = 77, .blocked = now_ns() };
	struct result result;

	start(task);
	tap_ok(!start_elsewhere((struct task){ .use = FOR_SCAN, .asked = 77 }).has,
	       "process IDs are not those of another PID namespace");
	end_all();
	start_elsewhere(task);
	tap_ok(!start((struct task){ .use = FOR_SCAN, .asked = 77 }).has, "the other way");
	end_last();
	task.blocked = now_ns();
	start_many(SCAN_SLOTS - 1, task);
	result = start((struct task){ .use = FOR_SCAN, .wait = 60 * SECOND });
	tap_is(result.crowd.blocked, SCAN_SLOTS, "all are blocked, wherever they are");
	tap_is(result.crowd.one, child[1], "and one of this namespace is named");
	result = start_elsewhere((struct task){ .use = FOR_SCAN });
	tap_is(result.crowd.one, 0, "or not");
	end_all();
}

/* Whether the last process was killed by another one. */
static bool was_killed(void)
{
	pid_t pid = child[children - 1];
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		abort();
	return info.si_pid == pid && info.si_status == SIGKILL;
}

/* Whether others learn that nobody is blocked there any more. */
static bool is_free(pid_t at)
{
	struct result result;
	int tries = 100;

	do {
		result = start((struct task){ .use = FOR_SCAN, .asked = at });
		end_last();
	} while (result.has && --tries);
	return tries;
}

/* It does not run, as if it were frozen with its call, which so cannot kill it. */
static void test_frozen(void)
{
	struct task task = { .use = FOR_SCAN, .at = AT_PROC, .blocked = 1 };

	start(task);
	kill(child[0], SIGSTOP);
	tap_ok(is_free(AT_PROC), "a process that does not run is in nobody's way");
	tap_ok(was_killed(), "it was killed");
	end_all();
	task.blocked = now_ns();
	start(task);
	start((struct task){ .use = FOR_SCAN });
	end_last();
	tap_ok(!was_killed(), "not before its own call has given up");
	end_all();
	task.blocked = 1;
	start_elsewhere(task);
	start((struct task){ .use = FOR_SCAN });
	end_last();
	tap_ok(!was_killed(), "nor one of another PID namespace");
	end_all();
	/* All at once: while they start, none kills another one. */
	task.blocked = now_ns() - 3 * SECOND;
	start_many(SCAN_SLOTS, task);
	usleep(2100000);
	tap_ok(start((struct task){ .use = FOR_SCAN, .wait = 60 * SECOND }).taken,
	       "a process that waits gets the slot of one that it killed");
	end_all();
	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN });
	usleep(6500000);
	tap_ok(start((struct task){ .use = FOR_SCAN, .wait = 60 * SECOND }).taken,
	       "also if that did not come to say where it is");
	end_all();
}

/*
 * A user can give a process the ID and the limit of a process that has ended, which its slot
 * still has, and start a program of root's in it.
 */
static void test_forged_owner(void)
{
	const struct rlimit taken = { 12345, 12345 };
	struct {
		pid_t at, owner;
		uint64_t blocked, taken;
	} slot = { .at = AT_PROC, .blocked = 1, .taken = taken.rlim_cur };
	int fd = open(SLOTS_FILE, O_RDWR | O_CLOEXEC);

	slot.owner = fork();
	if (!slot.owner) {
		setrlimit(RLIMIT_LOCKS, &taken);
		for (;;)
			pause();
	}
	usleep(100000);
	if (fd < 0 || pwrite(fd, &slot, sizeof(slot), 0) != sizeof(slot))
		abort();
	child[children++] = slot.owner;
	tap_ok(start((struct task){ .use = FOR_SCAN, .asked = AT_PROC }).has,
	       "it seems to be blocked");
	end_last();
	tap_ok(!was_killed(), "what has no lock is not killed");
	/* The slots are as before. */
	if (ftruncate(fd, 0))
		abort();
	close(fd);
	end_all();
}

/*
 * Memory that nobody can write to until @faults fills it. Not blocking: poll(2) reports an
 * error at once for one that blocks.
 */
static void *empty_page(int *faults)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register page = { .range.len = PAGE,
					.mode = UFFDIO_REGISTER_MODE_MISSING };
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page.range.start = (uintptr_t)memory;
	*faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (*faults < 0 || ioctl(*faults, UFFDIO_API, &api) ||
	    ioctl(*faults, UFFDIO_REGISTER, &page))
		return NULL;
	return memory;
}

static int epoll;

static void *wait_for_events(void *memory)
{
	epoll_wait(epoll, memory, 1, -1);
	return NULL;
}

/*
 * The last process that has an eventfd waits in its end for an epoll that another one
 * holds. Its locks can be gone by then.
 */
static void test_end(void)
{
	struct task task = { .use = FOR_BRIDGE, .at = 77, .blocked = now_ns() + 1000 * SECOND,
			     .last = true };
	int event = eventfd(1, 0), faults, tries = 1000;
	struct epoll_event ready = { .events = EPOLLIN };
	void *memory = empty_page(&faults);
	struct uffdio_zeropage fill = { .range = { (uintptr_t)memory, PAGE } };
	struct pollfd fault = { .fd = faults, .events = POLLIN };
	struct result result;
	pthread_t thread;

	if (!memory) {
		tap_skip("a process that cannot end", "it needs userfaultfd(2)");
		return;
	}
	epoll = epoll_create1(0);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, event, &ready) ||
	    pthread_create(&thread, NULL, wait_for_events, memory) ||
	    poll(&fault, 1, -1) != 1 || fault.revents != POLLIN)
		abort();
	start(task);
	close(event);
	kill(child[0], SIGKILL);
	while (state_of(child[0]) != 'D' && --tries)
		usleep(10000);
	tap_ok(tries, "a process cannot end");
	result = start((struct task){ .use = FOR_BRIDGE, .asked = 77 });
	tap_ok(result.has, "what it has said counts");
	tap_is(result.taken + start_many(BRIDGE_SLOTS, task), BRIDGE_SLOTS - 1,
	       "it has its slot");
	tap_is(start(task).crowd.one, child[0], "and is named");
	if (ioctl(faults, UFFDIO_ZEROPAGE, &fill) || pthread_join(thread, NULL))
		abort();
	close(faults);
	close(epoll);
	munmap(memory, PAGE);
	end_all();
	tap_is(start_many(BRIDGE_SLOTS, task), BRIDGE_SLOTS, "until it can");
	end_all();
}

/* In the middle of the first slot. */
static void limit_files(void)
{
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 10, 10 }))
		abort();
}

/* This process cannot lift the limit. */
static void limit_files_firmly(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		abort();
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	if (syscall(SYS_capset, &head, data))
		abort();
	limit_files();
}

static void test_limited_files(void)
{
	const struct task task = stuck(FOR_SCAN, 77);
	struct task asking = { .use = FOR_SCAN, .asked = 77 };

	prepare = limit_files_firmly;
	tap_is(start_many(2, task), 2, "RLIMIT_FSIZE ends no process");
	prepare = NULL;
	tap_ok(!start(asking).has, "nobody reads half of a slot");
	end_all();
	if (prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) != 1) {
		tap_skip("a higher RLIMIT_FSIZE", "root may not have it here");
		return;
	}
	prepare = limit_files;
	start(task);
	prepare = NULL;
	tap_ok(start(asking).has, "it does not count where it can be lifted");
	end_all();
}

static void test_scan(void)
{
	struct scan *scan;

	start_many(SCAN_SLOTS, stuck(FOR_SCAN, 77));
	scan = scan_all(0);
	tap_is(scan->crowd.all, SCAN_SLOTS, "a scan finds too many");
	tap_ok(!scan->processes && !scan_is_complete(scan), "and inspects nothing");
	scan_free(scan);
	end_last();
	scan = scan_all(0);
	tap_ok(!scan->crowd.all && scan->processes, "a scan with a free slot");
	scan_free(scan);
	end_all();

	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN, .at = 77,
					      .blocked = now_ns() + 1000 * SECOND });
	end_later(child[0]);
	scan = scan_all(0);
	tap_ok(!scan->crowd.all && !scan->stuck && scan->processes,
	       "a scan waits for a slot, longer than a child may be blocked");
	tap_is(scan->finished, scan->processes, "and has all of its time");
	scan_free(scan);
	end_all();

	start(stuck(FOR_SCAN, getpid()));
	scan = scan_all(0);
	tap_is(scan->stuck, 1, "one process is left out");
	tap_is(scan->stuck_at, getpid(), "which is known");
	tap_is(scan->finished, scan->processes, "all others are inspected");
	scan_free(scan);
	start(stuck(FOR_SCAN, AT_MODULE));
	scan = scan_all(0);
	tap_is(scan->stuck, 2, "the module, too");
	scan_free(scan);
	end_all();
	start(stuck(FOR_SCAN, AT_PROC));
	scan = scan_all(0);
	tap_ok(scan->stuck == 1 && scan->stuck_at == AT_PROC && !scan->processes,
	       "/proc is left alone");
	scan_free(scan);
	end_all();
}

/* Whether a call begins with this warning. */
static bool warns_of(void (*call)(void), const char *why)
{
	char wanted[256];
	int status;
	const char *text = message_of(call, &status), *own = strchr(text, ' ');

	snprintf(wanted, sizeof(wanted),
		 SLOTS_FILE ": %s: nothing limits how many processes calls of root leave"
			    " behind\n",
		 why);
	if (own && !strncmp(own + 1, wanted, strlen(wanted)) && !strstr(own + 2, SLOTS_FILE))
		return true;
	printf("# %s", text);
	return false;
}

/* Whether there is a limit. */
static bool is_counted(void)
{
	unsigned int taken = start_many(SCAN_SLOTS + 1, (struct task){ .use = FOR_SCAN });

	end_all();
	return taken == SCAN_SLOTS;
}

static void test_file(void)
{
	struct stat st;

	tap_ok(is_counted(), "root's processes are counted");
	tap_ok(!stat(SLOTS_FILE, &st) && st.st_mode == (S_IFREG | 0600),
	       "in a file that is root's alone");
	if (chmod(SLOTS_FILE, 0640))
		abort();
	tap_ok(!is_counted(), "not in one that others can read");
	if (chmod(SLOTS_FILE, 0600) || chown(SLOTS_FILE, 65534, 0))
		abort();
	tap_ok(!is_counted(), "not in one of another user");
	if (unlink(SLOTS_FILE) || symlink("/run/other", SLOTS_FILE))
		abort();
	tap_ok(!is_counted(), "not behind a link");
	tap_ok(stat("/run/other", &st), "which is not followed");
	if (unlink(SLOTS_FILE) || mkfifo(SLOTS_FILE, 0600))
		abort();
	tap_ok(!is_counted(), "not in a pipe");
	tap_ok(warns_of(call_scan, "not a file of root's alone"), "which a scan says");
	if (unlink(SLOTS_FILE) || mount(NULL, "/run", NULL, MS_REMOUNT | MS_RDONLY, NULL))
		abort();
	tap_ok(warns_of(call_scan, "Read-only file system"), "a scan says why, once");
	tap_ok(warns_of(call_bridge, "Read-only file system"), "a bridge, too");
	tap_ok(!is_counted(), "not where no file can be made");
	if (mount(NULL, "/run", NULL, MS_REMOUNT, NULL) || seteuid(65534))
		abort();
	tap_ok(!is_counted(), "users other than root are not counted");
	if (seteuid(0))
		abort();
	tap_ok(stat(SLOTS_FILE, &st), "and have no file");
	if (setreuid(65534, 0))
		abort();
	tap_ok(!is_counted(), "nor are processes that a user can stop");
	if (setreuid(0, 0))
		abort();
}

int main(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("run", "/run", "tmpfs", 0, "mode=755")) {
		tap_skip("slots", "it needs root, and mounts");
		return tap_done();
	}
	test_limit();
	test_no_locks();
	test_no_start();
	test_no_parent();
	test_places();
	test_namespaces();
	test_frozen();
	test_forged_owner();
	test_end();
	test_limited_files();
	test_scan();
	test_file();
	return tap_done();
}
