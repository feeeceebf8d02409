/* SPDX-License-Identifier: MIT */
/* The memory of a counter, for the files of the library. */
#ifndef FLOWFD_LIB_MAPPED_H
#define FLOWFD_LIB_MAPPED_H

#include <stdbool.h>

#include "device.h"

#define FLOWFD__ROLES (FLOWFD_PRODUCER | FLOWFD_CONSUMER)
#define FLOWFD__PAGES 3

/**
 * flowfd__mapped_init - fill in a counter
 * @c: counter
 * @fd: its descriptor
 * @roles: what is done in memory; all else is made a system call
 * @map: its memory; NULL without a role
 * @page: bytes of each page
 */
void flowfd__mapped_init(struct flowfd_counter *c, int fd, unsigned int roles, void *map,
			 size_t page);

/**
 * flowfd__map_own - map a counter that the caller has created, in both roles
 * @c: receives it
 * @fd: its descriptor
 *
 * Returns as flowfd_counter_map().
 */
int flowfd__map_own(struct flowfd_counter *c, int fd);

/** flowfd__is_eventfd - a semaphore without the module is one */
static inline bool flowfd__is_eventfd(const struct flowfd_counter *c)
{
	return !c->doorbell && !(c->features & FLOWFD_HAS_MAXIMUM);
}

#endif /* FLOWFD_LIB_MAPPED_H */
