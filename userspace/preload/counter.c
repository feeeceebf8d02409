// SPDX-License-Identifier: MIT
/* Makes counters without libflowfd, which would be one more library in the program. */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <flowfd.h>

#include "preload/counter.h"

static int request(int fd, unsigned long number, void *argument)
{
	return syscall(SYS_ioctl, fd, number, argument) < 0 ? -errno : 0;
}

static struct flowfd_create_counter counter_of(const struct settings *settings,
					       unsigned int initial, int flags)
{
	struct flowfd_create_counter counter = {
		.initial = initial,
		.maximum = settings->maximum,
	};

	if (counter.maximum <= counter.initial)
		counter.maximum = counter.initial + 1;
	if (flags & EFD_SEMAPHORE) {
		counter.flags = FLOWFD_SEMAPHORE;
	} else {
		counter.qos.token_rate = settings->rate;
		counter.qos.token_capacity = settings->burst;
	}
	return counter;
}

/* Each value that a semaphore loses is a permit, and its readers would wait for ever. */
static unsigned int overflow_of(const struct settings *settings, int flags)
{
	bool loses = settings->overflow == FLOWFD_OVERFLOW_SATURATE ||
		     settings->overflow == FLOWFD_OVERFLOW_DROP;

	return flags & EFD_SEMAPHORE && loses ? FLOWFD_OVERFLOW_WAIT : settings->overflow;
}

/* All of the flow control again, with policies: readers of a semaphore have none. */
static int set_policies(const struct settings *settings, int fd,
			const struct flowfd_create_counter *counter, int flags)
{
	struct flowfd_flow flow = {
		.maximum = counter->maximum,
		.write_mark = settings->write_mark,
		.qos = counter->qos,
		.overflow = overflow_of(settings, flags),
	};

	if (!settings_have_policies(settings))
		return 0;
	if (!(flags & EFD_SEMAPHORE)) {
		flow.read_mark = settings->read_mark;
		flow.max_delay = settings->max_delay;
	}
	return request(fd, FLOWFD_IOC_SET_FLOW, &flow);
}

_Static_assert(EFD_CLOEXEC == O_CLOEXEC && EFD_NONBLOCK == O_NONBLOCK,
	       "flags of eventfd(2) are flags of open(2)");

int counter_open(const struct settings *settings, unsigned int initial, int flags)
{
	struct flowfd_create_counter counter = counter_of(settings, initial, flags);
	int fd, ret;

	fd = syscall(SYS_openat, AT_FDCWD, FLOWFD_DEVICE,
		     O_RDWR | O_NOCTTY | (flags & (EFD_CLOEXEC | EFD_NONBLOCK)));
	if (fd < 0)
		return -errno;
	ret = request(fd, FLOWFD_IOC_SETUP_COUNTER, &counter);
	if (!ret)
		ret = set_policies(settings, fd, &counter, flags);
	if (ret) {
		syscall(SYS_close, fd);
		return ret;
	}
	return fd;
}
