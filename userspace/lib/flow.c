// SPDX-License-Identifier: MIT
/*
 * Policies for wakeups and overflow, and reads and writes with a timeout: requests of
 * their own, which flowfd.h documents. None is a cancellation point.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "device.h"

/* ENOTTY is also what a module says that knows counters, but not this request. */
static int explain(int fd, int ret)
{
	uint64_t maximum;

	if (ret == -E2BIG)
		return -EPROTONOSUPPORT;
	if (ret == -ENOTTY && !flowfd__ioctl(fd, EFD_IOC_GET_MAXIMUM, &maximum))
		return -EPROTONOSUPPORT;
	return ret;
}

static int request(int fd, unsigned int direction, unsigned int number, void *flow,
		   size_t size)
{
	if (size < FLOWFD_FLOW_SIZE_VER0 || size > _IOC_SIZEMASK)
		return -EINVAL;
	return explain(fd, flowfd__ioctl(fd, _IOC(direction, 'J', number, size), flow));
}

int flowfd_set_flow(int fd, const struct flowfd_flow *flow, size_t size)
{
	return request(fd, _IOC_WRITE, _IOC_NR(FLOWFD_IOC_SET_FLOW), (void *)flow, size);
}

int flowfd_get_flow(int fd, struct flowfd_flow *flow, size_t size)
{
	return request(fd, _IOC_READ, _IOC_NR(FLOWFD_IOC_GET_FLOW), flow, size);
}

int flowfd_write_with(int fd, uint64_t value, uint64_t timeout, unsigned int flags)
{
	struct flowfd_transfer transfer = {
		.value = value,
		.timeout = timeout,
		.flags = flags,
	};

	return explain(fd, flowfd__ioctl(fd, FLOWFD_IOC_COUNTER_WRITE, &transfer));
}

int flowfd_read_with(int fd, uint64_t *value, uint64_t timeout, unsigned int flags)
{
	struct flowfd_transfer transfer = {
		.timeout = timeout,
		.flags = flags,
	};
	int ret = explain(fd, flowfd__ioctl(fd, FLOWFD_IOC_COUNTER_READ, &transfer));

	if (!ret)
		*value = transfer.value;
	return ret;
}
