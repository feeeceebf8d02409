// SPDX-License-Identifier: MIT
/*
 * Finds the functions behind the shim's at the first call, which may come
 * before any constructor ran. Threads that race find the same.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "preload/next.h"

/* Every symbol resolves in a program that ld.so loaded: libc has them. */
static void *resolve(_Atomic(void *) *cache, const char *name)
{
	void *function = atomic_load_explicit(cache, memory_order_relaxed);

	if (!function) {
		int saved = errno;

		function = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(cache, function, memory_order_relaxed);
		errno = saved;
	}
	return function;
}

int next_eventfd(unsigned int initial, int flags)
{
	static _Atomic(void *) cache;
	int (*function)(unsigned int initial, int flags);

	function = resolve(&cache, "eventfd");
	return function(initial, flags);
}

long next_syscall(long number, const long arguments[6])
{
	static _Atomic(void *) cache;
	long (*function)(long number, ...);

	function = resolve(&cache, "syscall");
	return function(number, arguments[0], arguments[1], arguments[2],
			arguments[3], arguments[4], arguments[5]);
}
