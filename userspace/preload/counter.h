/* SPDX-License-Identifier: MIT */
/* A flowfd counter in the place of an eventfd. */
#ifndef FLOWFD_PRELOAD_COUNTER_H
#define FLOWFD_PRELOAD_COUNTER_H

#include "preload/settings.h"

/**
 * counter_open - as eventfd(@initial, @flags), with flow control
 * @settings: maximum, bucket and policies of the counter
 * @initial: initial count; the maximum is raised to stay above it
 * @flags: valid flags of eventfd(2); a semaphore gets neither bucket nor read mark
 *
 * Returns the lowest free descriptor, as eventfd(2) would, or -errno.
 */
int counter_open(const struct settings *settings, unsigned int initial, int flags);

#endif /* FLOWFD_PRELOAD_COUNTER_H */
