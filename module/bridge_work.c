// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the ends of bridges do outside of the locks of wait queues. On each processor one
 * work item of the kernel does it for all: for one end of each user in turn, so that
 * whoever has very many bridges does not keep others from theirs.
 */
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/smp.h>
#include <linux/wait_bit.h>

#include "bridge.h"
#include "compat.h"
#include "outer_user.h"

/**
 * struct bridge_processor - the work that waits for a processor
 * @lock: protects the list and the tree; innermost
 * @turns: the first work of each user, in the order in which they are served
 * @users: the same, by user
 * @server: does one work, and queues itself again
 */
struct bridge_processor {
	raw_spinlock_t lock; /* innermost */
	struct list_head turns;
	struct rb_root users;
	struct work_struct server;
};

static DEFINE_PER_CPU(struct bridge_processor, bridge_processors);

/*
 * Not WQ_FREEZABLE: the release of a counter waits for its work. Not one of the
 * system's: what it signals may be an answer that reclaiming memory waits for.
 *
 * Per processor: the worker that signals an irqfd then carries out KVM's work item as
 * well, and of all that programs keep busy one runs at a time on each processor. The server
 * does one work and goes behind those work items that others have queued meanwhile. Not
 * WQ_HIGHPRI: nobody is charged for the work, and a program with a low priority could have
 * it done before that of all others.
 *
 * No work sleeps for another. On PREEMPT_RT it does for the lock of a wait queue, which a
 * task may have that seldom runs. A sleep for a lock does not tell the workqueue to go on
 * with another worker, so there the work counts as intensive: others go on beside it.
 */
static struct workqueue_struct *bridge_workqueue;

/* Takes its place behind all others of its user, or is the first and gets a turn. */
static void work_insert(struct bridge_processor *p, struct bridge_work *work)
{
	struct rb_node **at = &p->users.rb_node, *parent = NULL;
	struct bridge_work *first;

	while (*at) {
		parent = *at;
		first = rb_entry(parent, struct bridge_work, node);
		if (uid_eq(work->user, first->user)) {
			list_add_tail(&work->same_user, &first->same_user);
			return;
		}
		at = uid_lt(work->user, first->user) ? &parent->rb_left :
						       &parent->rb_right;
	}
	rb_link_node(&work->node, parent, at);
	rb_insert_color(&work->node, &p->users);
	list_add_tail(&work->turn, &p->turns);
}

/* The next one of its user gets its turn. */
static void work_remove(struct bridge_processor *p, struct bridge_work *work)
{
	struct bridge_work *next = list_next_entry(work, same_user);

	if (!RB_EMPTY_NODE(&work->node) && next != work) {
		rb_replace_node(&work->node, &next->node, &p->users);
		list_replace_init(&work->turn, &next->turn);
	} else if (!RB_EMPTY_NODE(&work->node)) {
		rb_erase(&work->node, &p->users);
		list_del_init(&work->turn);
	}
	RB_CLEAR_NODE(&work->node);
	list_del_init(&work->same_user);
}

/* Under the lock of the processor: the server has not begun with it. */
static bool work_is_inserted(const struct bridge_work *work)
{
	return !RB_EMPTY_NODE(&work->node) || !list_empty(&work->same_user);
}

/*
 * Under the lock of the work, which does not wait yet. On this processor, or behind itself
 * on the one where it runs: that server looks again afterwards.
 */
static void work_enter(struct bridge_work *work)
{
	if (!work->runs)
		work->at = this_cpu_ptr(&bridge_processors);
	WRITE_ONCE(work->waits, true);
	raw_spin_lock(&work->at->lock);
	work_insert(work->at, work);
	raw_spin_unlock(&work->at->lock);
	if (!work->runs)
		queue_work(bridge_workqueue, &work->at->server);
}

/*
 * Likewise, after a rest. On this processor: from 6.9 on, another one may look at the timers
 * of one that idles, and would do the work then. With nohz_full it is left alone, and the
 * rest goes to another one. No processor may go before its timer is started, as it would not
 * expire: interrupts are off. One that goes later leaves its timers and work to others.
 */
static void work_rest(struct bridge_work *work, unsigned long ticks)
{
	int cpu = smp_processor_id();

	WRITE_ONCE(work->rests, true);
	work->timer.expires = jiffies + ticks;
	if (!housekeeping_cpu(cpu, HK_TYPE_TIMER))
		cpu = housekeeping_any_cpu(HK_TYPE_TIMER);
	/* One of them is always there, to keep the time. */
	add_timer_on(&work->timer, cpu);
}

/**
 * flowfd_work_queue - have the work done
 * @work: of an end
 * @ticks: of the kernel, to wait before; 0 also ends the wait of an earlier call
 *
 * In any context. Does nothing if it waits already: then it is not put behind others.
 */
void flowfd_work_queue(struct bridge_work *work, unsigned long ticks)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&work->lock, flags);
	if (work->waits || work->ended)
		goto unlock;
	if (!ticks) {
		/*
		 * If it expires now, it still rests, so that no other processor starts the
		 * timer before its function is done: that ends the next rest, if there is
		 * one by then.
		 */
		if (timer_delete(&work->timer))
			WRITE_ONCE(work->rests, false);
		work_enter(work);
	} else if (!work->rests) {
		work_rest(work, ticks);
	}
unlock:
	raw_spin_unlock_irqrestore(&work->lock, flags);
}

static void work_timer_expired(struct timer_list *timer)
{
	struct bridge_work *work = container_of(timer, struct bridge_work, timer);
	unsigned long flags;

	raw_spin_lock_irqsave(&work->lock, flags);
	WRITE_ONCE(work->rests, false);
	if (!work->waits && !work->ended)
		work_enter(work);
	raw_spin_unlock_irqrestore(&work->lock, flags);
}

/**
 * flowfd_work_rests - whether it waits for a time
 * @work: of an end
 */
bool flowfd_work_rests(const struct bridge_work *work)
{
	return READ_ONCE(work->rests);
}

/**
 * flowfd_work_is_due - whether it waits for a time, or for others
 * @work: of an end
 */
bool flowfd_work_is_due(const struct bridge_work *work)
{
	return READ_ONCE(work->waits) || flowfd_work_rests(work);
}

/* What was queued before it runs is done now, and what is queued from here on is done again. */
static void work_run(struct bridge_work *work)
{
	bool ended;

	raw_spin_lock_irq(&work->lock);
	WRITE_ONCE(work->waits, false);
	work->runs = true;
	raw_spin_unlock_irq(&work->lock);
	work->func(work);
	raw_spin_lock_irq(&work->lock);
	work->runs = false;
	ended = work->ended;
	raw_spin_unlock_irq(&work->lock);
	/* It may be freed now: this is only an address. Who waits looked under the lock. */
	if (ended)
		wake_up_var(work);
}

static void bridge_serve(struct work_struct *server)
{
	struct bridge_processor *p =
		container_of(server, struct bridge_processor, server);
	struct bridge_work *work;

	raw_spin_lock_irq(&p->lock);
	work = list_first_entry_or_null(&p->turns, struct bridge_work, turn);
	if (work) {
		/* The next of its user is behind one of each other user. */
		list_move_tail(&work->turn, &p->turns);
		work_remove(p, work);
	}
	raw_spin_unlock_irq(&p->lock);
	if (!work)
		return;
	work_run(work);
	if (!list_empty(&p->turns))
		queue_work(bridge_workqueue, &p->server);
}

/* While it waits, but was removed from the list, the server is about to run it. */
static bool work_is_over(struct bridge_work *work)
{
	bool over;

	raw_spin_lock_irq(&work->lock);
	over = !work->waits && !work->runs;
	raw_spin_unlock_irq(&work->lock);
	return over;
}

/**
 * flowfd_work_end - do it no more, and wait until it is not done
 * @work: of an end; may be freed afterwards
 *
 * Waits for no other work.
 */
void flowfd_work_end(struct bridge_work *work)
{
	raw_spin_lock_irq(&work->lock);
	work->ended = true;
	if (work->waits) {
		raw_spin_lock(&work->at->lock);
		if (work_is_inserted(work)) {
			work_remove(work->at, work);
			WRITE_ONCE(work->waits, false);
		}
		raw_spin_unlock(&work->at->lock);
	}
	raw_spin_unlock_irq(&work->lock);
	timer_delete_sync(&work->timer);
	wait_var_event(work, work_is_over(work));
}

/**
 * flowfd_work_init - nothing is to be done yet
 * @work: of a new end, which belongs to the user who calls
 * @func: does it
 */
void flowfd_work_init(struct bridge_work *work, void (*func)(struct bridge_work *work))
{
	work->func = func;
	work->user = outer_user();
	raw_spin_lock_init(&work->lock);
	timer_setup(&work->timer, work_timer_expired, 0);
	RB_CLEAR_NODE(&work->node);
	INIT_LIST_HEAD(&work->turn);
	INIT_LIST_HEAD(&work->same_user);
}

/**
 * flowfd_bridge_init - make what all bridges share
 *
 * Return: 0 or -ENOMEM.
 */
int flowfd_bridge_init(void)
{
	unsigned int flags = WQ_PERCPU | WQ_MEM_RECLAIM;
	struct bridge_processor *p;
	int cpu;

	for_each_possible_cpu(cpu) {
		p = per_cpu_ptr(&bridge_processors, cpu);
		raw_spin_lock_init(&p->lock);
		INIT_LIST_HEAD(&p->turns);
		p->users = RB_ROOT;
		INIT_WORK(&p->server, bridge_serve);
	}
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		flags |= WQ_CPU_INTENSIVE;
	bridge_workqueue = alloc_workqueue("flowfd_bridge", flags, 1);
	return bridge_workqueue ? 0 : -ENOMEM;
}

/** flowfd_bridge_exit - the last counter is gone */
void flowfd_bridge_exit(void)
{
	destroy_workqueue(bridge_workqueue);
}
