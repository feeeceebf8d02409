// SPDX-License-Identifier: MIT
/*
 * The shim that flowfd-run preloads: eventfd(2), called by that name or through
 * syscall(2), gives flowfd counters. Whatever keeps that from working, the
 * program gets the eventfd that it asked for.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/caller.h"
#include "preload/counter.h"
#include "preload/next.h"
#include "preload/settings.h"

#define EXPORT __attribute__((visibility("default")))

#define EVENTFD_FLAGS (EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)

/*
 * One call for an eventfd: what decides about it and what became of it.
 * number 0 says that the call is none of the shim's business.
 */
struct request {
	struct settings own;
	const struct settings *settings;
	struct caller caller;
	uint32_t number;
	bool kept;
	int error;
};

/*
 * The program may overwrite its environment, so the first call reads it for
 * all. Calls that race with the first read for themselves: a signal handler
 * could not wait for the thread that it interrupted.
 */
static const struct settings *find_settings(struct settings *own)
{
	enum { UNREAD, READING, VALID, INVALID };
	static _Atomic int state = UNREAD;
	static struct settings shared;
	int seen = atomic_load_explicit(&state, memory_order_acquire);
	const char *text;
	bool valid;

	if (seen == VALID)
		return &shared;
	if (seen == INVALID)
		return NULL;

	/* Before even libc is initialized, which is no reason to give up. */
	if (!environ)
		return NULL;
	text = getenv(SETTINGS_VARIABLE);
	valid = text && settings_parse(own, text);
	if (seen == UNREAD &&
	    atomic_compare_exchange_strong(&state, &seen, READING)) {
		if (valid)
			shared = *own;
		atomic_store_explicit(&state, valid ? VALID : INVALID,
				      memory_order_release);
	}
	return valid ? own : NULL;
}

__attribute__((constructor)) static void read_settings(void)
{
	struct settings own;

	find_settings(&own);
}

/*
 * Numbers the eventfds of a process from 1. The process is part of the word
 * that counts them, so that a forked child starts again by itself.
 */
static uint32_t next_number(void)
{
	static _Atomic uint64_t last;
	uint64_t process = (uint64_t)getpid() << 32;
	uint64_t old = atomic_load(&last);
	uint64_t next;

	do {
		next = old >> 32 == process >> 32 ? old + 1 : process + 1;
	} while (!atomic_compare_exchange_weak(&last, &old, next));
	return (uint32_t)next;
}

/* Returns a counter, or -1 when the real eventfd(2) is to be called. */
static int begin(struct request *request, unsigned int initial, int flags,
		 const void *address)
{
	int saved = errno;
	int fd = -1;

	request->number = 0;
	request->settings = find_settings(&request->own);
	if (!request->settings || flags & ~EVENTFD_FLAGS)
		goto out;

	request->number = next_number();
	if (request->settings->verbose || request->settings->keep_length)
		caller_find(&request->caller, address);
	request->kept = settings_keep(request->settings, request->number,
				      request->caller.name);
	request->error = 0;
	if (request->kept)
		goto out;

	fd = counter_open(request->settings, initial, flags);
	if (fd < 0) {
		request->error = -fd;
		fd = -1;
	}
out:
	errno = saved;
	return fd;
}

/* Says with --verbose what became of a request; errno stays as it is. */
static void report(const struct request *request, long fd)
{
	int saved = errno;
	const char *result = "counter";
	char line[512];
	int length;

	if (!request->number || !request->settings->verbose)
		return;
	/* The program has closed its standard error, and this is what it asked for. */
	if (fd == STDERR_FILENO)
		return;
	if (request->kept)
		result = "kept";
	else if (request->error)
		result = strerrorname_np(request->error);
	length = snprintf(line, sizeof(line),
			  "flowfd-run[%d]: eventfd %u of %s: fd %ld, %s\n",
			  getpid(), request->number, request->caller.name, fd,
			  result);
	(void)!write(STDERR_FILENO, line, length);
	errno = saved;
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

/* syscall(SYS_eventfd2, ...), and SYS_eventfd, which has no flags. */
static long syscall_eventfd(long number, const long arguments[6],
			    const void *address)
{
	struct request request;
	int flags = number == SYS_eventfd2 ? (int)arguments[1] : 0;
	long fd = begin(&request, arguments[0], flags, address);

	if (fd < 0)
		fd = next_syscall(number, arguments);
	report(&request, fd);
	return fd;
}

static bool is_eventfd(long number)
{
#ifdef SYS_eventfd
	if (number == SYS_eventfd)
		return true;
#endif
	return number == SYS_eventfd2;
}

EXPORT long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);

	if (is_eventfd(number))
		return syscall_eventfd(number, arguments,
				       __builtin_return_address(0));
	return next_syscall(number, arguments);
}
