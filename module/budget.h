/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of a bridge's budget, without kernel types so that a host test can run it
 * through years of virtual time. Whoever calls holds the lock that protects it. What a
 * bridge may do while no program is there: docs/bridge.md, "How often it is done".
 */
#ifndef FLOWFD_BUDGET_H
#define FLOWFD_BUDGET_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <linux/types.h>
#endif

/*
 * How often room made by the counter's own sink is used at once. What an eventfd has can
 * be almost 2^64 times what fits, and nobody needs to be there while both ends move it.
 */
#define BUDGET_TURNS 256

/* Likewise, in ns of the work items: a turn can wake very many epolls. Else it takes some us. */
#define BUDGET_NS (256 * 1000000ULL)

/* Bridges that are left alone have a processor for this part of the time, together. */
#define BUDGET_PART 100

/*
 * The longest rest, in ns: so that whoever has very many bridges does not stop those of all
 * others, it is a minute where a round costs little; and a day.
 */
#define BUDGET_REST_CHEAP  (64 * 1000000000ULL)
#define BUDGET_REST_ROUNDS 1000000ULL
#define BUDGET_REST_MAX	   (86400 * 1000000000ULL)

/* A round does not count for less, in ns: timer and workqueue are not measured. */
#define BUDGET_ROUND_MIN (5 * 1000ULL)

/*
 * One that is longer, in ns, counts in full only after others that were half as long: the
 * machine may have been stopped meanwhile.
 */
#define BUDGET_ROUND_LONG (20 * 1000000ULL)

/**
 * struct bridge_budget - what a source has done without a program
 * @grant: for which act of a program or device: counter and number; 0: for none
 * @turns: how often it moved something since then, as the counter's own sink made room or
 *	another bridge signalled
 * @rest: ticks that it rested for last, or would have if its rounds cost nothing
 * @spent: ns that its work, that of the counter's sink, or wakeups by the counter's timer took
 *	since the last rest, or since then if there was none
 * @longest: ns that one of its rounds counted for, since the grant
 */
struct bridge_budget {
	unsigned long grant;
	unsigned int turns;
	unsigned long rest;
	__u64 spent;
	__u64 longest;
};

/* A grant, of which @turns were used for a rest of @rest; 0 both for a new one. */
static inline void budget_grant(struct bridge_budget *budget, unsigned int turns,
				unsigned long rest)
{
	budget->turns = turns;
	budget->rest = rest;
	budget->spent = 0;
	budget->longest = 0;
}

/* What is spent after the last turn is that of a round; before that, it was granted. */
static inline void budget_use_turns(struct bridge_budget *budget, unsigned int turns)
{
	if (turns <= budget->turns)
		return;
	budget->turns = turns;
	if (turns == BUDGET_TURNS)
		budget->spent = 0;
}

/* Goes on as slowly as another one that has the same grant, or slower. */
static inline void budget_follow(struct bridge_budget *budget, unsigned int turns,
				 unsigned long rest)
{
	budget_use_turns(budget, turns);
	if (rest > budget->rest)
		budget->rest = rest;
}

/* Whether a turn is one of those that a grant is for. */
static inline bool budget_has_turn(struct bridge_budget *budget)
{
	if (budget->turns == BUDGET_TURNS)
		return false;
	if (budget->spent < BUDGET_NS) {
		budget_use_turns(budget, budget->turns + 1);
		return true;
	}
	budget_use_turns(budget, BUDGET_TURNS);
	return false;
}

/* What counts of the last round, in ns. */
static inline __u64 budget_end_round(struct bridge_budget *budget)
{
	__u64 round = budget->spent, most = 2 * budget->longest;

	budget->spent = 0;
	/* What comes before the first rest was granted. */
	if (!budget->rest)
		return 0;
	if (round < BUDGET_ROUND_MIN)
		return BUDGET_ROUND_MIN;
	if (most < BUDGET_ROUND_LONG)
		most = BUDGET_ROUND_LONG;
	if (round > most)
		round = most;
	if (round > budget->longest)
		budget->longest = round;
	return round;
}

/* How many ns a bridge rests for a round, if as many as @all do. */
static inline __u64 budget_rest_of_many(__u64 round, unsigned int all)
{
	__u64 ns = round * BUDGET_PART * all;
	__u64 most = BUDGET_REST_CHEAP + round * BUDGET_REST_ROUNDS;

	if (most > BUDGET_REST_MAX)
		most = BUDGET_REST_MAX;
	return ns < most ? ns : most;
}

/*
 * Begins a rest: @budget->rest ticks, longer each time, up to a @second. Returns how many
 * ns it is at least, for what its last round cost: a hundred times as long, and once rests
 * are long, each of @all that rest has its part of that time. So nobody rests for what the
 * rounds of others cost.
 */
static inline __u64 budget_rest(struct bridge_budget *budget, unsigned long second,
				unsigned int all)
{
	__u64 round = budget_end_round(budget);
	bool is_long = budget->rest >= second;

	budget->rest = 2 * budget->rest + 1;
	if (budget->rest > second)
		budget->rest = second;
	return budget_rest_of_many(round, is_long ? all : 1);
}

#endif /* FLOWFD_BUDGET_H */
