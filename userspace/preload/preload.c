// SPDX-License-Identifier: MIT
/*
 * The shim that flowfd-run preloads: eventfd(2), called by that name or through
 * syscall(2), gives flowfd counters. If a counter cannot be made, for whatever
 * reason, the program gets the eventfd that it asked for.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/caller.h"
#include "preload/context.h"
#include "preload/counter.h"
#include "preload/export.h"
#include "preload/log.h"
#include "preload/next.h"
#include "preload/refused.h"

#define EVENTFD_FLAGS (EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)

/*
 * One call for an eventfd: what it depends on and its result. @number is 0 if the
 * shim leaves the call alone.
 */
struct request {
	const struct context *context;
	const char *caller;
	uint32_t number;
	bool kept;
	int error;
};

static uint32_t process_of(uint64_t word)
{
	return word >> 32;
}

/*
 * Numbers the eventfds of a process from 1. The process ID is part of the counting
 * word, so that a forked child starts again at 1. There are many words, because a
 * child of vfork(2) shares them with its parent, which continues its own numbers; and
 * two for each remainder, so that the child never takes its parent's.
 */
static uint32_t next_number(void)
{
	static _Atomic uint64_t words[1024][2];
	uint32_t process = getpid();
	_Atomic uint64_t *pair = words[process % 1024];
	uint64_t old[2];
	uint64_t next;
	int i;

	do {
		old[0] = atomic_load(&pair[0]);
		old[1] = atomic_load(&pair[1]);
		if (process_of(old[0]) == process)
			i = 0;
		else if (process_of(old[1]) == process)
			i = 1;
		else
			i = process_of(old[0]) == (uint32_t)getppid();
		next = process_of(old[i]) == process ? old[i] + 1 :
						       ((uint64_t)process << 32) + 1;
	} while (!atomic_compare_exchange_weak(&pair[i], &old[i], next));
	return (uint32_t)next;
}

/* Returns a counter, or -1 if the caller must call the real eventfd(2). */
static int decide(struct request *request, unsigned int initial, int flags,
		  const void *address)
{
	const struct context *context = context_get();
	int fd;

	request->context = context;
	request->number = 0;
	if (!context || flags & ~EVENTFD_FLAGS)
		return -1;

	request->number = next_number();
	request->caller = "";
	if (log_wanted(context) || settings_by_name(&context->settings))
		request->caller = caller_find(address, context->executable);
	request->kept =
		settings_keep(&context->settings, request->number, request->caller);
	request->error = 0;
	if (request->kept)
		return -1;

	fd = counter_open(&context->settings, initial, flags);
	if (fd < 0) {
		request->error = -fd;
		fd = -1;
	}
	return fd;
}

static int begin(struct request *request, unsigned int initial, int flags,
		 const void *address)
{
	int saved = errno;
	int fd = decide(request, initial, flags, address);

	errno = saved;
	return fd;
}

/* Reports the result of a request. */
static void report(const struct request *request, long fd)
{
	struct line line;

	if (!request->number || !log_wanted(request->context))
		return;
	line_begin(&line);
	line_text(&line, "eventfd ");
	line_number(&line, request->number);
	line_text(&line, " of ");
	line_text(&line, request->caller);
	line_text(&line, ": fd ");
	line_number(&line, fd);
	line_text(&line, ", ");
	if (request->kept)
		line_text(&line, "kept");
	else if (request->error)
		line_error(&line, request->error);
	else
		line_text(&line, "counter");
	line_end(&line, request->context);
}

EXPORT int eventfd(unsigned int initial, int flags)
{
	struct request request;
	int fd = begin(&request, initial, flags, __builtin_return_address(0));

	if (fd < 0)
		fd = next_eventfd(initial, flags);
	report(&request, fd);
	return fd;
}

/* syscall(SYS_eventfd2, ...) and syscall(SYS_eventfd, ...), which has no flags. */
static long syscall_eventfd(long number, const long arguments[6], const void *address)
{
	struct request request;
	int flags = number == SYS_eventfd2 ? (int)arguments[1] : 0;
	long fd = begin(&request, arguments[0], flags, address);

	if (fd < 0)
		fd = next_syscall(number, arguments);
	report(&request, fd);
	return fd;
}

NO_STACK_PROTECTOR static inline bool is_eventfd(long number)
{
#ifdef SYS_eventfd
	if (number == SYS_eventfd)
		return true;
#endif
	return number == SYS_eventfd2;
}

NO_STACK_PROTECTOR EXPORT long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);

	if (is_eventfd(number))
		return syscall_eventfd(number, arguments, __builtin_return_address(0));
	if (refused_is(number))
		return refused_syscall(number, arguments);
	return next_syscall(number, arguments);
}
