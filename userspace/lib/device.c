// SPDX-License-Identifier: MIT
/*
 * /dev/flowfd: opening it, what the loaded module can do, and whether module
 * and library match. Used by every function that creates something. Nothing here
 * is a cancellation point: cancellation would leak the descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"

int flowfd__ioctl(int fd, unsigned long request, void *argument)
{
	int saved = errno;
	int ret = ioctl(fd, request, argument);

	if (ret < 0) {
		ret = -errno;
		errno = saved;
	}
	return ret;
}

int flowfd__request(int fd, unsigned long request, void *argument)
{
	int ret = flowfd__ioctl(fd, request, argument);

	return ret > 0 ? -ENOTTY : ret;
}

void flowfd__close(int fd)
{
	int saved = errno;

	syscall(SYS_close, fd);
	errno = saved;
}

int flowfd__take_place(int fd, int device, int keep)
{
	int saved = errno;
	int ret = syscall(SYS_dup3, fd, device, keep ? 0 : O_CLOEXEC);

	if (ret < 0) {
		ret = -errno;
		errno = saved;
	}
	flowfd__close(fd);
	return ret;
}

/* Turns an errno of open(2) into an error of flowfd_counter_create(). */
static int open_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENXIO:
	case EISDIR: /* a container makes a directory if the host has no device */
		return -ENODEV;
	case EPERM: /* the device filter of a container */
		return -EACCES;
	default:
		return -error;
	}
}

int flowfd__open(int flags)
{
	int saved = errno;
	int fd = syscall(SYS_openat, AT_FDCWD, FLOWFD_DEVICE, O_RDWR | O_NOCTTY | flags);

	if (fd < 0) {
		fd = open_error(errno);
		errno = saved;
	}
	return fd;
}

int flowfd__check(int fd)
{
	static atomic_bool fits;
	struct flowfd_query query = { 0 };
	int ret;

	if (atomic_load_explicit(&fits, memory_order_relaxed))
		return 0;
	ret = flowfd__request(fd, FLOWFD_IOC_QUERY, &query);
	/* Another device may have the name. Old drivers say EINVAL to unknown requests. */
	if (ret == -ENOTTY || ret == -EINVAL ||
	    (!ret && query.abi_version != FLOWFD_ABI_VERSION))
		return -EPROTONOSUPPORT;
	if (!ret)
		atomic_store_explicit(&fits, true, memory_order_relaxed);
	return ret;
}

int flowfd_device_open(void)
{
	int fd = flowfd__open(O_CLOEXEC);
	int ret;

	if (fd < 0)
		return fd;
	ret = flowfd__check(fd);
	if (!ret)
		return fd;
	flowfd__close(fd);
	return ret;
}

int flowfd__create(unsigned long request, void *argument, int keep)
{
	int device = flowfd_device_open();
	int fd;

	if (device < 0)
		return device;
	fd = flowfd__ioctl(device, request, argument);
	if (fd >= 0)
		fd = flowfd__take_place(fd, device, keep);
	else if (fd == -ENOTTY)
		fd = -EPROTONOSUPPORT;
	if (fd < 0)
		flowfd__close(device);
	return fd;
}

int flowfd_query(struct flowfd_query *query, size_t size)
{
	int fd, ret;

	if (size > _IOC_SIZEMASK)
		return -EINVAL;
	fd = flowfd__open(O_CLOEXEC);
	if (fd < 0)
		return fd;
	ret = flowfd__check(fd);
	if (!ret)
		ret = flowfd__request(
			fd, _IOC(_IOC_READ, 'J', _IOC_NR(FLOWFD_IOC_QUERY), size), query);
	flowfd__close(fd);
	return ret;
}

const char *flowfd_version(void)
{
	return FLOWFD_VERSION;
}
