// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counter: the state machine of eventfd with flow control. Count, settings and the
 * wakeups that follow from them are under one lock, that of the wait queue. The VFS
 * calls read, write and poll; counter_file.c has the rest of the file's methods.
 *
 * Reads and writes have a fast path, for a counter without policies that no task sleeps on.
 * What is neither shows in the wait queue: see @marker of struct flowfd_counter. Most have
 * an empty queue. Where something polls, it is told of each change: counter_tell().
 */
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "compat.h"
#include "count.h"
#include "counter.h"

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

/* What counter_overflow() returns for a write that is done. */
#define WRITE_DONE 1

/* A write that does not sleep passes those that do, and so does one that adds nothing. */
static bool counter_has_turn(const struct flowfd_counter *c, u64 value,
			     const struct flowfd_terms *terms)
{
	return !value || terms->nonblock || list_empty(&c->writers);
}

/* Return: 0: try again; WRITE_DONE; or a negative errno. */
static int counter_sleep_as_writer(struct flowfd_counter *c, u64 value,
				   const struct flowfd_terms *terms)
{
	struct flowfd_sleeper s;
	int err;

	flowfd_sleeper_join(c, &s, EPOLLOUT, value);
	err = flowfd_sleeper_sleep(c, &s, terms->end);
	if (err < 0) {
		/* As after EAGAIN, the caller may poll for room now. */
		c->write_refused = true;
		flowfd_counter_left(c);
	} else if (!err) {
		trace_flowfd_write(c, value);
		if (terms->urgent)
			flowfd_counter_added(c, true);
	}
	return err ? min(err, 0) : WRITE_DONE;
}

/* By policy, what does not fit is lost. */
static int counter_lose(struct flowfd_counter *c, u64 value,
			const struct flowfd_terms *terms)
{
	u64 fitting = 0;

	if (c->flow.overflow == FLOWFD_OVERFLOW_SATURATE)
		fitting = flow_fitting(c->count, c->maximum, value);
	flow_lose(&c->flow, value - fitting);
	c->count += fitting;
	counter_note_write(c, value);
	if (!c->count)
		return WRITE_DONE;
	flowfd_pace_force(c);
	flowfd_counter_added(c, terms->urgent && fitting);
	return WRITE_DONE;
}

/*
 * A write that does not fit now, or has to wait. The maximum says whether it ever can, and
 * may change while the writer sleeps.
 *
 * Return: 0: try again; WRITE_DONE; or a negative errno.
 */
static int counter_overflow(struct flowfd_counter *c, u64 value,
			    const struct flowfd_terms *terms)
{
	/* Without policies nothing is lost, and a count is ready. */
	if (c->has_policies && flow_loses(&c->flow))
		return counter_lose(c, value, terms);
	if (!count_can_fit(c->maximum, value))
		return -EINVAL;
	if (c->has_policies) {
		flowfd_counter_refused(c);
		if (counter_has_room(c, value) && counter_has_turn(c, value, terms))
			return 0;
	}
	if (!terms->nonblock && c->flow.overflow == FLOWFD_OVERFLOW_WAIT)
		return counter_sleep_as_writer(c, value, terms);
	c->write_refused = true;
	c->stats.again++;
	return -EAGAIN;
}

/* A write to a counter that is full, or is not in the state for the fast path. */
static int counter_add_slowly(struct flowfd_counter *c, u64 value,
			      const struct flowfd_terms *terms)
{
	int err;

	if (c->mapped)
		return flowfd_mapped_add(c, value, terms);
	while (!counter_has_room(c, value) || !counter_has_turn(c, value, terms)) {
		err = counter_overflow(c, value, terms);
		if (err)
			return min(err, 0);
	}
	c->count += value;
	counter_note_write(c, value);
	flowfd_counter_added(c, terms->urgent);
	return 0;
}

static noinline int counter_add_as_file(struct flowfd_counter *c, u64 value,
					bool nonblock)
{
	const struct flowfd_terms terms = { .nonblock = nonblock, .end = KTIME_MAX };

	return counter_add_slowly(c, value, &terms);
}

/* The queue has only what polls, and no bucket limits how often that is woken. */
static bool counter_is_plain(const struct flowfd_counter *c)
{
	return list_empty(&c->marker.entry) && !bucket_is_limited(&c->bucket);
}

/* What flowfd_counter_deliver() does if the counter is plain, after counter_set(). */
static noinline void counter_tell(struct flowfd_counter *c, __poll_t event)
{
	if (event & EPOLLIN)
		counter_note_wakeup(c, false);
	else
		c->write_refused = false;
	flowfd_counter_wake(c, event);
}

static __always_inline int counter_add(struct flowfd_counter *c, u64 value, bool nonblock)
{
	int err = 0;

	if (unlikely(value == U64_MAX))
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	if (unlikely(!counter_has_room(c, value)) ||
	    (counter_has_queue(c) && !counter_is_plain(c))) {
		err = counter_add_as_file(c, value, nonblock);
	} else {
		counter_set(c, c->count + value);
		counter_note_write(c, value);
		/* For a write of 0, too: an eventfd does that. */
		if (counter_has_queue(c))
			counter_tell(c, EPOLLIN);
	}
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/**
 * flowfd_counter_write_with - a write with terms of its own
 * @c: counter
 * @value: what to add
 * @terms: how
 *
 * Return: 0 or a negative errno.
 */
int flowfd_counter_write_with(struct flowfd_counter *c, u64 value,
			      const struct flowfd_terms *terms)
{
	int err;

	if (value == U64_MAX)
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	err = counter_add_slowly(c, value, terms);
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/*
 * A read of a counter that is empty, or is not in the state for the fast path. One that
 * must not sleep takes what is there, ready or not.
 */
static int counter_take_slowly(struct flowfd_counter *c, u64 *value,
			       const struct flowfd_terms *terms)
{
	struct flowfd_sleeper s;
	u64 before;
	int err;

	if (c->mapped)
		return flowfd_mapped_take(c, value, terms);
	while (terms->nonblock ? !c->count : !flowfd_pace_is_ready(c)) {
		if (terms->nonblock) {
			c->stats.again++;
			return -EAGAIN;
		}
		flowfd_sleeper_join(c, &s, EPOLLIN, 0);
		err = flowfd_sleeper_sleep(c, &s, terms->end);
		*value = s.value;
		if (!err)
			trace_flowfd_read(c, *value);
		if (err <= 0)
			return err;
	}
	before = c->count;
	*value = c->semaphore ? 1 : before;
	c->count -= *value;
	counter_note_read(c, before, *value);
	flowfd_counter_taken(c, before);
	return 0;
}

static noinline int counter_take_as_file(struct flowfd_counter *c, u64 *value,
					 bool nonblock)
{
	const struct flowfd_terms terms = { .nonblock = nonblock, .end = KTIME_MAX };

	return counter_take_slowly(c, value, &terms);
}

static __always_inline int counter_take(struct flowfd_counter *c, u64 *value,
					bool nonblock)
{
	u64 before;
	int err = 0;

	spin_lock_irq(&c->wqh.lock);
	before = c->count;
	if (unlikely(!before) || (counter_has_queue(c) && !counter_is_plain(c))) {
		err = counter_take_as_file(c, value, nonblock);
	} else {
		*value = c->semaphore ? 1 : before;
		counter_set(c, before - *value);
		counter_note_read(c, before, *value);
		if (counter_has_queue(c) && c->events & EPOLLOUT)
			counter_tell(c, EPOLLOUT);
	}
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/**
 * flowfd_counter_read_with - a read with terms of its own
 * @c: counter
 * @value: result
 * @terms: how
 *
 * Return: 0 or a negative errno.
 */
int flowfd_counter_read_with(struct flowfd_counter *c, u64 *value,
			     const struct flowfd_terms *terms)
{
	int err;

	spin_lock_irq(&c->wqh.lock);
	err = counter_take_slowly(c, value, terms);
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/**
 * flowfd_counter_give_back - return what a reader with a bad buffer took
 * @c: counter
 * @value: what it took
 *
 * Writers may have used the room meanwhile: then the count stops at the maximum, and poll
 * reports the overflow.
 */
void flowfd_counter_give_back(struct flowfd_counter *c, u64 value)
{
	u64 before;

	spin_lock_irq(&c->wqh.lock);
	if (c->mapped) {
		flowfd_mapped_give_back(c, value);
	} else {
		before = c->count;
		c->count = count_give_back(before, c->maximum, value);
		stats_give_back(&c->stats, c->count - before);
		/* It may have been ready below its mark. */
		flowfd_pace_force(c);
		flowfd_counter_added(c, false);
	}
	spin_unlock_irq(&c->wqh.lock);
}

static bool counter_would_fit(const struct flowfd_counter *c, u64 value)
{
	return c->mapped ? mapped_has_room(c->mapped, value) : counter_has_room(c, value);
}

/**
 * flowfd_counter_takes_more - whether flowfd_counter_add_some() would leave nothing
 * @c: locked counter
 * @value: what to add, and 1 more
 *
 * By policy, what does not fit is lost, but not what would fit without it.
 */
bool flowfd_counter_takes_more(const struct flowfd_counter *c, u64 value)
{
	if (counter_would_fit(c, value + 1))
		return true;
	return flow_loses(&c->flow) && !(value && counter_would_fit(c, value));
}

/**
 * flowfd_counter_add_some - add as much as there is room for
 * @c: locked counter
 * @value: what to add; reduced by what was added, or lost by policy
 *
 * Does not sleep, nor unlock the counter.
 *
 * Return: 0; -EAGAIN: there is no room for the rest; or -EBUSY: others changed the count
 * of a mapped counter all the time.
 */
int flowfd_counter_add_some(struct flowfd_counter *c, u64 *value)
{
	const struct flowfd_terms terms = { .nonblock = true };
	u64 part;

	lockdep_assert_held(&c->wqh.lock);

	if (c->mapped)
		return flowfd_mapped_add_some(c, value);
	if (flow_loses(&c->flow) && !counter_has_room(c, *value)) {
		counter_lose(c, *value, &terms);
		*value = 0;
		return 0;
	}
	part = flow_fitting(c->count, c->maximum, *value);
	if (part) {
		*value -= part;
		c->count += part;
		counter_note_write(c, part);
		flowfd_counter_added(c, false);
	}
	return *value ? -EAGAIN : 0;
}

/**
 * flowfd_counter_want_room - have the next take wake an entry for EPOLLOUT
 * @c: locked counter without room, with the entry in its queue
 *
 * A mapped counter can have room afterwards.
 */
void flowfd_counter_want_room(struct flowfd_counter *c)
{
	c->write_refused = true;
	if (c->mapped) {
		counter_arm_writers(c);
		flowfd_mapped_refused(c);
	} else {
		flowfd_counter_refused(c);
	}
}

/**
 * flowfd_counter_tell_readers - wake readers if the count is ready, as after an add
 * @c: locked counter
 */
void flowfd_counter_tell_readers(struct flowfd_counter *c)
{
	if (c->mapped)
		counter_arm_readers(c);
	if (!counter_count(c))
		return;
	if (c->mapped)
		flowfd_mapped_added(c, false);
	else
		flowfd_counter_added(c, false);
}

/**
 * flowfd_counter_take_ready - take the count if it is ready
 * @c: counter
 * @value: result
 *
 * Return: 0; -EAGAIN: the next add that makes it ready wakes readers; or -EBUSY: others
 * changed the count of a mapped counter all the time.
 */
int flowfd_counter_take_ready(struct flowfd_counter *c, u64 *value)
{
	const struct flowfd_terms terms = { .nonblock = true };
	int err = -EAGAIN;

	spin_lock_irq(&c->wqh.lock);
	if (c->mapped)
		counter_arm_readers(c);
	if (flowfd_pace_is_ready(c))
		err = c->mapped ? flowfd_mapped_take_once(c, value) :
				  counter_take_slowly(c, value, &terms);
	spin_unlock_irq(&c->wqh.lock);
	return err;
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
		flowfd_counter_give_back(c, value);
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
		flowfd_counter_give_back(c, value);
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
