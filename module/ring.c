// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is in the memory of a ring: shared with a consumer in user space, which may store
 * anything there, so the kernel trusts nothing that it reads from it. Also the ring's
 * life and its free items. Nothing here takes a lock; ring->lock protects the free items.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "ring.h"

static_assert(sizeof(struct flowfd_ring_header) == 192);
static_assert(offsetof(struct flowfd_ring_header, head) == 64);
static_assert(offsetof(struct flowfd_ring_header, posted) == 128);
static_assert(sizeof(struct flowfd_ring_item) == 16);
static_assert(FLOWFD_RING_ITEMS_MAX <= FLOWFD_RING_POSTED_ITEM);

/*
 * How many entries wait in the index; 0 while the first slot is not filled yet. The
 * consumer says where the first entry is: if it stores a wrong position, the result is
 * wrong, but within bounds.
 */
u32 flowfd_ring_pending(const struct flowfd_ring *ring)
{
	u32 head = READ_ONCE(ring->header->head);
	u32 tail;

	if (!READ_ONCE(ring->index[head & ring->mask]))
		return 0;
	tail = ring_tail(ring);
	return clamp(tail - head, 1U, ring->mask + 1);
}

/*
 * Whether the consumer has posts to take or to deliver. Only for wakeups: user space can
 * store anything there. The links are never followed.
 */
bool flowfd_ring_has_posts(const struct flowfd_ring *ring)
{
	const struct flowfd_ring_header *header = ring->header;

	return READ_ONCE(header->posted) & FLOWFD_RING_POSTED_ITEM ||
	       READ_ONCE(header->taken);
}

/*
 * Whether a task need not sleep: there are @wanted entries, or any post. @result is what
 * the task returns then, or after its timeout.
 */
bool flowfd_ring_has_enough(const struct flowfd_ring *ring, u32 wanted, int *result)
{
	*result = flowfd_ring_pending(ring);
	if (*result >= wanted)
		return true;
	if (!flowfd_ring_has_posts(ring))
		return false;
	*result = max(*result, 1);
	return true;
}

/* Starts to use an item that nothing publishes yet. */
void flowfd_ring_set_item(struct flowfd_ring_item *item, u64 data)
{
	flowfd_ring_clear_item(item);
	/* Publishing has a barrier between this and the flag. */
	WRITE_ONCE(item->data, data);
}

/*
 * Drops the events of an item that nothing publishes any more. An entry in the index
 * stays. The consumer finds the item empty, or finds there the next file that uses the
 * item.
 */
void flowfd_ring_clear_item(struct flowfd_ring_item *item)
{
	xchg(&item->ready, 0);
}

/* Makes an item free again. */
void flowfd_ring_return_item(struct flowfd_ring *ring, u32 number)
{
	u32 end = (ring->free_first + ring->free_count) % ring->max_items;

	lockdep_assert_held(&ring->lock);

	ring->free[end] = number;
	ring->free_count++;
}

/*
 * Takes a free item and returns its number, or -ENOSPC. An item rests while @queued has
 * one of the bits in @resting, until the consumer has taken it. For a file that is
 * FLOWFD_RING_BY_POST, for a post all: "Posters that die" of docs/ring.md.
 */
int flowfd_ring_take_item(struct flowfd_ring *ring, u32 resting)
{
	u32 number, left;

	lockdep_assert_held(&ring->lock);

	for (left = ring->free_count; left; left--) {
		number = ring->free[ring->free_first];
		ring->free_first = (ring->free_first + 1) % ring->max_items;
		ring->free_count--;
		if (!(READ_ONCE(ring->items[number].queued) & resting))
			return number;
		flowfd_ring_return_item(ring, number);
		cond_resched();
	}
	return -ENOSPC;
}

static struct flowfd_ring_header ring_layout(u32 max_items)
{
	struct flowfd_ring_header layout = {
		.magic = FLOWFD_RING_MAGIC,
		.version = FLOWFD_RING_VERSION,
		.header_size = sizeof(layout),
		.max_items = max_items,
		.items_offset = sizeof(layout),
		.index_slots = roundup_pow_of_two(max_items),
	};
	u32 items_size = max_items * sizeof(struct flowfd_ring_item);
	u32 index_size = (layout.index_slots + 1) * sizeof(u32);

	layout.index_offset = ALIGN(layout.items_offset + items_size, 64);
	layout.map_size = PAGE_ALIGN(layout.index_offset + index_size);
	return layout;
}

/*
 * Where things are in the memory of a ring. The header is not read: user space can write
 * it.
 */
void flowfd_ring_describe(const struct flowfd_ring *ring, struct flowfd_create_ring *info)
{
	struct flowfd_ring_header layout = ring_layout(ring->max_items);

	info->map_size = layout.map_size;
	info->items_offset = layout.items_offset;
	info->index_offset = layout.index_offset;
	info->index_slots = layout.index_slots;
}

static int ring_alloc_shared(struct flowfd_ring *ring)
{
	struct flowfd_ring_header layout = ring_layout(ring->max_items);
	int err = flowfd_memory_alloc(&ring->memory, layout.map_size >> PAGE_SHIFT);

	if (err)
		return err;
	ring->header = ring->memory.start;
	*ring->header = layout;
	ring->items = ring->memory.start + layout.items_offset;
	ring->index = ring->memory.start + layout.index_offset;
	ring->mask = layout.index_slots - 1;
	return 0;
}

static void ring_free_private(struct flowfd_ring *ring)
{
	kvfree(ring->watches);
	kvfree(ring->free);
	kvfree(ring->posts);
	free_percpu(ring->stats);
}

static int ring_alloc_private(struct flowfd_ring *ring)
{
	u32 i;

	ring->hash_bits = max(order_base_2(ring->max_items), 1);
	ring->watches = kvcalloc(1UL << ring->hash_bits, sizeof(*ring->watches),
				 GFP_KERNEL_ACCOUNT);
	ring->free =
		kvmalloc_array(ring->max_items, sizeof(*ring->free), GFP_KERNEL_ACCOUNT);
	ring->posts = kvcalloc(BITS_TO_LONGS(ring->max_items), sizeof(*ring->posts),
			       GFP_KERNEL_ACCOUNT);
	ring->stats = alloc_percpu_gfp(struct ring_stats, GFP_KERNEL_ACCOUNT);
	if (!ring->watches || !ring->free || !ring->posts || !ring->stats) {
		ring_free_private(ring);
		return -ENOMEM;
	}
	for (i = 0; i < ring->max_items; i++)
		ring->free[i] = i;
	ring->free_count = ring->max_items;
	return 0;
}

/*
 * Allocates a ring for 1 to FLOWFD_RING_ITEMS_MAX items. Returns it with one reference,
 * or an ERR_PTR.
 */
struct flowfd_ring *flowfd_ring_alloc(u32 max_items)
{
	struct flowfd_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	int err;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->max_items = max_items;
	init_waitqueue_head(&ring->wqh);
	spin_lock_init(&ring->sleeper_lock);
	spin_lock_init(&ring->repoll_lock);
	mutex_init(&ring->lock);
	refcount_set(&ring->object.refs, 1);
	err = ring_alloc_private(ring);
	if (err)
		goto free_ring;
	err = ring_alloc_shared(ring);
	if (err)
		goto free_private;
	return ring;

free_private:
	ring_free_private(ring);
free_ring:
	kfree(ring);
	return ERR_PTR(err);
}

/* Drops a reference. May sleep. */
void flowfd_ring_put(struct flowfd_object *o)
{
	struct flowfd_ring *ring = container_of(o, struct flowfd_ring, object);

	if (!refcount_dec_and_test(&o->refs))
		return;
	flowfd_memory_free(&ring->memory);
	ring_free_private(ring);
	kfree(ring);
}

/*
 * Queues a work item that may outlive the ring's descriptor. The caller holds another
 * reference; the work item's function ends with flowfd_ring_end_work().
 */
void flowfd_ring_queue_work(struct flowfd_ring *ring, struct workqueue_struct *queue,
			    struct work_struct *work)
{
	refcount_inc(&ring->object.refs);
	/* No descriptor keeps the module's code until then. */
	__module_get(THIS_MODULE);
	if (queue_work(queue, work))
		return;
	module_put(THIS_MODULE);
	refcount_dec(&ring->object.refs);
}

/* The last use of the ring by a work item. */
void flowfd_ring_end_work(struct flowfd_ring *ring)
{
	flowfd_ring_put(&ring->object);
	module_put(THIS_MODULE);
}
