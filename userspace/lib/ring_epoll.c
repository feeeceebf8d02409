// SPDX-License-Identifier: MIT
/*
 * A ring without the module: making and ending it. Its descriptor is that of an epoll(7),
 * in which there is a doorbell as well. docs/ring.md has the protocol, and what is not as
 * with the module.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bell.h"
#include "epoll.h"
#include "eventfd.h"
#include "memory.h"
#include "ring_epoll.h"
#include "watches.h"

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* As the module does. */
static struct flowfd_ring_header layout_of(uint32_t max_items)
{
	struct flowfd_ring_header layout = {
		.magic = FLOWFD_RING_MAGIC,
		.version = FLOWFD_RING_VERSION,
		.header_size = sizeof(layout),
		.max_items = max_items,
		.items_offset = sizeof(layout),
		.index_slots = 1,
	};
	uint32_t items_size = max_items * (uint32_t)sizeof(struct flowfd_ring_item);

	while (layout.index_slots < max_items)
		layout.index_slots *= 2;
	layout.index_offset = round_up(layout.items_offset + items_size, 64);
	layout.map_size = round_up(layout.index_offset + (layout.index_slots +
							  1) * (uint32_t)sizeof(uint32_t),
				   (uint32_t)sysconf(_SC_PAGESIZE));
	return layout;
}

/* Shared with children, which may post. */
static int map_memory(struct flowfd_ring *ring, uint32_t max_items)
{
	struct flowfd_ring_header layout = layout_of(max_items);
	void *map = NULL;
	int ret = flowfd__map(&map, layout.map_size, PROT_READ | PROT_WRITE, -1, 0);

	if (ret)
		return ret;
	*ring = (struct flowfd_ring){
		.mask = layout.index_slots - 1,
		.max_items = max_items,
		.header = map,
		.items = (void *)((char *)map + layout.items_offset),
		.index = (void *)((char *)map + layout.index_offset),
		.map_size = layout.map_size,
	};
	*ring->header = layout;
	return 0;
}

static int open_descriptors(struct flowfd_ring *ring)
{
	int ret;

	ring->fd = flowfd__epoll_open();
	if (ring->fd < 0)
		return ring->fd;
	ring->doorbell = flowfd__eventfd(EFD_CLOEXEC | EFD_NONBLOCK);
	ret = ring->doorbell;
	if (ret >= 0) {
		/* Level-triggered: readable until it is drained. */
		ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_ADD, ring->doorbell,
					    EPOLLIN, FLOWFD__TAG_DOORBELL);
		if (!ret)
			return 0;
		flowfd__close(ring->doorbell);
	}
	flowfd__close(ring->fd);
	return ret;
}

int flowfd__ring_epoll_create(struct flowfd_ring *ring, uint32_t max_items,
			      unsigned int flags)
{
	struct flowfd_ring new;
	int ret;

	if (!max_items || max_items > FLOWFD_RING_ITEMS_MAX ||
	    flags & ~FLOWFD_KEEP_ON_EXEC)
		return -EINVAL;
	/* A program that is executed could do nothing with it. */
	if (flags & FLOWFD_KEEP_ON_EXEC)
		return -EOPNOTSUPP;
	ret = map_memory(&new, max_items);
	if (ret)
		return ret;
	ret = flowfd__watches_alloc(&new.watches, max_items, new.mask + 1);
	if (ret)
		goto unmap;
	ret = open_descriptors(&new);
	if (ret)
		goto free_watches;
	flowfd__bell_arm(&new);
	*ring = new;
	return 0;

free_watches:
	flowfd__watches_free(new.watches, max_items, new.mask + 1);
unmap:
	flowfd__unmap(new.header, new.map_size);
	return ret;
}

void flowfd__ring_epoll_destroy(struct flowfd_ring *ring)
{
	flowfd__watches_free(ring->watches, ring->max_items, ring->mask + 1);
	flowfd__close(ring->doorbell);
}
