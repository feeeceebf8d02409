/* SPDX-License-Identifier: GPL-2.0-only */
/* Notices the last close of a file, so that its user need not keep it open. */
#ifndef FLOWFD_CLOSING_H
#define FLOWFD_CLOSING_H

#include <linux/fs.h>
#include <linux/rbtree.h>
#include <linux/types.h>

/**
 * enum flowfd_closing_state - what a hook may do with its file
 * @CLOSING_LIVE: use it
 * @CLOSING_LEAVING: nothing: a task leaves its wait queues, with the lock released
 * @CLOSING_LEFT: nothing: it has left them, for good; a worker may still poll the file
 */
enum flowfd_closing_state {
	CLOSING_LIVE = 0,
	CLOSING_LEAVING,
	CLOSING_LEFT,
};

/* Of a hook. No pointer: a ring can have a million watches, each with a hook. */
enum flowfd_closing_user { CLOSING_WATCH, CLOSING_BALANCE, CLOSING_USERS };

/**
 * struct flowfd_closing_hook - hook into the last close of a file
 * @node: in @hooks
 * @file: valid while the hook is in the tree; the tree is sorted by it
 * @hooks: tree of an inode or of a counter
 * @user: enum flowfd_closing_user
 * @shard: number of the lock
 * @state: enum flowfd_closing_state
 * @polling: a worker polls @file
 * @awaited: a task waits for @polling, or CLOSING_LEAVING, to end, after which the hook ends:
 *	so it stays set
 * @of_inode: whether @hooks is an inode's
 *
 * @file, @user and @shard are fixed, the rest is under the shard's lock. The user sets the
 * first two, and all else to 0.
 */
struct flowfd_closing_hook {
	struct rb_node node;
	struct file *file;
	struct rb_root *hooks;
	u8 user;
	u8 shard;
	u8 state;
	bool polling;
	bool awaited;
	bool of_inode;
};

/**
 * struct flowfd_closing_ops - what the user of the hooks does
 * @leave: leave the wait queues of the file of @count hooks. A worker may still poll it.
 * @closed: the file was closed, and nothing uses it any more. This is the last use of
 *	the hook: it may be freed from here on. Or NULL. Under the shard's lock.
 * @alone: a socket has one hook of such a user at most
 *
 * Neither may wait for user space.
 */
struct flowfd_closing_ops {
	void (*leave)(struct flowfd_closing_hook **hooks, unsigned int count);
	void (*closed)(struct flowfd_closing_hook *hook);
	bool alone;
};

/* Of each user, which sets its own before it has hooks. */
extern const struct flowfd_closing_ops *flowfd_closing_ops[CLOSING_USERS];

int flowfd_closing_init(void);
void flowfd_closing_exit(void);
void flowfd_closing_track(struct flowfd_closing_hook *hook, struct rb_root *hooks);
int flowfd_closing_track_file(struct flowfd_closing_hook *hook);
bool flowfd_closing_may_pin(struct file *file);
bool flowfd_closing_remove(struct flowfd_closing_hook *hook);
bool flowfd_closing_begin_poll(struct flowfd_closing_hook *hook);
void flowfd_closing_end_poll(struct flowfd_closing_hook *hook);
void flowfd_closing_end_hooks(struct rb_root *hooks, const struct file *file);

#endif /* FLOWFD_CLOSING_H */
