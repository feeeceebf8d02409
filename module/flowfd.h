/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private types of the flowfd module, and what its files call of each other.
 *
 * Locks, in the order in which they nest:
 *
 *	ring->lock	mutex: what a ring watches. vfs_poll() runs under it, so
 *	   |		it can be held for long, but only the ring's users wait.
 *	   shard->lock	mutex: which watches end with which file, and every use of
 *	      |		a wait queue of such a file by its watch. Taken in __fput()
 *	      |		also. Nothing under it waits for user space.
 *	      group	fsnotify's own
 *
 *	ring->repoll_lock	a worker publishes what it polled, unless the watch
 *	   |			was changed meanwhile
 *	wait queue of a watched file, with interrupts off: a counter's wqh is one
 *	   |		of these, and the only one that is ours
 *	   ring->wqh	pollers of a ring, and the tasks that sleep on it
 *	      |		what a wakeup takes: epoll's and io_uring's locks, a run
 *	      |		queue's. A ring does not watch rings, epolls or io_urings,
 *	      |		and a wakeup that would signal an eventfd is deferred, see
 *	      |		ring_wake(): so the chain does not come back.
 *
 * A wait queue's lock is taken under the mutexes. Nothing sleeps or touches user
 * memory under it. User memory is not touched under the mutexes either.
 */
#ifndef FLOWFD_PRIVATE_H
#define FLOWFD_PRIVATE_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../uapi/linux/flowfd.h"
#include "bucket.h"

struct closing_target;
struct seq_file;

/**
 * struct counter - the state behind a descriptor
 * @wqh: readers, writers and pollers; its lock protects what follows
 * @count: what a read returns, never above @maximum
 * @maximum: writes stay below it
 * @events: what poll answers, read without the lock
 * @semaphore: a read takes 1
 * @write_refused: a write failed with EAGAIN after pollers were last told of room
 * @sealed: has got its settings, so it creates no others; never taken back
 * @wakeup_deferred: readers are owed a wakeup, and @timer is armed for it
 * @id: number shown in fdinfo; fixed
 * @bucket: limits the wakeups of readers
 * @qos: what @bucket was made of
 * @timer: expires when @bucket has its next token
 * @watches: the watches that end with it, under their shard's lock
 *
 * A counter lives as long as its file. Nobody else points to it, and release
 * waits for @timer and ends @watches.
 */
struct counter {
	wait_queue_head_t wqh;
	u64 count;
	u64 maximum;
	__poll_t events;
	bool semaphore;
	bool write_refused;
	bool sealed;
	bool wakeup_deferred;
	int id;
	struct bucket bucket;
	struct eventfd_qos qos;
	struct hrtimer timer;
	struct list_head watches;
};

/**
 * enum repoll_class - how long the poll method of a file can take
 * @REPOLL_KERNEL: common sockets, pipes, counters, anonymous inodes: it does not wait
 * @REPOLL_DEVICE: other files: it can wait for a lock or a device
 * @REPOLL_FUSE: it waits for a FUSE server
 * @REPOLL_CLASSES: how many there are
 */
enum repoll_class {
	REPOLL_KERNEL,
	REPOLL_DEVICE,
	REPOLL_FUSE,
	REPOLL_CLASSES
};

/**
 * struct repoll - the watches of a ring that a worker must poll
 * @watches: each with a reference
 * @work: polls them; holds a reference to @ring while it is pending
 * @ring: fixed
 */
struct repoll {
	struct llist_head watches;
	struct work_struct work;
	struct ring *ring;
};

/* Bits of ring->listening. */
#define RING_POLLERS	1	/* a poller looked since pollers were woken last */
#define RING_SLEEPERS	2	/* tasks may sleep on the ring */

/**
 * struct ring - the state behind a ring's descriptor
 * @header: start of the memory that is shared with user space
 * @items: in the same memory
 * @index: in the same memory
 * @mask: index slots - 1; fixed, as all up to here
 * @tail: entries put into the index so far
 * @listening: RING_POLLERS and RING_SLEEPERS: a publisher must look at @wqh
 * @wqh: pollers; its lock protects @sleepers
 * @sleepers: tasks that wait for entries, by how many they want
 * @wake_work: wakes pollers if there are many; holds a reference while pending
 * @repoll: watches that a worker must poll, by class
 * @repoll_lock: a worker's publishing against changes of the watch
 * @lock: protects what follows up to @hash_bits
 * @watches: hash table by file and descriptor
 * @free: free items, a queue, so that an item rests before it is used again
 * @free_first: position of its first
 * @free_count: its length
 * @hash_bits: log2 of the length of @watches; fixed, as what follows but @closed
 * @max_items: length of @free
 * @id: number shown in fdinfo, of no other ring ever
 * @closed: watches whose file was closed, to be removed
 * @refs: one of the descriptor, one of each watch and of each pending work item
 * @owner: credentials of the user whom the memory is charged to; NULL: nobody
 * @pages: how much is charged
 */
struct ring {
	struct flowfd_ring_header *header;
	struct flowfd_ring_item *items;
	u32 *index;
	u32 mask;
	atomic_t tail ____cacheline_aligned_in_smp;
	atomic_t listening;
	wait_queue_head_t wqh;
	struct rb_root_cached sleepers;
	struct work_struct wake_work;
	struct repoll repoll[REPOLL_CLASSES];
	spinlock_t repoll_lock;	/* publishing by a worker */
	struct mutex lock;	/* watches and free items */
	struct hlist_head *watches;
	u32 *free;
	u32 free_first;
	u32 free_count;
	u32 hash_bits;
	u32 max_items;
	u64 id;
	struct llist_head closed;
	refcount_t refs;
	const struct cred *owner;
	unsigned long pages;
};

/**
 * struct watch_queue - a watch's place in one wait queue of its file
 * @wait: its private is the watch
 * @head: where @wait is queued, NULL when it is not
 */
struct watch_queue {
	struct wait_queue_entry wait;
	wait_queue_head_t *head;
};

/**
 * enum watch_state - the life of a watch
 * @WATCH_LIVE: its file can be used
 * @WATCH_REMOVED: the ring does not watch the file any more
 * @WATCH_CLOSED: the file was closed; the ring must still give the item back
 *
 * If the watch is not pinned this is under the shard's lock, else under the
 * ring's. A worker that polls the file keeps both the watch and the file.
 */
enum watch_state {
	WATCH_LIVE,
	WATCH_REMOVED,
	WATCH_CLOSED
};

/**
 * struct watch - a file that a ring watches
 * @ring: holds a reference
 * @file: with a reference if @pinned, else valid until closing.c says it closes
 * @fd: number under which it was added
 * @item: in the ring's memory
 * @index_entry: what names @item in the index: its number + 1
 * @mask: events to publish; 0: none, for now
 * @direct: what watch_announce() looks at: @mask and WATCH_RARE; 0 sends all
 *	wakeups down the slow path
 * @refs: the ring's, that of a close in progress, and that of a worker
 * @dirty: not 0: in ring->repoll
 * @state: see enum watch_state
 * @dropped: it was removed: no worker publishes it; under ring->repoll_lock
 * @shard: of closing.c
 * @class: of @file
 * @polling: a worker polls @file; under the shard's lock, and not if @pinned
 * @pinned: has a reference to @file
 * @queue: the wait queue that most files have
 * @queue2: the second, if the file has one
 * @hash: in ring->watches
 * @closing: in a list of watches that end with a file
 * @closed: in ring->closed
 * @repoll: in ring->repoll
 * @target: if not @pinned: owner of @closing's list if it is an inode, or NULL
 * @cred: if @pinned: with which a worker polls @file, or NULL: with its own
 */
struct watch {
	struct ring *ring;
	struct file *file;
	struct flowfd_ring_item *item;
	u32 index_entry;
	u32 mask;
	u32 direct;
	int fd;
	refcount_t refs;
	u32 dirty;
	u8 state;
	bool dropped;
	u8 shard;
	u8 class;
	bool polling;
	bool pinned;
	struct watch_queue queue;
	struct watch_queue *queue2;
	struct hlist_node hash;
	struct list_head closing;
	struct llist_node closed;
	struct llist_node repoll;
	union {
		struct closing_target *target;
		const struct cred *cred;
	};
};

/* counter.c */
extern const struct file_operations counter_fops;
int counter_cache_init(void);
void counter_cache_exit(void);
struct counter *counter_alloc(const struct flowfd_create_counter *args);
void counter_free(struct counter *c);
int counter_setup(struct counter *c, const struct flowfd_create_counter *args);
void counter_wake(struct counter *c, __poll_t events);

/* bucket.c */
bool qos_is_valid(const struct eventfd_qos *qos);
void counter_init_bucket(struct counter *c, const struct eventfd_qos *qos);
void counter_exit_bucket(struct counter *c);
void counter_replace_bucket(struct counter *c, const struct eventfd_qos *qos);
void counter_wake_readers_limited(struct counter *c);

/* device.c */
int device_init(void);
void device_exit(void);
int device_open(struct inode *inode, struct file *file);
long device_ioctl(unsigned int cmd, void __user *argp);
long device_answer(void __user *argp, size_t size, const void *answer,
		   size_t known);
long device_counter_ioctl(struct file *file, unsigned int cmd,
			  void __user *argp);

/* ring.c */
extern const struct file_operations ring_fops;
int ring_cache_init(void);
void ring_cache_exit(void);
struct ring *ring_alloc(u32 max_items);
void ring_get(struct ring *ring);
void ring_put(struct ring *ring);
void ring_describe(const struct ring *ring, struct flowfd_create_ring *info);
void ring_queue_work(struct ring *ring, struct workqueue_struct *queue,
		     struct work_struct *work);
void ring_end_work(struct ring *ring);
void ring_wake(struct ring *ring, __poll_t flags, int sync);
void ring_clear_item(struct flowfd_ring_item *item);
void ring_set_item(struct flowfd_ring_item *item, u64 data);

/* watch.c */
int watch_cache_init(void);
void watch_cache_exit(void);
int watch_control(struct ring *ring, const struct flowfd_ring_entry *entry);
void watch_remove_all(struct ring *ring);
void watch_show_all(struct ring *ring, struct seq_file *m);
int watch_wake(struct wait_queue_entry *wait, unsigned int mode, int sync,
	       void *key);
void watch_set_mask(struct watch *w, u32 mask);
void watch_unhook(struct watch *w);
void watch_repoll(struct watch *w);
void watch_put(struct watch *w);

/* repoll.c */
int repoll_init(void);
void repoll_exit(void);
enum repoll_class repoll_class(const struct file *file);
void repoll_init_ring(struct ring *ring);
void repoll_queue(struct watch *w);

/* closing.c */
int closing_init(void);
void closing_exit(void);
int closing_track(struct watch *w);
bool closing_may_pin(struct file *file);
bool closing_remove(struct watch *w);
bool closing_begin_poll(struct watch *w);
void closing_end_poll(struct watch *w);
void closing_counter(struct counter *c);

#endif /* FLOWFD_PRIVATE_H */
