// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the source of a bridge may do while no program is there: docs/bridge.md, "How often
 * it is done". All of it is under the lock of the counter.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "bridge.h"

/*
 * How often room made by the counter's own sink is used at once. What an eventfd has can
 * be almost 2^64 times what fits, and nobody needs to be there while both ends move it.
 */
#define BUDGET_TURNS 256

/* Likewise, in ns of the work items: a turn can wake very many epolls. Else it takes some us. */
#define BUDGET_NS (16 * NSEC_PER_MSEC)

/* Bridges that are left alone have a processor for this part of the time, together. */
#define BUDGET_PART 100

/* The longest rest, in seconds. */
#define BUDGET_REST_MAX 64ULL

/* What the last round of each bridge that rests now took, in ns, summed. */
static atomic64_t budget_resting = ATOMIC64_INIT(0);

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
	/* Likewise. */
	theirs.spent = data_race(before->budget.spent);
	if (theirs.grant != b->shared_grant) {
		b->shared_grant = theirs.grant;
		b->budget.turns = theirs.turns;
		b->budget.rest = theirs.rest;
		b->budget.spent = theirs.spent;
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
 * flowfd_budget_spend - a work item has run
 * @b: state
 * @ns: for so long; more if the processor was taken from it, which nobody can tell
 */
void flowfd_budget_spend(struct flowfd_bridge_state *b, u64 ns)
{
	spin_lock_irq(&b->counter->wqh.lock);
	b->budget.spent += ns;
	spin_unlock_irq(&b->counter->wqh.lock);
}

/**
 * flowfd_budget_wake - the source rests no longer
 * @b: state
 */
void flowfd_budget_wake(struct flowfd_bridge_state *b)
{
	if (!b->resting)
		return;
	atomic64_sub(b->resting, &budget_resting);
	b->resting = 0;
}

/**
 * flowfd_budget_rest - how long to rest, longer each time
 * @b: state
 *
 * So long that all who rest have their part of the time together, however much a round of
 * each takes.
 *
 * Return: ticks of the kernel, a second at most; more if that part is used up.
 */
unsigned long flowfd_budget_rest(struct flowfd_bridge_state *b)
{
	struct bridge_budget *budget = &b->budget;
	u64 ns;

	lockdep_assert_held(&b->counter->wqh.lock);

	flowfd_budget_wake(b);
	/* What comes before the first rest was granted. */
	if (budget->rest)
		b->resting = budget->spent;
	budget->spent = 0;
	ns = atomic64_add_return(b->resting, &budget_resting) * BUDGET_PART;
	budget->rest = min(2 * budget->rest + 1, (unsigned long)HZ);
	return max(budget->rest, nsecs_to_jiffies(min(ns, BUDGET_REST_MAX * NSEC_PER_SEC)));
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
