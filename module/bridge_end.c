// SPDX-License-Identifier: GPL-2.0-only
/*
 * One end of a bridge: how it is connected with an eventfd. It does not hold the file: a
 * reference to the context of an eventfd keeps only memory; a wait-queue entry is told
 * with EPOLLHUP that the last file is gone.
 */
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/seq_file.h>

#include "bridge.h"

/**
 * flowfd_bridge_trylock - take the mutex of an end in its work item
 * @end: whose work it is; if this fails, whoever has the mutex queues it again
 *
 * Work items do not sleep for it: a task that has it may be one that seldom runs, and the
 * items of all users share the workers of a processor. Nor do they try again by
 * themselves: very many such tasks would keep a worker busy.
 */
bool flowfd_bridge_trylock(struct bridge_end *end)
{
	if (!mutex_trylock(&end->lock)) {
		WRITE_ONCE(end->missed, true);
		/* Before this try: who unlocks after that must see it. Pairs with unlock. */
		smp_mb();
		if (!mutex_trylock(&end->lock))
			return false;
	}
	/* It would end a rest that begins now. */
	WRITE_ONCE(end->missed, false);
	return true;
}

/**
 * flowfd_bridge_unlock - release the mutex of an end
 * @end: which stays there, as the caller has the counter's file or is the end's work item
 */
void flowfd_bridge_unlock(struct bridge_end *end)
{
	mutex_unlock(&end->lock);
	/* Not before it is released. Pairs with trylock. */
	smp_mb();
	if (READ_ONCE(end->missed) && xchg(&end->missed, false))
		flowfd_work_queue(&end->work, 0);
}

/**
 * flowfd_bridge_detach - disconnect an end
 * @b: state
 * @end: @source or @sink of it, whose mutex the caller has
 *
 * A work item that is queued finds no eventfd. What a source has taken, and was not added
 * yet, is added when there is room.
 */
void flowfd_bridge_detach(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	struct eventfd_ctx *eventfd = end->eventfd;
	struct flowfd_counter *c = b->counter;

	if (!eventfd)
		return;
	remove_wait_queue(end->queue, &end->at_eventfd);
	spin_lock_irq(&c->wqh.lock);
	if (end == &b->sink) {
		bridge_leave(&b->at_counter);
		b->told = false;
	} else if (!b->waiting) {
		bridge_leave(&b->for_room);
		b->behind = false;
		flowfd_budget_wake(b);
	}
	spin_unlock_irq(&c->wqh.lock);
	WRITE_ONCE(end->id, BRIDGE_NO_ID);
	flowfd_bridge_unlink(b, end);
	eventfd_ctx_put(eventfd);
}

/**
 * flowfd_bridge_is_hung_up - whether the last file of the eventfd is gone
 * @end: with an eventfd, whose mutex the caller has
 */
bool flowfd_bridge_is_hung_up(struct bridge_end *end)
{
	bool hung_up;

	spin_lock_irq(&end->queue->lock);
	hung_up = end->hung_up;
	spin_unlock_irq(&end->queue->lock);
	return hung_up;
}

/* Finds the wait queue of an eventfd, which no function tells. */
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

/*
 * The number of bridges that a counter has had ends there, or it could be 0 again while it
 * has one.
 */
#define BRIDGES_MAX U16_MAX

/*
 * A sink of a semaphore would take 1 for each wakeup, and a write can add more. From
 * here on the counter cannot become a semaphore.
 */
static bool bridge_is_allowed(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	struct flowfd_counter *c = b->counter;
	bool allowed;

	spin_lock_irq(&c->wqh.lock);
	allowed = end == &b->source || !c->semaphore;
	if (allowed && c->bridges != BRIDGES_MAX)
		c->bridges++;
	spin_unlock_irq(&c->wqh.lock);
	return allowed;
}

static void bridge_give_up(struct flowfd_counter *c)
{
	spin_lock_irq(&c->wqh.lock);
	if (c->bridges != BRIDGES_MAX)
		c->bridges--;
	spin_unlock_irq(&c->wqh.lock);
}

/**
 * flowfd_bridge_attach - connect an end with an eventfd
 * @b: state
 * @end: @source or @sink of it, whose mutex the caller has
 * @file: which the caller has, so that it is not released meanwhile
 *
 * The caller starts the end afterwards: it has no entry in the queue of the eventfd yet.
 *
 * Return: 0 or a negative errno.
 */
int flowfd_bridge_attach(struct flowfd_bridge_state *b, struct bridge_end *end,
			 struct file *file)
{
	struct eventfd_ctx *eventfd;
	int err;

	if (end->eventfd)
		return -EBUSY;
	eventfd = eventfd_ctx_fileget(file);
	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	err = bridge_is_allowed(b, end) ? 0 : -EINVAL;
	if (err)
		goto put;
	end->queue = bridge_queue_of(file);
	end->hung_up = false;
	err = flowfd_bridge_link(b, end, eventfd);
	if (!err) {
		WRITE_ONCE(end->id, bridge_id_of(file));
		return 0;
	}
	bridge_give_up(b->counter);
put:
	eventfd_ctx_put(eventfd);
	return err;
}
