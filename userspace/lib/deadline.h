/* SPDX-License-Identifier: MIT */
/* Until when a call may sleep, in ns of CLOCK_MONOTONIC, where the kernel does not know. */
#ifndef FLOWFD_LIB_DEADLINE_H
#define FLOWFD_LIB_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#define FLOWFD__AT_ONCE 0	   /* it may not */
#define FLOWFD__NEVER	UINT64_MAX /* as long as it takes */

#define SECOND_NS 1000000000ULL

/** flowfd__now - the time in ns */
uint64_t flowfd__now(void);

/** flowfd__deadline - of a call that has @timeout ns from now; 0: FLOWFD__NEVER */
uint64_t flowfd__deadline(uint64_t timeout);

/** flowfd__is_over - whether a time has come; FLOWFD__AT_ONCE is none */
bool flowfd__is_over(uint64_t deadline);

/**
 * flowfd__wait_until - poll a descriptor
 * @deadline: until when
 * @fd: descriptor
 * @events: POLLIN or POLLOUT
 *
 * Returns 0 when it is ready, -EAGAIN with FLOWFD__AT_ONCE, -ETIMEDOUT, -EINTR, -EBADF,
 * or -EACCES of a filter.
 * -ETIMEDOUT also if it is ready too late, so callers look once more.
 */
int flowfd__wait_until(uint64_t deadline, int fd, short events);

/**
 * flowfd__rest - after a look that gave nothing: perhaps sleep a millisecond
 * @vain: how many such looks there were in this call
 * @deadline: until when at most; with FLOWFD__AT_ONCE it does not sleep
 *
 * A peer can make the descriptor ready at all times, or the word change, so that no sleep
 * is one. Then the caller keeps neither its processor nor, as nothing is interrupted, the
 * signals that shall end it. Threads that share a counter also look for nothing, so most
 * looks are followed by no nap. One that may not sleep ends after so many looks.
 *
 * Returns 0, -ETIMEDOUT, -EINTR or -EACCES; -EAGAIN with FLOWFD__AT_ONCE.
 */
int flowfd__rest(unsigned int *vain, uint64_t deadline);

#endif /* FLOWFD_LIB_DEADLINE_H */
