/* SPDX-License-Identifier: MIT */
/* Reads the calling thread's descriptors in /proc, without allocating. */
#ifndef FLOWFD_PRELOAD_FDINFO_H
#define FLOWFD_PRELOAD_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct event_state - an eventfd or a counter
 * @counter: it is a counter
 * @semaphore: made with EFD_SEMAPHORE
 * @id: unique among eventfds, or among counters
 * @count: 0 to 2^64 - 2
 * @references: of a counter: its descriptors in all processes plus calls in progress
 *              on them; watches of epoll(7) or of a ring do not count
 */
struct event_state {
	bool counter;
	bool semaphore;
	uint64_t id;
	uint64_t count;
	uint64_t references;
};

/** event_state - read the state of @fd; false if it is neither, or unknown */
bool event_state(int fd, struct event_state *state);

/** fdinfo_unread - is @fd open, and cannot be looked at? */
bool fdinfo_unread(int fd);

/**
 * struct watch - a watch of an epoll(7) or a ring that this thread has open
 * @watcher: descriptor of the epoll or the ring
 * @ring: @watcher is a ring
 * @again: @watcher has an earlier watch of the same descriptor number
 * @inode: of the watched file
 * @device: of that inode, in the kernel's encoding
 * @events: as epoll_ctl(2)
 * @data: as epoll_ctl(2)
 */
struct watch {
	int watcher;
	bool ring;
	bool again;
	uint64_t inode;
	uint64_t device;
	uint32_t events;
	uint64_t data;
};

typedef bool (*watch_found)(int fd, const struct watch *watch, const void *argument);

/**
 * watch_each - call @found for each watch of the descriptor number @fd
 * @fd: descriptor, watched by epolls and rings of this process
 * @found: function to call
 * @argument: passed to @found
 *
 * Returns false as soon as @found does, or if the watches cannot be read.
 */
bool watch_each(int fd, watch_found found, const void *argument);

#endif /* FLOWFD_PRELOAD_FDINFO_H */
