/* SPDX-License-Identifier: MIT */
/* A real eventfd in the place of a counter that the kernel refuses. */
#ifndef FLOWFD_PRELOAD_REPLACE_H
#define FLOWFD_PRELOAD_REPLACE_H

/**
 * enum replaced - what became of a descriptor
 * @REPLACED_NONE: neither a counter nor an eventfd, or not known
 * @REPLACED_REAL: a real eventfd now, or was one
 * @REPLACED_STAYS: a counter that stays, so the call is refused again
 */
enum replaced { REPLACED_NONE, REPLACED_REAL, REPLACED_STAYS };

/**
 * replace_counter - make @fd a real eventfd if it is a counter
 * @taker: name of the call that refused it, for the report
 *
 * Keeps the count, the flags, and the watches of epoll(7). Does nothing if
 * anything else uses the counter: another descriptor or process, a thread that
 * waits for it, io_uring.
 */
enum replaced replace_counter(int fd, const char *taker);

/** replace_unread - report that the descriptors of a call cannot be read */
void replace_unread(const char *taker);

#endif /* FLOWFD_PRELOAD_REPLACE_H */
