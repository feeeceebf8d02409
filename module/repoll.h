/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that are polled after a wakeup: a list and a work item for each class. */
#ifndef FLOWFD_REPOLL_H
#define FLOWFD_REPOLL_H

#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct file;
struct flowfd_ring;

/**
 * enum flowfd_repoll_class - how long the poll method of a file may take
 * @REPOLL_KERNEL: common sockets, pipes, queues, files of control groups and sysfs,
 *	counters, anonymous inodes: it does not wait
 * @REPOLL_PROC: files of procfs: the kernel's own do not wait; those of other modules
 *	cannot be told from them
 * @REPOLL_DEVICE: other files: it may wait for a lock or a device
 * @REPOLL_FUSE: it waits for a FUSE server
 * @REPOLL_CLASSES: number of classes
 */
enum flowfd_repoll_class {
	REPOLL_KERNEL,
	REPOLL_PROC,
	REPOLL_DEVICE,
	REPOLL_FUSE,
	REPOLL_CLASSES
};

/* Whether a task that waits for the ring polls such files itself. */
static inline bool repoll_is_at_once(enum flowfd_repoll_class class)
{
	return class <= REPOLL_PROC;
}

/**
 * struct flowfd_repoll - the files of a ring and class that are to be polled
 * @entries: to poll, the last first
 * @lock: held while those that were in @entries are polled
 * @polling: some of these are to be polled yet; changed under @lock
 * @work: polls them; holds a reference to @ring while it is pending
 * @ring: fixed
 */
struct flowfd_repoll {
	struct llist_head entries;
	struct mutex lock; /* some are polled */
	bool polling;
	struct work_struct work;
	struct flowfd_ring *ring;
};

/**
 * struct flowfd_repoll_entry - a file that may have to be polled
 * @node: in the list of its ring and class
 * @queued: not 0: it is in the list, or about to be
 * @class: enum flowfd_repoll_class; fixed
 */
struct flowfd_repoll_entry {
	struct llist_node node;
	u32 queued;
	u8 class;
};

/* Polls the file of an entry and gives up the references that were taken for it. */
extern void (*flowfd_repoll_poll)(struct flowfd_repoll_entry *entry);

int flowfd_repoll_init(void);
void flowfd_repoll_exit(void);
enum flowfd_repoll_class flowfd_repoll_class(const struct file *file);
void flowfd_repoll_init_ring(struct flowfd_ring *ring);
bool flowfd_repoll_is_due(struct flowfd_ring *ring);
void flowfd_repoll_now(struct flowfd_ring *ring);
void flowfd_repoll_queue(struct flowfd_ring *ring, struct flowfd_repoll_entry *entry);

#endif /* FLOWFD_REPOLL_H */
