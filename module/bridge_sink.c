// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sink of a counter: an eventfd that is signalled with the count when the counter's
 * readers are woken. Always by a work item: see source_wake().
 */
#include <linux/lockdep.h>
#include <linux/poll.h>
#include <linux/sched.h>

#include "bridge.h"
#include "compat.h"

/* Under the lock of the counter, whose readers are woken. */
static int sink_counter_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			     void *key)
{
	struct flowfd_bridge_state *b =
		container_of(entry, struct flowfd_bridge_state, at_counter);

	if (!(key_to_poll(key) & EPOLLIN))
		return 0;
	b->told = true;
	flowfd_work_queue(&b->sink.work, 0);
	return 1;
}

/* Under the lock of the eventfd. Most of these wakeups are those of the sink itself. */
static int sink_eventfd_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			     void *key)
{
	struct bridge_end *sink = container_of(entry, struct bridge_end, at_eventfd);

	if (key_to_poll(key) & EPOLLHUP) {
		sink->hung_up = true;
		flowfd_work_queue(&sink->work, 0);
	}
	return 0;
}

/* What programs added so far is granted. */
static void sink_grant(struct flowfd_bridge_state *b)
{
	spin_lock_irq(&b->counter->wqh.lock);
	flowfd_budget_grant_for_adds(b);
	spin_unlock_irq(&b->counter->wqh.lock);
}

/*
 * Whether readers were woken since the last time; then it grants, too. Who ended a sink
 * queued the work item as well, and the one after it must not signal without a token.
 */
static bool sink_is_told(struct flowfd_bridge_state *b)
{
	bool told;

	spin_lock_irq(&b->counter->wqh.lock);
	told = b->told;
	b->told = false;
	if (told)
		flowfd_budget_grant_for_adds(b);
	spin_unlock_irq(&b->counter->wqh.lock);
	return told;
}

/* The wakeup still holds. */
static void sink_try_again(struct flowfd_bridge_state *b)
{
	spin_lock_irq(&b->counter->wqh.lock);
	b->told = true;
	flowfd_work_queue(&b->sink.work, 1);
	spin_unlock_irq(&b->counter->wqh.lock);
}

/*
 * No loop here depends on the words of a mapped counter: nobody could end it. Sources are
 * told who makes room in the counter, and who signals the eventfd. What programs added is
 * granted before the take, for the counter's own source, which that gives room; and once
 * more before the signal, as it may take more than there was.
 */
static void sink_move(struct flowfd_bridge_state *b)
{
	struct bridge_clock clock;
	u64 value;
	int err;

	if (!sink_is_told(b))
		return;
	flowfd_budget_begin(&clock);
	WRITE_ONCE(b->mover, current);
	err = flowfd_counter_take_ready(b->counter, &value);
	if (err == -EBUSY)
		sink_try_again(b);
	if (!err) {
		sink_grant(b);
		eventfd_signal_count(b->sink.eventfd, value);
		flowfd_budget_end(b, &clock);
	}
	WRITE_ONCE(b->mover, NULL);
}

static void sink_work(struct bridge_work *work)
{
	struct flowfd_bridge_state *b =
		container_of(work, struct flowfd_bridge_state, sink.work);

	if (!flowfd_bridge_trylock(&b->sink))
		return;
	if (!b->sink.eventfd)
		goto unlock;
	if (flowfd_bridge_is_hung_up(&b->sink))
		flowfd_bridge_detach(b, &b->sink);
	else
		sink_move(b);
unlock:
	flowfd_bridge_unlock(&b->sink);
}

/**
 * flowfd_sink_moves - whether the sink of a counter is what takes or signals now
 * @b: state
 *
 * In any context.
 */
bool flowfd_sink_moves(const struct flowfd_bridge_state *b)
{
	return in_task() && READ_ONCE(b->mover) == current;
}

/**
 * flowfd_sink_at_work - whose sink signals an eventfd now
 * @queue: wait queue of the eventfd, whose lock the caller has if a work item signals
 *
 * For those that the signal wakes, in any context. The current work item may have freed
 * itself, so it is the eventfd that is asked: it has one sink at most.
 *
 * Return: the state, or NULL: a program or a device signals.
 */
const struct flowfd_bridge_state *flowfd_sink_at_work(const wait_queue_head_t *queue)
{
	const struct flowfd_bridge_state *b;
	const wait_queue_entry_t *entry;

	if (!in_task() || !(current->flags & PF_WQ_WORKER))
		return NULL;
	lockdep_assert_held(&queue->lock);
	list_for_each_entry(entry, &queue->head, entry) {
		if (entry->func != sink_eventfd_wake)
			continue;
		b = container_of(entry, struct flowfd_bridge_state, sink.at_eventfd);
		return flowfd_sink_moves(b) ? b : NULL;
	}
	return NULL;
}

/**
 * flowfd_sink_init - there is no sink yet
 * @b: new state
 */
void flowfd_sink_init(struct flowfd_bridge_state *b)
{
	mutex_init(&b->sink.lock);
	b->sink.id = BRIDGE_NO_ID;
	flowfd_work_init(&b->sink.work, sink_work);
	init_waitqueue_func_entry(&b->sink.at_eventfd, sink_eventfd_wake);
	init_waitqueue_func_entry(&b->at_counter, sink_counter_wake);
	INIT_LIST_HEAD(&b->at_counter.entry);
}

/**
 * flowfd_sink_start - from here on readers are woken by signals
 * @b: state whose sink has been attached
 *
 * Also for the count that there is.
 */
void flowfd_sink_start(struct flowfd_bridge_state *b)
{
	struct flowfd_counter *c = b->counter;

	add_wait_queue(b->sink.queue, &b->sink.at_eventfd);
	spin_lock_irq(&c->wqh.lock);
	bridge_join(b, &b->at_counter);
	flowfd_counter_tell_readers(c);
	spin_unlock_irq(&c->wqh.lock);
}
