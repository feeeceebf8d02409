// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of a bridge's budget (module/budget.h): how long one rests that is left
 * alone, through weeks of virtual time.
 */
#include <stdint.h>

#include "budget.h"
#include "tests/tap.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)

/* Ticks in a second, as on Debian. */
#define HZ 250

/* A grant was used, and the bridge has rested for a second. */
static struct bridge_budget rested(void)
{
	return (struct bridge_budget){.turns = BUDGET_TURNS, .rest = HZ};
}

/* A round that took so long, and the rest after it. */
static uint64_t rest_after(struct bridge_budget *budget, uint64_t spent, unsigned int all)
{
	uint64_t ns, ticks;

	budget->spent += spent;
	ns = budget_rest(budget, HZ, all);
	ticks = budget->rest * (SECOND / HZ);
	return ns > ticks ? ns : ticks;
}

static void test_grant(void)
{
	struct bridge_budget budget = {.spent = 5};
	int turns = 0;

	budget_grant(&budget, 0, 0);
	while (budget_has_turn(&budget) && turns <= BUDGET_TURNS)
		turns++;
	tap_is(turns, BUDGET_TURNS, "a grant is for 256 turns");
	tap_ok(!budget_has_turn(&budget), "and for no more");
	budget_grant(&budget, 0, 0);
	for (turns = 0; budget_has_turn(&budget); turns++)
		budget.spent += 100 * MS;
	tap_is(turns, 3, "or for 256 ms");
}

static void test_rests(void)
{
	static const unsigned long ticks[] = {1, 3, 7, 15, 31, 63, 127, 250, 250};
	struct bridge_budget budget = {.spent = 256 * MS};
	bool same = true;

	tap_is(budget_rest(&budget, HZ, 1), 0, "what was granted costs no rest");
	for (size_t i = 0; i < sizeof(ticks) / sizeof(*ticks); i++) {
		same &= budget.rest == ticks[i];
		budget_rest(&budget, HZ, 1);
	}
	tap_ok(same, "each rest is twice as long as the one before, up to a second");
	tap_is(budget_rest(&budget, HZ, 1), 500 * US, "a round counts as 5 us at least");
}

/* How many ns in a second this number of bridges run, if each of their rounds takes so long. */
static uint64_t load(uint64_t round, unsigned int all)
{
	struct bridge_budget budget = rested();

	for (int i = 0; i < 20; i++)
		rest_after(&budget, round, all);
	return all * round * SECOND / (rest_after(&budget, round, all) + round);
}

static void test_load(void)
{
	tap_ok(load(5 * US, 1) <= 10 * MS, "one has a hundredth of a processor at most");
	tap_ok(load(15 * MS, 1) <= 10 * MS, "also if its rounds are long");
	tap_ok(load(5 * US, 10000) <= 10 * MS, "as have 10,000 together");
	tap_ok(load(15 * MS, 10000) <= 10 * MS, "also if their rounds are long");
	tap_ok(load(200 * MS, 1) <= 10 * MS, "and if they are very long");
	tap_ok(load(200 * MS, 1000) <= 10 * MS, "those of 1,000, too");
	tap_ok(load(5 * US, 500000) <= 40 * MS, "500,000 have four hundredths");
}

static void test_longest_rest(void)
{
	struct bridge_budget budget = rested();

	tap_ok(rest_after(&budget, 5 * US, UINT32_MAX) == 69 * SECOND,
	       "no rest of a cheap bridge is longer than 69 s");
	for (int i = 0; i < 20; i++)
		rest_after(&budget, 10 * SECOND, 500000);
	tap_ok(rest_after(&budget, 10 * SECOND, 500000) == 86400 * SECOND,
	       "and none is longer than a day");
}

/* The machine was stopped for an hour, which is not the fault of the bridge. */
static void test_stop(void)
{
	struct bridge_budget budget = rested();

	rest_after(&budget, 5 * US, 1);
	tap_is(rest_after(&budget, 3600 * SECOND, 1), 2 * SECOND,
	       "a stop of the machine counts as 20 ms");
	tap_is(rest_after(&budget, 5 * US, 1), SECOND, "and once");
}

/* Every fourth round is long: rests are for these, too. */
static void test_some_long_rounds(void)
{
	struct bridge_budget budget = rested();
	uint64_t rest = 0;

	for (int i = 0; i < 40; i++)
		rest = rest_after(&budget, i % 4 == 3 ? 200 * MS : 5 * US, 1);
	tap_is(rest, 20 * SECOND, "rounds that are long now and then count in full");
}

/* In a chain, a rest is handed on, and there are turns nevertheless. */
static void test_grant_after_a_rest(void)
{
	struct bridge_budget budget = {0};

	budget_grant(&budget, 0, HZ);
	while (budget_has_turn(&budget))
		budget.spent += 80 * US;
	tap_ok(rest_after(&budget, 0, 10000) <= 144 * SECOND,
	       "turns of a grant do not count for the round after them");
	budget_grant(&budget, 0, HZ);
	while (budget_has_turn(&budget))
		budget.spent += 20 * MS;
	tap_ok(rest_after(&budget, 80 * US, 10000) <= 144 * SECOND,
	       "nor does the time of a grant");
	budget_grant(&budget, 0, HZ);
	for (int i = 0; i < 100 && budget_has_turn(&budget); i++)
		budget.spent += 200 * US;
	budget_follow(&budget, BUDGET_TURNS, HZ);
	tap_ok(rest_after(&budget, 80 * US, 10000) <= 144 * SECOND,
	       "nor what was done before another one ends them");
	budget.spent = 80 * US;
	budget_follow(&budget, BUDGET_TURNS, HZ);
	tap_is(budget.spent, 80 * US, "which it does once");
}

int main(void)
{
	test_grant();
	test_rests();
	test_load();
	test_longest_rest();
	test_stop();
	test_some_long_rounds();
	test_grant_after_a_rest();
	return tap_done();
}
