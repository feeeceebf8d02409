// SPDX-License-Identifier: MIT
/*
 * The shim that flowfd-run preloads: eventfd(2) gives flowfd counters. If a counter
 * cannot be made, for whatever reason, the program gets the eventfd that it asked for.
 *
 * It may be called in any thread, and in a signal handler with 4 KB of stack; a report
 * takes 3 KB more, most of it for snprintf(3). Its system calls go through syscall(2):
 * unlike open(2) and close(2), and like eventfd(2), that is not a cancellation point.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/caller.h"
#include "preload/counter.h"
#include "preload/settings.h"

#define EVENTFD_FLAGS (EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)

/* What the shim knows of its process. @executable is a base name. */
struct context {
	struct settings settings;
	const char *executable;
	char path[PATH_MAX];
};

static bool read_context(struct context *context)
{
	const char *text = secure_getenv(SETTINGS_VARIABLE);
	long length;

	if (!text || !settings_parse(&context->settings, text))
		return false;
	length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", context->path,
			 sizeof(context->path) - 1);
	context->executable = length < 0 ? "[unknown]" : base_name(context->path);
	return true;
}

/*
 * Reads the context once, at the first call: the program may overwrite its environment.
 * NULL if there are no settings, if they are wrong, or while another call reads them.
 */
static const struct context *context_get(void)
{
	enum { UNREAD, READING, READY, WRONG };
	static _Atomic int state = UNREAD;
	static struct context context;
	int seen = UNREAD;

	/* Before even libc is initialized, which is no reason to give up. */
	if (!environ && atomic_load(&state) == UNREAD)
		return NULL;
	if (atomic_compare_exchange_strong(&state, &seen, READING)) {
		seen = read_context(&context) ? READY : WRONG;
		atomic_store(&state, seen);
	}
	return seen == READY ? &context : NULL;
}

__attribute__((constructor)) static void read_early(void)
{
	int saved = errno;

	context_get();
	errno = saved;
}

/* glibc has it since 2.32, musl does not. */
extern const char *strerrorname_np(int error) __attribute__((weak));

/*
 * A report must not end up in a file of the program: descriptor 2 is used only while it
 * is the file that flowfd-run had there.
 */
static void report(const struct settings *settings, uint32_t number, const char *caller,
		   int fd, const char *what, int error)
{
	char line[384];
	char code[32];
	int length;

	if (!settings_stderr_is_ours(settings))
		return;
	if (error) {
		snprintf(code, sizeof(code), "error %d", error);
		what = strerrorname_np ? strerrorname_np(error) : NULL;
		what = what ? what : code;
	}
	length = snprintf(line, sizeof(line),
			  "flowfd-run[%d]: eventfd %u of %.255s: fd %d, %s\n", getpid(),
			  number, caller, fd, what);
	syscall(SYS_write, STDERR_FILENO, line, length);
}

/*
 * Numbers the calls of a process from 1. A child of fork(2) goes on from its parent's
 * number, and one of vfork(2), which shares the memory, counts for both.
 */
static uint32_t next_number(void)
{
	static _Atomic uint32_t numbers;

	return atomic_fetch_add(&numbers, 1) + 1;
}

static int make(const struct context *context, unsigned int initial, int flags,
		const void *address)
{
	const struct settings *settings = &context->settings;
	uint32_t number = next_number();
	const char *caller = "";
	int saved = errno;
	bool kept;
	int error = 0;
	int fd;

	if (settings->verbose || settings->keep_length)
		caller = caller_find(address, context->executable);
	kept = settings_keep(settings, number, caller);
	fd = kept ? -1 : counter_open(settings, initial, flags);
	if (!kept && fd < 0)
		error = -fd;
	errno = saved;
	if (fd < 0)
		fd = syscall(SYS_eventfd2, initial, flags);
	saved = errno;
	if (settings->verbose)
		report(settings, number, caller, fd, kept ? "kept" : "counter", error);
	errno = saved;
	return fd;
}

/* All other functions of the shim are hidden. */
__attribute__((visibility("default"))) int eventfd(unsigned int initial, int flags)
{
	int saved = errno;
	const struct context *context = context_get();

	errno = saved;
	if (!context || flags & ~EVENTFD_FLAGS)
		return syscall(SYS_eventfd2, initial, flags);
	return make(context, initial, flags, __builtin_return_address(0));
}
