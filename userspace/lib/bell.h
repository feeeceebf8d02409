/* SPDX-License-Identifier: MIT */
/* The doorbell of a ring without the module, which wakes the consumer for posts. */
#ifndef FLOWFD_LIB_BELL_H
#define FLOWFD_LIB_BELL_H

#include <stdbool.h>

#include "device.h"

/** flowfd__bell_notify - as flowfd_ring_notify() */
int flowfd__bell_notify(const struct flowfd_ring *ring);

/** flowfd__bell_arm - before a look at the posts: the next post rings */
void flowfd__bell_arm(const struct flowfd_ring *ring);

/** flowfd__bell_drain - it is readable; make it readable only if there are posts */
void flowfd__bell_drain(const struct flowfd_ring *ring);

/** flowfd__bell_has_posts - as the module's flowfd_ring_has_posts() */
bool flowfd__bell_has_posts(const struct flowfd_ring *ring);

#endif /* FLOWFD_LIB_BELL_H */
