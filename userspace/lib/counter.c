// SPDX-License-Identifier: MIT
/*
 * The counter: creation, settings, reading and writing. Thin calls into the
 * kernel; flowfd.h documents each.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "settings.h"

/* A request with settings, of which the bytes that do not fit are known to be 0. */
static int request(int fd, unsigned int number, union flowfd__settings *settings,
		   size_t size)
{
	if (size > sizeof(*settings))
		size = sizeof(*settings);
	return flowfd__ioctl(fd, _IOC(_IOC_WRITE, 'J', number, size), settings);
}

static int set_up(int fd, union flowfd__settings *settings, size_t size)
{
	int ret = flowfd__check(fd);

	if (ret)
		return ret;
	ret = request(fd, _IOC_NR(FLOWFD_IOC_SETUP_COUNTER), settings, size);
	return ret > 0 || ret == -ENOTTY || ret == -E2BIG ? -EPROTONOSUPPORT : ret;
}

static int create_on(int device, union flowfd__settings *settings, size_t size)
{
	int ret = request(device, _IOC_NR(FLOWFD_IOC_CREATE_COUNTER), settings, size);

	return ret == -E2BIG ? -EPROTONOSUPPORT : ret;
}

int flowfd_counter_create_on(int device, const struct flowfd_create_counter *counter,
			     size_t size)
{
	union flowfd__settings settings;
	int ret = flowfd__settings_copy(&settings, counter, size);

	return ret ? ret : create_on(device, &settings, size);
}

/*
 * A mapped counter is created, and replaces the device as the lowest free descriptor.
 * Until then both are close-on-exec.
 */
static int create_mapped(union flowfd__settings *settings, size_t size)
{
	int keep = settings->counter.flags & FLOWFD_KEEP_ON_EXEC;
	int device = flowfd__open(O_CLOEXEC);
	int ret;

	if (device < 0)
		return device;
	settings->counter.flags &= ~FLOWFD_KEEP_ON_EXEC;
	ret = flowfd__check(device);
	if (!ret)
		ret = create_on(device, settings, size);
	if (ret >= 0)
		ret = flowfd__take_place(ret, device, keep);
	if (ret < 0)
		flowfd__close(device);
	return ret;
}

/* open(2) takes the flags that it knows, the counter all other settings. */
int flowfd_counter_create_from(const struct flowfd_create_counter *counter, size_t size)
{
	union flowfd__settings settings;
	int flags = O_CLOEXEC;
	int fd, ret;

	ret = flowfd__settings_copy(&settings, counter, size);
	if (ret)
		return ret;
	if (settings.counter.flags & FLOWFD_MAPPED)
		return create_mapped(&settings, size);
	if (settings.counter.flags & FLOWFD_KEEP_ON_EXEC)
		flags = 0;
	if (settings.counter.flags & FLOWFD_NONBLOCK)
		flags |= O_NONBLOCK;
	settings.counter.flags &= ~(FLOWFD_KEEP_ON_EXEC | FLOWFD_NONBLOCK);
	fd = flowfd__open(flags);
	if (fd < 0)
		return fd;
	ret = set_up(fd, &settings, size);
	if (ret) {
		flowfd__close(fd);
		return ret;
	}
	return fd;
}

int flowfd_counter_create(uint64_t initial, unsigned int flags)
{
	const struct flowfd_create_counter counter = {
		.initial = initial,
		.flags = flags,
	};

	return flowfd_counter_create_from(&counter, sizeof(counter));
}

int flowfd_set_maximum(int fd, uint64_t maximum)
{
	return flowfd__request(fd, EFD_IOC_SET_MAXIMUM, &maximum);
}

int flowfd_get_maximum(int fd, uint64_t *maximum)
{
	return flowfd__request(fd, EFD_IOC_GET_MAXIMUM, maximum);
}

int flowfd_set_bucket(int fd, uint32_t capacity, uint32_t rate)
{
	struct eventfd_qos qos = {
		.token_capacity = capacity,
		.token_rate = rate,
	};

	return flowfd__request(fd, EFD_IOC_SET_QOS, &qos);
}

int flowfd_get_bucket(int fd, uint32_t *capacity, uint32_t *rate)
{
	struct eventfd_qos qos;
	int ret = flowfd__request(fd, EFD_IOC_GET_QOS, &qos);

	if (ret)
		return ret;
	*capacity = qos.token_capacity;
	*rate = qos.token_rate;
	return 0;
}

int flowfd_bridge(int fd, int eventfd, unsigned int flags)
{
	struct flowfd_bridge bridge = {
		.eventfd = eventfd,
		.flags = flags,
	};

	return flowfd__request(fd, FLOWFD_IOC_COUNTER_BRIDGE, &bridge);
}

/* A counter moves eight bytes or none: with any other result it is no counter. */
static int transfer_result(ssize_t bytes, int saved_errno)
{
	int error = errno;

	errno = saved_errno;
	if (bytes < 0)
		return flowfd__refused(-error);
	return bytes == sizeof(uint64_t) ? 0 : -EIO;
}

int flowfd_write(int fd, uint64_t value)
{
	int saved = errno;

	return transfer_result(write(fd, &value, sizeof(value)), saved);
}

int flowfd_read(int fd, uint64_t *value)
{
	int saved = errno;
	uint64_t count;
	int ret = transfer_result(read(fd, &count, sizeof(count)), saved);

	if (!ret)
		*value = count;
	return ret;
}
