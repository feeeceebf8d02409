// SPDX-License-Identifier: MIT
/*
 * What has the items of a ring without the module. epoll(7) returns a tag with each
 * event: an item's number, and its generation, so that an event that was on its way when
 * the file was changed or removed is not delivered.
 */
#include <errno.h>

#include "memory.h"
#include "watches.h"

static size_t chains_offset(uint32_t max_items)
{
	return sizeof(struct flowfd_watches) +
	       (size_t)max_items * sizeof(struct flowfd__owner);
}

static size_t size_of(uint32_t max_items, uint32_t slots)
{
	return chains_offset(max_items) + (size_t)slots * sizeof(uint32_t);
}

int flowfd__watches_alloc(struct flowfd_watches **watches, uint32_t max_items,
			  uint32_t slots)
{
	struct flowfd_watches *w;
	void *memory = NULL;
	int ret = flowfd__map_wiped_on_fork(&memory, size_of(max_items, slots));

	if (ret)
		return ret;
	w = memory;
	w->max_items = max_items;
	w->mask = slots - 1;
	pthread_mutex_init(&w->lock, NULL);
	w->chains = (void *)((char *)memory + chains_offset(max_items));
	w->alive = 1;
	*watches = w;
	return 0;
}

void flowfd__watches_free(struct flowfd_watches *w, uint32_t max_items, uint32_t slots)
{
	flowfd__unmap(w, size_of(max_items, slots));
}

void flowfd__watches_return_item(struct flowfd_watches *w, uint32_t number)
{
	w->owners[number].next = 0;
	if (w->free_count++)
		w->owners[w->free_last - 1].next = number + 1;
	else
		w->free_first = number + 1;
	w->free_last = number + 1;
}

static uint32_t take_first(struct flowfd_watches *w)
{
	uint32_t number = w->free_first - 1;

	w->free_first = w->owners[number].next;
	w->free_count--;
	return number;
}

/* As flowfd_ring_take_item() of the module. */
int flowfd__watches_take_item(struct flowfd_watches *w,
			      const struct flowfd_ring_item *items, uint32_t resting)
{
	uint32_t number, left;

	if (w->used < w->max_items)
		return (int)w->used++;
	for (left = w->free_count; left; left--) {
		number = take_first(w);
		if (!(__atomic_load_n(&items[number].queued, __ATOMIC_RELAXED) & resting))
			return (int)number;
		flowfd__watches_return_item(w, number);
	}
	return -ENOSPC;
}

static uint32_t *chain_of(const struct flowfd_watches *w, int fd)
{
	return &w->chains[(uint32_t)fd & w->mask];
}

int flowfd__watches_find(const struct flowfd_watches *w, int fd)
{
	uint32_t entry = *chain_of(w, fd);

	while (entry && w->owners[entry - 1].fd != fd)
		entry = w->owners[entry - 1].next;
	return entry ? (int)(entry - 1) : -ENOENT;
}

static void leave_chain(struct flowfd_watches *w, uint32_t number)
{
	uint32_t *entry = chain_of(w, w->owners[number].fd);

	while (*entry != number + 1)
		entry = &w->owners[*entry - 1].next;
	*entry = w->owners[number].next;
}

void flowfd__watches_add(struct flowfd_watches *w, uint32_t number, int fd)
{
	struct flowfd__owner *owner = &w->owners[number];
	int before = flowfd__watches_find(w, fd);

	owner->fd = fd;
	if (fd < 0) {
		owner->kind = FLOWFD__POST;
		return;
	}
	if (before >= 0) {
		leave_chain(w, (uint32_t)before);
		w->owners[before].kind = FLOWFD__RENAMED;
	}
	owner->kind = FLOWFD__FILE;
	owner->next = *chain_of(w, fd);
	*chain_of(w, fd) = number + 1;
}

void flowfd__watches_remove(struct flowfd_watches *w, uint32_t number)
{
	struct flowfd__owner *owner = &w->owners[number];

	if (owner->kind == FLOWFD__FILE)
		leave_chain(w, number);
	owner->kind = FLOWFD__FREE;
	owner->generation++;
	flowfd__watches_return_item(w, number);
}

uint64_t flowfd__watches_tag(const struct flowfd_watches *w, uint32_t number)
{
	return (uint64_t)w->owners[number].generation << 32 | number;
}

int flowfd__watches_number(const struct flowfd_watches *w, uint64_t tag)
{
	uint32_t number = (uint32_t)tag;
	const struct flowfd__owner *owner;

	if (number >= w->used)
		return -ENOENT;
	owner = &w->owners[number];
	if (owner->generation != (uint32_t)(tag >> 32) ||
	    (owner->kind != FLOWFD__FILE && owner->kind != FLOWFD__RENAMED))
		return -ENOENT;
	return (int)number;
}
