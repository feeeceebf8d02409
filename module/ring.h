/* SPDX-License-Identifier: GPL-2.0-only */
/* The ring: its memory, how it is woken, and how tasks sleep on it. */
#ifndef FLOWFD_RING_H
#define FLOWFD_RING_H

#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/wait.h>

#include "flowfd.h"
#include "memory.h"
#include "objects.h"
#include "repoll.h"
#include "work.h"

/* Of the file of a ring. */
#define FLOWFD_RING_NAME "[flowfd-ring]"

/* Watches, and posts, that fdinfo lists; a ring can have a million. */
#define RING_SHOWN_MAX 4096U

/* Bits of ring->listening. */
#define RING_POLLERS  1 /* a poller looked since pollers were woken last */
#define RING_SLEEPERS 2 /* tasks may sleep on the ring */
#define RING_WOKEN    4 /* pollers were woken, and are still in the queue */

/**
 * struct ring_stats - what a processor counts of a ring
 * @coalesced: events that found their entry in the index already
 * @waits: calls that wait
 * @sleeps: of these, those that slept
 *
 * Publishers and tasks that wait share no lock, so each processor counts for itself.
 */
struct ring_stats {
	unsigned long coalesced;
	unsigned long waits;
	unsigned long sleeps;
};

/**
 * struct flowfd_ring - the state behind a ring's descriptor
 * @header: start of the memory that is shared with user space
 * @items: in the same memory
 * @index: in the same memory
 * @stats: what each processor counts
 * @mask: index slots - 1; fixed, as are all members above
 * @tail: entries put into the index so far; see ring_tail()
 * @listening: RING_* bits: which listeners a publisher has to wake
 * @woken_at: jiffies when @wake_work was queued last
 * @wanted: fewest entries that a task in @sleepers waits for; read without the lock
 * @sleeper_lock: protects @wanted and @sleepers
 * @sleepers: tasks that wait for entries, by how many they want
 * @wqh: pollers; publishers do not take its lock
 * @work_class: of the task that made the ring; fixed
 * @wake_work: wakes pollers; holds a reference while pending
 * @repoll: files that a worker, or a task that waits, must poll, by class
 * @repoll_lock: publishing by a worker against removal of the watch
 * @lock: protects the members from @watches to @posts
 * @watches: hash table by descriptor
 * @free: free items, a queue, so that an item rests before it is used again
 * @free_first: position of its first
 * @free_count: its length
 * @posts: bitmap of the items that are posts
 * @hash_bits: log2 of the length of @watches; fixed, as is @max_items
 * @max_items: length of @free
 * @id: number shown in fdinfo, never used for another ring
 * @closed: watches whose file was closed, to be removed
 * @memory: what @header, @items and @index are in
 * @object: its references and creator; part of the list of all
 */
struct flowfd_ring {
	struct flowfd_ring_header *header;
	struct flowfd_ring_item *items;
	u32 *index;
	struct ring_stats __percpu *stats;
	u32 mask;
	atomic_long_t tail ____cacheline_aligned_in_smp;
	atomic_t listening;
	unsigned long woken_at;
	u32 wanted;
	spinlock_t sleeper_lock; /* sleepers */
	struct rb_root_cached sleepers;
	wait_queue_head_t wqh;
	const struct work_class *work_class;
	struct work_struct wake_work;
	struct flowfd_repoll repoll[REPOLL_CLASSES];
	spinlock_t repoll_lock; /* publishing by a worker */
	struct mutex lock;	/* watches, posts and free items */
	struct hlist_head *watches;
	u32 *free;
	u32 free_first;
	u32 free_count;
	unsigned long *posts;
	u32 hash_bits;
	u32 max_items;
	u64 id;
	struct llist_head closed;
	struct flowfd_memory memory;
	struct flowfd_object object;
};

/* What the positions of entries and the head of user space are modulo of. */
static inline u32 ring_tail(const struct flowfd_ring *ring)
{
	return atomic_long_read(&ring->tail);
}

/* ring.c */
struct flowfd_ring *flowfd_ring_alloc(u32 max_items);
void flowfd_ring_put(struct flowfd_object *o);
void flowfd_ring_describe(const struct flowfd_ring *ring,
			  struct flowfd_create_ring *info);
void flowfd_ring_queue_work(struct flowfd_ring *ring, struct workqueue_struct *queue,
			    struct work_struct *work);
void flowfd_ring_end_work(struct flowfd_ring *ring);
int flowfd_ring_take_item(struct flowfd_ring *ring, u32 resting);
void flowfd_ring_return_item(struct flowfd_ring *ring, u32 number);
void flowfd_ring_set_item(struct flowfd_ring_item *item, u64 data);
void flowfd_ring_clear_item(struct flowfd_ring_item *item);
u32 flowfd_ring_pending(const struct flowfd_ring *ring);
bool flowfd_ring_has_posts(const struct flowfd_ring *ring);
bool flowfd_ring_has_enough(const struct flowfd_ring *ring, u32 wanted, int *result);

/* ring_wake.c */
void flowfd_ring_wake_init_ring(struct flowfd_ring *ring);
void flowfd_ring_wake(struct flowfd_ring *ring, int sync, bool posted);
void flowfd_ring_arm(struct flowfd_ring *ring, int bit);
void flowfd_ring_notify(struct flowfd_ring *ring);
void flowfd_ring_heal(struct flowfd_ring *ring);
int flowfd_ring_sleep(struct flowfd_ring *ring, u32 wanted, ktime_t end, bool *slept);

/* ring_file.c */
extern const struct flowfd_object_ops flowfd_ring_object_ops;
long flowfd_ring_create(void __user *argp, size_t size);

#endif /* FLOWFD_RING_H */
