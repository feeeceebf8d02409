/* SPDX-License-Identifier: MIT */
/* Counters where the module is not. */
#ifndef FLOWFD_LIB_FALLBACK_H
#define FLOWFD_LIB_FALLBACK_H

#include "settings.h"

/**
 * flowfd__fallback_open - make a counter of an eventfd(2) and memory
 * @c: filled in, if the call succeeds
 * @settings: of the caller
 * @options: of flowfd_counter_open()
 *
 * Returns 0 or an error of flowfd_counter_open().
 */
int flowfd__fallback_open(struct flowfd_counter *c,
			  const union flowfd__settings *settings, unsigned int options);

/**
 * flowfd__fallback_init - fill in a counter
 * @c: counter
 * @fd: eventfd; with DOORBELL_NO_POLL @memory
 * @memory: descriptor of the pages
 * @map: the pages
 * @doorbell: DOORBELL_* flags
 */
void flowfd__fallback_init(struct flowfd_counter *c, int fd, int memory, void *map,
			   uint32_t doorbell);

#endif /* FLOWFD_LIB_FALLBACK_H */
