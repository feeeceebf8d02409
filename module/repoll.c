// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched files that were woken without saying for what, or with events that are
 * often untrue: a worker polls them. A ring has a list of such watches and one work
 * item for each class of files, so that a wakeup does little with interrupts off,
 * and files that wait for user space keep no others waiting but those of the ring.
 */
#include <linux/magic.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "flowfd.h"

static struct {
	const char *name;
	struct workqueue_struct *workqueue;
} classes[REPOLL_CLASSES] = {
	[REPOLL_KERNEL]	= { .name = "flowfd_kernel" },
	[REPOLL_DEVICE]	= { .name = "flowfd_device" },
	[REPOLL_FUSE]	= { .name = "flowfd_fuse" },
};

/* Others, such as AF_VSOCK, lock the socket, which a sender holds as it copies. */
static bool socket_polls_without_lock(const struct file *file)
{
	switch (READ_ONCE(sock_from_file((struct file *)file)->ops)->family) {
	case PF_UNIX:
	case PF_INET:
	case PF_INET6:
	case PF_NETLINK:
	case PF_PACKET:
		return true;
	default:
		return false;
	}
}

/**
 * repoll_class - how long the poll method of a file can take
 * @file: file that can be polled
 */
enum repoll_class repoll_class(const struct file *file)
{
	if (file->f_op == &counter_fops)
		return REPOLL_KERNEL;
	switch (file_inode(file)->i_sb->s_magic) {
	case FUSE_SUPER_MAGIC:
		return REPOLL_FUSE;
	case SOCKFS_MAGIC:
		return socket_polls_without_lock(file) ? REPOLL_KERNEL :
							 REPOLL_DEVICE;
	case PIPEFS_MAGIC:
	case ANON_INODE_FS_MAGIC:
		return REPOLL_KERNEL;
	default:
		return REPOLL_DEVICE;
	}
}

static void repoll_one(struct watch *w)
{
	/* A full barrier: a wakeup from here on lists the watch again. */
	xchg(&w->dirty, false);
	if (w->pinned) {
		watch_repoll(w);
	} else if (closing_begin_poll(w)) {
		watch_repoll(w);
		closing_end_poll(w);
	}
	watch_put(w);
}

static void repoll_work(struct work_struct *work)
{
	struct repoll *r = container_of(work, struct repoll, work);
	struct ring *ring = r->ring;
	struct llist_node *list = llist_del_all(&r->watches);
	struct watch *w, *next;

	llist_for_each_entry_safe(w, next, llist_reverse_order(list), repoll) {
		repoll_one(w);
		cond_resched();
	}
	ring_end_work(ring);
}

/**
 * repoll_queue - have a worker poll a watched file
 * @w: watch, under the lock of a wait queue that it is in
 *
 * The list holds a reference to the watch, and thereby to a file that is pinned:
 * whoever removes the watch need not wait for the worker.
 */
void repoll_queue(struct watch *w)
{
	struct repoll *r = &w->ring->repoll[w->class];

	if (xchg(&w->dirty, true))
		return;
	refcount_inc(&w->refs);
	/* If there are others, the first of them has queued the work or is about to. */
	if (!llist_add(&w->repoll, &r->watches))
		return;
	ring_queue_work(w->ring, classes[w->class].workqueue, &r->work);
}

/**
 * repoll_init_ring - nothing is to be polled
 * @ring: new ring
 */
void repoll_init_ring(struct ring *ring)
{
	struct repoll *r;

	for (r = ring->repoll; r < ring->repoll + REPOLL_CLASSES; r++) {
		init_llist_head(&r->watches);
		INIT_WORK(&r->work, repoll_work);
		r->ring = ring;
	}
}

static void destroy_workqueues(unsigned int count)
{
	while (count--)
		destroy_workqueue(classes[count].workqueue);
}

/**
 * repoll_init - make a workqueue for each class
 *
 * A workqueue runs a number of items at a time, so those that can wait for user
 * space have their own.
 */
int repoll_init(void)
{
	struct workqueue_struct *workqueue;
	unsigned int i;

	for (i = 0; i < REPOLL_CLASSES; i++) {
		workqueue = alloc_workqueue("%s", WQ_UNBOUND, 0, classes[i].name);
		if (!workqueue) {
			destroy_workqueues(i);
			return -ENOMEM;
		}
		classes[i].workqueue = workqueue;
	}
	return 0;
}

/** repoll_exit - the last ring is gone, and its worker about to end */
void repoll_exit(void)
{
	destroy_workqueues(REPOLL_CLASSES);
}
