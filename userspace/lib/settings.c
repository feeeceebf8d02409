// SPDX-License-Identifier: MIT
/* The settings of a new counter: structures of older and newer callers. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "settings.h"

static int are_zero(const unsigned char *bytes, size_t from, size_t to)
{
	for (; from < to; from++)
		if (bytes[from])
			return 0;
	return 1;
}

int flowfd__settings_copy(union flowfd__settings *settings,
			  const struct flowfd_create_counter *counter, size_t size)
{
	if (size < FLOWFD_CREATE_COUNTER_SIZE_VER0 || size > _IOC_SIZEMASK)
		return -EINVAL;
	if (!are_zero((const unsigned char *)counter, sizeof(*settings), size))
		return -EPROTONOSUPPORT;
	memcpy(settings, counter, size < sizeof(*settings) ? size : sizeof(*settings));
	return 0;
}

int flowfd__settings_are_known(const union flowfd__settings *settings)
{
	return are_zero(settings->bytes, sizeof(settings->counter), sizeof(*settings));
}
