// SPDX-License-Identifier: MIT
/* The balance of a listening socket. */
#include <errno.h>

#include "device.h"

int flowfd_balance(int listener, unsigned int flags)
{
	struct flowfd_balance args = { .fd = listener, .flags = flags };
	int device = flowfd_device_open();
	int fd;

	if (device < 0)
		return device;
	fd = flowfd__ioctl(device, FLOWFD_IOC_BALANCE, &args);
	if (fd < 0) {
		flowfd__close(device);
		return fd == -ENOTTY ? -EPROTONOSUPPORT : fd;
	}
	return flowfd__take_place(fd, device, flags & FLOWFD_KEEP_ON_EXEC);
}
