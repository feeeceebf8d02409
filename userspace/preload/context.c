// SPDX-License-Identifier: MIT
/*
 * Reads the settings and the executable's name once: the program may overwrite
 * its environment. The first call reads them, in any thread, or in a signal handler
 * on a small stack. Calls that come before it is done also read, each into memory of
 * its own; the first to finish publishes its memory for all later calls.
 *
 * A program that runs set-user-ID gets no settings from its user: the log would be a file
 * that the program may write, and the user may not.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/caller.h"
#include "preload/context.h"
#include "preload/next.h"

/* Stands for settings that are missing or wrong. */
static struct context none;

static bool read_log(struct context *context)
{
	const char *log = secure_getenv(LOG_VARIABLE);
	size_t size;

	if (!log)
		return true;
	size = strlen(log) + 1;
	if (size > sizeof(context->log))
		return false;
	memcpy(context->log, log, size);
	return true;
}

static void read_executable(struct context *context)
{
	long length = next_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe",
				(long)context->path, sizeof(context->path) - 1);

	context->executable = length < 0 ? "[unknown]" : base_name(context->path);
}

static bool read_all(struct context *context)
{
	const char *text = secure_getenv(SETTINGS_VARIABLE);

	if (!text || !settings_parse(&context->settings, text) || !read_log(context))
		return false;
	read_executable(context);
	return true;
}

const struct context *context_get(void)
{
	static _Atomic(struct context *) shared;
	struct context *seen = atomic_load_explicit(&shared, memory_order_acquire);
	struct context *own;

	if (seen)
		return seen == &none ? NULL : seen;
	/* Before even libc is initialized, which is no reason to give up. */
	if (!environ)
		return NULL;
	own = mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (own == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(&shared, &seen, read_all(own) ? own : &none))
		seen = atomic_load_explicit(&shared, memory_order_acquire);
	if (seen != own)
		munmap(own, sizeof(*own));
	return seen == &none ? NULL : seen;
}

__attribute__((constructor)) static void read_early(void)
{
	context_get();
}
