/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bridges between a counter and eventfds: a source feeds the counter, the counter signals a
 * sink. docs/bridge.md has the reasons.
 */
#ifndef FLOWFD_BRIDGE_H
#define FLOWFD_BRIDGE_H

#include <linux/eventfd.h>
#include <linux/limits.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "counter.h"
#include "memory.h"
#include "work.h"

struct file;
struct seq_file;

/* No eventfd has this id. */
#define BRIDGE_NO_ID INT_MIN

/**
 * struct bridge_end - the connection with one eventfd
 * @eventfd: NULL: none. Changed under the mutex, or by release, and the counter's lock
 * @queue: wait queue of @eventfd, which the reference to that keeps
 * @at_eventfd: in @queue until the last file of @eventfd is closed
 * @bit: of the counter's @bridges while the end has something to do; fixed
 * @id: of @eventfd, as in its fdinfo, or BRIDGE_NO_ID; under the counter's lock
 */
struct bridge_end {
	struct eventfd_ctx *eventfd;
	wait_queue_head_t *queue;
	wait_queue_entry_t at_eventfd;
	u8 bit;
	int id;
};

/**
 * struct flowfd_bridge_state - the bridges of a counter
 * @counter: fixed
 * @lock: adding and removing ends
 * @source: its eventfd feeds the counter
 * @sink: the counter signals its eventfd
 * @at_counter: in the counter's wait queue while there is a sink
 * @for_room: likewise, while the source waits for room in the counter
 * @work: signals the sink, and moves what waited for room; takes no mutex
 * @class: of the task that made the first bridge of the counter; fixed
 * @charge: a page of RLIMIT_MEMLOCK, so that the number of work items has a limit
 * @waiting: taken from a source, and not added yet; under the counter's lock
 * @move_due: @work must move; likewise
 * @signal_due: readers were woken, so @work must take and signal; likewise
 */
struct flowfd_bridge_state {
	struct flowfd_counter *counter;
	struct mutex lock; /* of the ends */
	struct bridge_end source;
	struct bridge_end sink;
	wait_queue_entry_t at_counter;
	wait_queue_entry_t for_room;
	struct work_struct work;
	const struct work_class *class;
	struct flowfd_memory charge;
	u64 waiting;
	bool move_due;
	bool signal_due;
};

/* Under the lock of the counter, as all of these. */
static inline void bridge_join(struct flowfd_bridge_state *b, wait_queue_entry_t *entry)
{
	if (list_empty(&entry->entry))
		__add_wait_queue(&b->counter->wqh, entry);
}

static inline void bridge_leave(wait_queue_entry_t *entry)
{
	list_del_init(&entry->entry);
}

static inline void bridge_queue_work(struct flowfd_bridge_state *b)
{
	queue_work(b->class->per_cpu, &b->work);
}

/* Whether the last file of the eventfd is not closed. */
static inline bool bridge_is_open(const struct bridge_end *end)
{
	return end->eventfd && !list_empty(&end->at_eventfd.entry);
}

/* The end has nothing more to do: its eventfd is closed or removed, and nothing is left. */
static inline void bridge_finish(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	b->counter->bridges &= ~end->bit;
	end->id = BRIDGE_NO_ID;
}

/* bridge_end.c */
int flowfd_bridge_attach(struct flowfd_bridge_state *b, struct bridge_end *end,
			 struct file *file);
void flowfd_bridge_detach(struct flowfd_bridge_state *b, struct bridge_end *end);

/* bridge_source.c */
void flowfd_source_init(struct flowfd_bridge_state *b);
void flowfd_source_move(struct flowfd_bridge_state *b);

/* bridge_sink.c */
void flowfd_sink_init(struct flowfd_bridge_state *b);
void flowfd_sink_signal(struct flowfd_bridge_state *b);

/* bridge.c */
long flowfd_bridge_control(struct file *file, const void __user *argp, size_t size);
void flowfd_bridge_show(struct seq_file *m, struct flowfd_counter *c);
void flowfd_bridge_free(struct flowfd_counter *c);

#endif /* FLOWFD_BRIDGE_H */
