// SPDX-License-Identifier: GPL-2.0-only
/* libflowfd's takes and posts of a ring, compiled with library.h. */
#include "library.h"

#include <flowfd.h>

#include "harvest.h"
#include "sched.h"

static struct flowfd_ring ring;

void harvest_map(void *memory, uint32_t items, uint32_t index, uint32_t slots)
{
	ring = (struct flowfd_ring){
		.header = memory,
		.items = (void *)((char *)memory + items),
		.index = (void *)((char *)memory + index),
		.mask = slots - 1,
	};
	ring.max_items = ring.header->max_items;
}

int flowfd_ring_notify(const struct flowfd_ring *r)
{
	return harvest_notify();
}

bool harvest_next(uint64_t *data)
{
	struct flowfd_event event;

	if (!flowfd_ring_next(&ring, &event))
		return false;
	*data = event.data;
	return true;
}

void harvest_post(uint32_t item)
{
	flowfd_ring_post(&ring, item, 1);
}
