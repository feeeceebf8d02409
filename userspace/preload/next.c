// SPDX-License-Identifier: MIT
/*
 * Finds the functions that the shim wraps, when it is loaded or at the first call,
 * which may come earlier. Threads that race find the same functions.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "preload/next.h"

static void *find(_Atomic(void *) *cache, const char *name)
{
	int saved = errno;
	void *function = dlsym(RTLD_NEXT, name);

	atomic_store_explicit(cache, function, memory_order_relaxed);
	errno = saved;
	return function;
}

/* Every symbol resolves in a program that ld.so loaded: libc has them. */
NO_STACK_PROTECTOR static inline void *resolve(_Atomic(void *) *cache, const char *name)
{
	void *function = atomic_load_explicit(cache, memory_order_relaxed);

	return function ? function : find(cache, name);
}

static _Atomic(void *) eventfd_cache, ioctl_cache, syscall_cache;

#ifdef HAS_IOCTL_TIME64
static _Atomic(void *) ioctl_time64_cache;
#endif

/* Here and not in a call of the program, which would see its dlerror(3) changed. */
__attribute__((constructor)) static void resolve_all(void)
{
	resolve(&eventfd_cache, "eventfd");
	resolve(&ioctl_cache, "ioctl");
	resolve(&syscall_cache, "syscall");
#ifdef HAS_IOCTL_TIME64
	/* glibc has it from 2.34 on; the program must not see that it has not. */
	if (!resolve(&ioctl_time64_cache, "__ioctl_time64"))
		dlerror();
#endif
}

int next_eventfd(unsigned int initial, int flags)
{
	int (*function)(unsigned int initial, int flags);

	function = resolve(&eventfd_cache, "eventfd");
	return function(initial, flags);
}

int next_ioctl(int fd, unsigned long request, long argument)
{
	int (*function)(int fd, unsigned long request, ...);

	function = resolve(&ioctl_cache, "ioctl");
	return function(fd, request, argument);
}

#ifdef HAS_IOCTL_TIME64
int next_ioctl_time64(int fd, unsigned long request, long argument)
{
	int (*function)(int fd, unsigned long request, ...);

	function = resolve(&ioctl_time64_cache, "__ioctl_time64");
	return function(fd, request, argument);
}
#endif

NO_STACK_PROTECTOR long next_syscall(long number, const long arguments[6])
{
	long (*function)(long number, ...);

	function = resolve(&syscall_cache, "syscall");
	return function(number, arguments[0], arguments[1], arguments[2], arguments[3],
			arguments[4], arguments[5]);
}

long next_call(long number, long first, long second, long third, long fourth)
{
	const long arguments[6] = { first, second, third, fourth };
	int saved = errno;
	long ret = next_syscall(number, arguments);

	if (ret == -1)
		ret = -errno;
	errno = saved;
	return ret;
}
