// SPDX-License-Identifier: MIT
/*
 * Makes counters with bare system calls: libflowfd would be one more library in
 * the program, and open(2) a cancellation point, which eventfd(2) is not.
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
	const long arguments[6] = { first, second, third, fourth };
	long ret = next_syscall(number, arguments);

	return ret < 0 ? -errno : (int)ret;
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

static int set_up(const struct settings *settings, int fd, unsigned int initial,
		  int flags)
{
	struct flowfd_create_counter counter = counter_of(settings, initial, flags);

	return call(SYS_ioctl, fd, FLOWFD_IOC_SETUP_COUNTER, (long)&counter, 0);
}

/* Each value that a semaphore loses is a permit, and its readers would wait for ever. */
static unsigned int overflow_of(const struct settings *settings, int flags)
{
	bool loses = settings->overflow == FLOWFD_OVERFLOW_SATURATE ||
		     settings->overflow == FLOWFD_OVERFLOW_DROP;

	return flags & EFD_SEMAPHORE && loses ? FLOWFD_OVERFLOW_WAIT : settings->overflow;
}

/*
 * All of the flow control again, with policies: readers of a semaphore have none. A module
 * that does not know policies leaves the counter as it is.
 */
static int set_policies(const struct settings *settings, int fd, unsigned int initial,
			int flags)
{
	struct flowfd_create_counter counter = counter_of(settings, initial, flags);
	struct flowfd_flow flow = {
		.maximum = counter.maximum,
		.write_mark = settings->write_mark,
		.qos = counter.qos,
		.overflow = overflow_of(settings, flags),
	};
	int ret;

	if (!settings_have_policies(settings))
		return 0;
	if (!(flags & EFD_SEMAPHORE)) {
		flow.read_mark = settings->read_mark;
		flow.max_delay = settings->max_delay;
	}
	ret = call(SYS_ioctl, fd, FLOWFD_IOC_SET_FLOW, (long)&flow, 0);
	return ret == -ENOTTY ? 0 : ret;
}

_Static_assert(EFD_CLOEXEC == O_CLOEXEC && EFD_NONBLOCK == O_NONBLOCK,
	       "flags of eventfd(2) are flags of open(2)");

int counter_open(const struct settings *settings, unsigned int initial, int flags)
{
	int fd, ret;

	fd = call(SYS_openat, AT_FDCWD, (long)FLOWFD_DEVICE,
		  O_RDWR | O_NOCTTY | (flags & (EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	if (fd < 0)
		return fd;
	ret = set_up(settings, fd, initial, flags);
	if (ret >= 0)
		ret = set_policies(settings, fd, initial, flags);
	if (ret < 0) {
		call(SYS_close, fd, 0, 0, 0);
		return ret;
	}
	return fd;
}
