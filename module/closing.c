// SPDX-License-Identifier: GPL-2.0-only
/*
 * Noticing the last close of a file, so that its user need not keep it open. A user
 * hooks into a file; at the last close it is told to leave the file's wait queues,
 * and then that the file is closed.
 *
 * A counter's release calls here. Sockets and pipes are noticed through fsnotify, which
 * __fput() calls before it tears anything of the file down. A mark of an inode has the hooks
 * into its files, in a tree by file: a process with a pipe can open it again and again, and
 * each close must cost what its own file costs.
 *
 * Closes of unrelated files must not contend for one lock, as they once did in epoll. A task
 * that has it, or is next to have it, may get no processor for long, and it may be a user
 * who sees to that. So there are shards, chosen by the user that opened the file, and by
 * inode or counter. Each has an fsnotify group of its own, because a group has a lock as well.
 */
#include <linux/fsnotify_backend.h>
#include <linux/hash.h>
#include <linux/llist.h>
#include <linux/magic.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "closing.h"
#include "compat.h"
#include "work.h"

/* So many shards have the files of a class of users. */
#define OBJECT_BITS 4

/* One turn of a close looks at so many hooks, while others wait for the shard: 0.1 us each. */
#define TAKEN_MAX 128

/* At most so many destroyed marks are kept: each close of their inodes looks at them. */
#define DROPPED_MAX 256

/**
 * struct closing_shard - the files of some inodes, and some counters
 * @lock: of their hooks
 * @group: of the marks of these inodes
 * @released: tasks that wait for another one to have polled a file, or left its queues
 */
static struct closing_shard {
	struct mutex lock; /* of hooks */
	struct fsnotify_group *group;
	wait_queue_head_t released;
} ____cacheline_aligned_in_smp shards[1 << USER_CLASS_BITS << OBJECT_BITS];

/**
 * struct flowfd_closing_target - an inode whose files have hooks
 * @mark: fsnotify's
 * @hooks: under the shard's lock, never empty before @gone
 * @dropped: in the list of that name, once @gone
 * @shard: number; fixed
 * @gone: @mark is destroyed
 * @has_alone: one of @hooks is the only one of its kind; under the shard's lock
 */
struct flowfd_closing_target {
	struct fsnotify_mark mark;
	struct rb_root hooks;
	struct llist_node dropped;
	u8 shard;
	bool gone;
	bool has_alone;
};

const struct flowfd_closing_ops *flowfd_closing_ops[CLOSING_USERS] __ro_after_init;
static struct kmem_cache *target_cache;

static void put_dropped(struct work_struct *work);

static LLIST_HEAD(dropped);
static atomic_t dropped_count = ATOMIC_INIT(0);
static DECLARE_DELAYED_WORK(dropped_work, put_dropped);

/* @object: inode, or a counter's tree. A socket has one file, so one target: see @alone. */
static u8 shard_number(const struct file *file, const void *object)
{
	return flowfd_user_class(file->f_cred) << OBJECT_BITS |
	       hash_ptr(object, OBJECT_BITS);
}

static struct closing_shard *shard_lock(u8 number)
{
	struct closing_shard *shard = &shards[number];

	mutex_lock(&shard->lock);
	return shard;
}

/*
 * Waits, with the lock released, for a task that polls the file of a hook or leaves its
 * queues. The caller has set @awaited of the hook, which may be gone afterwards.
 */
static void shard_await(struct closing_shard *shard)
{
	DEFINE_WAIT(wait);

	lockdep_assert_held(&shard->lock);

	prepare_to_wait(&shard->released, &wait, TASK_UNINTERRUPTIBLE);
	mutex_unlock(&shard->lock);
	schedule();
	finish_wait(&shard->released, &wait);
	mutex_lock(&shard->lock);
}

/* The task that shard_await() waits for is done. */
static void hook_release(const struct flowfd_closing_hook *hook)
{
	if (hook->awaited)
		wake_up_all(&shards[hook->shard].released);
}

/*
 * fsnotify wakes a kernel thread for each last reference to a mark, and a server would
 * pay for that with each connection that it closes. So marks are put in batches, a
 * little later. Until then the inode stays allocated, but nothing else does.
 */
static void put_dropped(struct work_struct *work)
{
	struct flowfd_closing_target *t, *next;

	llist_for_each_entry_safe(t, next, llist_del_all(&dropped), dropped) {
		atomic_dec(&dropped_count);
		fsnotify_put_mark(&t->mark);
		cond_resched();
	}
}

static void target_destroy(struct flowfd_closing_target *t)
{
	struct closing_shard *shard = &shards[t->shard];

	lockdep_assert_held(&shard->lock);

	/* Pairs with closing_event(). */
	smp_store_release(&t->gone, true);
	fsnotify_destroy_mark(&t->mark, shard->group);
	if (atomic_inc_return(&dropped_count) > DROPPED_MAX) {
		atomic_dec(&dropped_count);
		fsnotify_put_mark(&t->mark);
	} else if (llist_add(&t->dropped, &dropped)) {
		schedule_delayed_work(&dropped_work, 1);
	}
}

static const struct flowfd_closing_ops *hook_ops(const struct flowfd_closing_hook *hook)
{
	return flowfd_closing_ops[hook->user];
}

static struct flowfd_closing_hook *hook_of(const struct rb_node *node)
{
	return rb_entry(node, struct flowfd_closing_hook, node);
}

static int hook_compare(const void *file, const struct rb_node *node)
{
	const void *other = hook_of(node)->file;

	return file < other ? -1 : file > other;
}

static bool hook_is_less(struct rb_node *node, const struct rb_node *other)
{
	return hook_compare(hook_of(node)->file, other) < 0;
}

/* From here on the close of the file waits until the hook is gone. */
static void hook_insert(struct flowfd_closing_hook *hook, struct rb_root *hooks)
{
	hook->hooks = hooks;
	rb_add(&hook->node, hooks, hook_is_less);
}

/* Takes a hook that uses nothing of its file out of the tree. */
static void untrack(struct flowfd_closing_hook *hook)
{
	struct flowfd_closing_target *t;

	/*
	 * A counter without hooks is freed without the lock being taken: its wait queue
	 * must be used before this. Pairs with flowfd_closing_end_hooks().
	 */
	smp_mb();
	rb_erase(&hook->node, hook->hooks);
	if (!hook->of_inode)
		return;
	t = container_of(hook->hooks, struct flowfd_closing_target, hooks);
	t->has_alone &= !hook_ops(hook)->alone;
	if (RB_EMPTY_ROOT(&t->hooks))
		target_destroy(t);
}

/* Nobody leaves its queues any more; a worker that polls the file untracks it. */
static void hook_has_left(struct flowfd_closing_hook *hook)
{
	hook->state = CLOSING_LEFT;
	hook_release(hook);
	if (!hook->polling)
		untrack(hook);
}

/*
 * Of hooks into a file that is being closed, from @node on, finds those that the close may
 * end: of one user, and whose file nobody polls, or leaves by itself.
 */
static unsigned int take_hooks(struct flowfd_closing_hook **taken,
			       const struct file *file, struct rb_node *node)
{
	struct flowfd_closing_hook *hook;
	unsigned int count = 0, looked;

	for (looked = 0; node && looked < TAKEN_MAX; looked++) {
		hook = hook_of(node);
		node = rb_next_match(file, node, hook_compare);
		if (hook->state != CLOSING_LIVE || hook->polling) {
			hook->awaited = true;
		} else if (!count || hook->user == taken[0]->user) {
			hook->state = CLOSING_LEAVING;
			taken[count++] = hook;
		}
	}
	return count;
}

/*
 * Ends all hooks into a file that is being closed. A user may have many into one file, and
 * can have the lock of its queues held for long by wakeups that walk them. So the shard,
 * where other users' files are, is released for that, and many leave at once: after each
 * turn the close waits for a walk, and behind all of a user's tasks that want the shard.
 */
static void end_hooks(u8 number, struct rb_root *hooks, const struct file *file)
{
	struct closing_shard *shard = shard_lock(number);
	struct flowfd_closing_hook *taken[TAKEN_MAX];
	const struct flowfd_closing_ops *ops;
	struct rb_node *node;
	unsigned int count, i;

	while ((node = rb_find_first(file, hooks, hook_compare))) {
		count = take_hooks(taken, file, node);
		if (!count) {
			shard_await(shard);
			continue;
		}
		ops = hook_ops(taken[0]);
		mutex_unlock(&shard->lock);
		ops->leave(taken, count);
		cond_resched();
		mutex_lock(&shard->lock);
		for (i = 0; i < count; i++) {
			hook_has_left(taken[i]);
			if (ops->closed)
				ops->closed(taken[i]);
		}
	}
	mutex_unlock(&shard->lock);
}

/* An event of a close has the path that is in the file. */
static int closing_event(struct fsnotify_group *group, u32 mask, const void *data,
			 int data_type, struct inode *dir, const struct qstr *name,
			 u32 cookie, struct fsnotify_iter_info *info)
{
	struct fsnotify_mark *mark = fsnotify_iter_inode_mark(info);
	const struct file *file = container_of(data, struct file, f_path);
	struct flowfd_closing_target *t;

	if (WARN_ON_ONCE(data_type != FSNOTIFY_EVENT_PATH))
		return 0;
	t = container_of(mark, struct flowfd_closing_target, mark);
	/* Another class has none of this file. A destroyed mark stays for a while. */
	if (flowfd_user_class(file->f_cred) == t->shard >> OBJECT_BITS &&
	    !smp_load_acquire(&t->gone)) /* pairs with target_destroy() */
		end_hooks(t->shard, &t->hooks, file);
	return 0;
}

/* Ends the hooks of flowfd_closing_track() into a file that is being released. */
void flowfd_closing_end_hooks(struct rb_root *hooks, const struct file *file)
{
	/* Pairs with untrack(). */
	if (smp_load_acquire(&hooks->rb_node))
		end_hooks(shard_number(file, hooks), hooks, file);
}

/*
 * Unnamed pipes and sockets only: their inodes have one name and live in file systems
 * that are never unmounted, so fsnotify keeps the mark as long as a file is open.
 */
static bool close_is_noticed(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	if (!file_raises_close_event(file))
		return false;
	return (S_ISSOCK(inode->i_mode) && inode->i_sb->s_magic == SOCKFS_MAGIC) ||
	       (S_ISFIFO(inode->i_mode) && inode->i_sb->s_magic == PIPEFS_MAGIC);
}

/* Frees the target if that fails. */
static int target_begin(struct flowfd_closing_target *t, struct inode *inode, u8 shard)
{
	int err;

	t->gone = false;
	t->has_alone = false;
	t->shard = shard;
	fsnotify_init_mark(&t->mark, shards[shard].group);
	t->mark.mask = FS_CLOSE_WRITE | FS_CLOSE_NOWRITE;
	err = fsnotify_add_inode_mark(&t->mark, inode, 0);
	if (err)
		fsnotify_put_mark(&t->mark);
	return err;
}

/* Under the shard's lock a mark that is found is not gone. */
static struct flowfd_closing_target *target_find(struct inode *inode, u8 shard)
{
	struct fsnotify_mark *mark;

	lockdep_assert_held(&shards[shard].lock);

	mark = fsnotify_find_inode_mark(inode, shards[shard].group);
	if (!mark)
		return NULL;
	fsnotify_put_mark(mark);
	return container_of(mark, struct flowfd_closing_target, mark);
}

/*
 * Hooks into a file that calls flowfd_closing_end_hooks() with @hooks when it is
 * released.
 */
void flowfd_closing_track(struct flowfd_closing_hook *hook, struct rb_root *hooks)
{
	struct closing_shard *shard;

	hook->shard = shard_number(hook->file, hooks);
	shard = shard_lock(hook->shard);
	hook_insert(hook, hooks);
	mutex_unlock(&shard->lock);
}

static int track_inode(struct flowfd_closing_hook *hook, struct inode *inode)
{
	struct flowfd_closing_target *t, *fresh;
	struct closing_shard *shard;
	int err = 0;

	/* May wait for a cgroup to free memory: not under a lock that closes take. */
	fresh = kmem_cache_alloc(target_cache, GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return -ENOMEM;
	hook->shard = shard_number(hook->file, inode);
	shard = shard_lock(hook->shard);
	t = target_find(inode, hook->shard);
	if (!t) {
		t = fresh;
		fresh = NULL;
		err = target_begin(t, inode, hook->shard);
	} else if (t->has_alone && hook_ops(hook)->alone) {
		err = -EBUSY;
	}
	if (!err) {
		hook->of_inode = true;
		t->has_alone |= hook_ops(hook)->alone;
		hook_insert(hook, &t->hooks);
	}
	mutex_unlock(&shard->lock);
	if (fresh)
		kmem_cache_free(target_cache, fresh);
	return err;
}

/*
 * Hooks into a socket or pipe. Returns 1; 0 if the close of this file is not noticed;
 * -EBUSY: see @alone; or another negative errno.
 */
int flowfd_closing_track_file(struct flowfd_closing_hook *hook)
{
	if (!close_is_noticed(hook->file))
		return 0;
	return track_inode(hook, file_inode(hook->file)) ?: 1;
}

/*
 * Whether a file may be kept open though its close is noticed. Not a UNIX socket: its
 * queue can hold the descriptor that keeps it open.
 */
bool flowfd_closing_may_pin(struct file *file)
{
	struct socket *sock = sock_from_file(file);

	return !sock || READ_ONCE(sock->ops)->family != PF_UNIX;
}

/*
 * Leaves a file and its wait queues. If a worker polls the file, the worker removes the
 * hook from its tree. Returns false if the file was closed before, and the user was told
 * so.
 */
bool flowfd_closing_remove(struct flowfd_closing_hook *hook)
{
	struct closing_shard *shard = shard_lock(hook->shard);
	bool live;

	while (hook->state == CLOSING_LEAVING) {
		hook->awaited = true;
		shard_await(shard);
	}
	live = hook->state == CLOSING_LIVE;
	if (live) {
		hook->state = CLOSING_LEAVING;
		mutex_unlock(&shard->lock);
		hook_ops(hook)->leave(&hook, 1);
		mutex_lock(&shard->lock);
		hook_has_left(hook);
	}
	mutex_unlock(&shard->lock);
	return live;
}

/*
 * Keeps a file that may be closing until flowfd_closing_end_poll(), to poll it, and
 * returns true if that is possible. The caller keeps the hook. None begins while a close
 * waits for one: there could always be another.
 */
bool flowfd_closing_begin_poll(struct flowfd_closing_hook *hook)
{
	struct closing_shard *shard = shard_lock(hook->shard);
	bool live = hook->state == CLOSING_LIVE && !hook->awaited;

	if (live)
		hook->polling = true;
	mutex_unlock(&shard->lock);
	return live;
}

/* The worker does not use the file any more. */
void flowfd_closing_end_poll(struct flowfd_closing_hook *hook)
{
	struct closing_shard *shard = shard_lock(hook->shard);

	hook->polling = false;
	if (hook->state == CLOSING_LEFT)
		untrack(hook);
	hook_release(hook);
	mutex_unlock(&shard->lock);
}

static void target_free(struct fsnotify_mark *mark)
{
	kmem_cache_free(target_cache,
			container_of(mark, struct flowfd_closing_target, mark));
}

static const struct fsnotify_ops target_ops = {
	.handle_event = closing_event,
	.free_mark = target_free,
};

static void target_construct(void *object)
{
	struct flowfd_closing_target *t = object;

	t->hooks = RB_ROOT;
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
		group = fsnotify_alloc_group(&target_ops, 0);
		if (IS_ERR(group)) {
			put_groups(i);
			return PTR_ERR(group);
		}
		mutex_init(&shards[i].lock);
		init_waitqueue_head(&shards[i].released);
		shards[i].group = group;
	}
	return 0;
}

/* Returns 0 or a negative errno. */
int flowfd_closing_init(void)
{
	int err;

	target_cache = kmem_cache_create("flowfd_target",
					 sizeof(struct flowfd_closing_target), 0,
					 SLAB_ACCOUNT, target_construct);
	if (!target_cache)
		return -ENOMEM;
	err = alloc_groups();
	if (err)
		kmem_cache_destroy(target_cache);
	return err;
}

/*
 * The last hook is gone. Waits for what closes left behind: one may have ended the last hook
 * and still hold the lock. After that its target is destroyed, and the end of a target waits
 * for all closes that know it.
 */
void flowfd_closing_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shards); i++) {
		shard_lock(i);
		mutex_unlock(&shards[i].lock);
	}
	flush_delayed_work(&dropped_work);
	fsnotify_wait_marks_destroyed();
	put_groups(ARRAY_SIZE(shards));
	kmem_cache_destroy(target_cache);
}
