// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a library by dlopen(3), for itself alone, and uses it:
 *   constructor LIBRARY   reads what its constructor made; gives up after 10 seconds, as
 *                         a deadlocked thread waits for ever
 *   foreign LIBRARY       makes it call its functions with the names of others
 *   uring LIBRARY         makes it call liburing, with a file that is not an io_uring
 *   forked LIBRARY        makes threads call libaio while the process forks; each child
 *                         does so as well
 * Any more libraries are opened before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/io_uring.h>

static int register_at(int ring, unsigned int opcode)
{
	int fd = -1;

	return syscall(SYS_io_uring_register, ring, opcode, &fd, 1) ? -errno : 0;
}

/* What liburing says of an io_uring of which all is 0. */
static int register_none(void)
{
	return register_at(0, IORING_REGISTER_EVENTFD);
}

static int read_made(void *library)
{
	int *fd = dlsym(library, "constructor_fd");
	int *registered = dlsym(library, "constructor_registered");
	uint64_t count;

	if (!fd || !registered || read(*fd, &count, sizeof(count)) != sizeof(count))
		return EXIT_FAILURE;
	printf("read %d, liburing: %s\n", (int)count,
	       *registered == 1		 ? "not called" :
	       *registered == register_none() ? "as by syscall(2)" :
						"wrong");
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

static long (*aio_use)(void);

static void *submit_for_ever(void *argument)
{
	while (aio_use() < 0)
		continue;
	return argument;
}

/* A lock of the dynamic linker that a thread holds stays locked in a child. */
static int call_forked(void *library)
{
	pthread_t thread;
	int status;

	aio_use = (long (*)(void))dlsym(library, "aio_use");
	if (!aio_use)
		return EXIT_FAILURE;
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, submit_for_ever, NULL);
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(5);
			_exit(aio_use() != -EINVAL);
		}
		if (waitpid(child, &status, 0) != child || status) {
			printf("child %d: %x\n", i, status);
			return EXIT_FAILURE;
		}
	}
	puts("200 children");
	return EXIT_SUCCESS;
}

/* Larger than a struct io_uring; all 0, including the descriptor in it. */
static int use_uring(void *library)
{
	int (*use)(void *uring, int fd) = dlsym(library, "uring_use");
	int (*use_number)(void) = dlsym(library, "uring_use_number");
	static long uring[128];

	if (!use || !use_number)
		return EXIT_FAILURE;
	if (use(uring, -1) == register_none())
		puts("as by syscall(2)");
	if (use_number() == register_at(7, IORING_REGISTER_EVENTFD_ASYNC | 1U << 31))
		puts("as by syscall(2) with a number");
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
	if (strcmp(argv[1], "forked") == 0)
		return call_forked(library);
	if (strcmp(argv[1], "uring") == 0)
		return use_uring(library);
	return EXIT_FAILURE;
}
