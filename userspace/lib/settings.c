// SPDX-License-Identifier: MIT
/* Structures of older and newer callers, and the settings of a new counter. */
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

int flowfd__copy(void *to, size_t space, const void *from, size_t size, size_t least)
{
	if (size < least || size > _IOC_SIZEMASK)
		return -EINVAL;
	if (!are_zero(from, space, size))
		return -EPROTONOSUPPORT;
	memcpy(to, from, size < space ? size : space);
	return 0;
}

int flowfd__settings_copy(union flowfd__settings *settings,
			  const struct flowfd_create_counter *counter, size_t size)
{
	return flowfd__copy(settings, sizeof(*settings), counter, size,
			    FLOWFD_CREATE_COUNTER_SIZE_VER0);
}

int flowfd__settings_are_known(const union flowfd__settings *settings)
{
	return are_zero(settings->bytes, sizeof(settings->counter), sizeof(*settings));
}
