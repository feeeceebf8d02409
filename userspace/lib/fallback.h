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

#endif /* FLOWFD_LIB_FALLBACK_H */
