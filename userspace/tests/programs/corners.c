// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that restrict a shim:
 *   stack        makes eventfds in a signal handler with 4 KB of stack, in a locale with
 *                characters of several bytes
 *   close FILE   closes all descriptors, and opens FILE as stderr
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t handler_fd = -1;

static void on_signal(int number)
{
	(void)number;
	handler_fd = eventfd(0, 0);
}

/* 4 KB, or more on processors where the kernel's signal frame takes more than half. */
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

	if (!setlocale(LC_ALL, "C.UTF-8"))
		return 2;
	/* An access below the stack kills the program. */
	mprotect(memory, page, PROT_NONE);
	memset(stack.ss_sp, 0x5a, size);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	while (left < size && memory[page + left] == 0x5a)
		left++;
	fprintf(stdout, "%zu of %zu bytes of stack left\n", left, size);
	return handler_fd < 0;
}

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
	if (argc == 3 && strcmp(argv[1], "close") == 0)
		return test_close(argv[2]);
	fprintf(stderr, "corners: wrong arguments\n");
	return EXIT_FAILURE;
}
