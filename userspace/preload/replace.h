/* SPDX-License-Identifier: MIT */
/* Replaces a counter that the kernel refused by a real eventfd. */
#ifndef FLOWFD_PRELOAD_REPLACE_H
#define FLOWFD_PRELOAD_REPLACE_H

/**
 * enum replaced - what a descriptor is afterwards
 * @REPLACED_NONE: neither a counter nor an eventfd, or unknown
 * @REPLACED_REAL: a real eventfd
 * @REPLACED_STAYS: still a counter, so the kernel would refuse the call again
 */
enum replaced { REPLACED_NONE, REPLACED_REAL, REPLACED_STAYS };

/**
 * replace_counter - make @fd a real eventfd if it is a counter
 * @fd: any descriptor of this process
 * @taker: name of the call that refused it, for the report
 *
 * Keeps the count, the flags and the watches of epoll(7). Does nothing if the counter
 * has another user: another descriptor or process, a thread that waits for it, an
 * io_uring.
 */
enum replaced replace_counter(int fd, const char *taker);

/** replace_unread - report that the descriptors of a call cannot be read */
void replace_unread(const char *taker);

#endif /* FLOWFD_PRELOAD_REPLACE_H */
