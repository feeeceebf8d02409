// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slots of flowfdctl's child processes: how many there can be in all calls, and what
 * they know of one another. In a mount namespace with a /run of its own, as root.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tools/flowfdctl/look.h"

#define SECOND 1000000000ULL

/**
 * struct task - what a child process must do
 * @use: of its slot
 * @wait: how long it may wait for it
 * @at: where it then is
 * @blocked: when it is blocked there; 0: it does not say
 * @asked: a place about which it must ask
 */
struct task {
	enum slot_use use;
	uint64_t wait;
	pid_t at;
	uint64_t blocked;
	pid_t asked;
};

struct result {
	bool taken;
	bool has;
	struct crowd crowd;
	unsigned long steps;
};

static pid_t child[64];
static unsigned int children;

static _Noreturn void work(const struct task *task, int out)
{
	volatile unsigned long steps = 0;
	struct result result = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	result.taken = slot_take(task->use, now_ns() + task->wait, &steps, &result.crowd);
	result.has = slots_have(task->asked);
	result.steps = steps;
	if (result.taken && task->blocked)
		slot_at(task->at, task->blocked);
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

static void test_limit(void)
{
	struct result result;
	uint64_t start_ns;
	int told;

	tap_is(start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN }), SCAN_SLOTS,
	       "so many can scan");
	result = start((struct task){ .use = FOR_SCAN });
	tap_ok(!result.taken, "no more");
	tap_is(result.crowd.all, SCAN_SLOTS, "and they are counted");
	tap_is(result.crowd.blocked, 0, "none of them is blocked");
	end_last();
	tap_is(start_many(BRIDGE_SLOTS + 1, (struct task){ .use = FOR_BRIDGE }), BRIDGE_SLOTS,
	       "bridges have slots of their own");
	end_all();

	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN });
	told = begin((struct task){ .use = FOR_SCAN, .wait = 20 * SECOND });
	usleep(100000);
	kill(child[0], SIGKILL);
	result = result_of(told);
	tap_ok(result.taken && result.steps, "a process that waits gets a free slot");
	end_all();

	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN, .at = 77, .blocked = 1 });
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

static void test_places(void)
{
	start((struct task){ .use = FOR_SCAN, .at = 77, .blocked = 1 });
	start((struct task){ .use = FOR_SCAN, .at = 88, .blocked = now_ns() + 1000 * SECOND });
	start((struct task){ .use = FOR_BRIDGE, .at = 99, .blocked = 1 });
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
	start((struct task){ .use = FOR_SCAN, .at = AT_MODULE, .blocked = 1 });
	tap_ok(start((struct task){ .use = FOR_SCAN, .asked = AT_MODULE }).has, "the module");
	end_all();
}

static void test_scan(void)
{
	struct scan *scan;

	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN, .at = 77, .blocked = 1 });
	scan = scan_all(0);
	tap_is(scan->crowd.all, SCAN_SLOTS, "a scan finds too many");
	tap_ok(!scan->processes && !scan_is_complete(scan), "and inspects nothing");
	scan_free(scan);
	end_last();
	scan = scan_all(0);
	tap_ok(!scan->crowd.all && scan->processes, "a scan with a free slot");
	scan_free(scan);
	end_all();

	start_many(SCAN_SLOTS, (struct task){ .use = FOR_SCAN });
	end_later(child[0]);
	scan = scan_all(0);
	tap_ok(!scan->crowd.all && !scan->stuck && scan->processes,
	       "a scan waits for a slot, longer than a child may be blocked");
	tap_is(scan->finished, scan->processes, "and has all of its time");
	scan_free(scan);
	end_all();

	start((struct task){ .use = FOR_SCAN, .at = getpid(), .blocked = 1 });
	scan = scan_all(0);
	tap_is(scan->stuck, 1, "one process is left out");
	tap_is(scan->stuck_at, getpid(), "which is known");
	tap_is(scan->finished, scan->processes, "all others are inspected");
	scan_free(scan);
	start((struct task){ .use = FOR_SCAN, .at = AT_MODULE, .blocked = 1 });
	scan = scan_all(0);
	tap_is(scan->stuck, 2, "the module, too");
	scan_free(scan);
	end_all();
	start((struct task){ .use = FOR_SCAN, .at = AT_PROC, .blocked = 1 });
	scan = scan_all(0);
	tap_ok(scan->stuck == 1 && scan->stuck_at == AT_PROC && !scan->processes,
	       "/proc is left alone");
	scan_free(scan);
	end_all();
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
	if (unlink(SLOTS_FILE) || mount(NULL, "/run", NULL, MS_REMOUNT | MS_RDONLY, NULL))
		abort();
	tap_ok(!is_counted(), "not where no file can be made");
	if (mount(NULL, "/run", NULL, MS_REMOUNT, NULL) || seteuid(65534))
		abort();
	tap_ok(!is_counted(), "users other than root are not counted");
	if (seteuid(0))
		abort();
	tap_ok(stat(SLOTS_FILE, &st), "and have no file");
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
	test_places();
	test_scan();
	test_file();
	return tap_done();
}
