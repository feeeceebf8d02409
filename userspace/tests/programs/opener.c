// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a library by dlopen(3), for itself alone, and uses it:
 *   constructor LIBRARY   reads what its constructor made and submitted; gives up after
 *                         10 seconds, as a deadlocked thread waits for ever
 *   foreign LIBRARY       makes it call its functions with the names of others
 *   closed LIBRARY        calls its io_submit() by that name, closes it, and calls again
 *   locked LIBRARY        calls its io_submit(), and again while another thread is in
 *                         dl_iterate_phdr(3), whose lock a fork(2) would leave locked
 *   uring LIBRARY         makes it call liburing, with a file that is not an io_uring
 * Any more libraries are opened before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/io_uring.h>

static int read_made(void *library)
{
	int *fd = dlsym(library, "constructor_fd");
	long *submitted = dlsym(library, "constructor_submitted");
	uint64_t count;

	if (!fd || !submitted || read(*fd, &count, sizeof(count)) != sizeof(count))
		return EXIT_FAILURE;
	printf("read %d, io_submit %ld\n", (int)count, *submitted);
	return EXIT_SUCCESS;
}

static int call_foreign(void *library)
{
	void (*call)(void) = dlsym(library, "foreign_call");

	if (!call)
		return EXIT_FAILURE;
	call();
	return EXIT_SUCCESS;
}

/* Only the shim has it when the program starts. */
long io_submit(long a, long b, long c, long d, long e, long f) __attribute__((weak));

/* One place, where a function is found again; volatile: a tail call would not return. */
static __attribute__((noinline)) void submit(void)
{
	volatile long ret = io_submit(1, 2, 3, 4, 5, 6);

	printf("io_submit %ld\n", ret);
}

/* The second is a system call. */
static int call_closed(void *library)
{
	for (int i = 0; i < 2; i++) {
		submit();
		if (i == 0)
			dlclose(library);
	}
	return EXIT_SUCCESS;
}

static sem_t is_locked, may_unlock;

static int hold_lock(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size, (void)data;
	sem_post(&is_locked);
	sem_wait(&may_unlock);
	return 1;
}

static void *lock(void *argument)
{
	dl_iterate_phdr(hold_lock, argument);
	return NULL;
}

static int call_locked(void)
{
	pthread_t thread;

	sem_init(&is_locked, 0, 0);
	sem_init(&may_unlock, 0, 0);
	for (int i = 0; i < 2; i++) {
		submit();
		if (i == 0 && pthread_create(&thread, NULL, lock, NULL) == 0)
			sem_wait(&is_locked);
	}
	sem_post(&may_unlock);
	return pthread_join(thread, NULL);
}

/* Larger than a struct io_uring; all 0, including the descriptor in it. */
static int use_uring(void *library)
{
	int (*use)(void *uring, int fd) = dlsym(library, "uring_use");
	static long uring[128];
	int fd = -1;
	int ret;

	if (!use)
		return EXIT_FAILURE;
	ret = use(uring, fd);
	if (syscall(SYS_io_uring_register, 0, IORING_REGISTER_EVENTFD, &fd,
		    1) == -1 && ret == -errno)
		puts("as by syscall(2)");
	else
		printf("%s\n", strerror(-ret));
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	void *library;

	alarm(10);
	for (int i = 3; i < argc; i++)
		dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
	library = argc >= 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "opener: wrong arguments, or %s\n", dlerror());
		return EXIT_FAILURE;
	}
	if (strcmp(argv[1], "constructor") == 0)
		return read_made(library);
	if (strcmp(argv[1], "foreign") == 0)
		return call_foreign(library);
	if (strcmp(argv[1], "closed") == 0)
		return call_closed(library);
	if (strcmp(argv[1], "locked") == 0)
		return call_locked();
	if (strcmp(argv[1], "uring") == 0)
		return use_uring(library);
	return EXIT_FAILURE;
}
