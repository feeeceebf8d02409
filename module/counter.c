// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counter: add and take, each in one loop, wherever the count is. Count, settings and
 * the wakeups that follow from them are under one lock, that of the wait queue. The VFS
 * calls read, write and poll; counter_file.c has the rest of the file's methods.
 *
 * Reads and writes have a fast path, for a counter that is not mapped, has no policies, and
 * on which no task sleeps. Any policy or sleeper puts @marker into the queue, so an empty
 * queue means: fast path. Where something polls, it is told of each change: counter_tell().
 */
#include <linux/sched/signal.h>
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
 * Programs change the words all the time: enables interrupts, lets others run, and looks
 * for signals and the time, before the caller tries again.
 */
static int counter_yield(struct flowfd_counter *c, const struct flowfd_options *options)
{
	spin_unlock_irq(&c->wqh.lock);
	cond_resched();
	spin_lock_irq(&c->wqh.lock);
	if (options->end != KTIME_MAX && ktime_get() >= options->end)
		return -ETIMEDOUT;
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/* What a step of the loops below returns when the call is not done. */
#define TRY_AGAIN  1 /* after a look at signals and the time */
#define LOOK_AGAIN 2

/*
 * A write that does not sleep passes those that do, and so does one that adds nothing, or
 * that is of a semaphore.
 */
static int counter_try_add(struct flowfd_counter *c, u64 value,
			   const struct flowfd_options *options)
{
	bool passes = !value || options->nonblock || c->store.semaphore;

	if (!passes && !list_empty(&c->writers))
		return -EAGAIN;
	return store_try_add(&c->store, value);
}

/* A mapped counter can have room once the next take notifies. */
static int counter_sleep_as_writer(struct flowfd_counter *c, u64 value,
				   const struct flowfd_options *options)
{
	struct flowfd_sleeper s;
	int err;

	flowfd_sleeper_join(c, &s, EPOLLOUT, value);
	/* One that overtook all others may fit, as nobody has tried for it. */
	if (counter_arm_writers(c) || c->writers.next == &s.node)
		flowfd_counter_settle(c, 0, false);
	err = flowfd_sleeper_sleep(c, &s, options->end);
	if (err) {
		/* Those behind it may fit. And as after EAGAIN, the caller may poll. */
		c->write_refused = true;
		flowfd_counter_settle(c, 0, false);
		return err > 0 ? TRY_AGAIN : err;
	}
	trace_flowfd_write(c, value);
	if (options->urgent) {
		flowfd_ready_force(&c->ready, counter_count(c));
		flowfd_counter_settle(c, EPOLLIN, true);
	}
	return 0;
}

/* By policy, what does not fit is lost. */
static int counter_lose(struct flowfd_counter *c, u64 value,
			const struct flowfd_options *options)
{
	bool urgent;
	u64 lost = value;

	if (c->ready.flow.overflow == FLOWFD_OVERFLOW_SATURATE &&
	    store_try_add_some(&c->store, &lost) == -EBUSY)
		return TRY_AGAIN;
	urgent = options->urgent && lost < value;
	flow_lose(&c->ready.flow, lost);
	counter_note_write(c, value);
	flowfd_ready_force(&c->ready, counter_count(c));
	flowfd_counter_settle(c, EPOLLIN, urgent);
	return 0;
}

/*
 * Whether there may be room after all. A reader would make room, so it must not wait for its
 * read mark; a program may have made room before it notifies of takes.
 */
static bool counter_makes_room(struct flowfd_counter *c)
{
	bool armed = counter_arm_writers(c);
	bool forced = flowfd_ready_force(&c->ready, counter_count(c));

	if (armed || forced)
		flowfd_counter_settle(c, 0, false);
	return armed || forced;
}

/*
 * A write that does not fit now, or has to wait. The maximum says whether it ever can, and
 * may change while the writer sleeps.
 *
 * Return: 0: it is done; TRY_AGAIN; LOOK_AGAIN; or a negative errno.
 */
static int counter_refuse(struct flowfd_counter *c, u64 value,
			  const struct flowfd_options *options, bool *refused)
{
	if (counter_loses(c))
		return counter_lose(c, value, options);
	if (!count_can_fit(store_maximum(&c->store), value))
		return -EINVAL;
	if (!*refused && counter_makes_room(c)) {
		*refused = true;
		return LOOK_AGAIN;
	}
	*refused = false;
	if (!options->nonblock && c->ready.flow.overflow == FLOWFD_OVERFLOW_WAIT)
		return counter_sleep_as_writer(c, value, options);
	c->write_refused = true;
	c->stats.again++;
	return -EAGAIN;
}

/* A write to a counter that is full, or is not in the state for the fast path. */
static int counter_add_slowly(struct flowfd_counter *c, u64 value,
			      const struct flowfd_options *options)
{
	bool refused = false;
	int err;

	while ((err = counter_try_add(c, value, options))) {
		if (err == -EAGAIN) {
			err = counter_refuse(c, value, options, &refused);
			if (err <= 0)
				return err;
		}
		if (err == LOOK_AGAIN)
			continue;
		err = counter_yield(c, options);
		if (err)
			return err;
	}
	counter_note_write(c, value);
	if (unlikely(options->urgent))
		flowfd_ready_force(&c->ready, counter_count(c));
	flowfd_counter_settle(c, EPOLLIN, options->urgent);
	return 0;
}

/* An eventfd's EAGAIN: neither a policy nor a program can have made room. */
static bool counter_is_plainly_full(const struct flowfd_counter *c, u64 value)
{
	const struct store *s = &c->store;

	return !store_is_mapped(s) && !c->ready.has_policies &&
	       count_can_fit(s->maximum, value) &&
	       !count_has_room(s->count, s->maximum, value);
}

static noinline int counter_add_as_file(struct flowfd_counter *c, u64 value,
					bool nonblock)
{
	const struct flowfd_options options = { .nonblock = nonblock, .end = KTIME_MAX };

	if (nonblock && counter_is_plainly_full(c, value)) {
		c->write_refused = true;
		c->stats.again++;
		return -EAGAIN;
	}
	return counter_add_slowly(c, value, &options);
}

/* Only pollers are queued, and there is no token bucket. */
static bool counter_has_only_pollers(const struct flowfd_counter *c)
{
	return list_empty(&c->marker.entry) && !bucket_is_limited(&c->ready.bucket);
}

/* What flowfd_counter_settle() does then, after counter_set(). */
static noinline void counter_tell(struct flowfd_counter *c, __poll_t event)
{
	if (event & EPOLLIN)
		counter_note_wakeup(c, false);
	else
		c->write_refused = false;
	flowfd_counter_wake(c, event);
}

/* Likewise, and tasks that sleep in a read. */
static bool counter_has_only_readers(const struct flowfd_counter *c)
{
	return !list_empty(&c->readers) && list_empty(&c->writers) &&
	       !c->ready.has_policies && !bucket_is_limited(&c->ready.bucket);
}

/* What flowfd_counter_settle() does then. */
static noinline void counter_hand_over(struct flowfd_counter *c)
{
	bool taken = flowfd_readers_go_on(c);

	counter_set(c, c->store.count);
	if (!taken)
		return;
	counter_note_wakeup(c, true);
	if (!counter_has_pollers(c))
		return;
	flowfd_counter_wake(c, EPOLLIN);
	if (c->events & EPOLLOUT)
		counter_tell(c, EPOLLOUT);
}

static __always_inline int counter_add(struct flowfd_counter *c, u64 value, bool nonblock)
{
	struct store *s = &c->store;
	int err = 0;

	if (unlikely(value == U64_MAX))
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	if (unlikely(!count_has_room(s->count, s->maximum, value))) {
		err = counter_add_as_file(c, value, nonblock);
	} else if (counter_has_queue(c) && !counter_has_only_pollers(c)) {
		if (counter_has_only_readers(c)) {
			s->count += value;
			counter_note_write(c, value);
			counter_hand_over(c);
		} else {
			err = counter_add_as_file(c, value, nonblock);
		}
	} else {
		counter_set(c, s->count + value);
		counter_note_write(c, value);
		/* For a write of 0, too: an eventfd does that. */
		if (counter_has_queue(c))
			counter_tell(c, EPOLLIN);
	}
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/**
 * flowfd_counter_write_with - a write with options of its own
 * @c: counter
 * @value: what to add
 * @options: how
 *
 * Return: 0 or a negative errno.
 */
int flowfd_counter_write_with(struct flowfd_counter *c, u64 value,
			      const struct flowfd_options *options)
{
	int err;

	if (value == U64_MAX)
		return -EINVAL;
	spin_lock_irq(&c->wqh.lock);
	err = counter_add_slowly(c, value, options);
	spin_unlock_irq(&c->wqh.lock);
	return err;
}

/* A mapped counter can have a count once the next add notifies. */
static int counter_sleep_as_reader(struct flowfd_counter *c, u64 *value,
				   const struct flowfd_options *options)
{
	struct flowfd_sleeper s;
	int err;

	flowfd_sleeper_join(c, &s, EPOLLIN, 0);
	if (counter_arm_readers(c) && counter_is_ready(c, counter_count(c)))
		s.result = TRY_AGAIN;
	err = flowfd_sleeper_sleep(c, &s, options->end);
	*value = s.value;
	if (!err)
		trace_flowfd_read(c, *value);
	return err;
}

/* Return: 0: it was taken; TRY_AGAIN; LOOK_AGAIN; or a negative errno. */
static int counter_await(struct flowfd_counter *c, u64 *value,
			 const struct flowfd_options *options, bool *refused)
{
	/* As in programs: each look arms, and makes up for a take that was not finished. */
	if (!*refused && counter_arm_readers(c)) {
		*refused = true;
		flowfd_counter_settle(c, 0, false);
		return LOOK_AGAIN;
	}
	*refused = false;
	if (!options->nonblock)
		return counter_sleep_as_reader(c, value, options);
	c->stats.again++;
	return -EAGAIN;
}

/* One that must not sleep takes what is there, ready or not. */
static int counter_try_take(struct flowfd_counter *c, u64 *value,
			    const struct flowfd_options *options)
{
	u64 before;
	int err;

	if (!options->nonblock && !counter_is_ready(c, counter_count(c)))
		return -EAGAIN;
	err = store_try_take(&c->store, value, &before);
	if (!err)
		counter_note_read(c, before, *value);
	return err;
}

/* Programs take without a call: an edge is for them only that there is room again. */
static void counter_taken(struct flowfd_counter *c)
{
	if (!counter_count(c))
		ready_restart(&c->ready);
	flowfd_counter_settle(c, counter_arm_readers(c) ? 0 : EPOLLOUT, false);
}

/* A read of a counter that is empty, or is not in the state for the fast path. */
static int counter_take_slowly(struct flowfd_counter *c, u64 *value,
			       const struct flowfd_options *options)
{
	bool refused = false;
	int err;

	while ((err = counter_try_take(c, value, options))) {
		if (err == -EAGAIN) {
			err = counter_await(c, value, options, &refused);
			if (err <= 0)
				return err;
		}
		if (err == LOOK_AGAIN)
			continue;
		err = counter_yield(c, options);
		if (err)
			return err;
	}
	counter_taken(c);
	return 0;
}

/**
 * flowfd_counter_read_with - a read with options of its own
 * @c: counter
 * @value: result
 * @options: how
 *
 * Return: 0 or a negative errno.
 */
int flowfd_counter_read_with(struct flowfd_counter *c, u64 *value,
			     const struct flowfd_options *options)
{
	int err;

	spin_lock_irq(&c->wqh.lock);
	err = counter_take_slowly(c, value, options);
	spin_unlock_irq(&c->wqh.lock);
	return err;
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
	if (store_has_room(&c->store, value + 1))
		return true;
	return counter_loses(c) && !(value && store_has_room(&c->store, value));
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
	const struct flowfd_options options = { .nonblock = true };
	u64 before = *value;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	if (counter_loses(c)) {
		err = store_try_add(&c->store, *value);
		if (err == -EAGAIN) {
			if (counter_lose(c, *value, &options))
				return -EBUSY;
			*value = 0;
			return 0;
		}
		if (!err)
			*value = 0;
	} else {
		err = store_try_add_some(&c->store, value);
	}
	if (*value != before) {
		counter_note_write(c, before - *value);
		flowfd_counter_settle(c, EPOLLIN, false);
	}
	return err;
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
	counter_makes_room(c);
}

/**
 * flowfd_counter_tell_readers - wake readers if the count is ready, as after an add
 * @c: locked counter
 */
void flowfd_counter_tell_readers(struct flowfd_counter *c)
{
	counter_arm_readers(c);
	if (counter_count(c))
		flowfd_counter_settle(c, EPOLLIN, false);
}

/**
 * flowfd_counter_take_ready - take the count if it is ready
 * @c: locked counter
 * @value: result
 *
 * Return: 0; -EAGAIN: the next add that makes it ready wakes readers; or -EBUSY: others
 * changed the count of a mapped counter all the time.
 */
int flowfd_counter_take_ready(struct flowfd_counter *c, u64 *value)
{
	const struct flowfd_options options = {};
	int err;

	lockdep_assert_held(&c->wqh.lock);

	counter_arm_readers(c);
	err = counter_try_take(c, value, &options);
	if (!err)
		counter_taken(c);
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

/* Whether it can be stored to, with faults; changes nothing there. */
static bool destination_is_valid(const struct destination *d)
{
	u64 value;

	if (!d->to)
		return !get_user(value, d->buf) && !put_user(value, d->buf);
	return !fault_in_iov_iter_writeable(d->to, sizeof(value));
}

/* The same without faults; perhaps false for one that is valid. */
static bool destination_is_valid_now(const struct destination *d)
{
	bool valid;

	if (d->to)
		return false;
	pagefault_disable();
	valid = destination_is_valid(d);
	pagefault_enable();
	return valid;
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

	/* An eventfd's EAGAIN, whatever the destination is. */
	if (nonblock && !store_is_mapped(&c->store) && !c->store.count) {
		c->stats.again++;
		spin_unlock_irq(&c->wqh.lock);
		return -EAGAIN;
	}
	if (unlikely(!destination_is_valid_now(&d))) {
		spin_unlock_irq(&c->wqh.lock);
		if (!destination_is_valid(&d))
			return nonblock && !counter_count(c) ? -EAGAIN : -EFAULT;
		spin_lock_irq(&c->wqh.lock);
	}
	err = counter_take_slowly(c, &value, &options);
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

	spin_lock_irq(&c->wqh.lock);
	before = c->store.count;
	if (unlikely(!before) || (counter_has_queue(c) && !counter_has_only_pollers(c)))
		goto slow;
	value = c->store.semaphore ? 1 : before;
	if (unlikely(!destination_store_locked(d, value)))
		goto slow;
	counter_set(c, before - value);
	counter_note_read(c, before, value);
	if (counter_has_queue(c) && c->events & EPOLLOUT)
		counter_tell(c, EPOLLOUT);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
slow:
	return counter_take_as_file(c, *d, nonblock);
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
	const struct destination d = { .buf = (u64 __user *)buf };

	if (unlikely(size < sizeof(u64)))
		return -EINVAL;
	return counter_take(file->private_data, &d, file->f_flags & O_NONBLOCK) ?:
		       sizeof(u64);
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
	const struct destination d = { .to = to };

	if (iov_iter_count(to) < sizeof(u64))
		return -EINVAL;
	return counter_take(iocb->ki_filp->private_data, &d, iocb_is_nonblock(iocb)) ?:
		       sizeof(u64);
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
