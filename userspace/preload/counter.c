// SPDX-License-Identifier: MIT
/*
 * Makes counters with bare system calls: libflowfd would be one more library
 * inside the program, and open(2) a cancellation point where it expects none.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <flowfd.h>

#include "preload/counter.h"
#include "preload/next.h"

static int call(long number, long first, long second, long third, long fourth)
{
	const long arguments[6] = {first, second, third, fourth};
	long ret = next_syscall(number, arguments);

	return ret < 0 ? -errno : (int)ret;
}

static int create(const struct settings *settings, int device,
		  unsigned int initial, int flags)
{
	struct flowfd_create_counter counter = {
		.initial = initial,
		.maximum = settings->maximum,
	};

	if (counter.maximum <= counter.initial)
		counter.maximum = counter.initial + 1;
	if (flags & EFD_NONBLOCK)
		counter.flags |= FLOWFD_NONBLOCK;
	if (flags & EFD_SEMAPHORE) {
		counter.flags |= FLOWFD_SEMAPHORE;
	} else {
		counter.qos.token_rate = settings->rate;
		counter.qos.token_capacity = settings->burst;
	}
	return call(SYS_ioctl, device, FLOWFD_IOC_CREATE_COUNTER,
		    (long)&counter, 0);
}

/*
 * The device takes the lowest free descriptor; the counter, made through it,
 * then takes its place. Both are close-on-exec until that is done, so that
 * nothing leaks into what another thread executes meanwhile.
 */
int counter_open(const struct settings *settings, unsigned int initial,
		 int flags)
{
	int device;
	int fd;
	int ret;

	device = call(SYS_openat, AT_FDCWD, (long)FLOWFD_DEVICE,
		      O_RDWR | O_CLOEXEC, 0);
	if (device < 0)
		return device;
	fd = create(settings, device, initial, flags);
	if (fd < 0) {
		call(SYS_close, device, 0, 0, 0);
		return fd;
	}
	ret = call(SYS_dup3, fd, device, flags & EFD_CLOEXEC, 0);
	call(SYS_close, fd, 0, 0, 0);
	if (ret < 0)
		call(SYS_close, device, 0, 0, 0);
	return ret;
}
