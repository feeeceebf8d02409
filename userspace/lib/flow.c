// SPDX-License-Identifier: MIT
/*
 * Policies for wakeups and overflow, reads and writes with a timeout, and statistics:
 * requests of their own, which flowfd.h documents. None is a cancellation point.
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
	if (ret == -ENOTTY && !flowfd__request(fd, EFD_IOC_GET_MAXIMUM, &maximum))
		return -EPROTONOSUPPORT;
	return ret;
}

/* Of which the structure has the caller's @size. */
static int request(int fd, unsigned int cmd, void *arg, size_t size, size_t least)
{
	if (size < least || size > _IOC_SIZEMASK)
		return -EINVAL;
	cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
	return explain(fd, flowfd__request(fd, cmd, arg));
}

int flowfd_set_flow(int fd, const struct flowfd_flow *flow, size_t size)
{
	return request(fd, FLOWFD_IOC_SET_FLOW, (void *)flow, size,
		       FLOWFD_FLOW_SIZE_VER0);
}

int flowfd_get_flow(int fd, struct flowfd_flow *flow, size_t size)
{
	return request(fd, FLOWFD_IOC_GET_FLOW, flow, size, FLOWFD_FLOW_SIZE_VER0);
}

int flowfd_counter_stats(int fd, struct flowfd_counter_stats *stats, size_t size)
{
	return request(fd, FLOWFD_IOC_COUNTER_STATS, stats, size,
		       FLOWFD_COUNTER_STATS_SIZE_VER0);
}

static int do_transfer(int fd, unsigned int cmd, struct flowfd_transfer *transfer)
{
	return flowfd__refused(explain(fd, flowfd__request(fd, cmd, transfer)));
}

int flowfd_write_with(int fd, uint64_t value, uint64_t timeout, unsigned int flags)
{
	struct flowfd_transfer transfer = {
		.value = value,
		.timeout = timeout,
		.flags = flags,
	};

	return do_transfer(fd, FLOWFD_IOC_COUNTER_WRITE, &transfer);
}

int flowfd_read_with(int fd, uint64_t *value, uint64_t timeout, unsigned int flags)
{
	struct flowfd_transfer transfer = {
		.timeout = timeout,
		.flags = flags,
	};
	int ret = do_transfer(fd, FLOWFD_IOC_COUNTER_READ, &transfer);

	if (!ret)
		*value = transfer.value;
	return ret;
}
