// SPDX-License-Identifier: MIT
/*
 * Finds the functions behind the shim's when it is loaded, or at the first call, which
 * may come before that. Threads that race find the same.
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

static _Atomic(void *) eventfd_cache, syscall_cache;

/* Not in a call of the program's: it would see another dlerror(3) after it. */
__attribute__((constructor)) static void resolve_all(void)
{
	resolve(&eventfd_cache, "eventfd");
	resolve(&syscall_cache, "syscall");
}

int next_eventfd(unsigned int initial, int flags)
{
	int (*function)(unsigned int initial, int flags);

	function = resolve(&eventfd_cache, "eventfd");
	return function(initial, flags);
}

long next_syscall(long number, const long arguments[6])
{
	long (*function)(long number, ...);

	function = resolve(&syscall_cache, "syscall");
	return function(number, arguments[0], arguments[1], arguments[2],
			arguments[3], arguments[4], arguments[5]);
}
