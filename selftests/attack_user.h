/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An attack by a user without privileges, and the work of another user beside it. The
 * attack tests share it.
 */
#ifndef ATTACK_USER_H
#define ATTACK_USER_H

#include "ring_user.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ATTACKER 54401
#define OTHER 54402
#define LOCKED_PAGES 256
#define DESCRIPTORS 4096

/* How long the other user works while an attack is running. */
#define ATTACK_MS 1500

static inline void become(uid_t uid)
{
	struct rlimit memlock = { LOCKED_PAGES * PAGE, LOCKED_PAGES * PAGE };
	struct rlimit files = { DESCRIPTORS, DESCRIPTORS };

	if (setrlimit(RLIMIT_MEMLOCK, &memlock) ||
	    setrlimit(RLIMIT_NOFILE, &files) || setgid(uid) || setuid(uid))
		_exit(100);
	/* setuid() cleared the parent-death signal. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* For qsort(), of times. */
static inline int by_number(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* In percent: how much of its processor a task without rest gets. */
static inline int share_of_processor(void)
{
	__u64 start = now_ns(), used = thread_ns();

	spin_ns(ATTACK_MS * 1000000ULL);
	return 100 * (thread_ns() - used) / (now_ns() - start);
}

/* Processor time of kernel threads that did work of the module last, by their priority. */
struct worker_ticks {
	unsigned long usual;
	unsigned long urgent;
};

/* A worker's name has the workqueue of its last item; a rescuer has that, cut off. */
static inline void add_worker_ticks(struct worker_ticks *ticks, const char *stat)
{
	const char *name = strstr(stat, "flowf"), *end = strrchr(stat, ')');
	unsigned long user, kernel, flags;
	const unsigned long kernel_thread = 0x00200000;
	long nice;

	if (name && end && name < end &&
	    sscanf(end, ") %*c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %lu %lu %*d %*d %*d %ld",
		   &flags, &user, &kernel, &nice) == 4 && flags & kernel_thread)
		*(nice < 0 ? &ticks->urgent : &ticks->usual) += user + kernel;
}

static inline struct worker_ticks ticks_of_workers(void)
{
	struct worker_ticks ticks = { 0 };
	DIR *proc = opendir("/proc");
	struct dirent *task;

	while (proc && (task = readdir(proc))) {
		char path[300], line[500];
		FILE *stat;

		snprintf(path, sizeof(path), "/proc/%s/stat", task->d_name);
		stat = fopen(path, "r");
		if (!stat)
			continue;
		if (fgets(line, sizeof(line), stat))
			add_worker_ticks(&ticks, line);
		fclose(stat);
	}
	if (proc)
		closedir(proc);
	return ticks;
}

/* The other user's work: its own counter, ring and mapping, and one event. */
static inline int work_once(void)
{
	struct ring_event event;
	struct user_ring ring;
	int counter = open_counter(CREATED, 0, EFD_NONBLOCK);

	if (counter < 0 || ring_open(&ring, 16))
		return 1;
	if (ring_add(&ring, counter, EPOLLIN, 7) || add(counter, 1) != 8 ||
	    ring_wait_ms(&ring, 1, PATIENCE_MS) != 1)
		return 2;
	if (!ring_take(&ring, &event) || event.data != 7)
		return 3;
	ring_close(&ring);
	close(counter);
	return 0;
}

/* How often the work was done within this time, or a negative number: its error. */
static inline long work(unsigned int ms)
{
	__u64 end = ms_from_now(ms);
	int fds[2], status;
	long done = 0;
	pid_t child;

	if (pipe(fds))
		return -100;
	child = fork();
	if (!child) {
		int failed = 0;

		become(OTHER);
		/* At least once, even on a busy machine. */
		do {
			failed = work_once();
			done++;
		} while (!failed && now_ns() < end);
		if (write(fds[1], &done, sizeof(done)) != sizeof(done))
			_exit(99);
		_exit(failed);
	}
	close(fds[1]);
	(void)!read(fds[0], &done, sizeof(done));
	close(fds[0]);
	waitpid(child, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status) ?
		done : -WEXITSTATUS(status) - 1;
}

FIXTURE(attack)
{
	long users;
	pid_t attacker;
	int answer[2];
};

FIXTURE_SETUP(attack)
{
	self->users = module_users();
	ASSERT_LE(0, self->users);
	ASSERT_EQ(0, pipe2(self->answer, O_CLOEXEC));
}

/* Everything must be released, and the other user can work. */
FIXTURE_TEARDOWN(attack)
{
	__u64 end = ms_from_now(3 * PATIENCE_MS);

	/* 0 after a test that was skipped. */
	if (self->attacker > 0) {
		kill(self->attacker, SIGKILL);
		waitpid(self->attacker, NULL, 0);
	}
	while (module_users() != self->users && now_ns() < end)
		sleep_ms(10);
	EXPECT_EQ(self->users, module_users());
	EXPECT_LT(0, work(100));
}

static int answer_to;

/* Reports that an attack has begun that never ends by itself. */
static inline void begun(int result)
{
	(void)!write(answer_to, &result, sizeof(result));
}

/*
 * Returns the attack's result; 0: it took all there is. It then holds that or goes on.
 */
static inline int start_attack(FIXTURE_DATA(attack) *self, int (*attack)(void))
{
	int result = -1;

	self->attacker = fork();
	if (!self->attacker) {
		answer_to = self->answer[1];
		become(ATTACKER);
		begun(attack());
		for (;;)
			pause();
	}
	close(self->answer[1]);
	(void)!read(self->answer[0], &result, sizeof(result));
	return result;
}

/* A test: another user can work beside this attack. */
#define ATTACK(name, attack_function)                              \
	TEST_F(attack, name)                                       \
	{                                                          \
		ASSERT_EQ(0, start_attack(self, attack_function)); \
		EXPECT_LT(0, work(ATTACK_MS));                     \
	}

#endif /* ATTACK_USER_H */
