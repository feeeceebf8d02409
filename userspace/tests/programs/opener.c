// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a library by dlopen(3), for itself alone, and uses it:
 *   constructor LIBRARY   reads the eventfd that its constructor made; gives up after
 *                         10 seconds, as a deadlocked thread waits for ever
 *   foreign LIBRARY       makes it call its functions with the names of others
 *   uring LIBRARY         makes it call liburing, with a file that is not an io_uring
 */
#include <dlfcn.h>
#include <errno.h>
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
	uint64_t count;

	if (!fd || read(*fd, &count, sizeof(count)) != sizeof(count))
		return EXIT_FAILURE;
	printf("read %d\n", (int)count);
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
	library = argc == 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "opener: wrong arguments, or %s\n", dlerror());
		return EXIT_FAILURE;
	}
	if (strcmp(argv[1], "constructor") == 0)
		return read_made(library);
	if (strcmp(argv[1], "foreign") == 0)
		return call_foreign(library);
	if (strcmp(argv[1], "uring") == 0)
		return use_uring(library);
	return EXIT_FAILURE;
}
