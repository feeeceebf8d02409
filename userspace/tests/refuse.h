/* SPDX-License-Identifier: GPL-2.0-only */
/* System calls that fail from now on, for this thread and its children: seccomp(2). */
#ifndef FLOWFD_TESTS_REFUSE_H
#define FLOWFD_TESTS_REFUSE_H

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "tests/tap.h"

/* What a child returns that could not refuse a call. */
#define REFUSE_UNABLE 2

static inline int refuse_by(struct sock_filter *filter, unsigned short length)
{
	const struct sock_fprog program = { length, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/** refuse - make a system call fail with @error; returns 0, or -1 with errno */
static inline int refuse(long number, unsigned int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return refuse_by(filter, sizeof(filter) / sizeof(*filter));
}

/** refuse_request - the same, if the second argument is @request */
static inline int refuse_request(long number, unsigned int request, unsigned int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
		/* The low half: a filter has words of 32 bits. */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1]) +
				 4 * (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, request, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return refuse_by(filter, sizeof(filter) / sizeof(*filter));
}

/** refuse_in_child - report whether @use, which refuses calls, returns 0 in a child */
static inline void refuse_in_child(int (*use)(const void *argument), const void *argument,
				   const char *what)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(use(argument));
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSE_UNABLE)
		tap_skip(what, "no seccomp");
	else
		tap_is(status, 0, what);
}

#endif
