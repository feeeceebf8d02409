/* SPDX-License-Identifier: MIT */
/* Structures of callers and the settings of a new counter, in the files of the library. */
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
 * flowfd__copy - copy a structure of a caller, whose header may be older or newer
 * @to: receives it; what the caller's structure does not have stays
 * @space: of @to, in bytes
 * @from: of the caller
 * @size: of it
 * @least: size in the first version of the ABI
 *
 * Bytes that do not fit must be zero: then they ask for nothing. Returns 0, -EINVAL for
 * an impossible size, or -EPROTONOSUPPORT.
 */
int flowfd__copy(void *to, size_t space, const void *from, size_t size, size_t least);

/** flowfd__settings_copy - the same for the settings of a new counter */
int flowfd__settings_copy(union flowfd__settings *settings,
			  const struct flowfd_create_counter *counter, size_t size);

/**
 * flowfd__settings_are_known - whether this library knows all that is asked for
 * @settings: copied
 */
int flowfd__settings_are_known(const union flowfd__settings *settings);

#endif /* FLOWFD_LIB_SETTINGS_H */
