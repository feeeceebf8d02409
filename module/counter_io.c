// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the VFS calls for read, write and poll of a counter: user memory, and fast paths for
 * a counter that is not mapped, has no policies, and on which no task sleeps. Pollers are
 * told of each change here, unless there is a token bucket. All else is in counter.c.
 */
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "counter.h"

/*
 * Stores a new count and the events that poll returns. Poll does not take the lock,
 * and must not combine a count and a maximum that never existed together.
 */
static __always_inline void counter_set(struct flowfd_counter *c, u64 count)
{
	c->store.count = count;
	WRITE_ONCE(c->events, count_events(count, c->store.maximum));
}

/*
 * An add while no task sleeps. Pollers are told of a write of 0, too: an eventfd does that,
 * and io_uring completes a poll by it. With policies or a bucket, or in memory, they are not.
 */
static __always_inline void counter_added(struct flowfd_counter *c, u64 value,
					  bool polled)
{
	counter_set(c, c->store.count + value);
	counter_note_write(c, value);
	if (polled) {
		counter_note_wakeup(c, false);
		flowfd_counter_wake(c, EPOLLIN);
	}
}

/* Likewise a take. */
static __always_inline void counter_taken(struct flowfd_counter *c, u64 before, u64 value,
					  bool polled)
{
	counter_set(c, before - value);
	counter_note_read(c, before, value);
	if (polled) {
		c->write_refused = false;
		flowfd_counter_wake(c, EPOLLOUT);
	}
}

/* As flowfd_counter_settle(), if tasks sleep in reads only. A write of 0 is an edge here. */
static void counter_hand_over(struct flowfd_counter *c)
{
	bool taken = flowfd_sleepers_go_on(c, false);

	counter_set(c, c->store.count);
	if (taken || counter_has_pollers(c))
		counter_note_wakeup(c, taken);
	if (!counter_has_pollers(c))
		return;
	flowfd_counter_wake(c, EPOLLIN);
	if (taken) {
		c->write_refused = false;
		flowfd_counter_wake(c, EPOLLOUT);
	}
}

static noinline int counter_add_as_file(struct flowfd_counter *c, u64 value,
					bool nonblock)
{
	const struct flowfd_options options = { .nonblock = nonblock, .end = KTIME_MAX };
	struct store *s = &c->store;
	bool has_room = count_has_room(s->count, s->maximum, value);

	/* An eventfd's EAGAIN: neither a policy nor a program can have made room. */
	if (nonblock && !has_room && !c->busy && count_can_fit(s->maximum, value)) {
		c->write_refused = true;
		c->stats.again++;
		return -EAGAIN;
	}
	if (has_room && !list_empty(&c->readers) && list_empty(&c->writers) &&
	    !c->ready.flow.has_policies && !bucket_is_limited(&c->ready.bucket)) {
		s->count += value;
		counter_note_write(c, value);
		counter_hand_over(c);
		return 0;
	}
	return flowfd_counter_add(c, value, &options);
}

static __always_inline int counter_add(struct flowfd_counter *c, u64 value, bool nonblock)
{
	struct store *s = &c->store;
	int err = 0;

	spin_lock_irq(&c->wqh.lock);
	if (unlikely(c->busy || !count_has_room(s->count, s->maximum, value)))
		err = counter_add_as_file(c, value, nonblock);
	else if (likely(!counter_has_pollers(c)))
		counter_added(c, value, false);
	else if (!bucket_is_limited(&c->ready.bucket))
		counter_added(c, value, true);
	else
		err = counter_add_as_file(c, value, nonblock);
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/**
 * struct destination - where a read stores what it took
 * @buf: memory of the caller, if there is no @to
 * @to: iterator
 */
struct destination {
	u64 __user *buf;
	struct iov_iter *to;
};

/* Without faults, as under the lock; then a part of it may have been stored. */
static __always_inline bool destination_store(const struct destination *d, u64 value)
{
	size_t stored;

	if (!d->to)
		return !put_user(value, d->buf);
	stored = copy_to_iter(&value, sizeof(value), d->to);
	if (likely(stored == sizeof(value)))
		return true;
	iov_iter_revert(d->to, stored);
	return false;
}

static __always_inline bool destination_store_locked(const struct destination *d,
						     u64 value)
{
	bool stored;

	pagefault_disable();
	stored = destination_store(d, value);
	pagefault_enable();
	return stored;
}

/*
 * Whether it can be stored to, with faults. Only a store tells: what the kernel has to make
 * memory writable does not know of shadow stacks, or of tags.
 */
static bool destination_is_valid(const struct destination *d)
{
	u64 value;

	if (d->to)
		return !fault_in_iov_iter_writeable(d->to, sizeof(value));
	return !get_user(value, d->buf) && !put_user(value, d->buf);
}

/*
 * The count is taken by a task that wakes this one, or from words that programs change: it is
 * stored afterwards. So the destination is tried before. It is lost only if the caller
 * removes the memory meanwhile. @d is a copy, so that the fast path has it in registers.
 */
static noinline int counter_take_as_file(struct flowfd_counter *c,
					 const struct destination d, bool nonblock)
	__releases(&c->wqh.lock)
{
	const struct flowfd_options options = { .nonblock = nonblock, .end = KTIME_MAX };
	u64 value = 0;
	int err;

	/* As an eventfd: whatever the destination is. A mapped one arms itself by the take. */
	if (nonblock && !store_is_mapped(&c->store) && !c->store.count) {
		c->stats.again++;
		spin_unlock_irq(&c->wqh.lock);
		return -EAGAIN;
	}
	spin_unlock_irq(&c->wqh.lock);
	if (!destination_is_valid(&d))
		return -EFAULT;
	spin_lock_irq(&c->wqh.lock);
	err = flowfd_counter_take(c, &value, &options);
	spin_unlock_irq(&c->wqh.lock);
	if (err)
		return err;
	return destination_store(&d, value) ? 0 : -EFAULT;
}

/* The count is taken only if it was stored. */
static __always_inline int counter_take(struct flowfd_counter *c,
					const struct destination *d, bool nonblock)
{
	u64 before, value;
	bool polled;

	spin_lock_irq(&c->wqh.lock);
	before = c->store.count;
	polled = counter_has_pollers(c);
	if (unlikely(!before || c->busy ||
		     (polled && bucket_is_limited(&c->ready.bucket))))
		goto slow;
	value = c->store.semaphore ? 1 : before;
	if (unlikely(!destination_store_locked(d, value)))
		goto slow;
	counter_taken(c, before, value, polled);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
slow:
	return counter_take_as_file(c, *d, nonblock);
}

/*
 * read(2) of a value, 8 bytes. It and write(2) have methods beside read_iter and
 * write_iter because these are the calls that counters are used with: it saves them the
 * set-up of an iterator.
 */
ssize_t flowfd_counter_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	const struct destination d = { .buf = (u64 __user *)buf };

	if (unlikely(size < sizeof(u64)))
		return -EINVAL;
	return counter_take(file->private_data, &d, file->f_flags & O_NONBLOCK) ?:
		       sizeof(u64);
}

/* write(2) of a value, 8 bytes. */
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

/* readv(2), io_uring and AIO: a value, as read(2). */
ssize_t flowfd_counter_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	const struct destination d = { .to = to };

	if (iov_iter_count(to) < sizeof(u64))
		return -EINVAL;
	return counter_take(iocb->ki_filp->private_data, &d, iocb_is_nonblock(iocb)) ?:
		       sizeof(u64);
}

/*
 * writev(2), io_uring and AIO. eventfd has no write_iter, so writev(2) makes one write of
 * each segment. So does this: a program must not see the difference.
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

/*
 * poll(2), epoll and all other pollers. The caller is in the queue, or poll_wait() has
 * put it there under the lock, before the events are read. Events are changed under the
 * lock before the queue is looked at. So either this sees the new events, or the other
 * side sees the poller.
 */
__poll_t flowfd_counter_poll(struct file *file, poll_table *wait)
{
	struct flowfd_counter *c = file->private_data;

	poll_wait(file, &c->wqh, wait);
	return READ_ONCE(c->events);
}
