// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract of eventfd(2) that flowfd-run must keep. Run alone it tests the system,
 * under the shim it tests the shim, with the module and without.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

#define ERRNO_BEFORE 4711

#define THREADS 4
#define ROUNDS 500

/* Entries of .preinit_array run before the constructors of all libraries. */
static int early_fd = -1;

static void make_early(void)
{
	early_fd = eventfd(6, EFD_CLOEXEC);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const early)(void) = make_early;

static uint64_t take(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static int open_files(void)
{
	int open = 0;

	for (int fd = 0; fd < 256; fd++)
		open += fcntl(fd, F_GETFD) >= 0;
	return open;
}

static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static void test_early(void)
{
	tap_ok(early_fd >= 0, "made before any constructor");
	tap_is(take(early_fd), 6, "and holds its count");
	close(early_fd);
}

static void test_flags(void)
{
	int free_fd = lowest_free();
	int fd;

	errno = ERRNO_BEFORE;
	fd = eventfd(5, 0);
	tap_is(errno, ERRNO_BEFORE, "success leaves errno alone");
	tap_is(fd, free_fd, "lowest descriptor");
	tap_is(fcntl(fd, F_GETFD), 0, "not close-on-exec");
	tap_is(fcntl(fd, F_GETFL), O_RDWR, "blocking");
	tap_is(take(fd), 5, "initial count");
	close(fd);

	fd = eventfd(0, EFD_CLOEXEC);
	tap_is(fd, free_fd, "lowest descriptor again");
	tap_is(fcntl(fd, F_GETFD), FD_CLOEXEC, "close-on-exec");
	tap_is(fcntl(fd, F_GETFL), O_RDWR, "blocking");
	close(fd);

	fd = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
	tap_is(fcntl(fd, F_GETFD), 0, "not close-on-exec");
	tap_is(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK, "non-blocking");
	tap_is(take(fd), 1, "semaphore");
	tap_is(take(fd), 1, "semaphore");
	tap_is(take(fd), 1, "semaphore");
	tap_is(take(fd), 0, "semaphore at zero");
	close(fd);

	fd = eventfd(UINT_MAX, EFD_CLOEXEC | EFD_NONBLOCK);
	tap_is(take(fd), UINT_MAX, "highest initial count");
	close(fd);
}

static void test_gap(void)
{
	int first = eventfd(0, 0);
	int second = eventfd(0, 0);
	int third = eventfd(0, 0);

	tap_is(second, first + 1, "next descriptor");
	close(first);
	tap_is(eventfd(0, EFD_CLOEXEC), first, "fills a gap of one");
	close(first);
	close(second);
	tap_is(eventfd(0, EFD_CLOEXEC), first, "begins a gap of two");
	tap_is(eventfd(0, EFD_CLOEXEC), second, "ends a gap of two");
	close(first);
	close(second);
	close(third);
}

static void test_bad_flags(void)
{
	int before = open_files();

	errno = 0;
	tap_is(eventfd(0, 2), -1, "unknown flag");
	tap_is(errno, EINVAL, "is EINVAL");
	tap_is(open_files(), before, "and opens nothing");
}

/* With @room descriptors left, exactly @room eventfds can be made. */
static void test_full_table(int room)
{
	int before = open_files();
	struct rlimit limit;
	rlim_t all;
	int fds[4];

	getrlimit(RLIMIT_NOFILE, &limit);
	all = limit.rlim_cur;
	limit.rlim_cur = lowest_free() + room;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i <= room; i++) {
		errno = ERRNO_BEFORE;
		fds[i] = eventfd(i, EFD_CLOEXEC);
		tap_is(errno, i < room ? ERRNO_BEFORE : EMFILE,
		       i < room ? "room left" : "EMFILE");
	}
	tap_is(open_files(), before + room, "nothing leaked");
	for (int i = 0; i < room; i++)
		close(fds[i]);
	limit.rlim_cur = all;
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_is(open_files(), before, "all closed");
}

static void test_fork(void)
{
	int status = -1;
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fork() == 0) {
		uint64_t value = 9;
		int own = eventfd(1, EFD_CLOEXEC);

		if (own != fd + 1 || take(own) != 1)
			_exit(1);
		_exit(write(fd, &value, sizeof(value)) != sizeof(value));
	}
	wait(&status);
	tap_is(status, 0, "a child makes its own");
	tap_is(take(fd), 9, "and writes to the parent's");
	close(fd);
}

static void *make_many(void *argument)
{
	intptr_t wrong = 0;

	(void)argument;
	for (int i = 0; i < ROUNDS; i++) {
		int fd = eventfd(3, 0);

		if (take(fd) != 3)
			wrong++;
		if (close(fd) < 0)
			wrong++;
	}
	return (void *)wrong;
}

static void test_threads(void)
{
	pthread_t threads[THREADS];
	int before = open_files();
	intptr_t wrong = 0;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, make_many, NULL);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		wrong += (intptr_t)result;
	}
	tap_is(wrong, 0, "threads make their own at the same time");
	tap_is(open_files(), before, "and leak nothing");
}

static volatile sig_atomic_t handler_fd = -1;

static void on_signal(int number)
{
	(void)number;
	handler_fd = eventfd(4, 0);
}

static void test_signal_handler(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	tap_is(take(handler_fd), 4, "made in a signal handler");
	close(handler_fd);
}

int main(void)
{
	int before = open_files();

	alarm(60); /* A wrong call may also wait for ever. */
	test_early();
	test_flags();
	test_gap();
	test_bad_flags();
	for (int room = 0; room < 4; room++)
		test_full_table(room);
	test_fork();
	test_threads();
	test_signal_handler();
	tap_is(open_files(), before - 1, "nothing stays open");
	return tap_done();
}
