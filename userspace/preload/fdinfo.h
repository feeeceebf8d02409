/* SPDX-License-Identifier: MIT */
/* What /proc says of the calling thread's descriptors, without allocating. */
#ifndef FLOWFD_PRELOAD_FDINFO_H
#define FLOWFD_PRELOAD_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct event_state - an eventfd or a counter
 * @counter: it is a counter
 * @semaphore: made with EFD_SEMAPHORE
 * @id: no other of its kind has it
 * @count: 0 to 2^64 - 2
 * @references: of a counter: descriptors in all processes, and calls that use
 *              one now; a watch of epoll(7) or of a ring is none
 */
struct event_state {
	bool counter;
	bool semaphore;
	uint64_t id;
	uint64_t count;
	uint64_t references;
};

/** event_state - false if @fd is neither, or if it cannot be known */
bool event_state(int fd, struct event_state *state);

/**
 * struct watch - that of an epoll(7) or a ring that this thread has open
 * @watcher: descriptor of that one
 * @ring: it is a ring
 * @again: it watches the same number more than once
 * @inode: of the file that is watched
 * @device: that has the inode, as the kernel numbers it
 * @events: as epoll_ctl(2), as @data
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

typedef bool (*watch_found)(int fd, const struct watch *watch,
			    const void *argument);

/**
 * watch_each - call @found for all watches of the number @fd
 * @argument: for @found
 *
 * Returns false as soon as @found does, or if watches cannot be known.
 */
bool watch_each(int fd, watch_found found, const void *argument);

#endif /* FLOWFD_PRELOAD_FDINFO_H */
