/* SPDX-License-Identifier: MIT */
/* The settings of a new counter, in the files of the library. */
#ifndef FLOWFD_LIB_SETTINGS_H
#define FLOWFD_LIB_SETTINGS_H

#include "device.h"

/* The longest structure of later headers that is accepted, in bytes. */
#define FLOWFD__FUTURE_SIZE 256

union flowfd__settings {
	struct flowfd_create_counter counter;
	unsigned char bytes[FLOWFD__FUTURE_SIZE];
};

/**
 * flowfd__settings_copy - copy the settings of a caller
 * @settings: receives them; the rest stays
 * @counter: of the caller
 * @size: of it, in bytes
 *
 * Bytes that do not fit must be zero: then they ask for nothing. Returns 0, -EINVAL for
 * an impossible size, or -EPROTONOSUPPORT.
 */
int flowfd__settings_copy(union flowfd__settings *settings,
			  const struct flowfd_create_counter *counter, size_t size);

/**
 * flowfd__settings_are_known - whether this library knows all that is asked for
 * @settings: copied
 */
int flowfd__settings_are_known(const union flowfd__settings *settings);

#endif /* FLOWFD_LIB_SETTINGS_H */
