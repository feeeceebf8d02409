// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tasks that sleep in read or write of a counter: their place in its wait queue, and
 * which of them a wakeup wakes. All of it is under the lock of the wait queue.
 */
#include <linux/lockdep.h>
#include <linux/sched/signal.h>

#include "count.h"
#include "counter.h"

/*
 * A task that sleeps in read or write. It is woken only when it can proceed; eventfd
 * wakes all sleepers for each change.
 */
struct sleeper {
	struct wait_queue_entry entry;
	struct flowfd_counter *counter;
	__poll_t event; /* EPOLLIN: a reader; EPOLLOUT: a writer */
	u64 value;	/* what the writer adds */
};

/* The same of a mapped counter, where the answer can change at any moment. */
static bool sleeper_can_try(const struct sleeper *s)
{
	const struct flowfd_mapped *m = s->counter->mapped;

	if (s->event == EPOLLIN)
		return mapped_count(m);
	return mapped_has_room(m, s->value) || !count_can_fit(m->maximum, s->value);
}

/* A writer whose value can never fit proceeds as well, to return an error. */
static bool sleeper_can_proceed(const struct sleeper *s)
{
	const struct flowfd_counter *c = s->counter;

	if (unlikely(c->mapped))
		return sleeper_can_try(s);
	if (s->event == EPOLLIN)
		return c->count;
	return count_has_room(c->count, c->maximum, s->value) ||
	       !count_can_fit(c->maximum, s->value);
}

static int sleeper_wake(struct wait_queue_entry *entry, unsigned int mode, int sync,
			void *key);

/*
 * Adds a sleeper behind earlier ones, and all of them before exclusive pollers, which
 * are at the tail: a wakeup ends at the first exclusive entry that it woke. In constant
 * time, because any number of tasks may sleep and interrupts are off.
 */
static void sleeper_join(struct sleeper *s)
{
	struct flowfd_counter *c = s->counter;

	list_add(&s->entry.entry, c->last_sleeper ?: &c->wqh.head);
	c->last_sleeper = &s->entry.entry;
}

/* False for a poller, and at the end of the queue. Sleepers stand together in it. */
static bool list_is_sleeper(const struct flowfd_counter *c, const struct list_head *at)
{
	return !list_is_head(at, &c->wqh.head) &&
	       list_entry(at, wait_queue_entry_t, entry)->func == sleeper_wake;
}

static void sleeper_leave(struct sleeper *s)
{
	struct flowfd_counter *c = s->counter;
	struct list_head *before = s->entry.entry.prev;

	if (c->last_sleeper == &s->entry.entry)
		c->last_sleeper = list_is_sleeper(c, before) ? before : NULL;
	list_del_init(&s->entry.entry);
}

/* A task that runs already, because of a signal, stays in the queue and leaves it. */
static int sleeper_wake(struct wait_queue_entry *entry, unsigned int mode, int sync,
			void *key)
{
	struct sleeper *s = container_of(entry, struct sleeper, entry);
	int woken;

	if (!(key_to_poll(key) & s->event) || !sleeper_can_proceed(s))
		return 0;
	woken = default_wake_function(entry, mode, sync, key);
	if (woken)
		sleeper_leave(s);
	return woken;
}

/* The one that sleeps longest, or the head of the queue. */
static struct list_head *sleepers_begin(struct flowfd_counter *c)
{
	struct list_head *at = c->last_sleeper ?: &c->wqh.head;

	while (list_is_sleeper(c, at) && list_is_sleeper(c, at->prev))
		at = at->prev;
	return at;
}

/**
 * flowfd_sleepers_wake - wake sleepers in read or write, and no pollers
 * @c: locked counter
 * @events: what happened
 */
void flowfd_sleepers_wake(struct flowfd_counter *c, __poll_t events)
{
	struct list_head *at = sleepers_begin(c), *next;

	lockdep_assert_held(&c->wqh.lock);

	for (; list_is_sleeper(c, at); at = next) {
		next = at->next;
		flowfd_counter_wake_one(list_entry(at, wait_queue_entry_t, entry),
					events);
	}
}

/**
 * flowfd_sleepers_wake_exclusive - wake sleepers and one exclusive poller
 * @c: locked counter
 * @events: what happened
 */
void flowfd_sleepers_wake_exclusive(struct flowfd_counter *c, __poll_t events)
{
	wait_queue_entry_t *entry, *next;

	lockdep_assert_held(&c->wqh.lock);

	list_for_each_entry_safe(entry, next, &c->wqh.head, entry) {
		if (entry->func != sleeper_wake && !(entry->flags & WQ_FLAG_EXCLUSIVE))
			continue;
		if (flowfd_counter_wake_one(entry, events))
			break;
	}
}

/**
 * flowfd_sleepers_want - whether a task sleeps for something
 * @c: locked counter
 * @event: EPOLLIN: a reader; EPOLLOUT: a writer
 */
bool flowfd_sleepers_want(const struct flowfd_counter *c, __poll_t event)
{
	const struct list_head *at;

	for (at = c->last_sleeper; at && list_is_sleeper(c, at); at = at->prev) {
		if (container_of(at, struct sleeper, entry.entry)->event == event)
			return true;
	}
	return false;
}

/* Has programs call the kernel, and then looks: true if there is no need to sleep. */
static bool sleeper_arm(const struct sleeper *s)
{
	struct flowfd_counter *c = s->counter;

	if (s->event == EPOLLIN)
		counter_arm_readers(c);
	else
		mapped_arm(c->mapped, FLOWFD_ARMED_WRITERS);
	return sleeper_can_try(s);
}

/**
 * flowfd_sleeper_wait - sleep until the caller can proceed
 * @c: locked counter; the lock is released meanwhile
 * @event: EPOLLIN: there is a count; EPOLLOUT: there is room
 * @value: what a writer adds
 *
 * do_wait_intr_irq() does not add an entry that is in the queue.
 *
 * Return: 0; 1 if it did not sleep, because a program changed the count of a mapped
 * counter meanwhile; or -ERESTARTSYS for a signal. Others may be faster than the caller
 * of a mapped counter, which must try again then.
 */
int flowfd_sleeper_wait(struct flowfd_counter *c, __poll_t event, u64 value)
{
	struct sleeper s = { .counter = c, .event = event, .value = value };
	int err;

	init_wait(&s.entry);
	s.entry.func = sleeper_wake;
	do {
		if (list_empty(&s.entry.entry))
			sleeper_join(&s);
		err = c->mapped && sleeper_arm(&s);
		if (err)
			break;
		err = do_wait_intr_irq(&c->wqh, &s.entry);
	} while (!err && !sleeper_can_proceed(&s));
	if (!list_empty(&s.entry.entry))
		sleeper_leave(&s);
	__set_current_state(TASK_RUNNING);
	return err;
}
