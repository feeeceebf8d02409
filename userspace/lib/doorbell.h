/* SPDX-License-Identifier: MIT */
/*
 * The doorbell: an eventfd(2) that does for a counter in memory what the module does for
 * a mapped one. It is readable while there is a count, and full while a writer has found
 * no room. All functions are for counters that have one; when these are unmapped, adds
 * and takes return -ENODEV.
 */
#ifndef FLOWFD_LIB_DOORBELL_H
#define FLOWFD_LIB_DOORBELL_H

#include "device.h"

/* @doorbell of struct flowfd_counter. */
#define DOORBELL_USED	      (1U << 0)
#define DOORBELL_NONBLOCK     (1U << 1) /* the eventfd always is; calls may sleep */
#define DOORBELL_ONE_CONSUMER (1U << 2)
#define DOORBELL_NO_POLL      (1U << 3) /* there is no eventfd: see unpolled.h */
#define DOORBELL_FLAGS	      ((1U << 4) - 1)

/** flowfd__doorbell_start - makes the doorbell of a new counter; 0 or -EOPNOTSUPP */
int flowfd__doorbell_start(const struct flowfd_counter *c);

/**
 * flowfd__doorbell_probe - whether an eventfd is no semaphore, if the kernel does not tell
 * @c: counter that others may use
 *
 * Returns 0, -ENOTTY, or an error of write(2).
 */
int flowfd__doorbell_probe(const struct flowfd_counter *c);

/** flowfd__doorbell_changed - tell all whom the new settings may concern */
void flowfd__doorbell_changed(const struct flowfd_counter *c);

/** flowfd__doorbell_notify - as flowfd_counter_notify(); 0, or why nobody was told */
int flowfd__doorbell_notify(const struct flowfd_counter *c, unsigned int role);

/**
 * flowfd__doorbell_add - add after there was no room in memory
 * @c: counter
 * @value: as flowfd_write()
 * @deadline: of deadline.h
 *
 * Returns as flowfd_add_with().
 */
int flowfd__doorbell_add(const struct flowfd_counter *c, uint64_t value,
			 uint64_t deadline);

/**
 * flowfd__doorbell_take - take after there was no count in memory
 * @c: counter
 * @value: receives the count
 * @deadline: of deadline.h
 *
 * Returns as flowfd_take_with().
 */
int flowfd__doorbell_take(const struct flowfd_counter *c, uint64_t *value,
			  uint64_t deadline);

/** flowfd__doorbell_try_take - the same, without waiting */
int flowfd__doorbell_try_take(const struct flowfd_counter *c, uint64_t *value);

#endif /* FLOWFD_LIB_DOORBELL_H */
