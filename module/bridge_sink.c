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
	bridge_finish(b, &b->sink);
	spin_unlock(&b->counter->wqh.lock);
	return 0;
}

/*
 * Takes the count and signals, if readers were woken. Takes under the lock under which the sink
 * was found to be open: what is added after its last file is closed stays. By the work item,
 * which detaching cancels before it puts the eventfd. No loop depends on the words of a mapped
 * counter: if a program changed them all the time, the work item is queued again.
 */
void flowfd_sink_signal(struct flowfd_bridge_state *b)
{
	struct eventfd_ctx *eventfd = NULL;
	u64 value;
	int err;

	spin_lock_irq(&b->counter->wqh.lock);
	if (b->signal_due) {
		b->signal_due = false;
		err = flowfd_counter_take_ready(b->counter, &value);
		if (!err)
			eventfd = b->sink.eventfd;
		/* The token is spent, so the wakeup still holds. */
		if (err == -EBUSY)
			sink_is_due(b);
	}
	spin_unlock_irq(&b->counter->wqh.lock);
	if (eventfd)
		eventfd_signal_count(eventfd, value);
}

void flowfd_sink_init(struct flowfd_bridge_state *b)
{
	b->sink.bit = COUNTER_HAS_SINK;
	b->sink.id = BRIDGE_NO_ID;
	init_waitqueue_func_entry(&b->sink.at_eventfd, sink_eventfd_wake);
	INIT_LIST_HEAD(&b->sink.at_eventfd.entry);
	init_waitqueue_func_entry(&b->at_counter, sink_counter_wake);
	INIT_LIST_HEAD(&b->at_counter.entry);
}
