/* SPDX-License-Identifier: MIT */
/* A real eventfd in the place of a counter that the kernel refuses. */
#ifndef FLOWFD_PRELOAD_REPLACE_H
#define FLOWFD_PRELOAD_REPLACE_H

#include <stdbool.h>

/**
 * replace_counter - make @fd a real eventfd if it is a counter
 * @taker: name of the call that refused it, for the report
 *
 * Keeps the count, the flags, and the watches of epoll(7). Returns true if @fd
 * is a real eventfd now, or was one. Does nothing if anything else uses the
 * counter: another descriptor or process, a thread that waits for it, io_uring.
 */
bool replace_counter(int fd, const char *taker);

#endif /* FLOWFD_PRELOAD_REPLACE_H */
