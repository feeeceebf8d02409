/* SPDX-License-Identifier: MIT */
/*
 * A ring without the module: epoll(7) watches the files, and a wait moves their events
 * into the memory from which they are harvested. All functions but the first are for
 * rings that have @watches.
 */
#ifndef FLOWFD_LIB_RING_EPOLL_H
#define FLOWFD_LIB_RING_EPOLL_H

#include "device.h"

/**
 * flowfd__ring_epoll_create - make a ring of epoll(7) and memory
 * @ring: filled in, if the call succeeds
 * @max_items: of flowfd_ring_create()
 * @flags: of flowfd_ring_create(), without FLOWFD_FALLBACK
 *
 * Returns 0 or an error of flowfd_ring_create().
 */
int flowfd__ring_epoll_create(struct flowfd_ring *ring, uint32_t max_items,
			      unsigned int flags);

/** flowfd__ring_epoll_destroy - as flowfd_ring_destroy(), but for the descriptor */
void flowfd__ring_epoll_destroy(struct flowfd_ring *ring);

/** flowfd__ring_epoll_control - as flowfd_ring_control() */
int flowfd__ring_epoll_control(const struct flowfd_ring *ring,
			       struct flowfd_ring_entry *entries, uint32_t count);

/**
 * flowfd__ring_epoll_wait - as flowfd_ring_wait_with()
 * @ring: ring
 * @args: copied and checked for size
 * @cancellable: without a timeout and a mask, be a cancellation point
 */
int flowfd__ring_epoll_wait(const struct flowfd_ring *ring,
			    const struct flowfd_ring_wait *args, int cancellable);

#endif /* FLOWFD_LIB_RING_EPOLL_H */
