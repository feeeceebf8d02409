// SPDX-License-Identifier: GPL-2.0-only
/*
 * The source of a counter: an eventfd whose count is moved into it. What does not fit
 * waits for room in the counter, and in the eventfd.
 */
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/sched.h>

#include "bridge.h"

/*
 * How often the count of a source is taken with interrupts off: an eventfd that is a
 * semaphore gives 1 each time.
 */
#define SOURCE_TAKES 64

/*
 * How often a work item does so before it rests. The count of a semaphore can be almost
 * 2^64, and nobody needs to be there while it is moved.
 */
#define SOURCE_ROUNDS 16

/* Likewise, in ns. After 10 ms the workqueue would begin other items beside it. */
#define SOURCE_RUNS_NS NSEC_PER_MSEC

/*
 * In the end, a bridge that is left alone moves 1 in a second, so that a chain of them is
 * not faster at its end.
 */
static bool source_rests_long(const struct flowfd_bridge_state *b)
{
	return READ_ONCE(b->budget.rest) >= HZ;
}

/*
 * Takes what fits, or all of an eventfd that is no semaphore: then the rest waits. What
 * does not fit at all stays in the eventfd.
 *
 * Return: 0: nothing is left. -EAGAIN: there may be more than fits. -EBUSY: likewise, and
 * it may fit.
 */
static int source_take(struct flowfd_bridge_state *b)
{
	unsigned int i, takes = source_rests_long(b) ? 1 : SOURCE_TAKES;
	struct flowfd_counter *c = b->counter;
	u64 value;

	for (i = 0; i < takes; i++) {
		if (!flowfd_counter_takes_more(c, b->waiting))
			return flow_loses(&c->flow) ? -EBUSY : -EAGAIN;
		eventfd_ctx_do_read(b->source.eventfd, &value);
		b->waiting += value;
		b->plain |= value > 1;
		if (value != 1 || b->plain)
			return 0;
	}
	return -EBUSY;
}

/*
 * Adds what fits of what waits. Others may add meanwhile: programs in memory, or tasks that
 * sleep in a write and go on. That is theirs, so what waits is compared; by policy, it may
 * be lost instead.
 */
static int source_add(struct flowfd_bridge_state *b)
{
	struct flowfd_counter *c = b->counter;
	u64 waiting = b->waiting, produced = counter_produced(c);
	int err = flowfd_counter_add_some(c, &b->waiting);

	if (flow_loses(&c->flow))
		b->added += counter_produced(c) - produced;
	else
		b->added += waiting - b->waiting;
	return err;
}

/* Returns as source_take(). */
static int source_try(struct flowfd_bridge_state *b, bool *taken)
{
	int err = 0, left;

	if (b->waiting)
		err = source_add(b);
	if (err || !b->source.eventfd)
		return err;
	left = source_take(b);
	if (!b->waiting)
		return left;
	*taken = true;
	return source_add(b) ?: left;
}

/*
 * Moves what fits; under the lock of the eventfd too, if there is one. Tries again once
 * takes are told: before that, a reader that sleeps was perhaps given all that was added,
 * or a program took it in memory.
 */
static int source_move(struct flowfd_bridge_state *b, bool *taken)
{
	int err;

	flowfd_budget_wake(b);
	err = source_try(b, taken);
	if (err == -EAGAIN) {
		bridge_join(b, &b->for_room);
		flowfd_counter_want_room(b->counter);
		err = source_try(b, taken);
	}
	if (err != -EAGAIN)
		bridge_leave(&b->for_room);
	b->behind = err;
	return err;
}

/*
 * Under the lock of the counter: there is room. While the source rests it stays in the
 * queue: any other that takes than the sink is a program, and ends the rest.
 */
static int source_room_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			    void *key)
{
	struct flowfd_bridge_state *b =
		container_of(entry, struct flowfd_bridge_state, for_room);
	unsigned long ticks = 0;

	if (!(key_to_poll(key) & EPOLLOUT))
		return 0;
	if (flowfd_sink_moves(b)) {
		if (flowfd_work_is_due(&b->source.work))
			return 1;
		ticks = flowfd_budget_turn(b);
	} else {
		b->budget.rest = 0;
		b->budget.spent = 0;
	}
	if (!ticks)
		bridge_leave(entry);
	flowfd_work_queue(&b->source.work, ticks);
	return 1;
}

/*
 * Under the lock of the counter: something came, and nothing is left behind. A signal of
 * another bridge is a turn as well: each could split what comes, and so signal once more.
 */
static void source_begin(struct flowfd_bridge_state *b, bool bridged, bool *taken)
{
	unsigned long ticks = bridged ? flowfd_budget_turn(b) : 0;

	if (ticks) {
		b->behind = true;
		flowfd_work_queue(&b->source.work, ticks);
	} else if (source_move(b, taken) == -EBUSY) {
		flowfd_work_queue(&b->source.work, 0);
	}
}

/*
 * Under the lock of the eventfd, with interrupts off, perhaps in a hard interrupt. The
 * counter's lock is taken inside it. That is why a sink is never signalled under the
 * lock of a counter.
 */
static int source_wake(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct flowfd_bridge_state *b =
		container_of(entry, struct flowfd_bridge_state, source.at_eventfd);
	__poll_t events = key_to_poll(key);
	const struct flowfd_bridge_state *before;
	bool taken = false, granted = true;

	if (!(events & (EPOLLIN | EPOLLHUP)))
		return 0;
	before = flowfd_sink_at_work(b->source.queue);
	spin_lock(&b->counter->wqh.lock);
	if (before)
		granted = flowfd_budget_share(b, before);
	else
		flowfd_budget_grant(b);
	if (events & EPOLLHUP) {
		b->source.hung_up = true;
		flowfd_work_queue(&b->source.work, 0);
	} else if (!b->behind) {
		source_begin(b, before, &taken);
	} else if (granted && flowfd_work_rests(&b->source.work)) {
		flowfd_work_queue(&b->source.work, 0);
	}
	spin_unlock(&b->counter->wqh.lock);
	/* For some that follow in the queue the wakeup is all: vhost, VFIO, AIO. */
	return 0;
}

/* Writers may wait: the eventfd is full if its count was left there for long. */
static void source_wake_writers(wait_queue_head_t *queue)
{
	current->in_eventfd = 1;
	wake_up_locked_poll(queue, EPOLLOUT);
	current->in_eventfd = 0;
}

/* Returns as source_take(). */
static int source_run(struct flowfd_bridge_state *b)
{
	wait_queue_head_t *queue = b->source.queue;
	struct flowfd_counter *c = b->counter;
	bool taken = false;
	int err;

	if (b->source.eventfd) {
		spin_lock_irq(&queue->lock);
		spin_lock(&c->wqh.lock);
		err = source_move(b, &taken);
		spin_unlock(&c->wqh.lock);
		if (taken)
			source_wake_writers(queue);
		spin_unlock_irq(&queue->lock);
	} else {
		spin_lock_irq(&c->wqh.lock);
		err = source_move(b, &taken);
		spin_unlock_irq(&c->wqh.lock);
	}
	return err;
}

/* Under the lock, so that a signal that sees the rest can end it. */
static void source_run_later(struct flowfd_bridge_state *b)
{
	spin_lock_irq(&b->counter->wqh.lock);
	flowfd_work_queue(&b->source.work, flowfd_budget_rest(b));
	spin_unlock_irq(&b->counter->wqh.lock);
}

/**
 * flowfd_source_reap - end a source whose eventfd is closed
 * @b: state, the mutex of whose source the caller has
 *
 * What its writers left in it is moved first, and keeps it until there is room.
 */
void flowfd_source_reap(struct flowfd_bridge_state *b)
{
	int err;

	if (!b->source.eventfd || !flowfd_bridge_is_hung_up(&b->source))
		return;
	err = source_run(b);
	if (err == -EBUSY)
		source_run_later(b);
	if (!err)
		flowfd_bridge_detach(b, &b->source);
}

static void source_work(struct bridge_work *work)
{
	struct flowfd_bridge_state *b =
		container_of(work, struct flowfd_bridge_state, source.work);
	u64 end = ktime_get_ns() + SOURCE_RUNS_NS;
	struct bridge_clock clock;
	unsigned int rounds = 0;
	int err;

	if (!flowfd_bridge_trylock(&b->source))
		return;
	do {
		flowfd_budget_begin(&clock);
		err = source_run(b);
		flowfd_budget_end(b, &clock);
		cond_resched();
	} while (err == -EBUSY && ++rounds < SOURCE_ROUNDS && !source_rests_long(b) &&
		 ktime_get_ns() < end);
	if (err == -EBUSY)
		source_run_later(b);
	if (!err)
		flowfd_source_reap(b);
	flowfd_bridge_unlock(&b->source);
}

/**
 * flowfd_source_init - there is no source yet
 * @b: new state
 */
void flowfd_source_init(struct flowfd_bridge_state *b)
{
	mutex_init(&b->source.lock);
	b->source.id = BRIDGE_NO_ID;
	flowfd_work_init(&b->source.work, source_work);
	init_waitqueue_func_entry(&b->source.at_eventfd, source_wake);
	init_waitqueue_func_entry(&b->for_room, source_room_wake);
	INIT_LIST_HEAD(&b->for_room.entry);
}

/**
 * flowfd_source_start - from here on the count of the eventfd is moved
 * @b: state whose source has been attached
 *
 * What it has already is moved first, and here: a signal that came before would not wake
 * those who wait for room in the eventfd.
 */
void flowfd_source_start(struct flowfd_bridge_state *b)
{
	struct flowfd_counter *c = b->counter;
	struct bridge_end *source = &b->source;
	bool more;

	spin_lock_irq(&c->wqh.lock);
	b->behind = true;
	b->plain = false;
	flowfd_budget_grant(b);
	spin_unlock_irq(&c->wqh.lock);
	add_wait_queue(source->queue, &source->at_eventfd);
	more = source_run(b) == -EBUSY;
	/* The one before may have left a rest. */
	spin_lock_irq(&c->wqh.lock);
	if (more || flowfd_work_rests(&source->work))
		flowfd_work_queue(&source->work, 0);
	spin_unlock_irq(&c->wqh.lock);
}
