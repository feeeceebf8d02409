/* SPDX-License-Identifier: GPL-2.0-only */
/* The watch: a file whose wakeups a ring publishes. */
#ifndef FLOWFD_WATCH_H
#define FLOWFD_WATCH_H

#include <linux/llist.h>
#include <linux/poll.h>
#include <linux/refcount.h>
#include <linux/wait.h>

#include "closing.h"
#include "repoll.h"
#include "ring.h"

struct seq_file;

/* Events that can be asked for and are published. */
#define WATCH_EVENTS                                                         \
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDNORM | \
	 EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND | EPOLLMSG | EPOLLRDHUP)

/**
 * struct flowfd_watch_queue - a watch's entry in one wait queue of its file
 * @wait: its private is the watch
 * @head: where @wait is queued, NULL when it is not
 */
struct flowfd_watch_queue {
	struct wait_queue_entry wait;
	wait_queue_head_t *head;
};

/**
 * struct flowfd_watch - a file that a ring watches
 * @ring: holds a reference
 * @item: in the ring's memory
 * @index_entry: what names @item in the index: its number + 1
 * @mask: events to publish; 0: none, for now, and for good once the watch was stopped
 * @direct: @mask and WATCH_SLOW_PATH; 0 sends all wakeups down the slow path
 * @fd: descriptor under which the file was added
 * @refs: one of the ring, one of a worker
 * @pinned: holds a reference to the file
 * @closing: the file. It is hooked, that is valid until it closes, unless @pinned.
 * @queue: the wait queue that most files have
 * @queue2: the second, if the file has one
 * @hash: in ring->watches
 * @closed: in ring->closed; not if @pinned
 * @cred: if @pinned: of the task that added the file, for later polls
 * @repoll: in a list of ring->repoll
 */
struct flowfd_watch {
	struct flowfd_ring *ring;
	struct flowfd_ring_item *item;
	u32 index_entry;
	u32 mask;
	u32 direct;
	int fd;
	refcount_t refs;
	bool pinned;
	struct flowfd_closing_hook closing;
	struct flowfd_watch_queue queue;
	struct flowfd_watch_queue *queue2;
	struct hlist_node hash;
	union {
		struct llist_node closed;
		const struct cred *cred;
	};
	struct flowfd_repoll_entry repoll;
};

/* watch.c */
int flowfd_watch_init(void);
void flowfd_watch_exit(void);
struct flowfd_watch *flowfd_watch_alloc(struct flowfd_ring *ring, struct file *file,
					int fd);
void flowfd_watch_put(struct flowfd_watch *w);
int flowfd_watch_start(struct flowfd_watch *w, u32 mask);
void flowfd_watch_change(struct flowfd_watch *w, u64 data, u32 mask);
bool flowfd_watch_stop(struct flowfd_watch *w);
int flowfd_watch_wake(struct wait_queue_entry *wait, unsigned int mode, int sync,
		      void *key);
void flowfd_publish_traced(struct flowfd_watch *w, __poll_t events, int sync);

/* watch_control.c */
int flowfd_watch_control(struct flowfd_ring *ring, const struct flowfd_ring_entry *entry);
void flowfd_watch_remove_all(struct flowfd_ring *ring);
void flowfd_watch_show_all(struct flowfd_ring *ring, struct seq_file *m);

#endif /* FLOWFD_WATCH_H */
