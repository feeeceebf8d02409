// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adding, changing and removing the watches of a ring, as FLOWFD_IOC_RING_CONTROL
 * asks for, and listing them. All of it is under the ring's lock.
 */
#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/hash.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "compat.h"
#include "counter.h"
#include "post.h"
#include "watch.h"

static bool file_has_name(const struct file *file, const char *name)
{
	return file_inode(file)->i_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp(file->f_path.dentry->d_name.name, name);
}

/*
 * A ring that watched one of these could cause a cycle of wakeups or of references. The
 * kernel does not export the methods of the others; the names are ABI.
 */
static bool file_is_a_watcher(const struct file *file)
{
	return file_has_name(file, FLOWFD_RING_NAME) ||
	       file_has_name(file, "[eventpoll]") || file_has_name(file, "[io_uring]");
}

/*
 * Whether poll answers for the calling task: signalfd_poll() checks the signals of
 * current, binder's poll its thread. Both wake without events, and in a worker poll
 * would answer for the wrong task.
 */
static bool file_polls_for_task(const struct file *file)
{
	unsigned long magic = file_inode(file)->i_sb->s_magic;
	struct module *owner = file->f_op->owner;

	return file_has_name(file, "[signalfd]") || magic == BINDERFS_SUPER_MAGIC ||
	       magic == RUST_BINDERFS_SUPER_MAGIC ||
	       (owner && !strcmp(module_name(owner), "binder_linux"));
}

static struct hlist_head *watch_chain(const struct flowfd_ring *ring, int fd)
{
	return &ring->watches[hash_32(fd, ring->hash_bits)];
}

static struct flowfd_watch *watch_find(const struct flowfd_ring *ring,
				       const struct file *file, int fd)
{
	struct flowfd_watch *w;

	hlist_for_each_entry(w, watch_chain(ring, fd), hash) {
		if (w->closing.file == file && w->fd == fd)
			return w;
		/* A program can add a million files under one number. */
		cond_resched();
	}
	return NULL;
}

/* The watch publishes nothing more and does not use its file. */
static void watch_retire(struct flowfd_watch *w)
{
	struct flowfd_ring *ring = w->ring;

	lockdep_assert_held(&ring->lock);

	hlist_del(&w->hash);
	flowfd_ring_return_item(ring, w->index_entry - 1);
	flowfd_watch_put(w);
}

/* False: the file was closed before, and watch_remove_closed() does the rest. */
static bool watch_remove(struct flowfd_watch *w)
{
	if (!flowfd_watch_stop(w))
		return false;
	watch_retire(w);
	return true;
}

/* Makes the items of closed files free again. */
static void watch_remove_closed(struct flowfd_ring *ring)
{
	struct flowfd_watch *w, *next;

	llist_for_each_entry_safe(w, next, llist_del_all(&ring->closed), closed) {
		watch_retire(w);
		cond_resched();
	}
}

/* As flowfd_closing_track_file(), for counters too. */
static int watch_track(struct flowfd_watch *w)
{
	struct flowfd_counter *c = flowfd_counter_of(w->closing.file);

	if (!c)
		return flowfd_closing_track_file(&w->closing);
	flowfd_closing_track(&w->closing, &c->hooks);
	return 1;
}

/* Hooks into the file's close, or keeps the file open. */
static int watch_hold(struct flowfd_watch *w, bool pin)
{
	bool may_pin = flowfd_closing_may_pin(w->closing.file);
	int tracked = pin && may_pin ? 0 : watch_track(w);

	if (tracked)
		return min(tracked, 0);
	if (!may_pin)
		return -EPERM;
	get_file(w->closing.file);
	w->pinned = true;
	/* A FUSE server is told of them; the kernel's log asks a security module. */
	w->cred = get_current_cred();
	return 0;
}

static int watch_add(struct flowfd_ring *ring, struct file *file,
		     const struct flowfd_ring_entry *entry, u32 mask)
{
	struct flowfd_watch *w;
	int number, err;

	if (file_is_a_watcher(file))
		return -ELOOP;
	if (!file_can_poll(file) || file_polls_for_task(file))
		return -EPERM;
	if (watch_find(ring, file, entry->fd))
		return -EEXIST;
	number = flowfd_ring_take_item(ring, FLOWFD_RING_BY_POST);
	if (number < 0)
		return number;
	w = flowfd_watch_alloc(ring, file, entry->fd);
	if (!w) {
		flowfd_ring_return_item(ring, number);
		return -ENOMEM;
	}
	w->repoll.class = flowfd_counter_of(file) ? REPOLL_KERNEL :
						    flowfd_repoll_class(file);
	w->item = &ring->items[number];
	w->index_entry = number + 1;
	flowfd_ring_set_item(w->item, entry->data);
	err = watch_hold(w, entry->op == FLOWFD_RING_ADD_PINNED);
	if (err) {
		flowfd_ring_return_item(ring, number);
		flowfd_watch_put(w);
		return err;
	}
	hlist_add_head(&w->hash, watch_chain(ring, entry->fd));
	err = flowfd_watch_start(w, mask);
	if (err) {
		watch_remove(w);
		return err;
	}
	return w->pinned ? FLOWFD_RING_PINNED : 0;
}

static bool entry_is_valid(const struct flowfd_ring_entry *entry)
{
	const u32 known = (__force u32)(WATCH_EVENTS | EPOLLET | EPOLLONESHOT);

	switch (entry->op) {
	case FLOWFD_RING_DEL:
	case FLOWFD_RING_DEL_POST:
		return !entry->events && !entry->data;
	case FLOWFD_RING_DEL_DATA:
	case FLOWFD_RING_ADD_POST:
		return !entry->events && entry->fd == -1;
	case FLOWFD_RING_ADD:
	case FLOWFD_RING_ADD_PINNED:
	case FLOWFD_RING_MOD:
		return entry->events & (__force u32)EPOLLET && !(entry->events & ~known);
	default:
		return false;
	}
}

/* Removes all watches, or those with this data; returns the number removed. */
static int watch_remove_each(struct flowfd_ring *ring, const u64 *data)
{
	struct flowfd_watch *w;
	struct hlist_node *next;
	int removed = 0;
	u32 i;

	for (i = 0; i < 1U << ring->hash_bits; i++) {
		hlist_for_each_entry_safe(w, next, &ring->watches[i], hash) {
			if (!data || READ_ONCE(w->item->data) == *data)
				removed += watch_remove(w);
			cond_resched();
		}
		cond_resched();
	}
	watch_remove_closed(ring);
	return removed;
}

static int control_locked(struct flowfd_ring *ring, struct file *file,
			  const struct flowfd_ring_entry *entry)
{
	u32 mask = (entry->events & ~(__force u32)EPOLLET) |
		   (__force u32)(EPOLLERR | EPOLLHUP);
	struct flowfd_watch *w;
	int removed;

	watch_remove_closed(ring);
	switch (entry->op) {
	case FLOWFD_RING_ADD:
	case FLOWFD_RING_ADD_PINNED:
		return watch_add(ring, file, entry, mask);
	case FLOWFD_RING_ADD_POST:
		return flowfd_post_add(ring, entry->data);
	case FLOWFD_RING_DEL_POST:
		return flowfd_post_remove(ring, entry->fd);
	case FLOWFD_RING_DEL_DATA:
		removed = watch_remove_each(ring, &entry->data);
		removed += flowfd_posts_remove(ring, entry->data);
		return removed ?: -ENOENT;
	}
	w = watch_find(ring, file, entry->fd);
	if (!w)
		return -ENOENT;
	if (entry->op == FLOWFD_RING_MOD)
		flowfd_watch_change(w, entry->data, mask);
	else
		watch_remove(w);
	return 0;
}

/* Carries out an entry of FLOWFD_IOC_RING_CONTROL, and returns its result. */
int flowfd_watch_control(struct flowfd_ring *ring, const struct flowfd_ring_entry *entry)
{
	struct file *file = NULL;
	int result;

	if (!entry_is_valid(entry))
		return -EINVAL;
	/* All others that name a file have EPOLLET. */
	if (entry->op == FLOWFD_RING_DEL || entry->events) {
		file = fget(entry->fd);
		if (!file)
			return -EBADF;
	}
	result = mutex_lock_killable(&ring->lock);
	if (!result) {
		result = control_locked(ring, file, entry);
		mutex_unlock(&ring->lock);
	}
	if (file)
		fput(file);
	return result;
}

/* The ring has no descriptor any more. */
void flowfd_watch_remove_all(struct flowfd_ring *ring)
{
	mutex_lock(&ring->lock);
	watch_remove_each(ring, NULL);
	mutex_unlock(&ring->lock);
}

static void watch_show(const struct flowfd_watch *w, struct seq_file *m)
{
	seq_printf(m, "tfd: %8d events: %8x data: %16llx pinned: %d\n", w->fd,
		   READ_ONCE(w->mask), READ_ONCE(w->item->data), w->pinned);
}

/* No more than that, so that the time of a reader is bounded. */
static void watch_show_first(struct flowfd_ring *ring, struct seq_file *m)
{
	u32 posts = bitmap_weight(ring->posts, ring->max_items);
	u32 all = ring->max_items - ring->free_count - posts;
	u32 left = min(all, RING_SHOWN_MAX);
	const struct flowfd_watch *w;
	u32 i;

	seq_printf(m, "flowfd-ring-watches: %u\nflowfd-ring-posts: %u\n", all, posts);
	for (i = 0; left && i < 1U << ring->hash_bits && !seq_has_overflowed(m); i++) {
		hlist_for_each_entry(w, &ring->watches[i], hash) {
			watch_show(w, m);
			if (!--left)
				break;
		}
		/* A large ring with few watches has a million empty chains. */
		cond_resched();
	}
}

/*
 * Lists the watches and posts of a ring, for fdinfo. Does not wait: the poll method of a
 * watched file may never return, and any process of the ring's user may read fdinfo.
 */
void flowfd_watch_show_all(struct flowfd_ring *ring, struct seq_file *m)
{
	if (!mutex_trylock(&ring->lock)) {
		seq_puts(m, "flowfd-ring-busy: 1\n");
		return;
	}
	watch_remove_closed(ring);
	watch_show_first(ring, m);
	flowfd_posts_show(ring, m);
	mutex_unlock(&ring->lock);
}
