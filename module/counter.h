/* SPDX-License-Identifier: GPL-2.0-only */
/* The counter: what is behind a descriptor that reads and writes as an eventfd. */
#ifndef FLOWFD_COUNTER_H
#define FLOWFD_COUNTER_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/wait.h>

#include "counter_stats.h"
#include "flowfd.h"
#include "objects.h"
#include "ready.h"
#include "store.h"
#include "trace.h"

struct flowfd_bridge_state;

/**
 * struct flowfd_counter - the state behind a counter's descriptor
 * @wqh: pollers; its lock protects the members below
 * @store: the count and the maximum
 * @events: what poll returns, but of a mapped counter; read without the lock
 * @busy: a task sleeps in read or write, or there are policies: then reads and writes leave
 *	their fast paths
 * @write_refused: a write failed with EAGAIN since pollers were last told of room
 * @sealed: 0, COUNTER_SEALED or COUNTER_SETTINGS_SEALED; only grows
 * @bridges: COUNTER_HAS_* bits
 * @stats: what is counted; behind the members above, most of which the fast paths change
 * @ready: when readers may be told of a count
 * @readers: tasks that sleep in read, in the order of their turns
 * @writers: tasks that sleep in write
 * @hooks: into the release of its file, see closing.c
 * @bridge: what bridge.c has of it, or NULL; set once, and cleared under the lock by release
 * @object: its references and creator; part of the list of all
 * @id: number shown in fdinfo; fixed
 *
 * A counter lives as long as its file. Nothing else points to it but @bridge; release
 * waits for the timer of @ready and the work items of @bridge, and ends @hooks. Its
 * memory stays while the list shows it.
 */
struct flowfd_counter {
	wait_queue_head_t wqh;
	struct store store;
	__poll_t events;
	bool busy;
	bool write_refused;
	u8 sealed;
	u8 bridges;
	struct counter_stats stats;
	struct ready ready;
	struct list_head readers;
	struct list_head writers;
	struct rb_root hooks;
	struct flowfd_bridge_state *bridge;
	struct flowfd_object object;
	u32 id;
};

/* It has its settings, and may not create others; and these cannot be changed any more. */
#define COUNTER_SEALED		1
#define COUNTER_SETTINGS_SEALED 2

/*
 * Bits of @bridges: there is a source, or something that it took still waits; there is a
 * sink.
 */
#define COUNTER_HAS_SOURCE 1
#define COUNTER_HAS_SINK   2

/* Between two eventfds a counter has no maximum: see docs/bridge.md. */
static inline bool bridges_allow_maximum(u8 bridges)
{
	return ~bridges & (COUNTER_HAS_SOURCE | COUNTER_HAS_SINK);
}

/**
 * struct flowfd_options - how a read or write is done
 * @nonblock: it must not sleep
 * @urgent: a write wakes readers at once
 * @end: when it stops sleeping, on CLOCK_MONOTONIC; KTIME_MAX: never
 */
struct flowfd_options {
	bool nonblock;
	bool urgent;
	ktime_t end;
};

/**
 * struct flowfd_sleeper - a task that sleeps in read or write
 * @node: in @readers or @writers of the counter
 * @task: the task, on whose stack this is
 * @priority: of the task when it came; less is more
 * @value: what a writer adds, or a reader was given
 * @result: of the call: 0 or a negative errno, -EBUSY to try again; or SLEEPER_SLEEPS
 */
struct flowfd_sleeper {
	struct list_head node;
	struct task_struct *task;
	int priority;
	u64 value;
	int result;
};

/* Of a sleeper whose call is not done; no errno. */
#define SLEEPER_SLEEPS 1

/*
 * Whether something polls, for whatever events. By a caller that has the lock, or is in the
 * queue.
 */
static inline bool counter_has_pollers(struct flowfd_counter *c)
{
	/* The queue grows under the lock only, so no barrier is needed. */
	return waitqueue_active(&c->wqh);
}

/* Whether something polls or a task sleeps in a read; under the lock. */
static inline bool counter_has_readers(struct flowfd_counter *c)
{
	return counter_has_pollers(c) || !list_empty(&c->readers);
}

/* Likewise, or a task sleeps in a write. Without the lock, what joins later is not seen. */
static inline bool counter_has_waiters(struct flowfd_counter *c)
{
	return counter_has_readers(c) || !list_empty(&c->writers);
}

/* Readers are there, and are not woken. */
static inline void counter_note_held_back(struct flowfd_counter *c, u32 reason)
{
	if (!counter_has_readers(c))
		return;
	c->stats.held_back++;
	trace_flowfd_held_back(c, reason);
}

/* Of a sleeper, sleeper.c counts the call, and the sleeper itself passes the tracepoint. */
static __always_inline void counter_note_write(struct flowfd_counter *c, u64 value)
{
	c->stats.writes++;
	trace_flowfd_write(c, value);
}

/* Likewise, of the count @before. */
static __always_inline void counter_note_read(struct flowfd_counter *c, u64 before,
					      u64 value)
{
	stats_take(&c->stats, before, value);
	trace_flowfd_read(c, value);
}

/* Readers are woken: pollers, or a task that slept and was given the count (@slept). */
static __always_inline void counter_note_wakeup(struct flowfd_counter *c, bool slept)
{
	c->stats.wakeups++;
	trace_flowfd_wakeup(c, slept);
}

/* After a change of what it stands for, under the lock. */
static inline void counter_set_busy(struct flowfd_counter *c)
{
	bool sleepers = !list_empty(&c->readers) || !list_empty(&c->writers);

	c->busy = sleepers || c->ready.flow.has_policies;
}

static inline u64 counter_count(const struct flowfd_counter *c)
{
	return store_count(&c->store);
}

/* All that was added is in the count, or was taken; under the lock. */
static inline u64 counter_produced(const struct flowfd_counter *c)
{
	return store_is_mapped(&c->store) ? atomic64_read(c->store.mapped->produced) :
					    c->stats.taken + c->store.count;
}

/* Whether a write that does not fit is lost by policy. */
static inline bool counter_loses(const struct flowfd_counter *c)
{
	return flow_loses(&c->ready.flow);
}

/* Programs count nothing in memory: what a call sees there is compared, too. */
static inline void counter_see_count(struct flowfd_counter *c)
{
	u64 count = c->store.count;

	/* One between the loads of the words was perhaps never there. One try is enough. */
	if (!store_is_mapped(&c->store) || mapped_try_count(c->store.mapped, &count))
		stats_see_count(&c->stats, count);
}

/* Whether readers are to know of a count. */
static inline bool counter_is_ready(struct flowfd_counter *c, u64 count)
{
	u64 maximum = store_maximum(&c->store);
	bool full = flow_is_full(&c->ready.flow, count, maximum);

	return ready_check(&c->ready, count, !list_empty(&c->writers) || full);
}

/*
 * Has the next add in memory notify, if a reader is there; under the lock. Not while
 * a wakeup is deferred: the timer does it, and until then producers shall make no calls.
 * Returns whether to look at the count again: it is one that programs change.
 */
static inline bool counter_arm_readers(struct flowfd_counter *c)
{
	if (!store_is_mapped(&c->store))
		return false;
	if (counter_has_readers(c) && !c->ready.bucket.deferred)
		mapped_arm(c->store.mapped, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
	return true;
}

/* Likewise for the next take. */
static inline bool counter_arm_writers(struct flowfd_counter *c)
{
	if (!store_is_mapped(&c->store))
		return false;
	if (counter_has_waiters(c))
		mapped_arm(c->store.mapped, FLOWFD_ARMED_WRITERS);
	return true;
}

/* counter_wake.c */
void flowfd_counter_wake(struct flowfd_counter *c, __poll_t events);
void flowfd_counter_wake_exclusive(struct flowfd_counter *c, __poll_t events);

/* sleeper.c */
bool flowfd_sleepers_go_on(struct flowfd_counter *c, bool writes);
void flowfd_writers_retry(struct flowfd_counter *c);
void flowfd_sleeper_join(struct flowfd_counter *c, struct flowfd_sleeper *s,
			 struct list_head *sleepers);
void flowfd_sleeper_sleep(struct flowfd_counter *c, struct flowfd_sleeper *s,
			  ktime_t end);

/* turns.c */
void flowfd_counter_settle(struct flowfd_counter *c, __poll_t news, bool past_bucket);
void flowfd_counter_heal(struct work_struct *work);
enum hrtimer_restart flowfd_counter_expired(struct hrtimer *timer);

/* counter_alloc.c */
int flowfd_counter_init(void);
void flowfd_counter_exit(void);
struct flowfd_counter *flowfd_counter_alloc(const struct flowfd_create_counter *args);
void flowfd_counter_free(struct flowfd_counter *c);
void flowfd_counter_put(struct flowfd_object *o);

/* counter.c */
int flowfd_counter_add(struct flowfd_counter *c, u64 value,
		       const struct flowfd_options *options);
int flowfd_counter_take(struct flowfd_counter *c, u64 *value,
			const struct flowfd_options *options);
bool flowfd_counter_takes_more(const struct flowfd_counter *c, u64 value);
int flowfd_counter_add_some(struct flowfd_counter *c, u64 *value);
void flowfd_counter_want_room(struct flowfd_counter *c);
void flowfd_counter_tell_readers(struct flowfd_counter *c);
int flowfd_counter_take_ready(struct flowfd_counter *c, u64 *value);

/* counter_io.c */
ssize_t flowfd_counter_read(struct file *file, char __user *buf, size_t size,
			    loff_t *pos);
ssize_t flowfd_counter_write(struct file *file, const char __user *buf, size_t size,
			     loff_t *pos);
ssize_t flowfd_counter_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t flowfd_counter_write_iter(struct kiocb *iocb, struct iov_iter *from);
__poll_t flowfd_counter_poll(struct file *file, poll_table *wait);

/* settings.c */
int flowfd_counter_set_up(struct flowfd_counter *c,
			  const struct flowfd_create_counter *args);
int flowfd_counter_set_flow(struct flowfd_counter *c, const struct flowfd_flow *args);
void flowfd_counter_get_flow(struct flowfd_counter *c, struct flowfd_flow *answer);

/* counter_control.c */
int flowfd_counter_args(struct flowfd_create_counter *args, u32 flags,
			const void __user *argp, size_t size);
long flowfd_counter_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* counter_file.c */
extern const struct file_operations flowfd_counter_fops;
extern const struct flowfd_object_ops flowfd_counter_object_ops;
int flowfd_counter_open(struct file *file);
long flowfd_counter_create(const void __user *argp, size_t size);
struct flowfd_counter *flowfd_counter_of(const struct file *file);

#endif /* FLOWFD_COUNTER_H */
