// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counter: the state machine of eventfd with a maximum. Count, maximum and the
 * wakeups that follow from them are under one lock, that of the wait queue. The VFS
 * calls read, write and poll; counter_file.c has the rest of the file's methods.
 */
#include <linux/idr.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "count.h"
#include "counter.h"

static struct kmem_cache *counter_cache;
static DEFINE_IDA(counter_ids);

static __always_inline void counter_wake_readers(struct flowfd_counter *c)
{
	/* The queue grows under the lock only, so no barrier is needed. */
	if (!waitqueue_active(&c->wqh))
		return;
	if (bucket_is_limited(&c->bucket))
		flowfd_bucket_wake(c);
	else
		flowfd_counter_wake(c, EPOLLIN);
}

static bool counter_has_room(const struct flowfd_counter *c, u64 value)
{
	return count_has_room(c->count, c->maximum, value);
}

/*
 * Stores a new count and the events that poll returns. Poll does not take the lock,
 * and must not combine a count and a maximum that never existed together.
 */
static __always_inline void counter_set(struct flowfd_counter *c, u64 count)
{
	c->count = count;
	WRITE_ONCE(c->events, count_events(count, c->maximum));
}

/*
 * What the next two return if all is done. A mapped counter seems full and empty to read
 * and write, so they ask these: others pay nothing for it.
 */
#define COUNTER_DONE 1

/*
 * A write that does not fit now. The maximum says whether it ever can, and may change
 * while the writer sleeps.
 */
static noinline int counter_await_room(struct flowfd_counter *c, u64 value, bool nonblock)
{
	int err = 0;

	if (c->mapped)
		return flowfd_mapped_add(c, value, nonblock) ?: COUNTER_DONE;
	if (count_can_fit(c->maximum, value)) {
		c->write_refused |= nonblock;
		err = nonblock ? -EAGAIN : flowfd_sleeper_wait(c, EPOLLOUT, value);
	}
	if (!err && !counter_has_room(c, value))
		err = -EINVAL;
	return err;
}

static __always_inline int counter_add(struct flowfd_counter *c, u64 value, bool nonblock)
{
	int err;

	if (unlikely(value == U64_MAX))
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	if (unlikely(!counter_has_room(c, value))) {
		err = counter_await_room(c, value, nonblock);
		if (err) {
			spin_unlock_irq(&c->wqh.lock);
			return err == COUNTER_DONE ? 0 : err;
		}
	}
	counter_set(c, c->count + value);
	counter_wake_readers(c);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
}

/*
 * A read made room. With a bucket, pollers are woken for EPOLLOUT only if one may wait
 * for room: there was no room for a write of 1 before, or a write has failed with
 * EAGAIN since the last such wakeup. epoll polls a file again for each wakeup, so a
 * poller that wants EPOLLIN too would report the next write without a token.
 *
 * Exclusive entries are always woken, as the one that was woken last may be gone.
 */
static __always_inline void counter_wake_writers(struct flowfd_counter *c, u64 before)
{
	if (unlikely(bucket_is_limited(&c->bucket)) && !c->write_refused &&
	    count_events(before, c->maximum) & EPOLLOUT) {
		flowfd_sleepers_wake_exclusive(c, EPOLLOUT);
		return;
	}
	c->write_refused = false;
	flowfd_counter_wake(c, EPOLLOUT);
}

static noinline int counter_await_count(struct flowfd_counter *c, u64 *value,
					bool nonblock)
{
	if (c->mapped)
		return flowfd_mapped_take(c, value, nonblock) ?: COUNTER_DONE;
	return nonblock ? -EAGAIN : flowfd_sleeper_wait(c, EPOLLIN, 0);
}

static __always_inline int counter_take(struct flowfd_counter *c, u64 *value,
					bool nonblock)
{
	int err;

	spin_lock_irq(&c->wqh.lock);
	if (unlikely(!c->count)) {
		err = counter_await_count(c, value, nonblock);
		if (err) {
			spin_unlock_irq(&c->wqh.lock);
			return err == COUNTER_DONE ? 0 : err;
		}
	}
	*value = c->semaphore ? 1 : c->count;
	counter_set(c, c->count - *value);
	/* No barrier is needed, as in counter_wake_readers(). */
	if (waitqueue_active(&c->wqh))
		counter_wake_writers(c, c->count + *value);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
}

/*
 * A reader with a bad buffer returns what it took. Writers may have used the room
 * meanwhile: then the count stops at the maximum, and poll reports the overflow.
 */
static noinline void counter_give_back(struct flowfd_counter *c, u64 value)
{
	spin_lock_irq(&c->wqh.lock);
	if (c->mapped) {
		flowfd_mapped_give_back(c, value);
	} else {
		counter_set(c, count_give_back(c->count, c->maximum, value));
		counter_wake_readers(c);
	}
	spin_unlock_irq(&c->wqh.lock);
}

/**
 * flowfd_counter_read - read(2)
 * @file: of the counter
 * @buf: for the value, 8 bytes
 * @size: of @buf
 * @pos: not used
 *
 * read(2) and write(2) have methods beside read_iter and write_iter because these are
 * the calls that counters are used with: it saves them the set-up of an iterator.
 */
ssize_t flowfd_counter_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	struct flowfd_counter *c = file->private_data;
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

/**
 * flowfd_counter_write - write(2)
 * @file: of the counter
 * @buf: with the value, 8 bytes
 * @size: of @buf
 * @pos: not used
 */
ssize_t flowfd_counter_write(struct file *file, const char __user *buf, size_t size,
			     loff_t *pos)
{
	struct flowfd_counter *c = file->private_data;
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
	return iocb->ki_flags & IOCB_NOWAIT || iocb->ki_filp->f_flags & O_NONBLOCK;
}

/**
 * flowfd_counter_read_iter - readv(2), io_uring and AIO
 * @iocb: of the call
 * @to: for the value, 8 bytes
 */
ssize_t flowfd_counter_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct flowfd_counter *c = iocb->ki_filp->private_data;
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

/**
 * flowfd_counter_write_iter - writev(2), io_uring and AIO
 * @iocb: of the call
 * @from: values, one for each segment
 *
 * eventfd has no write_iter, so writev(2) makes one write of each segment. So does this:
 * a program must not see the difference.
 */
ssize_t flowfd_counter_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct flowfd_counter *c = iocb->ki_filp->private_data;
	ssize_t written = 0;
	size_t size;
	u64 value;
	int err;

	/* io_uring writes nothing to an eventfd then, and calls this for a counter. */
	if (!iov_iter_count(from))
		return 0;
	do {
		size = iter_is_iovec(from) ? iov_iter_single_seg_count(from) :
					     iov_iter_count(from);
		if (!write_size_is_valid(size))
			err = -EINVAL;
		else if (copy_from_iter(&value, sizeof(value), from) != sizeof(value))
			err = -EFAULT;
		else
			err = counter_add(c, value, iocb_is_nonblock(iocb));
		if (err)
			return written ?: err;
		written += sizeof(value);
		/* Moves to the next segment that is not empty. */
		iov_iter_advance(from, 0);
	} while (size == sizeof(value) && iov_iter_count(from));
	return written;
}

/**
 * flowfd_counter_poll - poll(2), epoll and all other pollers
 * @file: of the counter
 * @wait: poll table
 *
 * The caller is in the queue, or poll_wait() has put it there under the lock, before
 * the events are read. Events are changed under the lock before the queue is looked at.
 * So either this sees the new events, or the other side sees the poller.
 */
__poll_t flowfd_counter_poll(struct file *file, poll_table *wait)
{
	struct flowfd_counter *c = file->private_data;

	poll_wait(file, &c->wqh, wait);
	return READ_ONCE(c->events);
}

static int counter_set_maximum(struct flowfd_counter *c, u64 maximum)
{
	bool raised = maximum > c->maximum;

	if (maximum <= c->count)
		return -EINVAL;
	c->maximum = maximum;
	counter_set(c, c->count);
	if (raised)
		flowfd_counter_wake(c, EPOLLOUT);
	else
		flowfd_sleepers_wake(c, EPOLLOUT);
	return 0;
}

/**
 * flowfd_counter_set_maximum - change the maximum
 * @c: counter
 * @maximum: new maximum
 *
 * Return: 0, or -EINVAL if it is not above the count.
 */
int flowfd_counter_set_maximum(struct flowfd_counter *c, u64 maximum)
{
	int err;

	spin_lock_irq(&c->wqh.lock);
	err = c->mapped ? flowfd_mapped_set_maximum(c, maximum) :
			  counter_set_maximum(c, maximum);
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/* NULL: the count is not mapped. */
static struct flowfd_mapped *
counter_alloc_mapped(const struct flowfd_create_counter *args)
{
	return args->flags & FLOWFD_MAPPED ? flowfd_mapped_alloc(args) : NULL;
}

/**
 * flowfd_counter_alloc - make a counter
 * @args: checked settings; a maximum of 0 is no maximum
 *
 * Return: the counter, sealed, for flowfd_counter_free(), or an ERR_PTR.
 */
struct flowfd_counter *flowfd_counter_alloc(const struct flowfd_create_counter *args)
{
	struct flowfd_mapped *mapped = counter_alloc_mapped(args);
	struct flowfd_counter *c;
	int err = -ENOMEM;

	if (IS_ERR(mapped))
		return ERR_CAST(mapped);
	c = kmem_cache_alloc(counter_cache, GFP_KERNEL_ACCOUNT);
	if (!c)
		goto free_mapped;
	/* Not 0, with which other drivers answer requests that they do not know. */
	c->id = ida_alloc_min(&counter_ids, 1, GFP_KERNEL_ACCOUNT);
	if (c->id < 0) {
		err = c->id;
		goto free_counter;
	}
	c->maximum = args->maximum ?: U64_MAX;
	counter_set(c, args->initial);
	c->semaphore = args->flags & FLOWFD_SEMAPHORE;
	c->sealed = true;
	c->write_refused = false;
	c->last_sleeper = NULL;
	c->mapped = NULL;
	flowfd_bucket_init(c, &args->qos);
	if (mapped)
		flowfd_mapped_attach(c, mapped);
	return c;

free_counter:
	kmem_cache_free(counter_cache, c);
free_mapped:
	flowfd_mapped_free(mapped);
	return ERR_PTR(err);
}

static bool counter_is_untouched(const struct flowfd_counter *c)
{
	return !c->sealed && !c->count && c->maximum == U64_MAX &&
	       !c->qos.token_capacity && !c->qos.token_rate;
}

/**
 * flowfd_counter_set_up - give an opened counter its settings, once
 * @c: counter, which may be in use already
 * @args: checked settings; a maximum of 0 is no maximum
 *
 * Return: 0, or -EBUSY if it has settings or a count.
 */
int flowfd_counter_set_up(struct flowfd_counter *c,
			  const struct flowfd_create_counter *args)
{
	bool untouched;

	spin_lock_irq(&c->wqh.lock);
	untouched = counter_is_untouched(c);
	if (untouched) {
		WRITE_ONCE(c->sealed, true);
		c->semaphore = args->flags & FLOWFD_SEMAPHORE;
		c->maximum = args->maximum ?: U64_MAX;
		flowfd_bucket_replace(c, &args->qos);
		counter_set(c, args->initial);
		if (c->count)
			counter_wake_readers(c);
	}
	spin_unlock_irq(&c->wqh.lock);
	return untouched ? 0 : -EBUSY;
}

/**
 * flowfd_counter_free - free a counter
 * @c: counter that no file refers to
 */
void flowfd_counter_free(struct flowfd_counter *c)
{
	flowfd_bucket_exit(c);
	flowfd_mapped_free(c->mapped);
	ida_free(&counter_ids, c->id);
	kmem_cache_free(counter_cache, c);
}

static void counter_construct(void *object)
{
	struct flowfd_counter *c = object;

	init_waitqueue_head(&c->wqh);
	c->hooks = RB_ROOT;
}

/**
 * flowfd_counter_init - make what all counters share
 *
 * A cache with a constructor is never merged with another cache, so a counter that
 * leaked is reported when the module is removed.
 *
 * Return: 0 or -ENOMEM.
 */
int flowfd_counter_init(void)
{
	int err = flowfd_mapped_init();

	if (err)
		return err;
	counter_cache = kmem_cache_create("flowfd_counter", sizeof(struct flowfd_counter),
					  0, SLAB_ACCOUNT, counter_construct);
	if (counter_cache)
		return 0;
	flowfd_mapped_exit();
	return -ENOMEM;
}

/** flowfd_counter_exit - the last counter is gone */
void flowfd_counter_exit(void)
{
	kmem_cache_destroy(counter_cache);
	flowfd_mapped_exit();
}
