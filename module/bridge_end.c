// SPDX-License-Identifier: GPL-2.0-only
/*
 * One end of a bridge: how it is connected with an eventfd. It does not hold the file: a
 * reference to the context of an eventfd keeps only memory, and a wait-queue entry is woken
 * with EPOLLHUP when the last file is closed. That entry is also how an eventfd is found to
 * have a bridge already.
 */
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/seq_file.h>

#include "bridge.h"

/* What a source has taken belongs to the counter, and waits for room without it. */
static void end_leave_counter(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	if (end == &b->source && b->waiting) {
		end->id = BRIDGE_NO_ID;
		return;
	}
	if (end == &b->sink)
		b->signal_due = false;
	bridge_leave(end == &b->sink ? &b->at_counter : &b->for_room);
	bridge_finish(b, end);
}

/*
 * Disconnects an end, under the mutex, or of a counter that is released. Waits for the work
 * item, which may use the eventfd, and waits for no user space.
 */
void flowfd_bridge_detach(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	struct eventfd_ctx *eventfd = end->eventfd;
	struct flowfd_counter *c = b->counter;

	if (!eventfd)
		return;
	spin_lock_irq(&end->queue->lock);
	spin_lock(&c->wqh.lock);
	list_del_init(&end->at_eventfd.entry);
	end->eventfd = NULL;
	end_leave_counter(b, end);
	spin_unlock(&c->wqh.lock);
	spin_unlock_irq(&end->queue->lock);
	cancel_work_sync(&b->work);
	eventfd_ctx_put(eventfd);
	/* What was canceled may have been for the other end. */
	bridge_queue_work(b);
}

/* Finds the wait queue of an eventfd, which no function returns. */
struct bridge_poll {
	poll_table table;
	wait_queue_head_t *queue;
};

static void bridge_note_queue(struct file *file, wait_queue_head_t *queue,
			      poll_table *table)
{
	container_of(table, struct bridge_poll, table)->queue = queue;
}

static wait_queue_head_t *bridge_queue_of(struct file *file)
{
	struct bridge_poll poll = { .queue = NULL };

	init_poll_funcptr(&poll.table, bridge_note_queue);
	vfs_poll(file, &poll.table);
	return poll.queue;
}

/* The number by which users know an eventfd. Its fdinfo has it, and no function. */
static int bridge_id_of(struct file *file)
{
	char text[256] = "", *line;
	struct seq_file m = { .buf = text, .size = sizeof(text) - 1 };
	int id;

	/* Without /proc nobody sees it. */
	if (!file->f_op->show_fdinfo)
		return BRIDGE_NO_ID;
	file->f_op->show_fdinfo(&m, file);
	line = strstr(text, "eventfd-id:");
	return line && sscanf(line, "eventfd-id: %d", &id) == 1 ? id : BRIDGE_NO_ID;
}

/* Takes no longer than a signal of the eventfd, which calls each entry. */
static bool queue_has_bridge(const struct flowfd_bridge_state *b,
			     const wait_queue_head_t *queue)
{
	const wait_queue_entry_t *entry;

	list_for_each_entry(entry, &queue->head, entry) {
		if (entry->func == b->source.at_eventfd.func ||
		    entry->func == b->sink.at_eventfd.func)
			return true;
	}
	return false;
}

/*
 * A sink of a semaphore would take 1 for each wakeup, and a write can add more. A counter
 * between two eventfds has no maximum: its sink would make room for its source, and the
 * work item would go on without a program.
 */
static int bridge_check(const struct flowfd_bridge_state *b, const struct bridge_end *end,
			const wait_queue_head_t *queue)
{
	const struct flowfd_counter *c = b->counter;

	if (end->eventfd || queue_has_bridge(b, queue))
		return -EBUSY;
	if (end == &b->sink && c->store.semaphore)
		return -EINVAL;
	if (bridges_allow_maximum(c->bridges | end->bit) ||
	    store_maximum(&c->store) == U64_MAX)
		return 0;
	return -EINVAL;
}

/* Under both locks. The count that there is already is signalled, too. */
static void end_start(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	__add_wait_queue(end->queue, &end->at_eventfd);
	if (end == &b->sink) {
		bridge_join(b, &b->at_counter);
		flowfd_counter_tell_readers(b->counter);
	}
}

/*
 * Connects an end with an eventfd, under the mutex. The caller holds @file, so that it is
 * not released meanwhile.
 */
int flowfd_bridge_attach(struct flowfd_bridge_state *b, struct bridge_end *end,
			 struct file *file)
{
	struct eventfd_ctx *eventfd = eventfd_ctx_fileget(file);
	struct flowfd_counter *c = b->counter;
	wait_queue_head_t *queue;
	int id, err;

	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	queue = bridge_queue_of(file);
	id = bridge_id_of(file);
	spin_lock_irq(&queue->lock);
	spin_lock(&c->wqh.lock);
	err = bridge_check(b, end, queue);
	if (!err) {
		c->bridges |= end->bit;
		end->eventfd = eventfd;
		end->queue = queue;
		end->id = id;
		end_start(b, end);
	}
	spin_unlock(&c->wqh.lock);
	spin_unlock_irq(&queue->lock);
	if (err)
		eventfd_ctx_put(eventfd);
	return err;
}
