// SPDX-License-Identifier: GPL-2.0-only
/*
 * The source of a counter: an eventfd whose count is moved into it, in the context of
 * the signaller. What does not fit waits for room, in the counter's state and in the
 * eventfd. Only a program makes room: a counter that has a sink as well has no maximum.
 */
#include <linux/poll.h>
#include <linux/sched.h>

#include "bridge.h"

/*
 * How often an eventfd that is a semaphore, which gives 1 each time, is taken from for one
 * signal: interrupts are off. The rest is moved with the next signal.
 */
#define SOURCE_TAKES 1024

/*
 * Takes what fits, or all of an eventfd that is no semaphore: then the rest waits. What does
 * not fit at all stays in the eventfd. Returns 0, or -EAGAIN: there may be more than
 * fits.
 */
static int source_take(struct flowfd_bridge_state *b)
{
	unsigned int i;
	u64 value;

	for (i = 0; i < SOURCE_TAKES; i++) {
		if (!flowfd_counter_takes_more(b->counter, b->waiting))
			return -EAGAIN;
		eventfd_ctx_do_read(b->source.eventfd, &value);
		b->waiting += value;
		if (value != 1)
			break;
	}
	return 0;
}

/*
 * What was taken before is added before more is taken. Returns 0; -EAGAIN: there may be
 * more than fits; -EBUSY: programs changed the words of a mapped counter all the time.
 */
static int source_try(struct flowfd_bridge_state *b)
{
	struct flowfd_counter *c = b->counter;
	int err = b->waiting ? flowfd_counter_add_some(c, &b->waiting) : 0, left;

	if (err || !b->source.eventfd)
		return err;
	left = source_take(b);
	if (!b->waiting)
		return left;
	return flowfd_counter_add_some(c, &b->waiting) ?: left;
}

/*
 * Moves what fits, under the lock of the eventfd too, if there is one. Tries again once
 * takes wake the entry: before that, a reader that slept was perhaps given all that was
 * added, or a program took it in memory.
 */
static void source_move(struct flowfd_bridge_state *b)
{
	int err = source_try(b);

	if (err == -EAGAIN) {
		bridge_join(b, &b->for_room);
		flowfd_counter_want_room(b->counter);
		err = source_try(b);
	}
	if (err != -EAGAIN)
		bridge_leave(&b->for_room);
	if (err == -EBUSY) {
		b->move_due = true;
		bridge_queue_work(b);
	}
	if (!err && !bridge_is_open(&b->source))
		bridge_finish(b, &b->source);
}

/* Under the lock of the counter: there is room. */
static int source_room_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			    void *key)
{
	struct flowfd_bridge_state *b =
		container_of(entry, struct flowfd_bridge_state, for_room);

	if (!(key_to_poll(key) & EPOLLOUT))
		return 0;
	bridge_leave(entry);
	b->move_due = true;
	bridge_queue_work(b);
	return 1;
}

/*
 * Under the lock of the eventfd, with interrupts off, perhaps in a hard interrupt. The
 * counter's lock is taken inside it. Therefore a sink is never signalled under the lock of a
 * counter. While the source waits for room, a signal makes none.
 */
static int source_wake(wait_queue_entry_t *entry, unsigned int mode, int sync, void *key)
{
	struct flowfd_bridge_state *b =
		container_of(entry, struct flowfd_bridge_state, source.at_eventfd);
	__poll_t events = key_to_poll(key);

	if (!(events & (EPOLLIN | EPOLLHUP)))
		return 0;
	spin_lock(&b->counter->wqh.lock);
	if (events & EPOLLHUP)
		list_del_init(&entry->entry);
	if (events & EPOLLHUP || list_empty(&b->for_room.entry))
		source_move(b);
	spin_unlock(&b->counter->wqh.lock);
	/* To some entries behind this one the wakeup is all: vhost, VFIO, AIO. */
	return 0;
}

/* A writer may wait for room in the eventfd, which was perhaps full. */
static void source_wake_writers(wait_queue_head_t *queue)
{
	current->in_eventfd = 1;
	wake_up_locked_poll(queue, EPOLLOUT);
	current->in_eventfd = 0;
}

/*
 * Moves what fits, once. The caller holds the mutex, or is the work item, which detaching
 * cancels before it puts the eventfd.
 */
void flowfd_source_move(struct flowfd_bridge_state *b)
{
	wait_queue_head_t *queue;

	spin_lock_irq(&b->counter->wqh.lock);
	queue = b->source.eventfd ? b->source.queue : NULL;
	b->move_due = false;
	if (!queue)
		source_move(b);
	spin_unlock_irq(&b->counter->wqh.lock);
	if (!queue)
		return;
	spin_lock_irq(&queue->lock);
	spin_lock(&b->counter->wqh.lock);
	source_move(b);
	spin_unlock(&b->counter->wqh.lock);
	source_wake_writers(queue);
	spin_unlock_irq(&queue->lock);
}

void flowfd_source_init(struct flowfd_bridge_state *b)
{
	b->source.bit = COUNTER_HAS_SOURCE;
	b->source.id = BRIDGE_NO_ID;
	init_waitqueue_func_entry(&b->source.at_eventfd, source_wake);
	INIT_LIST_HEAD(&b->source.at_eventfd.entry);
	init_waitqueue_func_entry(&b->for_room, source_room_wake);
	INIT_LIST_HEAD(&b->for_room.entry);
}
