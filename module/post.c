// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posts: items of a ring without a file. The kernel only knows which items these are;
 * programs post them in memory, and ring_wake.c wakes for them. All of this is under the
 * ring's lock.
 */
#include <linux/bitmap.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "post.h"

/* Adds an item that can be posted. Returns its number, or -ENOSPC. */
int flowfd_post_add(struct flowfd_ring *ring, u64 data)
{
	int number = flowfd_ring_take_item(ring, U32_MAX);

	if (number < 0)
		return number;
	flowfd_ring_set_item(&ring->items[number], data);
	__set_bit(number, ring->posts);
	return number;
}

static void post_remove(struct flowfd_ring *ring, u32 number)
{
	lockdep_assert_held(&ring->lock);

	__clear_bit(number, ring->posts);
	flowfd_ring_clear_item(&ring->items[number]);
	flowfd_ring_return_item(ring, number);
}

/*
 * Removes the post with a number that is from user space, or returns -ENOENT. What was
 * posted and not taken is dropped. If the item is in the stack it stays there, and
 * flowfd_ring_take_item() passes it over.
 */
int flowfd_post_remove(struct flowfd_ring *ring, u32 number)
{
	if (number >= ring->max_items || !test_bit(number, ring->posts))
		return -ENOENT;
	post_remove(ring, number);
	return 0;
}

/*
 * Removes all posts with this data, as user space has it in the items now. Returns their
 * number.
 */
int flowfd_posts_remove(struct flowfd_ring *ring, u64 data)
{
	int removed = 0;
	u32 number;

	for_each_set_bit(number, ring->posts, ring->max_items) {
		if (READ_ONCE(ring->items[number].data) == data) {
			post_remove(ring, number);
			removed++;
		}
		cond_resched();
	}
	return removed;
}

/* For fdinfo. */
void flowfd_posts_show(struct flowfd_ring *ring, struct seq_file *m)
{
	u32 left = RING_SHOWN_MAX;
	u32 number;

	for_each_set_bit(number, ring->posts, ring->max_items) {
		if (!left-- || seq_has_overflowed(m))
			break;
		seq_printf(m, "post: %8u data: %16llx\n", number,
			   READ_ONCE(ring->items[number].data));
	}
}
