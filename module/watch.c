// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch: a ring publishes the wakeups of a file. It joins the wait queues of the
 * file, and has a worker poll a file whose wakeups do not say enough. Watches are
 * started, changed and stopped under the ring's lock; wakeups come under the lock of
 * the file's wait queue.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/slab.h>

#include "publish.h"
#include "watch.h"

/* A socket sets these in each wakeup, whether they are true or not. */
#define WATCH_CLAIMS (EPOLLPRI | EPOLLRDBAND | EPOLLWRBAND)
/*
 * A poll checks these before they are published: programs close a connection for an error,
 * and a listener that is shut down announces one that it does not have.
 */
#define WATCH_CHECKED (WATCH_CLAIMS | EPOLLERR)

static struct kmem_cache *watch_cache;

struct watch_poll {
	poll_table table;
	struct flowfd_watch *watch;
	int err;
};

/* flowfd_publish() while its tracepoint is enabled. */
void flowfd_publish_traced(struct flowfd_watch *w, __poll_t events, int sync)
{
	publish(w, events, sync, false, true);
}

/* Sets which events are published from now on: EPOLL* bits, 0 for none. */
static void watch_set_mask(struct flowfd_watch *w, u32 mask)
{
	const u32 slow = (__force u32)(WATCH_CLAIMS | EPOLLONESHOT);

	/* After the item's data, which a wakeup that sees the mask publishes. */
	smp_store_release(&w->mask, mask);
	/* Likewise. */
	smp_store_release(&w->direct,
			  mask && !(mask & slow) ? mask | WATCH_SLOW_PATH : 0);
}

/*
 * Called under the lock of a wait queue, by a worker and by a system call, which may
 * all run at the same time. Only one of them takes the shot of a one-shot watch.
 */
static __poll_t watch_select(struct flowfd_watch *w, __poll_t events)
{
	u32 mask = READ_ONCE(w->mask);
	__poll_t bits = events & WATCH_EVENTS & (__force __poll_t)mask;

	if (bits && mask & (__force u32)EPOLLONESHOT &&
	    cmpxchg(&w->mask, mask, 0) != mask)
		return 0;
	return bits;
}

static void watch_publish(struct flowfd_watch *w, __poll_t events, int sync)
{
	__poll_t bits = watch_select(w, events);

	if (bits)
		flowfd_publish(w, bits, sync, false);
}

/* From 7.3 on a pipe wakes for each write only if a poller asks for edges. */
static __poll_t watch_key(u32 mask)
{
	return (__force __poll_t)mask | EPOLLET;
}

/*
 * The worker holds a reference to the watch, so removal need not wait for it. A wakeup of
 * which nothing is published yet (not @has_facts) gets its place in the index now, and
 * listeners are told: "In order" of docs/ring.md.
 */
static void watch_queue_repoll(struct flowfd_watch *w, bool has_facts)
{
	bool entered = false;

	/* Pairs with that in repoll_all(): if it is queued, the poll is yet to come. */
	if (xchg(&w->repoll.queued, true))
		return;
	refcount_inc(&w->refs);
	/*
	 * Before the entry: a task that harvests it finds in its next wait that there is
	 * something to poll. And before listeners are woken: the worker's turn is before
	 * that of pollers, but for procfs, whose worker is among others.
	 */
	flowfd_repoll_queue(w->ring, &w->repoll);
	if (!has_facts && repoll_is_at_once(w->repoll.class))
		entered = publish_entry(w, true);
	if (entered && atomic_read(&w->ring->listening))
		flowfd_ring_wake(w->ring, 0, false);
}

/*
 * If the watch is changed meanwhile, the new mask selects what is published: some
 * files, such as triggers of pressure, report an event to one poll only.
 */
static void watch_poll_again(struct flowfd_watch *w)
{
	u32 mask = READ_ONCE(w->mask);
	poll_table table = { ._key = watch_key(mask) };
	const struct cred *own = NULL;
	__poll_t events;

	if (!mask)
		return;
	if (w->pinned)
		own = override_creds(w->cred);
	events = vfs_poll(w->closing.file, &table);
	if (own)
		revert_creds(own);

	/* Nothing if the watch was removed meanwhile: flowfd_watch_stop() clears the mask. */
	spin_lock(&w->ring->repoll_lock);
	watch_publish(w, events, 0);
	spin_unlock(&w->ring->repoll_lock);
}

/*
 * A worker has the file of a pinned watch only while it polls it. What the worker puts
 * last is closed by a kernel thread that all users share, and a close can take long.
 */
static struct file *watch_get_pinned(struct flowfd_watch *w)
{
	struct file *file = NULL;

	spin_lock(&w->ring->repoll_lock);
	if (READ_ONCE(w->mask))
		file = get_file(w->closing.file);
	spin_unlock(&w->ring->repoll_lock);
	return file;
}

/*
 * Polls a watched file and publishes the events. A worker calls it, or a task that waits
 * for the ring, with a reference that this drops. Nothing waits for the worker: what it
 * finds is dropped if the watch was removed meanwhile.
 */
static void watch_repoll(struct flowfd_repoll_entry *entry)
{
	struct flowfd_watch *w = container_of(entry, struct flowfd_watch, repoll);
	struct file *file;

	if (w->pinned) {
		file = watch_get_pinned(w);
		if (file) {
			watch_poll_again(w);
			fput(file);
		}
	} else if (flowfd_closing_begin_poll(&w->closing)) {
		watch_poll_again(w);
		flowfd_closing_end_poll(&w->closing);
	}
	flowfd_watch_put(w);
}

static noinline int watch_wake_slow(struct wait_queue_entry *wait, int sync, void *key)
{
	struct flowfd_watch_queue *q =
		container_of(wait, struct flowfd_watch_queue, wait);
	struct flowfd_watch *w = wait->private;
	__poll_t events = key_to_poll(key);
	__poll_t claims = events & WATCH_CHECKED;
	__poll_t facts = events & ~WATCH_CHECKED;
	u32 mask = READ_ONCE(w->mask);

	watch_publish(w, facts, sync);
	if (mask && (!events || mask & (__force u32)claims))
		watch_queue_repoll(w, facts);

	/*
	 * The wait queue is freed before the file. This is the last use of it, and of
	 * the watch: once watches_lock_queues() sees NULL, the watch may be freed.
	 */
	if (unlikely(events & POLLFREE)) {
		list_del_init(&wait->entry);
		/* Pairs with smp_load_acquire() in watches_lock_queues(). */
		smp_store_release(&q->head, NULL);
	}
	return 0;
}

/*
 * The watched file calls it with the lock of its wait queue, interrupts off. The watch
 * exists: it leaves the queue under that lock before it is freed.
 */
int flowfd_watch_wake(struct wait_queue_entry *wait, unsigned int mode, int sync,
		      void *key)
{
	if (likely(watch_announce(wait->private, key_to_poll(key), sync)))
		return 0;
	return watch_wake_slow(wait, sync, key);
}

/* Called by a file's poll method, once for each of its wait queues. */
static void watch_join(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct watch_poll *p = container_of(table, struct watch_poll, table);
	struct flowfd_watch *w = p->watch;
	struct flowfd_watch_queue *q = &w->queue;

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
	}
	init_waitqueue_func_entry(&q->wait, flowfd_watch_wake);
	q->wait.private = w;
	q->head = head;
	add_wait_queue(head, &q->wait);
}

static struct flowfd_watch *watch_of_hook(struct flowfd_closing_hook *hook)
{
	return container_of(hook, struct flowfd_watch, closing);
}

static struct flowfd_watch_queue *queue_of_hook(struct flowfd_closing_hook *hook,
						bool second)
{
	struct flowfd_watch *w = watch_of_hook(hook);

	return second ? w->queue2 : &w->queue;
}

/*
 * Those that are in one queue leave it together: whoever wakes the file all the time can have
 * each turn wait for a walk of all that are still there. RCU keeps a wait queue that was
 * announced with POLLFREE until this has dropped its lock.
 */
static void watches_lock_queues(struct flowfd_closing_hook **hooks, unsigned int count,
				bool leave, bool second)
{
	struct flowfd_watch_queue *q;
	wait_queue_head_t *head;
	unsigned long flags;
	unsigned int i = 0;

	rcu_read_lock();
	while (i < count) {
		q = queue_of_hook(hooks[i], second);
		/* Pairs with smp_store_release() in watch_wake_slow(). */
		head = q ? smp_load_acquire(&q->head) : NULL;
		if (!head) {
			i++;
			continue;
		}
		spin_lock_irqsave(&head->lock, flags);
		for (; i < count; i++) {
			q = queue_of_hook(hooks[i], second);
			if (!q || READ_ONCE(q->head) != head)
				break;
			if (leave) {
				list_del_init(&q->wait.entry);
				WRITE_ONCE(q->head, NULL);
			}
		}
		spin_unlock_irqrestore(&head->lock, flags);
	}
	rcu_read_unlock();
}

/*
 * Takes the locks of the wait queues of one file. Orders this task with the wakeups: later
 * ones see what it stored before, and it sees what the file stored before earlier ones. If
 * @leave, no wakeup is running afterwards, and none comes. A worker may poll.
 */
static void watches_lock(struct flowfd_closing_hook **hooks, unsigned int count,
			 bool leave)
{
	watches_lock_queues(hooks, count, leave, false);
	if (count > 1 || watch_of_hook(*hooks)->queue2)
		watches_lock_queues(hooks, count, leave, true);
}

static void watches_leave(struct flowfd_closing_hook **hooks, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		watch_set_mask(watch_of_hook(hooks[i]), 0);
	watches_lock(hooks, count, true);
}

/*
 * The ring's lock is not taken, because it may be held for long. So the item is
 * returned later; until then it is empty, and nothing publishes it.
 */
static void watch_file_closed(struct flowfd_closing_hook *hook)
{
	struct flowfd_watch *w = watch_of_hook(hook);

	flowfd_ring_clear_item(w->item);
	/* The last use of the watch: the ring may free it now. */
	llist_add(&w->closed, &w->ring->closed);
}

static const struct flowfd_closing_ops watch_closing_ops = {
	.leave = watches_leave,
	.closed = watch_file_closed,
};

/*
 * Makes a watch that publishes nothing yet, with one reference. Returns NULL if there is
 * no memory. The caller keeps @file, and sets the item and the repoll class.
 */
struct flowfd_watch *flowfd_watch_alloc(struct flowfd_ring *ring, struct file *file,
					int fd)
{
	struct flowfd_watch *w = kmem_cache_alloc(watch_cache, GFP_KERNEL_ACCOUNT);

	if (!w)
		return NULL;
	refcount_inc(&ring->object.refs);
	*w = (struct flowfd_watch){
		.ring = ring,
		.fd = fd,
		.refs = REFCOUNT_INIT(1),
		.closing = { .file = file, .user = CLOSING_WATCH },
	};
	return w;
}

/* May sleep. */
void flowfd_watch_put(struct flowfd_watch *w)
{
	struct flowfd_ring *ring = w->ring;

	if (!refcount_dec_and_test(&w->refs))
		return;
	if (w->pinned)
		put_cred(w->cred);
	kfree(w->queue2);
	kmem_cache_free(watch_cache, w);
	flowfd_ring_put(&ring->object);
}

/*
 * Joins the wait queues, and publishes what is ready already. The caller keeps the file
 * open. @mask are EPOLL* bits, perhaps with EPOLLONESHOT.
 *
 * Returns 0; -EOPNOTSUPP if the file has more than two wait queues; or -ENOMEM. After an
 * error the watch must be stopped.
 */
int flowfd_watch_start(struct flowfd_watch *w, u32 mask)
{
	struct watch_poll p = { .watch = w };
	__poll_t events;

	init_poll_funcptr(&p.table, watch_join);
	p.table._key = watch_key(mask);
	watch_set_mask(w, mask);
	events = vfs_poll(w->closing.file, &p.table);
	if (!p.err)
		watch_publish(w, events, 0);
	return p.err;
}

/* Gives a watch other events and data. The caller keeps the file open. */
void flowfd_watch_change(struct flowfd_watch *w, u64 data, u32 mask)
{
	poll_table table = { ._key = watch_key(mask) };
	struct flowfd_closing_hook *hook = &w->closing;

	/* A worker publishes what it found by the old mask or by the new one. */
	spin_lock(&w->ring->repoll_lock);
	watch_set_mask(w, 0);
	watches_lock(&hook, 1, false);
	flowfd_ring_set_item(w->item, data);
	watch_set_mask(w, mask);
	spin_unlock(&w->ring->repoll_lock);
	/* The poll methods of counters and eventfds have no barrier and take no lock. */
	watches_lock(&hook, 1, false);
	watch_publish(w, vfs_poll(w->closing.file, &table), 0);
}

/*
 * Publishes nothing more, and leaves the file. Waits for no worker (docs/ring.md). Returns
 * false if the file was closed before: then the watch is in ring->closed.
 */
bool flowfd_watch_stop(struct flowfd_watch *w)
{
	struct flowfd_closing_hook *hook = &w->closing;

	watch_set_mask(w, 0);
	if (w->pinned)
		watches_lock(&hook, 1, true);
	else if (!flowfd_closing_remove(&w->closing))
		return false;
	/* A worker that saw the old mask has published by now, or has the file. */
	spin_lock(&w->ring->repoll_lock);
	spin_unlock(&w->ring->repoll_lock);
	if (w->pinned)
		fput(w->closing.file);
	flowfd_ring_clear_item(w->item);
	return true;
}

/* With a constructor it is never merged with another cache: see counter_alloc.c. */
static void watch_construct(void *object)
{
}

/* Makes the slab cache of watches. Returns 0 or -ENOMEM. */
int flowfd_watch_init(void)
{
	watch_cache = kmem_cache_create("flowfd_watch", sizeof(struct flowfd_watch), 0,
					SLAB_ACCOUNT, watch_construct);
	flowfd_repoll_poll = watch_repoll;
	flowfd_closing_ops[CLOSING_WATCH] = &watch_closing_ops;
	return watch_cache ? 0 : -ENOMEM;
}

/* The last watch is gone. */
void flowfd_watch_exit(void)
{
	kmem_cache_destroy(watch_cache);
}
