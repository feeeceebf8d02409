// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that restrict a shim:
 *   stack        makes eventfds in a signal handler with 4 KB of stack, in a locale with
 *                characters of several bytes
 *   thread       moves the thread pointer by syscall(2), to another value of the
 *                stack protector, and back
 *   close FILE   closes all descriptors, and opens FILE as stderr
 *   limit        makes an eventfd while no file may grow
 *   pipe         runs itself with a pipe without reader as stderr, which gets the
 *                reports, and makes an eventfd there
 * The last two fail if a signal is pending or blocked afterwards.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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
	return handler_fds[0] < 0 || handler_fds[1] < 0;
}

#ifdef __x86_64__
/* The parts of the thread that libc reads: before the pointer, and behind it. */
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

/* Returns 0 if the signal is neither blocked nor waiting, or is both as before. */
static int make_with(int signal, bool blocked)
{
	sigset_t set;
	sigset_t after;

	sigemptyset(&set);
	sigaddset(&set, signal);
	if (blocked) {
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(signal);
	}
	if (eventfd(0, 0) < 0)
		return 1;
	sigpending(&after);
	if (sigismember(&after, signal) != blocked)
		return 2;
	sigprocmask(SIG_BLOCK, NULL, &after);
	return sigismember(&after, signal) == blocked ? 0 : 3;
}

static int test_limit(void)
{
	const struct rlimit none = {0, 0};
	int ret;

	setrlimit(RLIMIT_FSIZE, &none);
	ret = make_with(SIGXFSZ, false);
	return ret ? ret : make_with(SIGXFSZ, true);
}

static int test_pipe(char *self)
{
	char settings[64];
	struct stat status;
	int ends[2];

	if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0 ||
	    fstat(STDERR_FILENO, &status))
		return 1;
	close(ends[0]);
	snprintf(settings, sizeof(settings), "verbose=%u:%u:%lu",
		 major(status.st_dev), minor(status.st_dev),
		 (unsigned long)status.st_ino);
	setenv("FLOWFD_RUN_SETTINGS", settings, 1);
	execl(self, self, "piped", NULL);
	return 1;
}

static int test_piped(void)
{
	int ret = make_with(SIGPIPE, false);

	return ret ? ret : make_with(SIGPIPE, true);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "stack") == 0)
		return test_stack();
	if (argc == 2 && strcmp(argv[1], "thread") == 0)
		return test_thread();
	if (argc == 3 && strcmp(argv[1], "close") == 0)
		return test_close(argv[2]);
	if (argc == 2 && strcmp(argv[1], "limit") == 0)
		return test_limit();
	if (argc == 2 && strcmp(argv[1], "pipe") == 0)
		return test_pipe(argv[0]);
	if (argc == 2 && strcmp(argv[1], "piped") == 0)
		return test_piped();
	fprintf(stderr, "corners: wrong arguments\n");
	return EXIT_FAILURE;
}
