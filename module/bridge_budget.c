// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the source of a bridge may do while no program is there: docs/bridge.md, "How often
 * it is done". All of it is under the lock of the counter.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "bridge.h"

/*
 * How often room made by the counter's own sink is used at once. What an eventfd has can
 * be almost 2^64 times what fits, and nobody needs to be there while both ends move it.
 */
#define BUDGET_TURNS 256

/* So many bridges may each be left alone with a round in a second. With twice as many, in two. */
#define BUDGET_ALONE 4096

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
 * flowfd_budget_rest - how long to rest, longer each time
 * @b: state
 *
 * Return: ticks of the kernel, a second at most; more if there are very many bridges.
 */
unsigned long flowfd_budget_rest(struct flowfd_bridge_state *b)
{
	unsigned long seconds = max(flowfd_bridge_count() / BUDGET_ALONE, 1UL);

	b->budget.rest = min(2 * b->budget.rest + 1, seconds * HZ);
	return b->budget.rest;
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
	if (b->budget.turns >= BUDGET_TURNS)
		return flowfd_budget_rest(b);
	b->budget.turns++;
	return 0;
}
