/* SPDX-License-Identifier: MIT */
/* A flowfd counter in the place of an eventfd. */
#ifndef FLOWFD_PRELOAD_COUNTER_H
#define FLOWFD_PRELOAD_COUNTER_H

#include <stdbool.h>

#include "preload/settings.h"

/**
 * struct mapping - whether a counter is added to and taken from in memory
 * @wanted: the settings ask for that
 * @why: why it is not; NULL: see @error
 * @error: errno because of which it is not; 0: it is
 */
struct mapping {
	bool wanted;
	const char *why;
	int error;
};

/**
 * counter_open - as eventfd(@initial, @flags), with flow control
 * @settings: maximum, bucket and policies of the counter, and whether to map it
 * @initial: initial count; the maximum is raised to stay above it
 * @flags: valid flags of eventfd(2); a semaphore gets neither bucket nor read mark
 * @mapping: filled in
 *
 * Returns the lowest free descriptor, as eventfd(2) would, or -errno.
 */
int counter_open(const struct settings *settings, unsigned int initial, int flags,
		 struct mapping *mapping);

#endif /* FLOWFD_PRELOAD_COUNTER_H */
