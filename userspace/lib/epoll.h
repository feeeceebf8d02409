/* SPDX-License-Identifier: MIT */
/* epoll(7) for rings without the module. errno stays as it is. */
#ifndef FLOWFD_LIB_EPOLL_H
#define FLOWFD_LIB_EPOLL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Returns a descriptor that is closed on exec, or a negative errno. */
int flowfd__epoll_open(void);

/**
 * flowfd__epoll_control - epoll_ctl(2)
 * @epoll: descriptor
 * @op: EPOLL_CTL_*
 * @fd: the file
 * @events: EPOLL* bits
 * @tag: returned with its events
 *
 * Returns 0 or a negative errno.
 */
int flowfd__epoll_control(int epoll, int op, int fd, uint32_t events, uint64_t tag);

/**
 * struct flowfd__epoll_sleep - how to sleep
 * @timeout: nanoseconds, as in struct flowfd_ring_wait
 * @sigmask: address of 8 bytes, or 0
 */
struct flowfd__epoll_sleep {
	uint64_t timeout;
	uint64_t sigmask;
};

/**
 * flowfd__epoll_wait - epoll_pwait2(2), or epoll_pwait(2) where there is none
 * @epoll: descriptor
 * @events: receives them
 * @count: length of @events
 * @sleep: how
 *
 * Returns how many there are, or a negative errno.
 */
int flowfd__epoll_wait(int epoll, struct epoll_event *events, int count,
		       const struct flowfd__epoll_sleep *sleep);

/**
 * flowfd__epoll_wait_cancellably - the same, as a cancellation point
 * @epoll: descriptor
 * @events: receives them, perhaps also if the thread is cancelled
 * @count: length of @events
 * @for_ever: sleep until there are some; else not at all
 *
 * Returns how many there are, or a negative errno.
 */
int flowfd__epoll_wait_cancellably(int epoll, struct epoll_event *events, int count,
				   bool for_ever);

/**
 * flowfd__epoll_list - list what an epoll watches
 * @epoll: descriptor
 * @each: called with the tag of each file
 * @argument: passed to @each
 *
 * Reads /proc. Returns 0 or a negative errno.
 */
int flowfd__epoll_list(int epoll, void (*each)(void *argument, uint64_t tag),
		       void *argument);

#endif /* FLOWFD_LIB_EPOLL_H */
