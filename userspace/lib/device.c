// SPDX-License-Identifier: MIT
/*
 * /dev/flowfd: opening it, what the loaded module can do, and whether module
 * and library fit together. Used by every function that creates something. Nothing
 * here is a cancellation point, so that no descriptor is left behind by one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"

int device_ioctl(int fd, unsigned long request, void *argument)
{
	int saved = errno;
	int ret = ioctl(fd, request, argument);

	if (ret < 0) {
		ret = -errno;
		errno = saved;
	}
	return ret;
}

void device_close(int fd)
{
	int saved = errno;

	syscall(SYS_close, fd);
	errno = saved;
}

/* What open(2) fails with, in the terms of flowfd_counter_create(). */
static int open_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENXIO:
		return -ENODEV;
	case EPERM: /* the device filter of a container */
		return -EACCES;
	default:
		return -error;
	}
}

int device_open(struct flowfd_query *query)
{
	int saved = errno;
	int fd = syscall(SYS_openat, AT_FDCWD, FLOWFD_DEVICE,
			 O_RDWR | O_CLOEXEC);
	int ret;

	if (fd < 0) {
		ret = open_error(errno);
		errno = saved;
		return ret;
	}
	*query = (struct flowfd_query){0};
	ret = device_ioctl(fd, FLOWFD_IOC_QUERY, query);
	if (ret == -ENOTTY ||
	    (!ret && query->abi_version != FLOWFD_ABI_VERSION))
		ret = -EPROTONOSUPPORT;
	if (ret < 0) {
		device_close(fd);
		return ret;
	}
	return fd;
}

int flowfd_query(struct flowfd_query *query, size_t size)
{
	struct flowfd_query own;
	int fd;
	int ret;

	if (size > _IOC_SIZEMASK)
		return -EINVAL;
	fd = device_open(&own);
	if (fd < 0)
		return fd;
	ret = device_ioctl(
		fd, _IOC(_IOC_READ, 'J', _IOC_NR(FLOWFD_IOC_QUERY), size),
		query);
	device_close(fd);
	return ret;
}

const char *flowfd_version(void)
{
	return FLOWFD_VERSION;
}
