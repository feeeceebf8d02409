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

/*
 * How often room made by the counter's own sink is used at once. What an eventfd has can
 * be almost 2^64 times what fits, and nobody needs to be there while both ends move it.
 */
#define BUDGET_TURNS 256

/* Likewise, in ns of the work items: a turn can wake very many epolls. Else it takes some us. */
#define BUDGET_NS (256 * NSEC_PER_MSEC)

/* Bridges that are left alone have a processor for this part of the time, together. */
#define BUDGET_PART 100

/*
 * The longest rest, in ns: so that whoever has very many bridges does not stop those of all
 * others, it is a minute where a round costs little.
 */
#define BUDGET_REST_MAX(round) (64ULL * NSEC_PER_SEC + 1000000ULL * (round))

/*
 * A round does not count for less, in ns: timer and workqueue are not measured. Nor for more:
 * the machine may have been stopped meanwhile.
 */
#define BUDGET_ROUND_MIN (5 * NSEC_PER_USEC)
#define BUDGET_ROUND_MAX (20 * NSEC_PER_MSEC)

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

	budget->turns = 0;
	budget->rest = 0;
	budget->spent = 0;
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
		b->budget.turns = theirs.turns;
		b->budget.rest = theirs.rest;
		b->budget.spent = 0;
		/* For the next in the chain. */
		smp_store_release(&b->budget.grant, theirs.grant);
		return true;
	}
	if (theirs.grant == b->budget.grant) {
		b->budget.turns = max(theirs.turns, b->budget.turns);
		b->budget.rest = max(theirs.rest, b->budget.rest);
	}
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
 * A hundred times as long as the last round took; and once rests are long, each of N that
 * rest has the N-th part of that time. So nobody rests for what the rounds of others cost.
 *
 * Return: ticks of the kernel, a second at most; more if its rounds need so much.
 */
unsigned long flowfd_budget_rest(struct flowfd_bridge_state *b)
{
	struct bridge_budget *budget = &b->budget;
	unsigned long ticks;
	u64 round = 0, ns;
	int all;

	lockdep_assert_held(&b->counter->wqh.lock);

	flowfd_budget_wake(b);
	b->resting = true;
	all = atomic_inc_return(&budget_resting);
	/* What comes before the first rest was granted. */
	if (budget->rest)
		round = clamp_t(u64, budget->spent, BUDGET_ROUND_MIN, BUDGET_ROUND_MAX);
	budget->spent = 0;
	ns = round * BUDGET_PART;
	if (budget->rest >= HZ)
		ns = min_t(u64, ns * all, BUDGET_REST_MAX(round));
	ticks = nsecs_to_jiffies(ns);
	budget->rest = min(2 * budget->rest + 1, (unsigned long)HZ);
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
	struct bridge_budget *budget = &b->budget;

	if (budget->turns < BUDGET_TURNS && budget->spent < BUDGET_NS) {
		budget->turns++;
		return 0;
	}
	/* Now what it spends is that of a round. */
	budget->turns = BUDGET_TURNS;
	return flowfd_budget_rest(b);
}
