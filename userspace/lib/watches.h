/* SPDX-License-Identifier: MIT */
/*
 * What has the items of a ring without the module: files, as epoll(7) knows them, and
 * posts. The caller holds the lock, and clears items.
 */
#ifndef FLOWFD_LIB_WATCHES_H
#define FLOWFD_LIB_WATCHES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"

/* Tags of epoll that are no item's. */
#define FLOWFD__TAG_DOORBELL UINT64_MAX
#define FLOWFD__TAG_NOBODY   (UINT64_MAX - 1)

/* Who has an item. */
enum flowfd__owner_kind {
	FLOWFD__FREE,
	FLOWFD__FILE,
	/* A file whose number another one has by now. It may still be open elsewhere. */
	FLOWFD__RENAMED,
	FLOWFD__POST,
};

/**
 * struct flowfd__owner - who has an item
 * @kind: an enum flowfd__owner_kind
 * @generation: changes when events of before must not be delivered
 * @fd: the number under which the file was added
 * @next: in the chain of this number, or among the free ones: an item's number plus one
 * @is_open: found by the sweep that is under way
 */
struct flowfd__owner {
	uint8_t kind;
	bool is_open;
	uint32_t generation;
	int fd;
	uint32_t next;
};

/**
 * struct flowfd_watches - what a ring without the module watches
 * @alive: 1; in a child after fork(2) all of this reads as 0
 * @max_items: as many owners there are
 * @mask: number of chains minus 1
 * @tail: as the module's: how many slots were filled
 * @arms: how often the consumer has armed the doorbell
 * @used: items from this one on were never used
 * @free_count: items that were used and are free again
 * @free_first: the first of them, as a number plus one
 * @free_last: the last of them
 * @lock: guards all but @tail and @arms, which are the consumer's, and the publishing of
 *	events
 * @chains: files by their number
 * @owners: by item
 */
struct flowfd_watches {
	uint32_t alive;
	uint32_t max_items;
	uint32_t mask;
	uint32_t tail;
	uint32_t arms;
	uint32_t used;
	uint32_t free_count;
	uint32_t free_first;
	uint32_t free_last;
	pthread_mutex_t lock;
	uint32_t *chains;
	struct flowfd__owner owners[];
};

/** flowfd__watches_alloc - allocate memory that a child does not see */
int flowfd__watches_alloc(struct flowfd_watches **watches, uint32_t max_items,
			  uint32_t slots);

/** flowfd__watches_free - free it, also in a child */
void flowfd__watches_free(struct flowfd_watches *w, uint32_t max_items, uint32_t slots);

/**
 * flowfd__watches_take_item - take a free item
 * @w: locked
 * @items: of the ring
 * @resting: bits of an item's @queued with which it is passed over
 *
 * Free items are used again as late as possible. Returns its number or -ENOSPC.
 */
int flowfd__watches_take_item(struct flowfd_watches *w,
			      const struct flowfd_ring_item *items, uint32_t resting);

/** flowfd__watches_return_item - the item @number was taken, and has no owner */
void flowfd__watches_return_item(struct flowfd_watches *w, uint32_t number);

/** flowfd__watches_find - the item of the file added as @fd, or -ENOENT */
int flowfd__watches_find(const struct flowfd_watches *w, int fd);

/**
 * flowfd__watches_add - give an item an owner
 * @w: locked
 * @number: of the item, taken
 * @fd: the file; -1: a post
 *
 * A file that was added under this number before is FLOWFD__RENAMED.
 */
void flowfd__watches_add(struct flowfd_watches *w, uint32_t number, int fd);

/** flowfd__watches_remove - the item @number has no owner any more, and is free */
void flowfd__watches_remove(struct flowfd_watches *w, uint32_t number);

/** flowfd__watches_tag - what epoll returns with events of @number */
uint64_t flowfd__watches_tag(const struct flowfd_watches *w, uint32_t number);

/** flowfd__watches_number - the item of a file with this tag, or -ENOENT */
int flowfd__watches_number(const struct flowfd_watches *w, uint64_t tag);

#endif /* FLOWFD_LIB_WATCHES_H */
