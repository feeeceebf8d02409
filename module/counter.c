// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counter: eventfd's state machine with a maximum. Count, maximum and the
 * wakeups that follow from them are under one lock, that of the wait queue.
 * Called by the VFS; device.c creates counters, bucket.c holds wakeups back.
 */
#include <linux/idr.h>
#include <linux/lockdep.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "count.h"
#include "flowfd.h"
#include "publish.h"

static struct kmem_cache *counter_cache;
static DEFINE_IDA(counter_ids);

/*
 * A task that sleeps in read or write. It is woken only when it can go on:
 * eventfd wakes all of them for every change.
 */
struct waiter {
	struct wait_queue_entry entry;
	const struct counter *counter;
	__poll_t event;		/* EPOLLIN: a reader; EPOLLOUT: a writer */
	u64 value;		/* what the writer adds */
};

/*
 * Wakes one of those who wait, and says whether that was enough.
 *
 * Marks the task as eventfd does, so that whoever is called back does not signal
 * an eventfd from inside this wakeup but defers it. A ring does that itself, when
 * there is somebody to wake: see ring_wake().
 */
static noinline bool counter_wake_one(wait_queue_entry_t *entry,
				      __poll_t events)
{
	/* The entry can be gone after the call. */
	bool exclusive = entry->flags & WQ_FLAG_EXCLUSIVE;
	bool outer = current->in_eventfd;
	int woken;

	current->in_eventfd = 1;
	woken = entry->func(entry, TASK_NORMAL, 0, poll_to_key(events));
	current->in_eventfd = outer;
	return woken < 0 || (woken && exclusive);
}

/**
 * counter_wake - wake sleepers and pollers
 * @c: counter, locked
 * @events: what happened
 *
 * As wake_up_locked_poll(), but what a ring wants is published at once.
 */
void counter_wake(struct counter *c, __poll_t events)
{
	wait_queue_entry_t *entry, *next;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (likely(entry->func == watch_wake &&
			   watch_announce(watch_of_first(entry), events, 0)))
			continue;
		if (counter_wake_one(entry, events))
			break;
	}
}

static __always_inline void counter_wake_readers(struct counter *c)
{
	/* The queue grows under the lock only, so no barrier is needed. */
	if (!waitqueue_active(&c->wqh))
		return;
	if (bucket_is_limited(&c->bucket))
		counter_wake_readers_limited(c);
	else
		counter_wake(c, EPOLLIN);
}

static bool counter_has_room(const struct counter *c, u64 value)
{
	return count_has_room(c->count, c->maximum, value);
}

/*
 * Stores a new count, and with it what poll is to answer: poll does not take the
 * lock, and must not see a count and a maximum that never were there together.
 */
static __always_inline void counter_set(struct counter *c, u64 count)
{
	c->count = count;
	WRITE_ONCE(c->events, count_events(count, c->maximum));
}

/* A writer whose value can never fit goes on, too, to say so. */
static bool waiter_can_go(const struct waiter *w)
{
	const struct counter *c = w->counter;

	if (w->event == EPOLLIN)
		return c->count;
	return counter_has_room(c, w->value) ||
	       !count_can_fit(c->maximum, w->value);
}

static int waiter_wake(struct wait_queue_entry *entry, unsigned int mode,
		       int sync, void *key)
{
	const struct waiter *w = container_of(entry, struct waiter, entry);

	if (!(key_to_poll(key) & w->event) || !waiter_can_go(w))
		return 0;
	return autoremove_wake_function(entry, mode, sync, key);
}

/* Wakes those who sleep in read or write: no poller stands before any of them. */
static void counter_wake_sleepers(struct counter *c, __poll_t events)
{
	wait_queue_entry_t *entry, *next;

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (entry->func != waiter_wake)
			break;
		counter_wake_one(entry, events);
	}
}

/*
 * Sleeps, with the lock released, until @event lets the caller go on.
 *
 * A wakeup ends at the first exclusive entry that it woke. The priority puts a
 * sleeper before all pollers, exclusive ones included, and behind the sleepers
 * that came earlier. do_wait_intr_irq() adds at the tail only what is in no queue.
 */
static noinline int counter_wait(struct counter *c, __poll_t event, u64 value)
{
	struct waiter w = { .counter = c, .event = event, .value = value };
	int err;

	init_wait(&w.entry);
	w.entry.func = waiter_wake;
	w.entry.flags = WQ_FLAG_PRIORITY;
	do {
		if (list_empty(&w.entry.entry))
			__add_wait_queue(&c->wqh, &w.entry);
		err = do_wait_intr_irq(&c->wqh, &w.entry);
	} while (!err && !waiter_can_go(&w));
	__remove_wait_queue(&c->wqh, &w.entry);
	__set_current_state(TASK_RUNNING);
	return err;
}

/*
 * A write that does not fit now. Whether it ever can is for the maximum to say, which
 * can change while the writer sleeps.
 */
static noinline int counter_await_room(struct counter *c, u64 value,
				       bool nonblock)
{
	int err = 0;

	if (count_can_fit(c->maximum, value)) {
		c->write_refused |= nonblock;
		err = nonblock ? -EAGAIN : counter_wait(c, EPOLLOUT, value);
	}
	if (!err && !counter_has_room(c, value))
		err = -EINVAL;
	return err;
}

static __always_inline int counter_add(struct counter *c, u64 value,
				       bool nonblock)
{
	int err;

	if (unlikely(value == U64_MAX))
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	if (unlikely(!counter_has_room(c, value))) {
		err = counter_await_room(c, value, nonblock);
		if (err) {
			spin_unlock_irq(&c->wqh.lock);
			return err;
		}
	}
	counter_set(c, c->count + value);
	counter_wake_readers(c);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
}

/*
 * A read made room. Where readers are limited, a poller is told of it only if it may
 * wait for it: there was no room for a write of 1 before, or a write has failed with
 * EAGAIN since the last time. epoll polls a file anew for every wakeup, so one that
 * wants EPOLLIN as well would report the next write without a token.
 *
 * Exclusive entries are always woken, as the one that was told last can be gone.
 */
static void counter_wake_some(struct counter *c)
{
	wait_queue_entry_t *entry, *next;

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (entry->func != waiter_wake &&
		    !(entry->flags & WQ_FLAG_EXCLUSIVE))
			continue;
		if (counter_wake_one(entry, EPOLLOUT))
			break;
	}
}

static __always_inline void counter_wake_writers(struct counter *c, u64 before)
{
	if (unlikely(bucket_is_limited(&c->bucket)) && !c->write_refused &&
	    count_events(before, c->maximum) & EPOLLOUT) {
		counter_wake_some(c);
		return;
	}
	c->write_refused = false;
	counter_wake(c, EPOLLOUT);
}

static __always_inline int counter_take(struct counter *c, u64 *value,
					bool nonblock)
{
	int err;

	spin_lock_irq(&c->wqh.lock);
	if (unlikely(!c->count)) {
		err = nonblock ? -EAGAIN : counter_wait(c, EPOLLIN, 0);
		if (err) {
			spin_unlock_irq(&c->wqh.lock);
			return err;
		}
	}
	*value = c->semaphore ? 1 : c->count;
	counter_set(c, c->count - *value);
	/* No barrier needed, as above. */
	if (waitqueue_active(&c->wqh))
		counter_wake_writers(c, c->count + *value);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
}

/*
 * A reader whose buffer turned out bad gives back what it took. Writers may have
 * used the room by now: then the count stops at the maximum, and poll reports
 * the overflow.
 */
static noinline void counter_give_back(struct counter *c, u64 value)
{
	spin_lock_irq(&c->wqh.lock);
	counter_set(c, count_give_back(c->count, c->maximum, value));
	counter_wake_readers(c);
	spin_unlock_irq(&c->wqh.lock);
}

/*
 * Plain read and write have methods of their own beside the _iter ones, as they
 * are what counters are used for: it saves them the set-up of an iterator.
 */
static ssize_t counter_read(struct file *file, char __user *buf, size_t size,
			    loff_t *ppos)
{
	struct counter *c = file->private_data;
	u64 value;
	int err;

	if (unlikely(size < sizeof(value)))
		return -EINVAL;
	err = counter_take(c, &value, file->f_flags & O_NONBLOCK);
	if (unlikely(err))
		return err;
	if (unlikely(put_user(value, (u64 __user *)buf))) {
		counter_give_back(c, value);
		return -EFAULT;
	}
	return sizeof(value);
}

static ssize_t counter_write(struct file *file, const char __user *buf,
			     size_t size, loff_t *ppos)
{
	struct counter *c = file->private_data;
	u64 value;
	int err;

	if (unlikely(!write_size_is_valid(size)))
		return -EINVAL;
	if (unlikely(get_user(value, (const u64 __user *)buf)))
		return -EFAULT;
	err = counter_add(c, value, file->f_flags & O_NONBLOCK);
	return err ?: sizeof(value);
}

static bool iocb_is_nonblock(const struct kiocb *iocb)
{
	return iocb->ki_flags & IOCB_NOWAIT ||
	       iocb->ki_filp->f_flags & O_NONBLOCK;
}

static ssize_t counter_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct counter *c = iocb->ki_filp->private_data;
	u64 value;
	int err;

	if (iov_iter_count(to) < sizeof(value))
		return -EINVAL;
	err = counter_take(c, &value, iocb_is_nonblock(iocb));
	if (err)
		return err;
	if (copy_to_iter(&value, sizeof(value), to) != sizeof(value)) {
		counter_give_back(c, value);
		return -EFAULT;
	}
	return sizeof(value);
}

/*
 * eventfd has no write_iter, so writev(2) gives it one write for each segment.
 * Do the same: a program must not see the difference.
 */
static ssize_t counter_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct counter *c = iocb->ki_filp->private_data;
	ssize_t written = 0;
	size_t size;
	u64 value;
	int err;

	do {
		size = iter_is_iovec(from) ? iov_iter_single_seg_count(from) :
					     iov_iter_count(from);
		if (!write_size_is_valid(size))
			err = -EINVAL;
		else if (copy_from_iter(&value, sizeof(value), from) !=
			 sizeof(value))
			err = -EFAULT;
		else
			err = counter_add(c, value, iocb_is_nonblock(iocb));
		if (err)
			return written ?: err;
		written += sizeof(value);
		/* Goes on to the next segment that is not empty. */
		iov_iter_advance(from, 0);
	} while (size == sizeof(value) && iov_iter_count(from));
	return written;
}

/*
 * The caller is in the queue, or poll_wait() has just put it there under the
 * lock, before the events are looked at; whoever changes them does so under the
 * lock before looking at the queue. So either this sees the new events, or the
 * other side sees the queue.
 */
static __poll_t counter_poll(struct file *file, poll_table *wait)
{
	struct counter *c = file->private_data;

	poll_wait(file, &c->wqh, wait);
	return READ_ONCE(c->events);
}

/* The maximum is for writers, as the bucket is for readers. */
static long counter_set_maximum(struct file *file, const u64 __user *argp)
{
	struct counter *c = file->private_data;
	u64 maximum;
	bool raised;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (get_user(maximum, argp))
		return -EFAULT;

	spin_lock_irq(&c->wqh.lock);
	if (maximum <= c->count) {
		spin_unlock_irq(&c->wqh.lock);
		return -EINVAL;
	}
	raised = maximum > c->maximum;
	c->maximum = maximum;
	counter_set(c, c->count);
	if (raised)
		counter_wake(c, EPOLLOUT);
	else
		counter_wake_sleepers(c, EPOLLOUT);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
}

static long counter_get_maximum(struct counter *c, u64 __user *argp)
{
	u64 maximum;

	spin_lock_irq(&c->wqh.lock);
	maximum = c->maximum;
	spin_unlock_irq(&c->wqh.lock);
	return put_user(maximum, argp);
}

static long counter_set_qos(struct file *file, const void __user *argp)
{
	struct counter *c = file->private_data;
	struct eventfd_qos qos;
	bool semaphore;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&qos, argp, sizeof(qos)))
		return -EFAULT;
	if (!qos_is_valid(&qos))
		return -EINVAL;

	spin_lock_irq(&c->wqh.lock);
	semaphore = c->semaphore;
	if (!semaphore)
		counter_replace_bucket(c, &qos);
	spin_unlock_irq(&c->wqh.lock);
	return semaphore ? -EINVAL : 0;
}

static long counter_get_qos(struct counter *c, void __user *argp)
{
	struct eventfd_qos qos;

	spin_lock_irq(&c->wqh.lock);
	qos = c->qos;
	spin_unlock_irq(&c->wqh.lock);
	return copy_to_user(argp, &qos, sizeof(qos)) ? -EFAULT : 0;
}

static long counter_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	struct counter *c = file->private_data;
	void __user *argp = (void __user *)arg;

	switch (cmd) {
	case EFD_IOC_SET_MAXIMUM:
		return counter_set_maximum(file, argp);
	case EFD_IOC_GET_MAXIMUM:
		return counter_get_maximum(c, argp);
	case EFD_IOC_SET_QOS:
		return counter_set_qos(file, argp);
	case EFD_IOC_GET_QOS:
		return counter_get_qos(c, argp);
	default:
		return device_counter_ioctl(file, cmd, argp);
	}
}

#ifdef CONFIG_PROC_FS
static void counter_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct counter *c = file->private_data;
	struct eventfd_qos qos;
	/*
	 * But for this look at it. Before the count: if there are no others, the
	 * count is what it is after the last of them was used.
	 */
	long references = file_count(file) - 1;
	u64 count, maximum;
	bool deferred, semaphore;

	/* See above. Pairs with the release of the file's last other reference. */
	smp_rmb();
	spin_lock_irq(&c->wqh.lock);
	count = c->count;
	semaphore = c->semaphore;
	maximum = c->maximum;
	qos = c->qos;
	deferred = c->wakeup_deferred;
	spin_unlock_irq(&c->wqh.lock);

	seq_printf(m,
		   "eventfd-count: %16llx\n"
		   "eventfd-id: %d\n"
		   "eventfd-semaphore: %d\n"
		   "eventfd-maximum: %16llx\n"
		   "flowfd-token-capacity: %u\n"
		   "flowfd-token-rate: %u\n"
		   "flowfd-wakeup-deferred: %d\n"
		   "flowfd-references: %ld\n",
		   count, c->id, semaphore, maximum,
		   qos.token_capacity, qos.token_rate, deferred, references);
}
#endif

static int counter_release(struct inode *inode, struct file *file)
{
	closing_counter(file->private_data);
	counter_free(file->private_data);
	return 0;
}

/*
 * Locks would be of the inode, which all opened counters share: each close would look
 * through those of all users.
 */
static int counter_lock(struct file *file, int cmd, struct file_lock *lock)
{
	return -EOPNOTSUPP;
}

/* Opened as /dev/flowfd or created by ioctl, a counter does the same. */
const struct file_operations counter_fops = {
	.owner		= THIS_MODULE,
	.open		= device_open,
	.release	= counter_release,
	.read		= counter_read,
	.write		= counter_write,
	.read_iter	= counter_read_iter,
	.write_iter	= counter_write_iter,
	.poll		= counter_poll,
	.unlocked_ioctl	= counter_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
	.lock		= counter_lock,
	.flock		= counter_lock,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= counter_show_fdinfo,
#endif
};

/**
 * counter_alloc - make a counter
 * @args: checked settings; a maximum of 0 is no maximum
 *
 * Return: the counter, sealed, to be given to counter_free(), or an ERR_PTR.
 */
struct counter *counter_alloc(const struct flowfd_create_counter *args)
{
	struct counter *c;

	c = kmem_cache_alloc(counter_cache, GFP_KERNEL_ACCOUNT);
	if (!c)
		return ERR_PTR(-ENOMEM);
	c->id = ida_alloc(&counter_ids, GFP_KERNEL_ACCOUNT);
	if (c->id < 0) {
		int err = c->id;

		kmem_cache_free(counter_cache, c);
		return ERR_PTR(err);
	}
	c->maximum = args->maximum ?: U64_MAX;
	counter_set(c, args->initial);
	c->semaphore = args->flags & FLOWFD_SEMAPHORE;
	c->sealed = true;
	c->write_refused = false;
	counter_init_bucket(c, &args->qos);
	return c;
}

static bool counter_is_untouched(const struct counter *c)
{
	return !c->sealed && !c->count && c->maximum == U64_MAX &&
	       !c->qos.token_capacity && !c->qos.token_rate;
}

/**
 * counter_setup - give an opened counter its settings, once
 * @c: counter, which others may use already
 * @args: checked settings; a maximum of 0 is no maximum
 *
 * Return: 0, or -EBUSY if it has settings or a count.
 */
int counter_setup(struct counter *c, const struct flowfd_create_counter *args)
{
	bool untouched;

	spin_lock_irq(&c->wqh.lock);
	untouched = counter_is_untouched(c);
	if (untouched) {
		WRITE_ONCE(c->sealed, true);
		c->semaphore = args->flags & FLOWFD_SEMAPHORE;
		c->maximum = args->maximum ?: U64_MAX;
		counter_replace_bucket(c, &args->qos);
		counter_set(c, args->initial);
		if (c->count)
			counter_wake_readers(c);
	}
	spin_unlock_irq(&c->wqh.lock);
	return untouched ? 0 : -EBUSY;
}

/**
 * counter_free - end a counter
 * @c: counter that no file refers to
 */
void counter_free(struct counter *c)
{
	counter_exit_bucket(c);
	ida_free(&counter_ids, c->id);
	kmem_cache_free(counter_cache, c);
}

static void counter_construct(void *object)
{
	struct counter *c = object;

	init_waitqueue_head(&c->wqh);
	INIT_LIST_HEAD(&c->watches);
}

/**
 * counter_cache_init - make the slab cache of counters
 *
 * With a constructor it is never merged with another cache, so that a counter
 * that leaked is reported when the module goes.
 */
int counter_cache_init(void)
{
	counter_cache = kmem_cache_create("flowfd_counter",
					  sizeof(struct counter), 0,
					  SLAB_ACCOUNT, counter_construct);
	return counter_cache ? 0 : -ENOMEM;
}

/** counter_cache_exit - the last counter is gone */
void counter_cache_exit(void)
{
	kmem_cache_destroy(counter_cache);
}
