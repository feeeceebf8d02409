// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a library by dlopen(3), for itself alone, and uses it:
 *   constructor LIBRARY   reads the eventfd that its constructor made; a thread
 *                         that waits for ever is ended after 10 seconds
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_made(void *library)
{
	int *fd = dlsym(library, "constructor_fd");
	uint64_t count;

	if (!fd || read(*fd, &count, sizeof(count)) != sizeof(count))
		return EXIT_FAILURE;
	printf("read %d\n", (int)count);
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
	return EXIT_FAILURE;
}
