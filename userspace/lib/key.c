// SPDX-License-Identifier: MIT
/* Counters and rings that are opened by a key. */
#include <errno.h>

#include "device.h"

int flowfd_share(int fd, struct flowfd_key *key)
{
	struct flowfd_share args = { .flags = 0 };
	int ret = flowfd__ioctl(fd, FLOWFD_IOC_SHARE, &args);

	if (!ret)
		*key = args.key;
	return ret;
}

int flowfd_open_shared(const struct flowfd_key *key, unsigned int flags)
{
	struct flowfd_share args = { .key = *key, .flags = flags };
	int device = flowfd_device_open();
	int fd;

	if (device < 0)
		return device;
	fd = flowfd__ioctl(device, FLOWFD_IOC_OPEN, &args);
	if (fd < 0) {
		flowfd__close(device);
		return fd == -ENOTTY ? -EPROTONOSUPPORT : fd;
	}
	return flowfd__take_place(fd, device, flags & FLOWFD_KEEP_ON_EXEC);
}
