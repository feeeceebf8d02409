// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sink of a counter: an eventfd that is signalled with the count when the counter's
 * readers are woken. Always by the work item: see source_wake().
 */
#include <linux/poll.h>

#include "bridge.h"
#include "compat.h"

static void sink_is_due(struct flowfd_bridge_state *b)
{
	b->signal_due = true;
	bridge_queue_work(b);
}

/* Under the lock of the counter, whose readers are woken. */
static int sink_counter_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			     void *key)
{
	if (!(key_to_poll(key) & EPOLLIN))
		return 0;
	sink_is_due(container_of(entry, struct flowfd_bridge_state, at_counter));
	return 1;
}

/*
 * Under the lock of the eventfd. Most of these wakeups are those of the sink itself. When the
 * last file is closed, nobody would see a count there, so it stays in the counter.
 */
static int sink_eventfd_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			     void *key)
{
	struct flowfd_bridge_state *b =
		container_of(entry, struct flowfd_bridge_state, sink.at_eventfd);

	if (!(key_to_poll(key) & EPOLLHUP))
		return 0;
	spin_lock(&b->counter->wqh.lock);
	list_del_init(&entry->entry);
	bridge_leave(&b->at_counter);
	b->signal_due = false;
	bridge_end_is_over(b, &b->sink, COUNTER_HAS_SINK);
	spin_unlock(&b->counter->wqh.lock);
	return 0;
}

/* The token is spent, so the wakeup still holds; but not for another sink. */
static void sink_try_again(struct flowfd_bridge_state *b)
{
	spin_lock_irq(&b->counter->wqh.lock);
	if (bridge_is_open(&b->sink))
		sink_is_due(b);
	spin_unlock_irq(&b->counter->wqh.lock);
}

/**
 * flowfd_sink_signal - take the count and signal, if readers were woken
 * @b: state, whose work item calls
 *
 * Detaching cancels the work item before it puts the eventfd. No loop depends on the words of
 * a mapped counter: if a program changed them all the time, the work item is queued again.
 */
void flowfd_sink_signal(struct flowfd_bridge_state *b)
{
	struct flowfd_counter *c = b->counter;
	struct eventfd_ctx *eventfd;
	u64 value;
	int err;

	spin_lock_irq(&c->wqh.lock);
	eventfd = b->signal_due ? b->sink.eventfd : NULL;
	b->signal_due = false;
	spin_unlock_irq(&c->wqh.lock);
	if (!eventfd)
		return;
	err = flowfd_counter_take_ready(c, &value);
	if (!err)
		eventfd_signal_count(eventfd, value);
	else if (err == -EBUSY)
		sink_try_again(b);
}

/**
 * flowfd_sink_init - there is no sink yet
 * @b: new state
 */
void flowfd_sink_init(struct flowfd_bridge_state *b)
{
	b->sink.id = BRIDGE_NO_ID;
	init_waitqueue_func_entry(&b->sink.at_eventfd, sink_eventfd_wake);
	INIT_LIST_HEAD(&b->sink.at_eventfd.entry);
	init_waitqueue_func_entry(&b->at_counter, sink_counter_wake);
	INIT_LIST_HEAD(&b->at_counter.entry);
}
