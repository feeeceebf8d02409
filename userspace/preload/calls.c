// SPDX-License-Identifier: MIT
/*
 * Only in the shim for --mapped: wraps the calls that add to and take from counters, and
 * those that close descriptors. The former do it in memory if the descriptor is known to
 * be a mapped counter, and succeed there; all else is passed on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/cells.h"
#include "preload/context.h"
#include "preload/export.h"
#include "preload/fdinfo.h"
#include "preload/going.h"
#include "preload/next.h"

#if __SIZEOF_LONG__ == 8

enum call {
	READ_CHK,
	EVENTFD_WRITE,
	EVENTFD_READ,
	CLOSE,
	DUP2,
	DUP3,
	CLOSE_RANGE,
	CLOSEFROM,
	UNSHARE,
	CALLS
};

static const char *const names[CALLS] = {
	[READ_CHK] = "__read_chk",
	[EVENTFD_WRITE] = "eventfd_write",
	[EVENTFD_READ] = "eventfd_read",
	[CLOSE] = "close",
	[DUP2] = "dup2",
	[DUP3] = "dup3",
	[CLOSE_RANGE] = "close_range",
	[CLOSEFROM] = "closefrom",
	[UNSHARE] = "unshare",
};

static _Atomic(void *) functions[CALLS];

static void *find_name(const char *name)
{
	int saved = errno;
	void *function = dlsym(RTLD_NEXT, name);

	errno = saved;
	return function;
}

static void *find(enum call call)
{
	void *function = find_name(names[call]);

	atomic_store_explicit(&functions[call], function, memory_order_relaxed);
	return function;
}

static inline void *next(enum call call)
{
	void *function = atomic_load_explicit(&functions[call], memory_order_relaxed);

	return function ? function : find(call);
}

typedef ssize_t (*write_call)(int fd, const void *bytes, size_t size);
typedef ssize_t (*read_call)(int fd, void *bytes, size_t size);

static ssize_t write_first(int fd, const void *bytes, size_t size);
static ssize_t read_first(int fd, void *bytes, size_t size);

/* Every call for any file goes through these, so they need no test. */
static _Atomic(write_call) write_function = write_first;
static _Atomic(read_call) read_function = read_first;

static void find_both(void)
{
	write_call found_write = (write_call)find_name("write");
	read_call found_read = (read_call)find_name("read");

	atomic_store_explicit(&write_function, found_write, memory_order_relaxed);
	atomic_store_explicit(&read_function, found_read, memory_order_relaxed);
}

static inline ssize_t write_next(int fd, const void *bytes, size_t size)
{
	return atomic_load_explicit(&write_function, memory_order_relaxed)(fd, bytes,
									   size);
}

static inline ssize_t read_next(int fd, void *bytes, size_t size)
{
	return atomic_load_explicit(&read_function, memory_order_relaxed)(fd, bytes,
									  size);
}

static ssize_t write_first(int fd, const void *bytes, size_t size)
{
	find_both();
	return write_next(fd, bytes, size);
}

static ssize_t read_first(int fd, void *bytes, size_t size)
{
	find_both();
	return read_next(fd, bytes, size);
}

/* Here and not in a call of the program, which would see its dlerror(3) changed. */
__attribute__((constructor)) static void begin(void)
{
	const struct context *context = context_get();

	find_both();
	for (enum call call = 0; call < CALLS; call++) {
		if (!find(call))
			dlerror();
	}
	if (context && context->settings.mapped)
		cells_begin();
}

/*
 * A cancellation point is one whether it goes to the kernel or not. These are functions
 * of their own, so that calls for other files save no registers.
 */
static __attribute__((noinline)) ssize_t add(int fd, const void *bytes)
{
	pthread_testcancel();
	if (cells_write(fd, bytes))
		return sizeof(uint64_t);
	return write_next(fd, bytes, sizeof(uint64_t));
}

static __attribute__((noinline)) ssize_t take(int fd, void *bytes, size_t size)
{
	uint64_t value;

	pthread_testcancel();
	if (cells_read(fd, &value)) {
		memcpy(bytes, &value, sizeof(value));
		return sizeof(value);
	}
	return read_next(fd, bytes, size);
}

static inline ssize_t write_any(int fd, const void *bytes, size_t size)
{
	if (size == sizeof(uint64_t) && cells_know(fd))
		return add(fd, bytes);
	return write_next(fd, bytes, size);
}

/* The kernel refuses more. */
static inline bool has_room(size_t size)
{
	return size >= sizeof(uint64_t) && size <= SSIZE_MAX;
}

static inline ssize_t read_any(int fd, void *bytes, size_t size)
{
	if (has_room(size) && cells_know(fd))
		return take(fd, bytes, size);
	return read_next(fd, bytes, size);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
	return write_any(fd, bytes, size);
}

EXPORT ssize_t __write(int fd, const void *bytes, size_t size);
EXPORT ssize_t __write(int fd, const void *bytes, size_t size)
{
	return write_any(fd, bytes, size);
}

EXPORT ssize_t read(int fd, void *bytes, size_t size)
{
	return read_any(fd, bytes, size);
}

EXPORT ssize_t __read(int fd, void *bytes, size_t size);
EXPORT ssize_t __read(int fd, void *bytes, size_t size)
{
	return read_any(fd, bytes, size);
}

/* read(2) of a program that was compiled with _FORTIFY_SOURCE; glibc alone has it. */
EXPORT ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room);
EXPORT ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
	ssize_t (*function)(int fd, void *bytes, size_t size, size_t room);

	if (size <= room && has_room(size) && cells_know(fd))
		return take(fd, bytes, size);
	function = next(READ_CHK);
	return function(fd, bytes, size, room);
}

EXPORT int eventfd_write(int fd, eventfd_t value)
{
	int (*function)(int fd, eventfd_t value);

	if (cells_know(fd))
		return add(fd, &value) == sizeof(value) ? 0 : -1;
	function = next(EVENTFD_WRITE);
	return function(fd, value);
}

EXPORT int eventfd_read(int fd, eventfd_t *value)
{
	int (*function)(int fd, eventfd_t *value);

	if (cells_know(fd))
		return take(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
	function = next(EVENTFD_READ);
	return function(fd, value);
}

static int close_next(int fd)
{
	int (*function)(int fd) = next(CLOSE);

	cells_forget(fd);
	return function(fd);
}

EXPORT int close(int fd)
{
	return close_next(fd);
}

EXPORT int __close(int fd);
EXPORT int __close(int fd)
{
	return close_next(fd);
}

static int dup2_next(int old, int number)
{
	int (*function)(int old, int number) = next(DUP2);

	going_dup(old, number);
	return function(old, number);
}

EXPORT int dup2(int old, int number)
{
	return dup2_next(old, number);
}

EXPORT int __dup2(int old, int number);
EXPORT int __dup2(int old, int number)
{
	return dup2_next(old, number);
}

EXPORT int dup3(int old, int number, int flags)
{
	int (*function)(int old, int number, int flags) = next(DUP3);

	going_dup(old, number);
	return function(old, number, flags);
}

static int range_syscall(unsigned int first, unsigned int last, int flags)
{
	const long arguments[6] = { first, last, flags };

	return next_syscall(SYS_close_range, arguments);
}

/* glibc has these two since 2.34, musl does not. */
EXPORT int close_range(unsigned int first, unsigned int last, int flags);
EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	int (*function)(unsigned int first, unsigned int last, int flags);

	going_range(first, last, flags);
	function = next(CLOSE_RANGE);
	return function ? function(first, last, flags) :
			  range_syscall(first, last, flags);
}

/* closefrom(3) cannot fail, but a filter of seccomp(2) may not know close_range(2). */
static void close_each(unsigned int first)
{
	struct rlimit limit;

	if (fdinfo_close_from(first) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	/* There is no /proc, or no free descriptor to read it, which there is then. */
	for (rlim_t fd = first; fd < limit.rlim_cur; fd++)
		next_call(SYS_close, (long)fd, 0, 0, 0);
	fdinfo_close_from(first);
}

EXPORT void closefrom(int first);
EXPORT void closefrom(int first)
{
	void (*function)(int first);

	if (first < 0)
		first = 0;
	going_range(first, UINT_MAX, 0);
	function = next(CLOSEFROM);
	if (function)
		function(first);
	else if (range_syscall(first, UINT_MAX, 0))
		close_each(first);
}

EXPORT int unshare(int flags)
{
	int (*function)(int flags) = next(UNSHARE);

	going_unshare(flags);
	return function(flags);
}

#endif
