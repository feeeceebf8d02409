// SPDX-License-Identifier: MIT
/*
 * The counter: creation, settings, reading and writing. Thin calls into the
 * kernel; flowfd.h documents each.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device.h"

int flowfd_counter_create_from(const struct flowfd_create_counter *counter,
			       size_t size)
{
	struct flowfd_query query;
	int device;
	int fd;

	if (size > _IOC_SIZEMASK)
		return -EINVAL;
	device = device_open(&query);
	if (device < 0)
		return device;
	fd = device_ioctl(
		device,
		_IOC(_IOC_WRITE, 'J', _IOC_NR(FLOWFD_IOC_CREATE_COUNTER), size),
		(void *)counter);
	device_close(device);
	if (fd == -ENOTTY || fd == -E2BIG)
		return -EPROTONOSUPPORT;
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
	return device_ioctl(fd, EFD_IOC_SET_MAXIMUM, &maximum);
}

int flowfd_get_maximum(int fd, uint64_t *maximum)
{
	return device_ioctl(fd, EFD_IOC_GET_MAXIMUM, maximum);
}

int flowfd_set_bucket(int fd, uint32_t capacity, uint32_t rate)
{
	struct eventfd_qos qos = {
		.token_capacity = capacity,
		.token_rate = rate,
	};

	return device_ioctl(fd, EFD_IOC_SET_QOS, &qos);
}

int flowfd_get_bucket(int fd, uint32_t *capacity, uint32_t *rate)
{
	struct eventfd_qos qos;
	int ret = device_ioctl(fd, EFD_IOC_GET_QOS, &qos);

	if (ret < 0)
		return ret;
	*capacity = qos.token_capacity;
	*rate = qos.token_rate;
	return 0;
}

/* A counter moves eight bytes or none; anything else came from no counter. */
static int transfer_result(ssize_t bytes, int saved_errno)
{
	int error = errno;

	errno = saved_errno;
	if (bytes < 0)
		return -error;
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
