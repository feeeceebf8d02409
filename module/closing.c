// SPDX-License-Identifier: GPL-2.0-only
/*
 * Noticing the last close of a watched file, so that a watch need not keep it
 * open. Counters tell; sockets and pipes are noticed through fsnotify, which
 * __fput() calls before anything of the file is torn down. One mark for each
 * inode has a list of the watches that end with a file of that inode.
 *
 * The closes of unrelated files must not meet on one lock, as they once did in
 * epoll: there are several, chosen by inode or counter, each with its own
 * fsnotify group, for that has a lock as well.
 */
#include <linux/fsnotify_backend.h>
#include <linux/hash.h>
#include <linux/llist.h>
#include <linux/magic.h>
#include <linux/net.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "flowfd.h"

#define SHARD_BITS 5

/**
 * struct closing_shard - the files of some inodes, and some counters
 * @lock: of the watches that end with them
 * @group: with the marks of these inodes
 */
static struct closing_shard {
	struct mutex lock;	/* watches that end with these files */
	struct fsnotify_group *group;
} ____cacheline_aligned_in_smp shards[1 << SHARD_BITS];

/**
 * struct closing_target - an inode with watched files
 * @mark: fsnotify's
 * @watches: under the shard's lock, never empty before @gone; new ones at the tail
 * @dropped: in the list of that name, once @gone
 * @shard: number; fixed
 * @gone: @mark is destroyed
 */
struct closing_target {
	struct fsnotify_mark mark;
	struct list_head watches;
	struct llist_node dropped;
	u8 shard;
	bool gone;
};

static struct kmem_cache *target_cache;
static struct workqueue_struct *closing_workqueue;

static void put_dropped(struct work_struct *work);
/* More than so many targets are not kept: each is looked at by others of its inode. */
#define DROPPED_MAX 256

static LLIST_HEAD(dropped);
static atomic_t dropped_count = ATOMIC_INIT(0);
static DECLARE_DELAYED_WORK(dropped_work, put_dropped);

/* Of an inode or a counter. */
static u8 shard_number(const void *object)
{
	return hash_ptr(object, SHARD_BITS);
}

static struct closing_shard *shard_lock(u8 number)
{
	struct closing_shard *shard = &shards[number];

	mutex_lock(&shard->lock);
	return shard;
}

/*
 * Each last reference to a mark of an inode has fsnotify wake a kernel thread,
 * which a server would pay for with each connection that it closes. So they are
 * put together, a little later; until then the inode stays, and nothing else.
 */
static void put_dropped(struct work_struct *work)
{
	struct closing_target *t, *next;

	llist_for_each_entry_safe(t, next, llist_del_all(&dropped), dropped) {
		atomic_dec(&dropped_count);
		fsnotify_put_mark(&t->mark);
		cond_resched();
	}
}

static void target_destroy(struct closing_target *t)
{
	struct closing_shard *shard = &shards[t->shard];

	lockdep_assert_held(&shard->lock);

	t->gone = true;
	fsnotify_destroy_mark(&t->mark, shard->group);
	if (atomic_inc_return(&dropped_count) > DROPPED_MAX) {
		atomic_dec(&dropped_count);
		fsnotify_put_mark(&t->mark);
	} else if (llist_add(&t->dropped, &dropped)) {
		queue_delayed_work(closing_workqueue, &dropped_work, 1);
	}
}

/*
 * A file with a watch in the list is there: its own close does not come to an end
 * before the watch is out of it. Those of files that are closing go to the head, in
 * one pass however many there are.
 */
static void gather_closing(struct list_head *watches)
{
	struct watch *w, *next;

	list_for_each_entry_safe(w, next, watches, closing) {
		if (!file_count(w->file))
			list_move(&w->closing, watches);
	}
}

static struct watch *first_of_closing_file(struct list_head *watches)
{
	struct watch *w = list_first_entry_or_null(watches, struct watch,
						   closing);

	return w && !file_count(w->file) ? w : NULL;
}

/*
 * Ends a watch whose file is closing, or waits for the worker that polls the file:
 * then the lock is released meanwhile, and the list may have changed. The ring's lock
 * is not taken, as it can be held for long: the item is given back later, and until
 * then it is empty and silent.
 *
 * Several may be here for one watch: the closes of all files of an inode. A watch
 * stays in the list as long as anything of its file is used, even if it was removed,
 * so that each close waits for the watches of its own file.
 */
static void end_watch(struct watch *w)
{
	struct closing_shard *shard = &shards[w->shard];

	lockdep_assert_held(&shard->lock);

	if (w->state == WATCH_LIVE) {
		watch_set_mask(w, 0);
		watch_unhook(w);
	}
	if (w->polling) {
		refcount_inc(&w->refs);
		mutex_unlock(&shard->lock);
		wait_var_event(&w->polling, !READ_ONCE(w->polling));
		watch_put(w);
		mutex_lock(&shard->lock);
		return;
	}
	w->state = WATCH_CLOSED;
	w->target = NULL;
	list_del_init(&w->closing);
	ring_clear_item(w->item);
	/* The last use of it: the ring may free it now. */
	llist_add(&w->closed, &w->ring->closed);
}

/* Takes a watch that nothing is used of out of the list of its file. */
static void untrack(struct watch *w)
{
	struct closing_target *t = w->target;

	/*
	 * A counter that sees its list empty does not take the lock and is freed:
	 * orders the use of its wait queue before. Pairs with closing_counter().
	 */
	smp_mb();
	list_del_init(&w->closing);
	if (t && list_empty(&t->watches))
		target_destroy(t);
}

static int closing_event(struct fsnotify_mark *mark, u32 mask,
			 struct inode *inode, struct inode *dir,
			 const struct qstr *name, u32 cookie)
{
	struct closing_target *t =
		container_of(mark, struct closing_target, mark);
	struct closing_shard *shard = shard_lock(t->shard);
	struct watch *w;

	gather_closing(&t->watches);
	while ((w = first_of_closing_file(&t->watches)))
		end_watch(w);
	/* If the list became empty while the lock was released, it is destroyed. */
	if (list_empty(&t->watches) && !t->gone)
		target_destroy(t);
	mutex_unlock(&shard->lock);
	return 0;
}

/**
 * closing_counter - a counter is being released
 * @c: counter
 */
void closing_counter(struct counter *c)
{
	struct closing_shard *shard;

	/* An acquire. Pairs with untrack(). */
	if (list_empty_careful(&c->watches))
		return;
	shard = shard_lock(shard_number(c));
	while (!list_empty(&c->watches))
		end_watch(list_first_entry(&c->watches, struct watch, closing));
	mutex_unlock(&shard->lock);
}

/*
 * Unnamed pipes and sockets only: their inodes have one name and live in file
 * systems that are never unmounted, so fsnotify does not drop the mark while a
 * file is open.
 */
static bool close_is_noticed(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	if (!file_raises_close_event(file))
		return false;
	return (S_ISSOCK(inode->i_mode) &&
		inode->i_sb->s_magic == SOCKFS_MAGIC) ||
	       (S_ISFIFO(inode->i_mode) &&
		inode->i_sb->s_magic == PIPEFS_MAGIC);
}

/* Frees it if that fails. */
static int target_begin(struct closing_target *t, struct inode *inode, u8 shard)
{
	int err;

	t->gone = false;
	t->shard = shard;
	fsnotify_init_mark(&t->mark, shards[shard].group);
	t->mark.mask = FS_CLOSE_WRITE | FS_CLOSE_NOWRITE;
	err = fsnotify_add_inode_mark(&t->mark, inode, 0);
	if (err)
		fsnotify_put_mark(&t->mark);
	return err;
}

/* Under the shard's lock a mark that is found is not gone. */
static struct closing_target *target_find(struct inode *inode, u8 shard)
{
	struct fsnotify_mark *mark;

	lockdep_assert_held(&shards[shard].lock);

	mark = fsnotify_find_inode_mark(inode, shards[shard].group);
	if (!mark)
		return NULL;
	fsnotify_put_mark(mark);
	return container_of(mark, struct closing_target, mark);
}

static void track_counter(struct watch *w, struct counter *c)
{
	struct closing_shard *shard;

	w->shard = shard_number(c);
	shard = shard_lock(w->shard);
	list_add_tail(&w->closing, &c->watches);
	mutex_unlock(&shard->lock);
}

static int track_inode(struct watch *w, struct inode *inode)
{
	struct closing_shard *shard;
	struct closing_target *t, *fresh;
	int err = 0;

	/* Can wait for what a cgroup may have: not under a lock of others' closes. */
	fresh = kmem_cache_alloc(target_cache, GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return -ENOMEM;
	w->shard = shard_number(inode);
	shard = shard_lock(w->shard);
	t = target_find(inode, w->shard);
	if (!t) {
		t = fresh;
		fresh = NULL;
		err = target_begin(t, inode, w->shard);
	}
	if (!err) {
		w->target = t;
		list_add_tail(&w->closing, &t->watches);
	}
	mutex_unlock(&shard->lock);
	if (fresh)
		kmem_cache_free(target_cache, fresh);
	return err;
}

/**
 * closing_track - have a watch end with the last close of its file
 * @w: new watch
 *
 * Return: 1; 0, if this file's close is not noticed; a negative errno.
 */
int closing_track(struct watch *w)
{
	struct file *file = w->file;

	if (file->f_op == &counter_fops) {
		track_counter(w, file->private_data);
		return 1;
	}
	if (!close_is_noticed(file))
		return 0;
	return track_inode(w, file_inode(file)) ?: 1;
}

/**
 * closing_may_pin - whether a file can be kept open though its close is noticed
 * @file: file
 *
 * Not a UNIX socket: the ring can be in its queue, and they would keep each other.
 */
bool closing_may_pin(struct file *file)
{
	struct socket *sock = sock_from_file(file);

	return !sock || READ_ONCE(sock->ops)->family != PF_UNIX;
}

/**
 * closing_remove - the ring does not watch a file any more
 * @w: watch that is not pinned
 *
 * Leaves the wait queues. A worker that polls the file ends what is left.
 *
 * Return: false, if the file was closed before: the watch is in ring->closed.
 */
bool closing_remove(struct watch *w)
{
	struct closing_shard *shard = shard_lock(w->shard);
	bool live = w->state == WATCH_LIVE;

	if (live) {
		watch_unhook(w);
		w->state = WATCH_REMOVED;
		if (!w->polling)
			untrack(w);
	}
	mutex_unlock(&shard->lock);
	return live;
}

/**
 * closing_begin_poll - a worker is about to poll a file that may be closing
 * @w: watch that is not pinned
 *
 * Return: true, if the file stays until closing_end_poll().
 */
bool closing_begin_poll(struct watch *w)
{
	struct closing_shard *shard = shard_lock(w->shard);
	bool live = w->state == WATCH_LIVE;

	if (live)
		WRITE_ONCE(w->polling, true);
	mutex_unlock(&shard->lock);
	return live;
}

/** closing_end_poll - the worker does not use the file of @w any more */
void closing_end_poll(struct watch *w)
{
	struct closing_shard *shard = shard_lock(w->shard);

	WRITE_ONCE(w->polling, false);
	if (w->state == WATCH_REMOVED)
		untrack(w);
	mutex_unlock(&shard->lock);
	/* Orders the flag before the look for closes that wait. */
	smp_mb();
	wake_up_var(&w->polling);
}

static void target_free(struct fsnotify_mark *mark)
{
	kmem_cache_free(target_cache,
			container_of(mark, struct closing_target, mark));
}

static const struct fsnotify_ops closing_ops = {
	.handle_inode_event	= closing_event,
	.free_mark		= target_free,
};

static void target_construct(void *object)
{
	struct closing_target *t = object;

	INIT_LIST_HEAD(&t->watches);
}

static void put_groups(unsigned int count)
{
	while (count--)
		fsnotify_put_group(shards[count].group);
}

static int alloc_groups(void)
{
	struct fsnotify_group *group;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shards); i++) {
		group = fsnotify_alloc_group(&closing_ops, 0);
		if (IS_ERR(group)) {
			put_groups(i);
			return PTR_ERR(group);
		}
		mutex_init(&shards[i].lock);
		shards[i].group = group;
	}
	return 0;
}

/** closing_init - make ready to notice closes */
int closing_init(void)
{
	int err;

	target_cache = kmem_cache_create("flowfd_target",
					 sizeof(struct closing_target), 0,
					 SLAB_ACCOUNT, target_construct);
	if (!target_cache)
		return -ENOMEM;
	err = -ENOMEM;
	closing_workqueue = alloc_workqueue("flowfd_closing", WQ_UNBOUND, 0);
	if (!closing_workqueue)
		goto destroy_cache;
	err = alloc_groups();
	if (err)
		goto destroy_workqueue;
	return 0;

destroy_workqueue:
	destroy_workqueue(closing_workqueue);
destroy_cache:
	kmem_cache_destroy(target_cache);
	return err;
}

/**
 * closing_exit - the last watch is gone; waits for what it left behind
 *
 * A close may have ended the last watch and still have the lock: after that its
 * target is destroyed, and a target's end waits for all closes that know it.
 */
void closing_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shards); i++) {
		shard_lock(i);
		mutex_unlock(&shards[i].lock);
	}
	flush_delayed_work(&dropped_work);
	fsnotify_wait_marks_destroyed();
	put_groups(ARRAY_SIZE(shards));
	destroy_workqueue(closing_workqueue);
	kmem_cache_destroy(target_cache);
}
