// SPDX-License-Identifier: MIT
/* Calls of eventfd(2) for the doorbells of counters and rings. */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"
#include "eventfd.h"
#include "sanitizer.h"

int flowfd__eventfd(int flags)
{
	int saved = errno, fd = eventfd(0, flags);

	if (fd < 0) {
		fd = -errno;
		errno = saved;
	}
	return fd;
}

/*
 * The eventfd does not block: -EAGAIN says that it was empty, or rung already. -EPERM is of
 * a filter, whatever that answers, -EINTR of an eventfd that a peer made block, and all
 * others are of another file that has its number.
 */
static int transfer_result(long bytes, int saved)
{
	int ret = 0;

	if (bytes < 0 && flowfd__is_filtered(-errno))
		ret = -EPERM;
	else if (bytes < 0 && errno != EAGAIN)
		ret = errno == EINTR ? -EINTR : -EBADF;
	else if (bytes >= 0 && bytes != sizeof(uint64_t))
		ret = -EBADF;
	errno = saved;
	return ret;
}

int flowfd__eventfd_drain(int fd, uint64_t *value)
{
	struct iovec buffer = { .iov_base = value, .iov_len = sizeof(*value) };
	int saved = errno;
	long bytes = syscall(SYS_preadv2, fd, &buffer, 1, -1L, -1L, RWF_NOWAIT);

	/* Before Linux 5.8 eventfds do not know the flag. A filter may know read(2) alone. */
	if (bytes < 0 && (errno == EOPNOTSUPP || flowfd__is_filtered(-errno)))
		bytes = syscall(SYS_read, fd, value, sizeof(*value));
	flowfd__stored(value, bytes);
	return transfer_result(bytes, saved);
}

int flowfd__eventfd_write(int fd, uint64_t value)
{
	int saved = errno;

	return transfer_result(syscall(SYS_write, fd, &value, sizeof(value)), saved);
}
