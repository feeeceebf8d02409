// SPDX-License-Identifier: MIT
/* Mapping memory: that of rings and counters, which processes share, and private memory. */
#include <errno.h>
#include <sys/mman.h>

#include "memory.h"

int flowfd__map(void **at, size_t size, int protection, int fd, off_t offset)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	int saved = errno, error;
	void *map = mmap(NULL, size, protection, flags, fd, offset);

	if (map == MAP_FAILED) {
		error = -errno;
		errno = saved;
		return error;
	}
	*at = map;
	return 0;
}

int flowfd__move(void *from, size_t size, void *to)
{
	int saved = errno, error;

	if (mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
		return 0;
	error = -errno;
	errno = saved;
	return error;
}

int flowfd__map_wiped_on_fork(void **at, size_t size)
{
	int saved = errno, error;
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (map != MAP_FAILED && !madvise(map, size, MADV_WIPEONFORK)) {
		*at = map;
		return 0;
	}
	error = -errno;
	if (map != MAP_FAILED)
		munmap(map, size);
	errno = saved;
	return error;
}

void flowfd__unmap(void *at, size_t size)
{
	int saved = errno;

	munmap(at, size);
	errno = saved;
}

void flowfd__protect(void *at, size_t size, int protection)
{
	int saved = errno;

	mprotect(at, size, protection);
	errno = saved;
}
