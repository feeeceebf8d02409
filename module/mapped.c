// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of a mapped counter: they work on the words that programs add to and take
 * from in memory. A program may store anything there at any moment: no loop depends on
 * it, nor anything but this counter. Wakeups are under the lock of the wait queue, as
 * those of any counter.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "counter.h"

static_assert(sizeof(struct flowfd_counter_header) == 40);
static_assert(sizeof(atomic64_t) == 8);
static_assert(sizeof(struct flowfd_counter_producer) == 8);
static_assert(sizeof(struct flowfd_counter_consumer) == 16);

#define MAPPED_PAGES 3

/* How often a call tries to change a word with interrupts off. */
#define MAPPED_TRIES 64

/* How often poll arms before it returns what it saw. */
#define MAPPED_POLLS 4

static struct workqueue_struct *mapped_workqueue;

/* Looks once more if somebody took meanwhile; false: @count may be too high. */
static bool mapped_count_exactly(const struct flowfd_mapped *m, u64 *count)
{
	unsigned int tries;
	s64 consumed;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		*count = atomic64_read_acquire(m->produced) - consumed;
		if (atomic64_read(m->consumed) == consumed)
			return true;
	}
	return false;
}

/**
 * flowfd_mapped_count - the count
 * @m: of a mapped counter
 */
u64 flowfd_mapped_count(const struct flowfd_mapped *m)
{
	u64 count;

	mapped_count_exactly(m, &count);
	return count;
}

/* 0; -EAGAIN: no room; -EBUSY: others were faster each time. */
static int mapped_try_add(struct flowfd_mapped *m, u64 value)
{
	s64 consumed, produced;
	unsigned int tries;
	u64 count;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		count = produced - consumed;
		if (count >= m->maximum || !count_has_room(count, m->maximum, value)) {
			if (atomic64_read(m->consumed) == consumed)
				return -EAGAIN;
			continue;
		}
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->produced, produced, produced + value) == produced)
			return 0;
	}
	return -EBUSY;
}

/* 0; -EAGAIN: no count; -EBUSY: others were faster each time. */
static int mapped_try_take(struct flowfd_mapped *m, u64 *value)
{
	s64 consumed, produced;
	unsigned int tries;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		/* c: see mapped_count(). */
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		if (produced == consumed)
			return -EAGAIN;
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->consumed, consumed, produced) == consumed) {
			*value = produced - consumed;
			return 0;
		}
	}
	return -EBUSY;
}

/*
 * Programs change the words all the time: enables interrupts, lets others run, and looks
 * for signals, before the caller tries again.
 */
static int mapped_yield(struct flowfd_counter *c)
{
	spin_unlock_irq(&c->wqh.lock);
	cond_resched();
	spin_lock_irq(&c->wqh.lock);
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

/* Readers are woken through the bucket. Without a token, adds make no more calls. */
static void mapped_tell_readers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!counter_has_queue(c))
		return;
	if (!bucket_is_limited(&c->bucket)) {
		flowfd_mapped_wake_readers(c);
		return;
	}
	/* A write of 0 takes no token. */
	if (!mapped_count(m))
		return;
	if (flowfd_bucket_admits(c))
		flowfd_mapped_wake_readers(c);
	else
		mapped_disarm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
}

/* With a bucket, pollers are told of room only if they wait for it: see counter.c. */
static bool mapped_keeps_writers(const struct flowfd_counter *c)
{
	return (READ_ONCE(c->mapped->edge_out) && !bucket_is_limited(&c->bucket)) ||
	       flowfd_mapped_ends_early(c);
}

/*
 * Disarms first, as flowfd_mapped_wake_readers(). Pollers that find no room arm again in
 * poll or in a write that fails; writers that still sleep do not run, so this arms.
 */
static void mapped_wake_writers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!counter_has_queue(c))
		return;
	if (!mapped_keeps_writers(c))
		mapped_disarm(m, FLOWFD_ARMED_WRITERS);
	/* Pairs with e. */
	if (mapped_keeps_writers(c))
		mapped_arm(m, FLOWFD_ARMED_WRITERS);
	flowfd_counter_wake(c, EPOLLOUT);
	if (flowfd_sleepers_want(c, EPOLLOUT)) {
		mapped_arm(m, FLOWFD_ARMED_WRITERS);
		flowfd_sleepers_wake(c, EPOLLOUT);
	}
}

/* Some may have been taken. If nothing was since the last time, this is no edge. */
static void mapped_tell_writers(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	s64 consumed = atomic64_read_acquire(m->consumed);

	if (!(atomic_read(m->armed) & FLOWFD_ARMED_WRITERS))
		return;
	if (consumed == m->told_consumed || !mapped_has_room(m, 1)) {
		flowfd_sleepers_wake(c, EPOLLOUT);
		return;
	}
	m->told_consumed = consumed;
	mapped_wake_writers(c);
}

static void mapped_arm_writers(struct flowfd_counter *c)
{
	if (counter_has_queue(c))
		mapped_arm(c->mapped, FLOWFD_ARMED_WRITERS);
}

/*
 * What follows from the count as it is now. A level test: whoever calls this heals what
 * another left undone. Without a count the bits stay, for the next add.
 */
static void mapped_notify(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;

	if (!counter_has_queue(c)) {
		/* The queue grows under the lock only; poll arms after it has joined. */
		WRITE_ONCE(m->edge_in, false);
		WRITE_ONCE(m->edge_out, false);
		mapped_disarm(m, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS |
					 FLOWFD_ARMED_WATCHED);
		return;
	}
	if (atomic_read(m->armed) & FLOWFD_ARMED_READERS && mapped_count(m))
		mapped_tell_readers(c);
	mapped_tell_writers(c);
}

/**
 * flowfd_mapped_notify - FLOWFD_IOC_COUNTER_NOTIFY
 * @c: mapped counter
 */
void flowfd_mapped_notify(struct flowfd_counter *c)
{
	spin_lock_irq(&c->wqh.lock);
	mapped_notify(c);
	spin_unlock_irq(&c->wqh.lock);
}

/*
 * Does what a process that ended may have left undone. It may have died after an add or
 * take and before it looked at the bits, or after it was woken and before it looked at
 * the count: so this wakes all again.
 *
 * A process can have many mappings and descriptors of one counter, and wakeups take time
 * in proportion to the queue. So a work item does it, once for all that ended until then.
 */
static void mapped_heal(struct work_struct *work)
{
	struct flowfd_mapped *m = container_of(work, struct flowfd_mapped, heal);
	struct flowfd_counter *c = m->counter;

	spin_lock_irq(&c->wqh.lock);
	counter_arm_readers(c);
	mapped_arm_writers(c);
	/* Not what it was. */
	m->told_consumed = atomic64_read(m->consumed) - 1;
	mapped_notify(c);
	spin_unlock_irq(&c->wqh.lock);
}

/**
 * flowfd_mapped_closed - a descriptor is closed, perhaps because its process was killed
 * @m: of a mapped counter
 *
 * Its number is free already, and may be another file's: programs that add in memory
 * until this counts take the number for this counter. A process that goes on has left
 * nothing undone.
 */
void flowfd_mapped_closed(struct flowfd_mapped *m)
{
	atomic64_inc(m->closes);
	if (current->flags & PF_EXITING)
		queue_work(mapped_workqueue, &m->heal);
}

/**
 * flowfd_mapped_add - add to the count by a call
 * @c: locked mapped counter; the lock is released while this sleeps
 * @value: what to add
 * @nonblock: do not sleep
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_add(struct flowfd_counter *c, u64 value, bool nonblock)
{
	struct flowfd_mapped *m = c->mapped;
	bool refused = false;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	while ((err = mapped_try_add(m, value))) {
		if (err == -EAGAIN && !count_can_fit(m->maximum, value)) {
			err = -EINVAL;
		} else if (err == -EAGAIN && !nonblock) {
			err = flowfd_sleeper_wait(c, EPOLLOUT, value);
		} else if (err == -EAGAIN && !refused) {
			/* For pollers that were told of room and now find none. */
			refused = true;
			mapped_arm_writers(c);
			continue;
		}
		if (err > 0 || err == -EBUSY)
			err = mapped_yield(c);
		if (err)
			break;
	}
	if (!err)
		mapped_tell_readers(c);
	return err;
}

/**
 * flowfd_mapped_take - take the count by a call
 * @c: locked mapped counter; the lock is released while this sleeps
 * @value: result
 * @nonblock: do not sleep
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_take(struct flowfd_counter *c, u64 *value, bool nonblock)
{
	struct flowfd_mapped *m = c->mapped;
	bool refused = false;
	int err;

	lockdep_assert_held(&c->wqh.lock);

	while ((err = mapped_try_take(m, value))) {
		if (err == -EAGAIN && !nonblock) {
			err = flowfd_sleeper_wait(c, EPOLLIN, 0);
		} else if (err == -EAGAIN && !refused) {
			/* As in programs: this may follow a wakeup. */
			refused = true;
			counter_arm_readers(c);
			continue;
		}
		if (err > 0 || err == -EBUSY)
			err = mapped_yield(c);
		if (err)
			break;
	}
	if (!err) {
		counter_arm_readers(c);
		mapped_notify(c);
	}
	return err;
}

/**
 * flowfd_mapped_give_back - return what was taken with a bad buffer
 * @c: locked mapped counter
 * @value: what was taken
 *
 * One step, so that it cannot fail. Adds in memory at the same moment may raise the
 * count above the maximum, which poll reports as an overflow.
 */
void flowfd_mapped_give_back(struct flowfd_counter *c, u64 value)
{
	struct flowfd_mapped *m = c->mapped;
	u64 count = min(flowfd_mapped_count(m), m->maximum);

	lockdep_assert_held(&c->wqh.lock);

	atomic64_add(min(value, m->maximum - count), m->produced);
	/* a */
	smp_mb__after_atomic();
	mapped_tell_readers(c);
}

/* With a lock, so that an overflow is of a count and a maximum of one moment. */
static noinline __poll_t mapped_events_when_full(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	unsigned long flags;
	u64 count, maximum;
	bool exact;

	spin_lock_irqsave(&c->wqh.lock, flags);
	maximum = m->maximum;
	exact = mapped_count_exactly(m, &count);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
	return exact ? count_events(min(count, maximum), maximum) : EPOLLIN;
}

static __poll_t mapped_events(struct flowfd_counter *c)
{
	u64 maximum = READ_ONCE(c->mapped->maximum);
	u64 count = mapped_count(c->mapped);

	if (unlikely(count >= maximum))
		return mapped_events_when_full(c);
	return count_events(count, maximum);
}

/* Which bits must be set for a poller that sees these events. */
static int mapped_wanted(const struct flowfd_counter *c, const poll_table *wait,
			 __poll_t events)
{
	const struct flowfd_mapped *m = c->mapped;
	/* Without the lock: the next notification corrects a wrong answer. */
	bool limited = data_race(bucket_is_limited(&c->bucket));
	__poll_t key = poll_requested_events(wait);
	int bits = 0;

	if (key & EPOLLIN && !READ_ONCE(c->wakeup_deferred)) {
		bits |= FLOWFD_ARMED_WATCHED;
		if (!(events & EPOLLIN) || READ_ONCE(m->edge_in))
			bits |= FLOWFD_ARMED_READERS;
	}
	if (key & EPOLLOUT &&
	    (!(events & EPOLLOUT) || (READ_ONCE(m->edge_out) && !limited)))
		bits |= FLOWFD_ARMED_WRITERS;
	return bits;
}

/*
 * From here on each take is an edge. One that others wait for may not have notified yet,
 * and would not be told apart from this.
 */
static noinline void mapped_note_edge_out(struct flowfd_counter *c)
{
	struct flowfd_mapped *m = c->mapped;
	unsigned long flags;
	s64 consumed;

	spin_lock_irqsave(&c->wqh.lock, flags);
	consumed = atomic64_read_acquire(m->consumed);
	mapped_tell_writers(c);
	m->told_consumed = consumed;
	WRITE_ONCE(m->edge_out, true);
	spin_unlock_irqrestore(&c->wqh.lock, flags);
}

/*
 * A poller with EPOLLET gets an edge for each add, as from an eventfd: some never take.
 * With EPOLLONESHOT as well it gets one event, and polls again before the next.
 */
static void mapped_note_edges(struct flowfd_counter *c, const poll_table *wait)
{
	struct flowfd_mapped *m = c->mapped;
	__poll_t key = wait ? poll_requested_events(wait) : 0;

	if (m->edge_per_take || (key & (EPOLLET | EPOLLONESHOT)) != EPOLLET)
		return;
	if (key & EPOLLIN && !READ_ONCE(m->edge_in))
		WRITE_ONCE(m->edge_in, true);
	if (key & EPOLLOUT && !READ_ONCE(m->edge_out))
		mapped_note_edge_out(c);
	/* e: before the look at the bits, also if another poller made the note. */
	smp_mb();
}

/**
 * flowfd_mapped_poll - poll(2), epoll and all other pollers
 * @c: mapped counter; the caller is in its queue if it wants to be woken
 * @wait: poll table, or NULL
 *
 * Whoever clears a bit wakes the queue afterwards. So bits that were set before this
 * looked at the count are enough; if a bit goes meanwhile, the caller is woken.
 *
 * Return: events.
 */
__poll_t flowfd_mapped_poll(struct flowfd_counter *c, const poll_table *wait)
{
	struct flowfd_mapped *m = c->mapped;
	unsigned int tries;
	__poll_t events;
	int armed, wanted;

	if (!counter_has_queue(c))
		return mapped_events(c);
	mapped_note_edges(c, wait);
	for (tries = 0; tries < MAPPED_POLLS; tries++) {
		armed = atomic_read_acquire(m->armed);
		events = mapped_events(c);
		wanted = mapped_wanted(c, wait, events);
		if (!(wanted & ~armed))
			break;
		mapped_arm(m, wanted);
	}
	return events;
}

/**
 * flowfd_mapped_set_maximum - change the maximum
 * @c: locked mapped counter
 * @maximum: new maximum
 *
 * Return: 0, or -EINVAL if it is not above the count.
 */
int flowfd_mapped_set_maximum(struct flowfd_counter *c, u64 maximum)
{
	struct flowfd_mapped *m = c->mapped;
	bool raised = maximum > m->maximum;

	lockdep_assert_held(&c->wqh.lock);

	if (maximum <= flowfd_mapped_count(m))
		return -EINVAL;
	WRITE_ONCE(m->maximum, maximum);
	WRITE_ONCE(m->header->maximum, maximum);
	if (raised)
		mapped_wake_writers(c);
	else
		flowfd_sleepers_wake(c, EPOLLOUT);
	return 0;
}

/**
 * flowfd_mapped_alloc - make the memory of a mapped counter
 * @args: checked settings
 *
 * Return: what flowfd_mapped_free() frees, or an ERR_PTR.
 */
struct flowfd_mapped *flowfd_mapped_alloc(const struct flowfd_create_counter *args)
{
	struct flowfd_counter_consumer *consumer;
	struct flowfd_mapped *m;
	int err;

	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return ERR_PTR(-ENOMEM);
	err = flowfd_memory_alloc(&m->memory, MAPPED_PAGES);
	if (err) {
		kfree(m);
		return ERR_PTR(err);
	}
	INIT_WORK(&m->heal, mapped_heal);
	consumer = m->memory.start + 2 * PAGE_SIZE;
	m->header = m->memory.start;
	m->produced = m->memory.start + PAGE_SIZE;
	m->consumed = (atomic64_t *)&consumer->consumed;
	m->closes = (atomic64_t *)&m->header->closes;
	m->armed = (atomic_t *)&consumer->armed;
	m->maximum = args->maximum ?: U64_MAX;
	m->edge_per_take = args->flags & FLOWFD_EDGE_PER_TAKE;
	*m->header = (struct flowfd_counter_header){
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = PAGE_SIZE,
		.flags = args->flags & (FLOWFD_MAPPED | FLOWFD_EDGE_PER_TAKE),
		.maximum = m->maximum,
	};
	atomic64_set(m->produced, args->initial);
	return m;
}

/**
 * flowfd_mapped_free - free the memory of a mapped counter
 * @m: memory that nothing maps any more; may be NULL
 *
 * Waits for the work item if it runs: the queue of the counter is empty by now.
 */
void flowfd_mapped_free(struct flowfd_mapped *m)
{
	if (!m)
		return;
	cancel_work_sync(&m->heal);
	flowfd_memory_free(&m->memory);
	kfree(m);
}

/**
 * flowfd_mapped_attach - make a new counter a mapped one
 * @c: counter that nothing else refers to yet
 * @m: its memory
 *
 * Its own count and maximum are 0 from now on, so that it seems empty and full to those
 * that look at them: they then look here.
 */
void flowfd_mapped_attach(struct flowfd_counter *c, struct flowfd_mapped *m)
{
	c->count = 0;
	c->maximum = 0;
	c->mapped = m;
	m->counter = c;
	m->header->id = c->id;
}

/* A process that goes on has left nothing undone. */
static void mapped_close(struct vm_area_struct *vma)
{
	struct flowfd_mapped *m = vma->vm_private_data;

	if (!atomic_read(&vma->vm_mm->mm_users))
		queue_work(mapped_workqueue, &m->heal);
}

static const struct vm_operations_struct mapped_vm_ops = {
	.close = mapped_close,
};

/**
 * flowfd_mapped_map - map the memory for a program
 * @m: of the counter behind the mapped file
 * @vma: mapping
 *
 * Return: 0 or a negative errno.
 */
int flowfd_mapped_map(struct flowfd_mapped *m, struct vm_area_struct *vma)
{
	int err;

	/* The first page is the kernel's. */
	if (!vma->vm_pgoff) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	err = flowfd_memory_map(&m->memory, vma);
	if (err)
		return err;
	vma->vm_private_data = m;
	vma->vm_ops = &mapped_vm_ops;
	return 0;
}

/**
 * flowfd_mapped_init - make the workqueue
 *
 * It runs one item at a time: users pay nothing for it, so it takes one processor at most.
 *
 * Return: 0 or -ENOMEM.
 */
int flowfd_mapped_init(void)
{
	mapped_workqueue = alloc_workqueue("flowfd_heal", WQ_UNBOUND | WQ_MEM_RECLAIM, 1);
	return mapped_workqueue ? 0 : -ENOMEM;
}

/** flowfd_mapped_exit - the last counter is gone */
void flowfd_mapped_exit(void)
{
	destroy_workqueue(mapped_workqueue);
}
