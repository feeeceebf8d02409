// SPDX-License-Identifier: GPL-2.0-only
/*
 * A watched file: what it announces to its wait queues is published in the ring.
 * Adding, changing and removing, called by ring.c under the ring's lock;
 * closing.c ends watches of files that are being closed; repoll.c polls files that
 * do not say what they announce.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/hash.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "compat.h"
#include "flowfd.h"
#include "publish.h"

/* What can be asked for and is published. */
#define WATCH_EVENTS (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP | \
		      EPOLLRDNORM | EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND | \
		      EPOLLMSG | EPOLLRDHUP)

/* Files that fdinfo tells of by themselves; a ring can have a million. */
#define WATCH_SHOWN_MAX 4096U

static_assert((__force u32)WATCH_EVENTS < WATCH_RARE_MIN);

/* A socket claims these with each wakeup, whether they are true or not. */
#define WATCH_CLAIMS (EPOLLPRI | EPOLLRDBAND | EPOLLWRBAND)

static struct kmem_cache *watch_cache;

/* fdinfo lists watches in the order of their hash, which is of an address. */
static u64 watch_hash_key;

struct watch_poll {
	poll_table table;
	struct watch *watch;
	int err;
};

/**
 * watch_set_mask - say what is published from now on
 * @w: watch
 * @mask: EPOLL* bits, perhaps with EPOLLONESHOT; 0: nothing
 */
void watch_set_mask(struct watch *w, u32 mask)
{
	const u32 slow = (__force u32)(WATCH_CLAIMS | EPOLLONESHOT);

	/* After the item's data, which a wakeup that sees the mask publishes. */
	smp_store_release(&w->mask, mask);
	/* The same. */
	smp_store_release(&w->direct,
			  mask && !(mask & slow) ? mask | WATCH_RARE : 0);
}

/*
 * Runs under the lock of a wait queue, in a worker or in a system call, and
 * these may meet: of a one-shot watch only one of them takes the shot.
 */
static void watch_publish(struct watch *w, __poll_t events, int sync)
{
	u32 mask = READ_ONCE(w->mask);
	__poll_t bits = events & WATCH_EVENTS & (__force __poll_t)mask;

	if (!bits)
		return;
	if (mask & (__force u32)EPOLLONESHOT &&
	    cmpxchg(&w->mask, mask, 0) != mask)
		return;
	ring_publish(w, bits, events & EPOLL_URING_WAKE, sync);
}

/* From 7.3 on a pipe wakes for each write only if somebody asks for edges. */
static __poll_t watch_key(u32 mask)
{
	return (__force __poll_t)mask | EPOLLET;
}

/**
 * watch_repoll - poll a watched file, and publish what it is ready for
 * @w: watch whose file cannot go meanwhile
 *
 * Called by a worker, which nobody waits for: what it finds is dropped if the
 * watch was removed since. If it was changed, what it finds is published by the new
 * mask: some files, such as triggers of pressure, tell a poll only once.
 */
void watch_repoll(struct watch *w)
{
	u32 mask = READ_ONCE(w->mask);
	poll_table table = { ._key = watch_key(mask) };
	const struct cred *worker = NULL;
	__poll_t events;

	if (!mask)
		return;
	if (w->pinned && w->cred)
		worker = override_creds(w->cred);
	events = vfs_poll(w->file, &table);
	if (worker)
		revert_creds(worker);

	spin_lock(&w->ring->repoll_lock);
	if (!w->dropped)
		watch_publish(w, events, 0);
	spin_unlock(&w->ring->repoll_lock);
}

/* As watch_wake(), for whatever it does not do itself. */
static noinline int watch_wake_rare(struct wait_queue_entry *wait,
				    unsigned int mode, int sync, void *key)
{
	struct watch_queue *q = container_of(wait, struct watch_queue, wait);
	struct watch *w = wait->private;
	__poll_t events = key_to_poll(key);
	__poll_t claims = events & WATCH_CLAIMS;
	u32 mask = READ_ONCE(w->mask);

	watch_publish(w, events & ~WATCH_CLAIMS, sync);
	if (mask && (!events || mask & (__force u32)claims))
		repoll_queue(w);

	/*
	 * The wait queue goes before the file does. This is the last use of it,
	 * and of the watch: once watch_leave() sees NULL it can be freed.
	 */
	if (unlikely(events & POLLFREE)) {
		list_del_init(&wait->entry);
		/* Pairs with smp_load_acquire() in watch_leave(). */
		smp_store_release(&q->head, NULL);
	}
	return 0;
}

/**
 * watch_wake - publish what a watched file announces
 * @wait: the first of a watch
 * @mode: not used
 * @sync: handed on to those who wait for the ring
 * @key: what happened
 *
 * Called by the watched file with the lock of its wait queue, interrupts off.
 * The watch is there: it leaves the queue, under that lock, before it goes.
 *
 * Return: 0, always.
 */
int watch_wake(struct wait_queue_entry *wait, unsigned int mode, int sync,
	       void *key)
{
	if (likely(watch_announce(watch_of_first(wait), key_to_poll(key), sync)))
		return 0;
	return watch_wake_rare(wait, mode, sync, key);
}

static int watch_wake_second(struct wait_queue_entry *wait, unsigned int mode,
			     int sync, void *key)
{
	if (likely(watch_announce(wait->private, key_to_poll(key), sync)))
		return 0;
	return watch_wake_rare(wait, mode, sync, key);
}

/* Called by a file's poll method, once for each of its wait queues. */
static void watch_join(struct file *file, wait_queue_head_t *head,
		       poll_table *table)
{
	struct watch_poll *p = container_of(table, struct watch_poll, table);
	struct watch *w = p->watch;
	struct watch_queue *q = &w->queue;
	wait_queue_func_t func = watch_wake;

	if (p->err || READ_ONCE(q->head) == head)
		return;
	if (q->wait.func) {
		q = w->queue2;
		if (q && READ_ONCE(q->head) == head)
			return;
		p->err = q ? -EOPNOTSUPP : 0;
		if (p->err)
			return;
		q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
		if (!q) {
			p->err = -ENOMEM;
			return;
		}
		w->queue2 = q;
		func = watch_wake_second;
	}
	init_waitqueue_func_entry(&q->wait, func);
	q->wait.private = w;
	q->head = head;
	add_wait_queue(head, &q->wait);
}

/*
 * RCU keeps a wait queue that was announced with POLLFREE until this is done
 * with it. After this no call of watch_wake() is running.
 */
static void watch_leave(struct watch_queue *q, bool for_good)
{
	wait_queue_head_t *head;
	unsigned long flags;

	rcu_read_lock();
	/* Pairs with smp_store_release() in watch_wake(). */
	head = smp_load_acquire(&q->head);
	if (head) {
		spin_lock_irqsave(&head->lock, flags);
		if (for_good) {
			list_del_init(&q->wait.entry);
			WRITE_ONCE(q->head, NULL);
		}
		spin_unlock_irqrestore(&head->lock, flags);
	}
	rcu_read_unlock();
}

/**
 * watch_unhook - leave the wait queues of the file
 * @w: watch with a file that is there
 *
 * A worker can still poll the file.
 */
void watch_unhook(struct watch *w)
{
	watch_leave(&w->queue, true);
	if (w->queue2)
		watch_leave(w->queue2, true);
}

/* A worker that polls the file publishes nothing of it afterwards. */
static void watch_drop_repoll(struct watch *w)
{
	spin_lock(&w->ring->repoll_lock);
	w->dropped = true;
	spin_unlock(&w->ring->repoll_lock);
}

/*
 * A wakeup that comes after this sees what was stored before it, and what a file
 * stored before a wakeup that came earlier is seen after it.
 */
static void watch_meet_wakeups(struct watch *w)
{
	watch_leave(&w->queue, false);
	if (w->queue2)
		watch_leave(w->queue2, false);
}

/* What would make a cycle of wakeups or of references. */
static bool file_is_a_watcher(const struct file *file)
{
	const char *name = file->f_path.dentry->d_name.name;

	if (file->f_op == &ring_fops)
		return true;
	if (file_inode(file)->i_sb->s_magic != ANON_INODE_FS_MAGIC)
		return false;
	return !strcmp(name, "[eventpoll]") || !strcmp(name, "[io_uring]");
}

static bool file_is_of_module(const struct file *file, const char *name)
{
	struct module *owner = file->f_op->owner;

	return owner && !strcmp(module_name(owner), name);
}

/*
 * What poll answers depends on the task that asks: signalfd looks at its signals,
 * binder at its thread. Both wake without events, and a worker is the wrong task.
 */
static bool file_polls_for_task(const struct file *file)
{
	switch (file_inode(file)->i_sb->s_magic) {
	case ANON_INODE_FS_MAGIC:
		return !strcmp(file->f_path.dentry->d_name.name, "[signalfd]");
	case BINDERFS_SUPER_MAGIC:
		return true;
	default:
		return file_is_of_module(file, "binder_linux");
	}
}

static bool file_can_be_watched(struct file *file)
{
	return file_can_poll(file) && !file_polls_for_task(file);
}

static struct hlist_head *watch_bucket(const struct ring *ring,
				       const struct file *file, int fd)
{
	u32 hash = hash_64(((uintptr_t)file ^ watch_hash_key) + fd,
			   ring->hash_bits);

	return &ring->watches[hash];
}

static struct watch *watch_find(const struct ring *ring,
				const struct file *file, int fd)
{
	struct watch *w;

	hlist_for_each_entry(w, watch_bucket(ring, file, fd), hash) {
		if (w->file == file && w->fd == fd)
			return w;
	}
	return NULL;
}

static void item_take(struct ring *ring, struct watch *w)
{
	u32 number = ring->free[ring->free_first];

	w->item = &ring->items[number];
	w->index_entry = number + 1;
	ring->free_first = (ring->free_first + 1) % ring->max_items;
	ring->free_count--;
}

static void item_give_back(struct ring *ring, const struct watch *w)
{
	u32 end = (ring->free_first + ring->free_count) % ring->max_items;

	ring->free[end] = w->index_entry - 1;
	ring->free_count++;
}

/**
 * watch_put - give a reference to a watch back
 * @w: watch; may sleep
 */
void watch_put(struct watch *w)
{
	struct ring *ring = w->ring;

	if (!refcount_dec_and_test(&w->refs))
		return;
	if (w->pinned) {
		fput(w->file);
		put_cred(w->cred);
	}
	kfree(w->queue2);
	kmem_cache_free(watch_cache, w);
	ring_put(ring);
}

/* It publishes nothing any more, and nothing of its file is used. */
static void watch_retire(struct watch *w)
{
	struct ring *ring = w->ring;

	lockdep_assert_held(&ring->lock);

	hlist_del(&w->hash);
	item_give_back(ring, w);
	watch_put(w);
}

/*
 * Waits for no worker: that may wait for user space, and this may be the end of a
 * ring in somebody else's context. False: the file was closed before, and
 * watch_remove_closed() does the rest.
 */
static bool watch_remove(struct watch *w)
{
	watch_set_mask(w, 0);
	if (w->pinned) {
		watch_unhook(w);
		w->state = WATCH_REMOVED;
	} else if (!closing_remove(w)) {
		return false;
	}
	watch_drop_repoll(w);
	ring_clear_item(w->item);
	watch_retire(w);
	return true;
}

/* Gives the items of closed files back. */
static void watch_remove_closed(struct ring *ring)
{
	struct watch *w, *next;

	lockdep_assert_held(&ring->lock);

	if (llist_empty(&ring->closed))
		return;
	llist_for_each_entry_safe(w, next, llist_del_all(&ring->closed), closed)
		watch_retire(w);
}

static struct watch *watch_alloc(struct ring *ring, struct file *file, int fd)
{
	struct watch *w = kmem_cache_alloc(watch_cache, GFP_KERNEL_ACCOUNT);

	if (!w)
		return NULL;
	ring_get(ring);
	w->ring = ring;
	w->file = file;
	w->fd = fd;
	watch_set_mask(w, 0);
	refcount_set(&w->refs, 1);
	w->dirty = false;
	w->state = WATCH_LIVE;
	w->dropped = false;
	w->class = repoll_class(file);
	w->polling = false;
	w->pinned = false;
	w->queue.wait.func = NULL;
	w->queue.head = NULL;
	w->queue2 = NULL;
	w->target = NULL;
	return w;
}

/* The file is the caller's: it does not close meanwhile. */
static int watch_begin(struct watch *w, u32 mask)
{
	struct watch_poll p = { .watch = w };
	__poll_t events;

	init_poll_funcptr(&p.table, watch_join);
	p.table._key = watch_key(mask);
	watch_set_mask(w, mask);
	events = vfs_poll(w->file, &p.table);
	if (!p.err)
		watch_publish(w, events, 0);
	return p.err;
}

static void watch_pin(struct watch *w)
{
	get_file(w->file);
	w->pinned = true;
	/* A FUSE server is asked on behalf of the task that added the file. */
	w->cred = w->class == REPOLL_KERNEL ? NULL : get_current_cred();
}

static int watch_add(struct ring *ring, struct file *file,
		     const struct flowfd_ring_entry *entry, u32 mask)
{
	struct watch *w;
	int err;

	if (file_is_a_watcher(file))
		return -ELOOP;
	if (!file_can_be_watched(file))
		return -EPERM;
	if (watch_find(ring, file, entry->fd))
		return -EEXIST;
	if (!ring->free_count)
		return -ENOSPC;
	w = watch_alloc(ring, file, entry->fd);
	if (!w)
		return -ENOMEM;
	item_take(ring, w);
	ring_set_item(w->item, entry->data);
	if (entry->op == FLOWFD_RING_ADD_PINNED && closing_may_pin(file))
		err = 0;
	else
		err = closing_track(w);
	/* Neither its close is noticed, nor may it be kept open. */
	if (!err && !closing_may_pin(file))
		err = -EPERM;
	if (err < 0) {
		item_give_back(ring, w);
		watch_put(w);
		return err;
	}
	if (!err)
		watch_pin(w);
	hlist_add_head(&w->hash, watch_bucket(ring, file, entry->fd));
	err = watch_begin(w, mask);
	if (err) {
		watch_remove(w);
		return err;
	}
	return w->pinned ? FLOWFD_RING_PINNED : 0;
}

/* The file is the caller's: it does not close meanwhile. */
static int watch_modify(struct watch *w, u64 data, u32 mask)
{
	poll_table table = { ._key = watch_key(mask) };

	watch_set_mask(w, 0);
	watch_meet_wakeups(w);
	ring_set_item(w->item, data);
	watch_set_mask(w, mask);
	/* The poll methods of counters and eventfds have no barrier, and take no lock. */
	watch_meet_wakeups(w);
	watch_publish(w, vfs_poll(w->file, &table), 0);
	return 0;
}

/* Of files whose descriptors may be gone. */
static int watch_remove_by_data(struct ring *ring, u64 data)
{
	struct hlist_node *next;
	struct watch *w;
	int removed = 0;
	u32 i;

	watch_remove_closed(ring);
	for (i = 0; i < 1U << ring->hash_bits; i++) {
		hlist_for_each_entry_safe(w, next, &ring->watches[i], hash) {
			if (READ_ONCE(w->item->data) == data)
				removed += watch_remove(w);
			cond_resched();
		}
		cond_resched();
	}
	return removed ?: -ENOENT;
}

static bool entry_is_valid(const struct flowfd_ring_entry *entry)
{
	const u32 known = (__force u32)(WATCH_EVENTS | EPOLLET | EPOLLONESHOT);

	switch (entry->op) {
	case FLOWFD_RING_DEL:
		return !entry->events && !entry->data;
	case FLOWFD_RING_DEL_DATA:
		return !entry->events && entry->fd == -1;
	case FLOWFD_RING_ADD:
	case FLOWFD_RING_ADD_PINNED:
	case FLOWFD_RING_MOD:
		return entry->events & (__force u32)EPOLLET &&
		       !(entry->events & ~known);
	default:
		return false;
	}
}

static int watch_control_file(struct ring *ring, struct file *file,
			      const struct flowfd_ring_entry *entry)
{
	u32 mask = (entry->events & ~(__force u32)EPOLLET) |
		   (__force u32)(EPOLLERR | EPOLLHUP);
	struct watch *w;

	watch_remove_closed(ring);
	if (entry->op == FLOWFD_RING_ADD || entry->op == FLOWFD_RING_ADD_PINNED)
		return watch_add(ring, file, entry, mask);
	w = watch_find(ring, file, entry->fd);
	if (!w)
		return -ENOENT;
	if (entry->op == FLOWFD_RING_MOD)
		return watch_modify(w, entry->data, mask);
	watch_remove(w);
	return 0;
}

/**
 * watch_control - carry out an entry of FLOWFD_IOC_RING_CONTROL
 * @ring: ring
 * @entry: what to do, not checked
 *
 * Return: the result for user space.
 */
int watch_control(struct ring *ring, const struct flowfd_ring_entry *entry)
{
	struct file *file = NULL;
	int result;

	if (!entry_is_valid(entry))
		return -EINVAL;
	if (entry->op != FLOWFD_RING_DEL_DATA) {
		file = fget(entry->fd);
		if (!file)
			return -EBADF;
	}
	result = mutex_lock_killable(&ring->lock);
	if (!result) {
		if (file)
			result = watch_control_file(ring, file, entry);
		else
			result = watch_remove_by_data(ring, entry->data);
		mutex_unlock(&ring->lock);
	}
	if (file)
		fput(file);
	return result;
}

/**
 * watch_remove_all - the ring ends
 * @ring: ring that has no descriptor any more
 */
void watch_remove_all(struct ring *ring)
{
	struct hlist_node *next;
	struct watch *w;
	u32 i;

	mutex_lock(&ring->lock);
	for (i = 0; i < 1U << ring->hash_bits; i++) {
		hlist_for_each_entry_safe(w, next, &ring->watches[i], hash) {
			watch_remove(w);
			cond_resched();
		}
		cond_resched();
	}
	watch_remove_closed(ring);
	mutex_unlock(&ring->lock);
}

static void watch_show(const struct watch *w, struct seq_file *m)
{
	seq_printf(m, "tfd: %8d events: %8x data: %16llx pinned: %d\n", w->fd,
		   READ_ONCE(w->mask), READ_ONCE(w->item->data), w->pinned);
}

/* The first of them, so that a reader's time is bounded. */
static void watch_show_first(struct ring *ring, struct seq_file *m)
{
	u32 all = ring->max_items - ring->free_count;
	u32 left = min(all, WATCH_SHOWN_MAX);
	const struct watch *w;
	u32 i;

	seq_printf(m, "flowfd-ring-watches: %u\n", all);
	for (i = 0; left && !seq_has_overflowed(m); i++)
		hlist_for_each_entry(w, &ring->watches[i], hash) {
			watch_show(w, m);
			if (!--left)
				break;
		}
	if (all > WATCH_SHOWN_MAX)
		seq_printf(m, "flowfd-ring-more: %u\n", all - WATCH_SHOWN_MAX);
}

/**
 * watch_show_all - what a ring watches, for fdinfo
 * @ring: ring
 * @m: where to
 *
 * It does not wait: a watched file's poll method may never return, and fdinfo is
 * read by processes that have no part in the ring.
 */
void watch_show_all(struct ring *ring, struct seq_file *m)
{
	if (!mutex_trylock(&ring->lock)) {
		seq_puts(m, "flowfd-ring-busy: 1\n");
		return;
	}
	watch_remove_closed(ring);
	watch_show_first(ring, m);
	mutex_unlock(&ring->lock);
}

static void watch_construct(void *object)
{
	struct watch *w = object;

	INIT_LIST_HEAD(&w->closing);
}

/** watch_cache_init - make the slab cache of watches */
int watch_cache_init(void)
{
	watch_cache = kmem_cache_create("flowfd_watch", sizeof(struct watch), 0,
					SLAB_ACCOUNT, watch_construct);
	if (!watch_cache)
		return -ENOMEM;
	get_random_bytes(&watch_hash_key, sizeof(watch_hash_key));
	return 0;
}

/** watch_cache_exit - the last watch is gone */
void watch_cache_exit(void)
{
	kmem_cache_destroy(watch_cache);
}
