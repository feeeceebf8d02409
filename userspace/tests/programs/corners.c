// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that leave a shim little room:
 *   stack        makes eventfds in a signal handler with 4 KB of stack
 *   thread       moves the thread pointer by syscall(2), to another value of the
 *                stack protector, and back
 *   close FILE   closes all descriptors, and FILE gets the number of stderr
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#include <asm/prctl.h>
#endif

static volatile sig_atomic_t handler_fds[2] = {-1, -1};

static void on_signal(int number)
{
	(void)number;
	handler_fds[0] = eventfd(0, 0);
	handler_fds[1] = syscall(SYS_eventfd2, 0, 0);
}

/* 4 KB, but on processors where the kernel's own frame takes more than half. */
static size_t small_stack(void)
{
	size_t least = getauxval(AT_MINSIGSTKSZ);

	return least > 2048 ? least + 2048 : 4096;
}

static int test_stack(void)
{
	struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = SA_ONSTACK,
	};
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = small_stack();
	size_t room = (size + page - 1) / page * page;
	char *memory = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + page, .ss_size = size};
	size_t left = 0;

	/* What goes below the stack dies. */
	mprotect(memory, page, PROT_NONE);
	memset(stack.ss_sp, 0x5a, size);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	while (left < size && memory[page + left] == 0x5a)
		left++;
	fprintf(stdout, "%zu of %zu bytes of stack left\n", left, size);
	return handler_fds[0] < 0 || handler_fds[1] < 0;
}

#ifdef __x86_64__
/* What libc looks at of the thread: before the pointer, and behind it. */
enum { BEFORE = 8192, BEHIND = 4096 };

__attribute__((no_stack_protector)) static int test_thread(void)
{
	static _Alignas(64) char copy[BEFORE + BEHIND];
	char *own = copy + BEFORE;
	unsigned long *words = (unsigned long *)own;
	unsigned long old;
	long ret;

	if (syscall(SYS_arch_prctl, ARCH_GET_FS, &old))
		return 1;
	memcpy(own, (char *)old, 0x300);
	memcpy(copy + BEFORE - 0x80, (char *)old - 0x80, 0x80);
	words[0] = (unsigned long)own;
	words[2] = (unsigned long)own;
	words[5] ^= 0xff00; /* fs:0x28 */
	ret = syscall(SYS_arch_prctl, ARCH_SET_FS, own);
	if (ret == 0)
		ret = syscall(SYS_arch_prctl, ARCH_SET_FS, old);
	return ret != 0;
}
#else
static int test_thread(void)
{
	return 0;
}
#endif

static int test_close(const char *path)
{
	int fd;

	for (fd = 0; fd < 1024; fd++)
		close(fd);
	while ((fd = open(path, O_RDWR)) >= 0 && fd < STDERR_FILENO)
		;
	for (int i = 0; i < 3; i++)
		fd = eventfd(0, 0);
	return fd < 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "stack") == 0)
		return test_stack();
	if (argc == 2 && strcmp(argv[1], "thread") == 0)
		return test_thread();
	if (argc == 3 && strcmp(argv[1], "close") == 0)
		return test_close(argv[2]);
	fprintf(stderr, "corners: wrong arguments\n");
	return EXIT_FAILURE;
}
