/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bridges between a counter and eventfds: a source feeds the counter, a sink is signalled
 * by it. docs/bridge.md has the reasons.
 */
#ifndef FLOWFD_BRIDGE_H
#define FLOWFD_BRIDGE_H

#include <linux/eventfd.h>
#include <linux/limits.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "budget.h"
#include "counter.h"

struct bridge_processor;
struct file;
struct seq_file;

/* No eventfd has it. */
#define BRIDGE_NO_ID INT_MIN

/**
 * struct bridge_work - what an end does outside of the locks of wait queues
 * @func: does it
 * @user: whose it is: who made the first bridge of the counter; fixed
 * @lock: protects those below, up to @ended. Inside the locks of wait queues
 * @timer: ends a rest
 * @at: the processor where it waits or runs, or did last
 * @rests: @timer was started, and its function is not done; also read without the lock
 * @waits: for its turn at @at; also read without the lock
 * @runs: @func is called
 * @ended: it is not queued any more
 * @turn: of the first of each user that waits at @at; under the lock of that
 * @node: likewise
 * @same_user: all others of the user that wait at @at; likewise
 */
struct bridge_work {
	void (*func)(struct bridge_work *work);
	kuid_t user;
	raw_spinlock_t lock; /* of the work */
	struct timer_list timer;
	struct bridge_processor *at;
	bool rests;
	bool waits;
	bool runs;
	bool ended;
	struct list_head turn;
	struct rb_node node;
	struct list_head same_user;
};

/**
 * struct bridge_end - the connection with one eventfd
 * @lock: whoever adds, removes or uses the end in process context. Nobody has those of both
 *	ends of a counter
 * @eventfd: NULL: none. Changed under @lock and the lock of all bridges
 * @node: in a tree of all bridges while there is an @eventfd
 * @queue: wait queue of @eventfd, which the reference to it keeps
 * @at_eventfd: in @queue
 * @id: of @eventfd, as in its fdinfo, or BRIDGE_NO_ID; also read without a lock
 * @hung_up: the last file of @eventfd is gone; under the lock of @queue
 * @work: what cannot be done under the lock of a wait queue
 * @missed: @work found @lock taken
 */
struct bridge_end {
	struct mutex lock; /* of the end */
	struct eventfd_ctx *eventfd;
	struct rb_node node;
	wait_queue_head_t *queue;
	wait_queue_entry_t at_eventfd;
	int id;
	bool hung_up;
	struct bridge_work work;
	u32 missed;
};

/**
 * struct bridge_clock - what a round of a work item costs
 * @start: time at which it began, in ns
 * @ran: for how long the worker had run by then, in ns, at its last switch
 * @switches: how often the worker had lost its processor
 */
struct bridge_clock {
	u64 start;
	u64 ran;
	unsigned long switches;
};

/**
 * struct flowfd_bridge_state - the bridges of a counter
 * @counter: fixed
 * @source: its eventfd feeds the counter
 * @sink: its eventfd is signalled
 * @at_counter: in the counter's wait queue while there is a sink
 * @for_room: likewise, while the source waits for room in the counter
 * @waiting: taken from a source, and not added yet; under the counter's lock
 * @behind: the work item of the source moves its count, wakeups do not; likewise
 * @plain: the eventfd of the source is no semaphore, as it gave more than 1; likewise
 * @told: readers were woken since the sink looked last; likewise
 * @budget: of the source, and of those that the sink signals; likewise
 * @resting: the source rests; likewise
 * @grants: number of the last that began here; likewise
 * @shared_grant: the last one that another bridge handed on; likewise
 * @added: sum of what the source added; likewise
 * @added_by_others: of what others did, when the sink looked last; likewise
 * @mover: the work item of the sink, while it takes and signals; or NULL
 */
struct flowfd_bridge_state {
	struct flowfd_counter *counter;
	struct bridge_end source;
	struct bridge_end sink;
	wait_queue_entry_t at_counter;
	wait_queue_entry_t for_room;
	u64 waiting;
	bool behind;
	bool plain;
	bool told;
	struct bridge_budget budget;
	bool resting;
	u32 grants;
	unsigned long shared_grant;
	u64 added;
	u64 added_by_others;
	struct task_struct *mover;
};

/* Under the lock of the counter. */
static inline void bridge_join(struct flowfd_bridge_state *b, wait_queue_entry_t *entry)
{
	if (list_empty(&entry->entry))
		__add_wait_queue(&b->counter->wqh, entry);
}

/* Likewise. */
static inline void bridge_leave(wait_queue_entry_t *entry)
{
	list_del_init(&entry->entry);
}

/* bridge_graph.c */
int flowfd_bridge_link(struct flowfd_bridge_state *b, struct bridge_end *end,
		       struct eventfd_ctx *eventfd);
void flowfd_bridge_unlink(struct flowfd_bridge_state *b, struct bridge_end *end);

/* bridge_work.c */
int flowfd_bridge_init(void);
void flowfd_bridge_exit(void);
void flowfd_work_init(struct bridge_work *work, void (*func)(struct bridge_work *work));
void flowfd_work_queue(struct bridge_work *work, unsigned long ticks);
bool flowfd_work_rests(const struct bridge_work *work);
bool flowfd_work_is_due(const struct bridge_work *work);
void flowfd_work_end(struct bridge_work *work);

/* bridge_end.c */
bool flowfd_bridge_trylock(struct bridge_end *end);
void flowfd_bridge_unlock(struct bridge_end *end);
bool flowfd_bridge_is_hung_up(struct bridge_end *end);
int flowfd_bridge_attach(struct flowfd_bridge_state *b, struct bridge_end *end,
			 struct file *file);
void flowfd_bridge_detach(struct flowfd_bridge_state *b, struct bridge_end *end);

/* bridge_budget.c */
void flowfd_budget_grant(struct flowfd_bridge_state *b);
void flowfd_budget_grant_for_adds(struct flowfd_bridge_state *b);
bool flowfd_budget_share(struct flowfd_bridge_state *b,
			 const struct flowfd_bridge_state *before);
void flowfd_budget_begin(struct bridge_clock *clock);
void flowfd_budget_end(struct flowfd_bridge_state *b, const struct bridge_clock *clock);
void flowfd_budget_wake(struct flowfd_bridge_state *b);
unsigned long flowfd_budget_rest(struct flowfd_bridge_state *b);
unsigned long flowfd_budget_turn(struct flowfd_bridge_state *b);

/* bridge_source.c */
void flowfd_source_init(struct flowfd_bridge_state *b);
void flowfd_source_reap(struct flowfd_bridge_state *b);
void flowfd_source_start(struct flowfd_bridge_state *b);

/* bridge_sink.c */
void flowfd_sink_init(struct flowfd_bridge_state *b);
void flowfd_sink_start(struct flowfd_bridge_state *b);
bool flowfd_sink_moves(const struct flowfd_bridge_state *b);
const struct flowfd_bridge_state *flowfd_sink_at_work(const wait_queue_head_t *queue);

/* bridge.c */
long flowfd_bridge_control(struct file *file, const void __user *argp, size_t size);
void flowfd_bridge_show(struct seq_file *m, struct flowfd_counter *c);
void flowfd_bridge_free(struct flowfd_counter *c);

#endif /* FLOWFD_BRIDGE_H */
