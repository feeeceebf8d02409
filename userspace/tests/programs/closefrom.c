// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a C library without closefrom(3): calls that of the shim, if there is one, and prints
 * how many descriptors it leaves open. With "refused" there is no close_range(2); with
 * "full" there is no free descriptor either, and one above the limit.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/refuse.h"

#define MANY 200

static void fill(void)
{
	const struct rlimit limit = { MANY, MANY };

	dup2(STDIN_FILENO, 2 * MANY);
	setrlimit(RLIMIT_NOFILE, &limit);
	while (dup(STDIN_FILENO) >= 0)
		;
}

static int count_open(int first)
{
	int count = 0;

	for (int fd = first; fd <= 2 * MANY; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int main(int argc, char **argv)
{
	void (*function)(int first);

	*(void **)&function = dlsym(RTLD_DEFAULT, "closefrom");
	if (!function)
		return 1;
	for (int i = 0; i < MANY / 2; i++)
		dup(STDIN_FILENO);
	if (argc > 1 && refuse(SYS_close_range, EPERM))
		return 2;
	if (argc > 1 && strcmp(argv[1], "full") == 0)
		fill();
	function(5);
	printf("%d of %d\n", count_open(5), count_open(3));
	return 0;
}
