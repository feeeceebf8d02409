// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user without privileges has tasks that get hardly any processor time. One walks a long
 * wait queue: with PREEMPT_RT it is preempted while it has the queue's lock, and tasks of this
 * user that leave the queue wait for that. Others are preempted while they watch and close
 * files. Another user who watches and closes other files must not wait for any of them.
 */
#include "attack_user.h"

#include <sys/resource.h>

#define WATCHES 1500
#define PIPES 100
#define CLOSES 5000
#define CLOSES_MS 3000
/* A walk takes several times as long. */
#define CLOSE_NS 200000000

static int ends[2];

/* Another file of the pipe, at the end that is read. */
static int open_again(void)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static bool make_long_queue(void)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (pipe2(ends, O_NONBLOCK))
		return false;
	for (int i = 0; i < WATCHES; i++)
		if (epoll_ctl(ep, EPOLL_CTL_ADD, dup(ends[0]), &watched))
			return false;
	return true;
}

/* Threads that never end. */
static bool start(void *(*task)(void *), int count)
{
	pthread_t thread;

	while (count--)
		if (pthread_create(&thread, NULL, task, NULL))
			return false;
	return true;
}

static void *spin(void *arg)
{
	spin_ns(~0ULL / 2);
	return NULL;
}

/* Walks the queue. */
static void wake_readers(void)
{
	char byte;

	(void)!write(ends[1], "x", 1);
	(void)!read(ends[0], &byte, 1);
}

static void *walk(void *arg)
{
	for (;;)
		wake_readers();
	return NULL;
}

static void *walk_slowly(void *arg)
{
	if (setpriority(PRIO_PROCESS, 0, 19))
		_exit(4);
	return walk(arg);
}

/*
 * Removes a watch, and has one end with its file, which is one of several of the pipe. Sleeps
 * before each, so that walks go on meanwhile.
 */
static void *leave(void *arg)
{
	struct user_ring ring;
	int end;

	if (ring_open(&ring, 1))
		_exit(5);
	for (;;) {
		if (ring_add(&ring, ends[0], EPOLLIN, 0))
			_exit(6);
		sleep_ms(50);
		if (ring_del(&ring, ends[0]))
			_exit(7);
		end = open_again();
		if (ring_add(&ring, end, EPOLLIN, 0))
			_exit(8);
		sleep_ms(50);
		close(end);
	}
	return NULL;
}

static int leave_a_long_queue(void)
{
	if (!run_on(0) || !make_long_queue())
		return 1;
	if (!start(spin, 1) || !start(walk_slowly, 1) || !start(leave, 3))
		return 2;
	sleep_ms(ATTACK_MS);
	return 0;
}

/* From the addition of each of many pipes to its close: some share a lock with any other. */
static bool time_closes(struct user_ring *ring, __u64 *times)
{
	int pipes[PIPES][2];

	for (int i = 0; i < PIPES; i++)
		if (pipe(pipes[i]))
			return false;
	for (int i = 0; i < PIPES; i++) {
		times[i] = now_ns();
		if (ring_add(ring, pipes[i][0], EPOLLIN, 0) < 0)
			return false;
		close(pipes[i][0]);
		times[i] = now_ns() - times[i];
		close(pipes[i][1]);
	}
	return true;
}

static int close_quickly(void)
{
	__u64 times[CLOSES], end = ms_from_now(CLOSES_MS);
	struct user_ring ring;
	int n;

	if (!run_on(1) || ring_open(&ring, PIPES))
		return 1;
	for (n = 0; n < CLOSES && (!n || now_ns() < end); n += PIPES)
		if (!time_closes(&ring, times + n))
			return 2;
	qsort(times, n, sizeof(times[0]), by_number);
	printf("# %d closes: the longest took %llu us, the next %llu us\n", n,
	       times[n - 1] / 1000, times[n - 2] / 1000);
	fflush(stdout);
	return times[n - 2] < CLOSE_NS ? 0 : 3;
}

static void close_beside(struct __test_metadata *_metadata, FIXTURE_DATA(attack) *self,
			 int (*attack)(void))
{
	int status;
	pid_t child;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "it needs two processors");
	ASSERT_EQ(0, start_attack(self, attack));
	child = fork();
	if (!child) {
		become(OTHER);
		_exit(close_quickly());
	}
	waitpid(child, &status, 0);
	EXPECT_EQ(0, status);
	/* The attack has not failed. */
	EXPECT_EQ(0, waitpid(self->attacker, NULL, WNOHANG));
}

TEST_F_TIMEOUT(attack, closes_of_other_files, 120)
{
	close_beside(_metadata, self, leave_a_long_queue);
}

#define STARVED 64
#define SPINNING 40

/* Its mutexes, and those of fsnotify behind them, are points where the task is preempted. */
static void *watch_and_close(void *arg)
{
	struct user_ring ring;
	int pipes[2];

	if (ring_open(&ring, 1) || setpriority(PRIO_PROCESS, 0, 19))
		_exit(4);
	for (;;) {
		if (pipe(pipes) || ring_add(&ring, pipes[0], EPOLLIN, 0) < 0)
			_exit(5);
		close(pipes[0]);
		close(pipes[1]);
	}
	return NULL;
}

static int starve(void)
{
	if (!run_on(0) || !start(watch_and_close, STARVED))
		return 1;
	sleep_ms(ATTACK_MS);
	if (!start(spin, SPINNING))
		return 2;
	sleep_ms(ATTACK_MS);
	return 0;
}

TEST_F_TIMEOUT(attack, closes_beside_starved_ones, 120)
{
	close_beside(_metadata, self, starve);
}

#define OWN_WATCHES 256
#define OWN_CLOSES 5
#define WALKS 10

/* The time of the close of a file that is watched under many numbers, or 0. */
static __u64 time_own_close(struct user_ring *ring)
{
	int files[OWN_WATCHES];
	__u64 begin;

	for (int i = 0; i < OWN_WATCHES; i++) {
		files[i] = i ? dup(files[0]) : open_again();
		if (ring_add(ring, files[i], EPOLLIN, i))
			return 0;
	}
	begin = now_ns();
	for (int i = 0; i < OWN_WATCHES; i++)
		close(files[i]);
	return now_ns() - begin;
}

/* The best of some, as other programs can get the processor meanwhile. */
static int close_many_watches(void)
{
	const struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };
	__u64 begin, walk_ns, close_ns, best = ~0ULL;
	struct user_ring ring;

	if (setrlimit(RLIMIT_NOFILE, &limit) || !make_long_queue() ||
	    ring_open(&ring, OWN_WATCHES))
		return 1;
	begin = now_ns();
	for (int i = 0; i < WALKS; i++)
		wake_readers();
	walk_ns = (now_ns() - begin) / WALKS;
	if (!run_on(0) || !start(walk, 1) || !run_on(1))
		return 2;
	for (int i = 0; i < OWN_CLOSES; i++) {
		close_ns = time_own_close(&ring);
		if (!close_ns)
			return 3;
		best = close_ns < best ? close_ns : best;
	}
	printf("# the close of a file with %d watches: %llu us; a walk: %llu us\n", OWN_WATCHES,
	       best / 1000, walk_ns / 1000);
	fflush(stdout);
	return best < WALKS * walk_ns ? 0 : 4;
}

/*
 * The close of a file is in a read section of fsnotify, which keeps the closes of inotify
 * descriptors waiting: its watches must leave together, and not each after a walk.
 */
TEST(close_of_many_watches)
{
	int status;
	pid_t child;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "it needs two processors");
	child = fork();
	if (!child)
		_exit(close_many_watches());
	waitpid(child, &status, 0);
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
