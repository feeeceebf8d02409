/* SPDX-License-Identifier: GPL-2.0-only */
/* mmap(2) by syscall(2): the system call depends on the architecture. */
#ifndef FLOWFD_TESTS_RAW_MMAP_H
#define FLOWFD_TESTS_RAW_MMAP_H

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void *raw_mmap(void *start, size_t size, int protection, int flags, int fd,
			     off_t offset)
{
#if defined(__s390__)
	unsigned long arguments[] = { (unsigned long)start, size, protection, flags, fd,
				      offset };

	return (void *)syscall(SYS_mmap, arguments);
#elif defined(SYS_mmap2)
	return (void *)syscall(SYS_mmap2, start, size, protection, flags, fd,
			       offset / 4096);
#else
	return (void *)syscall(SYS_mmap, start, size, protection, flags, fd, offset);
#endif
}

#endif
