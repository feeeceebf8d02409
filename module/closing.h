/* SPDX-License-Identifier: GPL-2.0-only */
/* Notices the last close of a file, so that its user need not keep it open. */
#ifndef FLOWFD_CLOSING_H
#define FLOWFD_CLOSING_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/types.h>

struct flowfd_closing_target;

/**
 * enum flowfd_closing_state - what a hook may do with its file
 * @CLOSING_LIVE: use it
 * @CLOSING_REMOVED: nothing: the user has let go of it
 * @CLOSING_CLOSED: nothing: it was closed, and the user was told so
 */
enum flowfd_closing_state { CLOSING_LIVE, CLOSING_REMOVED, CLOSING_CLOSED };

/**
 * struct flowfd_closing - hook into the last close of a file
 * @node: in the list of an inode or of a counter
 * @file: valid while the hook is in the list
 * @target: owner of the list if it is an inode's, else NULL
 * @shard: number of the lock
 * @state: enum flowfd_closing_state
 * @closing: @file is being closed
 * @polling: a worker polls @file
 *
 * @file and @shard are fixed, the rest is under the shard's lock.
 */
struct flowfd_closing {
	struct list_head node;
	struct file *file;
	struct flowfd_closing_target *target;
	u8 shard;
	u8 state;
	bool closing;
	bool polling;
};

/**
 * struct flowfd_closing_ops - what the user of the hooks does
 * @leave: leave the wait queues of the hook's file. A worker may still poll it.
 * @closed: the file was closed, and nothing uses it any more. This is the last use of
 *	the hook: it may be freed from here on.
 *
 * Both are called under the shard's lock and must not wait for user space.
 */
struct flowfd_closing_ops {
	void (*leave)(struct flowfd_closing *hook);
	void (*closed)(struct flowfd_closing *hook);
};

int flowfd_closing_init(const struct flowfd_closing_ops *ops);
void flowfd_closing_exit(void);
void flowfd_closing_init_hook(struct flowfd_closing *hook, struct file *file);
void flowfd_closing_track_list(struct flowfd_closing *hook, struct list_head *list);
int flowfd_closing_track_file(struct flowfd_closing *hook);
bool flowfd_closing_may_pin(struct file *file);
bool flowfd_closing_remove(struct flowfd_closing *hook);
bool flowfd_closing_begin_poll(struct flowfd_closing *hook);
void flowfd_closing_end_poll(struct flowfd_closing *hook);
void flowfd_closing_list(struct list_head *list);

#endif /* FLOWFD_CLOSING_H */
