// SPDX-License-Identifier: MIT
/* Mapping memory: that of rings and counters, which processes share, and private memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

#ifndef MFD_NOEXEC_SEAL /* since Linux 6.3 */
#define MFD_NOEXEC_SEAL 8U
#endif

/* The size stays, and no seal comes later, which would keep others from mapping it. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * Why memory was not mapped. EAGAIN is for RLIMIT_MEMLOCK if the process has called
 * mlockall(2): for callers it is no memory, as EAGAIN means to try again.
 */
static int map_error(void)
{
	return errno == EAGAIN ? -ENOMEM : -errno;
}

int flowfd__map(void **at, size_t size, int protection, int fd, off_t offset)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	int saved = errno, error;
	void *map = mmap(NULL, size, protection, flags, fd, offset);

	if (map == MAP_FAILED) {
		error = map_error();
		errno = saved;
		return error;
	}
	*at = map;
	return 0;
}

static int memfd(unsigned int flags)
{
	int fd = (int)syscall(SYS_memfd_create, "flowfd", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, "flowfd", flags);
	return fd;
}

/* A file that may not become so large ends the process by SIGXFSZ. */
static int may_have(size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= size)
		return 1;
	errno = EFBIG;
	return 0;
}

int flowfd__memfd(size_t size, unsigned int flags)
{
	int saved = errno, fd, error;

	fd = memfd(flags | MFD_ALLOW_SEALING);
	if (fd >= 0 && may_have(size) && !ftruncate(fd, (off_t)size) &&
	    !fcntl(fd, F_ADD_SEALS, SEALS)) {
		errno = saved;
		return fd;
	}
	error = -errno;
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
	return error;
}

int flowfd__check_memfd(int fd, size_t size)
{
	int saved = errno, seals = fcntl(fd, F_GET_SEALS), ret = 0;
	struct stat status;

	if (seals < 0)
		ret = errno == EBADF ? -EBADF : -ENOTTY;
	else if ((seals & SEALS) != SEALS || fstat(fd, &status) ||
		 status.st_size != (off_t)size)
		ret = -ENOTTY;
	errno = saved;
	return ret;
}

int flowfd__move(void *from, size_t size, void *to)
{
	int saved = errno, error;

	if (mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
		return 0;
	error = map_error();
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
	error = map_error();
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
