// SPDX-License-Identifier: GPL-2.0-only
/*
 * opener LIBRARY: opens a library by dlopen(3) and reads the eventfd that its constructor
 * made. Gives up after 10 seconds, as a deadlocked thread waits for ever.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	uint64_t count;
	void *library;
	int *fd;

	alarm(10);
	library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "opener: wrong arguments, or %s\n", dlerror());
		return EXIT_FAILURE;
	}
	fd = dlsym(library, "constructor_fd");
	if (!fd || read(*fd, &count, sizeof(count)) != sizeof(count))
		return EXIT_FAILURE;
	printf("read %d\n", (int)count);
	return EXIT_SUCCESS;
}
