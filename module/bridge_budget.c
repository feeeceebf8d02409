// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the source of a bridge may do while no program is there: docs/bridge.md, "How often
 * it is done". All but the clock of a round is under the lock of the counter.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/sched.h>

#include "bridge.h"

/* How many bridges rest now. */
static atomic_t budget_resting = ATOMIC_INIT(0);

/**
 * flowfd_budget_grant - a program or device was there: begin anew
 * @b: state
 */
void flowfd_budget_grant(struct flowfd_bridge_state *b)
{
	struct bridge_budget *budget = &b->budget;

	lockdep_assert_held(&b->counter->wqh.lock);

	budget_grant(budget, 0, 0);
	/* Who sees it finds what belongs to it: see flowfd_budget_share(). */
	smp_store_release(&budget->grant,
			  ((unsigned long)b->counter->id << (BITS_PER_LONG / 2)) +
				  ++b->grants);
}

/**
 * flowfd_budget_grant_for_adds - the same if others than the source added to the counter
 * @b: state, of which the sink takes
 */
void flowfd_budget_grant_for_adds(struct flowfd_bridge_state *b)
{
	struct flowfd_counter *c = b->counter;
	u64 others;

	lockdep_assert_held(&c->wqh.lock);

	others = counter_produced(c) - b->added;
	if (others == b->added_by_others)
		return;
	b->added_by_others = others;
	flowfd_budget_grant(b);
}

/**
 * flowfd_budget_share - another bridge signalled: go on as slowly
 * @b: state
 * @before: state of the other one, whose work item runs
 *
 * A grant is for all bridges of a chain, once for each.
 *
 * Return: whether there is a new one.
 */
bool flowfd_budget_share(struct flowfd_bridge_state *b,
			 const struct flowfd_bridge_state *before)
{
	struct bridge_budget theirs;

	lockdep_assert_held(&b->counter->wqh.lock);

	/* Under another lock. What was done for an older grant must not be taken for this. */
	theirs.grant = smp_load_acquire(&before->budget.grant);
	/* May be more meanwhile. */
	theirs.turns = data_race(before->budget.turns);
	/* Likewise. */
	theirs.rest = data_race(before->budget.rest);
	if (theirs.grant != b->shared_grant) {
		b->shared_grant = theirs.grant;
		budget_grant(&b->budget, theirs.turns, theirs.rest);
		/* For the next in the chain. */
		smp_store_release(&b->budget.grant, theirs.grant);
		return true;
	}
	if (theirs.grant == b->budget.grant)
		budget_follow(&b->budget, theirs.turns, theirs.rest);
	return false;
}

/**
 * flowfd_budget_begin - a work item begins a round
 * @clock: of this round
 */
void flowfd_budget_begin(struct bridge_clock *clock)
{
	clock->switches = current->nvcsw + current->nivcsw;
	clock->ran = current->se.sum_exec_runtime;
	clock->start = ktime_get_ns();
}

/**
 * flowfd_budget_end - a round has ended, which counts for the budget
 * @b: state
 * @clock: of this round
 */
void flowfd_budget_end(struct flowfd_bridge_state *b, const struct bridge_clock *clock)
{
	u64 took = ktime_get_ns() - clock->start;

	/* The processor was taken from it, which is not the fault of this bridge. */
	if (clock->switches != current->nvcsw + current->nivcsw)
		took = min(took, current->se.sum_exec_runtime - clock->ran);
	spin_lock_irq(&b->counter->wqh.lock);
	b->budget.spent += took;
	spin_unlock_irq(&b->counter->wqh.lock);
}

/**
 * flowfd_budget_wake - the source rests no longer
 * @b: state
 */
void flowfd_budget_wake(struct flowfd_bridge_state *b)
{
	if (b->resting)
		atomic_dec(&budget_resting);
	b->resting = false;
}

/**
 * flowfd_budget_rest - how long to rest, longer each time
 * @b: state
 *
 * Return: ticks of the kernel, a second at most; more if its rounds need so much.
 */
unsigned long flowfd_budget_rest(struct flowfd_bridge_state *b)
{
	struct bridge_budget *budget = &b->budget;
	unsigned long ticks;
	unsigned int all;

	lockdep_assert_held(&b->counter->wqh.lock);

	flowfd_budget_wake(b);
	b->resting = true;
	all = atomic_inc_return(&budget_resting);
	ticks = nsecs_to_jiffies(budget_rest(budget, HZ, all));
	return max(budget->rest, ticks);
}

/**
 * flowfd_budget_turn - how long to rest before a turn that another bridge or the counter's
 *	own sink caused
 * @b: state
 *
 * Return: as flowfd_budget_rest(); 0 for the first turns of a grant.
 */
unsigned long flowfd_budget_turn(struct flowfd_bridge_state *b)
{
	return budget_has_turn(&b->budget) ? 0 : flowfd_budget_rest(b);
}
