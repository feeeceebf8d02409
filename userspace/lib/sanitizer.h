/* SPDX-License-Identifier: MIT */
/* What programs under MemorySanitizer need of the library. */
#ifndef FLOWFD_LIB_SANITIZER_H
#define FLOWFD_LIB_SANITIZER_H

#include <stddef.h>

#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#define FLOWFD__MEMORY_SANITIZER
#include <sanitizer/msan_interface.h>
#endif
#endif

/**
 * flowfd__stored - the kernel has stored something
 * @at: address
 * @size: bytes; 0 or less: nothing
 *
 * MemorySanitizer knows the functions of the C library, and not what syscall(2) does.
 */
static inline void flowfd__stored(const void *at, long size)
{
#ifdef FLOWFD__MEMORY_SANITIZER
	if (size > 0)
		__msan_unpoison(at, (size_t)size);
#else
	(void)at;
	(void)size;
#endif
}

#endif /* FLOWFD_LIB_SANITIZER_H */
