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

/* Posts that fdinfo lists; a ring can have a million. */
#define POSTS_SHOWN_MAX 4096U

/**
 * flowfd_post_add - add an item that can be posted
 * @ring: locked ring
 * @data: returned with its bits
 *
 * Return: number of the item, or -ENOSPC.
 */
int flowfd_post_add(struct flowfd_ring *ring, u64 data)
{
	int number = flowfd_ring_take_item(ring, U32_MAX);

	if (number < 0)
		return number;
	flowfd_ring_set_item(&ring->items[number], data);
	__set_bit(number, ring->posts);
	ring->post_count++;
	return number;
}

static void post_remove(struct flowfd_ring *ring, u32 number)
{
	lockdep_assert_held(&ring->lock);

	__clear_bit(number, ring->posts);
	ring->post_count--;
	flowfd_ring_clear_item(&ring->items[number]);
	flowfd_ring_return_item(ring, number);
}

/**
 * flowfd_post_remove - remove such an item
 * @ring: locked ring
 * @number: from user space
 *
 * What was posted and not taken is dropped. If the item is in the stack it stays there,
 * and flowfd_ring_take_item() passes it over.
 *
 * Return: 0, or -ENOENT if there is no such post.
 */
int flowfd_post_remove(struct flowfd_ring *ring, u32 number)
{
	if (number >= ring->max_items || !test_bit(number, ring->posts))
		return -ENOENT;
	post_remove(ring, number);
	return 0;
}

/**
 * flowfd_posts_remove - remove all posts with this data
 * @ring: locked ring
 * @data: as user space has it in the items now
 *
 * Return: how many there were.
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

/**
 * flowfd_posts_show - list the posts of a ring, for fdinfo
 * @ring: locked ring
 * @m: output
 */
void flowfd_posts_show(struct flowfd_ring *ring, struct seq_file *m)
{
	u32 left = POSTS_SHOWN_MAX;
	u32 number;

	for_each_set_bit(number, ring->posts, ring->max_items) {
		if (!left-- || seq_has_overflowed(m))
			break;
		seq_printf(m, "post: %8u data: %16llx\n", number,
			   READ_ONCE(ring->items[number].data));
	}
	if (ring->post_count > POSTS_SHOWN_MAX)
		seq_printf(m, "flowfd-ring-more-posts: %u\n",
			   ring->post_count - POSTS_SHOWN_MAX);
}
