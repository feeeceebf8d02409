// SPDX-License-Identifier: GPL-2.0-only
/*
 * For a C library without closefrom(3): calls that of the shim, if there is one, and prints
 * how many descriptors it leaves open. With "refused" there is no close_range(2); with
 * "full" there is no free descriptor either, and one above the limit.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#define MANY 200

static int refuse(long number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

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
	if (argc > 1 && refuse(SYS_close_range))
		return 2;
	if (argc > 1 && strcmp(argv[1], "full") == 0)
		fill();
	function(5);
	printf("%d of %d\n", count_open(5), count_open(3));
	return 0;
}
