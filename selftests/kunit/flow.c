// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of marks, delay and overflow (module/flow.h), built by the compiler of
 * this kernel with its checks. userspace/tests/flow.c covers longer times, and the token
 * bucket beside it.
 */
#include "count.h"
#include "flow.h"
#include "kunit.h"

#define ROUNDS 200
#define STEPS 500

static void flow_without_settings(struct kunit *test)
{
	struct flow f;

	flow_init(&f);
	KUNIT_EXPECT_FALSE(test, flow_is_ready(&f, 0));
	KUNIT_EXPECT_TRUE(test, flow_is_ready(&f, 1));
	KUNIT_EXPECT_TRUE(test, flow_is_ready(&f, U64_MAX));
	KUNIT_EXPECT_FALSE(test, flow_needs_due(&f));
	KUNIT_EXPECT_FALSE(test, flow_expire(&f, S64_MAX));
	KUNIT_EXPECT_FALSE(test, flow_loses(&f));
	KUNIT_EXPECT_EQ(test, f.write_mark, 1ULL);
}

/* All delays, at the first and the last moments: nothing wraps. */
static void flow_delay_is_neither_early_nor_late(struct kunit *test)
{
	const u64 delays[] = { 1, 2, NSEC_PER_SEC, FLOWFD_MAX_DELAY_MAX };
	const u64 times[] = { 1, NSEC_PER_SEC, S64_MAX };
	int i, j;

	for (i = 0; i < ARRAY_SIZE(delays); i++)
		for (j = 0; j < ARRAY_SIZE(times); j++) {
			struct flow f = { .read_mark = 2, .max_delay = delays[i] };
			u64 end = times[j] + delays[i];

			KUNIT_EXPECT_TRUE(test, flow_needs_due(&f));
			flow_begin(&f, times[j]);
			KUNIT_EXPECT_FALSE(test, flow_needs_due(&f));
			KUNIT_EXPECT_FALSE(test, flow_expire(&f, end - 1));
			KUNIT_EXPECT_FALSE(test, flow_is_ready(&f, 1));
			KUNIT_EXPECT_TRUE(test, flow_expire(&f, end));
			KUNIT_EXPECT_TRUE(test, flow_is_ready(&f, 1));
			KUNIT_EXPECT_FALSE(test, flow_expire(&f, end));
			flow_restart(&f);
			KUNIT_EXPECT_FALSE(test, flow_is_ready(&f, 1));
			flow_begin(&f, times[j]);
			flow_restart(&f);
			KUNIT_EXPECT_FALSE(test, flow_expire(&f, end));
		}
}

static void flow_lost_stops_at_its_end(struct kunit *test)
{
	struct rnd_state random;
	int i, j;

	random_start(&random);
	for (i = 0; i < ROUNDS; i++) {
		struct flow f = {};
		wide lost = 0;

		for (j = 0; j < STEPS; j++) {
			u64 value = random_bits(&random, 64);

			flow_lose(&f, value);
			lost = min(lost + value, (wide)U64_MAX);
			KUNIT_ASSERT_EQ(test, f.lost, (u64)lost);
		}
	}
}

/* What fits has room, and 1 more has not. */
static void flow_fitting_fills_the_counter(struct kunit *test)
{
	struct rnd_state random;
	int i;

	random_start(&random);
	for (i = 0; i < ROUNDS * STEPS; i++) {
		u64 maximum = max(random_bits(&random, 64), 1ULL);
		u64 count = maximum - min(random_bits(&random, 64), maximum);
		u64 value = random_bits(&random, 64);
		u64 fits = flow_fitting(count, maximum, value);

		KUNIT_ASSERT_LE(test, fits, value);
		if (fits)
			KUNIT_ASSERT_TRUE(test, count_has_room(count, maximum, fits));
		if (fits < value)
			KUNIT_ASSERT_FALSE(test,
					   count_has_room(count, maximum, fits + 1));
	}
	KUNIT_EXPECT_EQ(test, flow_fitting(U64_MAX, 1, 1), 0ULL);
}

/* A reference that has no timer: it knows what was done since the last take. */
struct reference {
	wide count;
	wide left_zero; /* when the count did */
	bool forced;
};

static bool reference_is_ready(const struct reference *r, const struct flow *f, u64 now)
{
	if (!r->count)
		return false;
	if (r->forced || r->count >= f->read_mark)
		return true;
	return f->max_delay && now >= r->left_zero + f->max_delay;
}

/* Adds, takes or only looks; now and then something forces the count to be ready. */
static void flow_step(struct rnd_state *random, struct flow *f, struct reference *r,
		      u64 now)
{
	u32 what = prandom_u32_state(random) % 16;

	flow_expire(f, now);
	if (what < 2) {
		r->count = 0;
		r->forced = false;
		flow_restart(f);
	} else if (what < 10) {
		if (!r->count)
			r->left_zero = now;
		r->count += random_bits(random, 40);
	} else if (what == 10 && r->count) {
		r->forced = true;
		f->forced = true;
	}
	if (r->count && !flow_is_ready(f, r->count) && flow_needs_due(f))
		flow_begin(f, now);
}

static void flow_as_the_reference(struct kunit *test)
{
	struct rnd_state random;
	int i, j;

	random_start(&random);
	for (i = 0; i < ROUNDS; i++) {
		struct flow f = { .read_mark = random_bits(&random, 44) + 1 };
		struct reference r = {};
		u64 now = 1;

		if (i % 4)
			f.max_delay = min(random_bits(&random, 42), FLOWFD_MAX_DELAY_MAX);
		for (j = 0; j < STEPS; j++) {
			flow_step(&random, &f, &r, now);
			KUNIT_ASSERT_EQ_MSG(test, reference_is_ready(&r, &f, now),
					    flow_is_ready(&f, r.count),
					    "%llu, mark %llu, delay %llu, at %llu",
					    (u64)r.count, f.read_mark, f.max_delay, now);
			now += random_bits(&random, 42);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(flow_without_settings),
	KUNIT_CASE(flow_delay_is_neither_early_nor_late),
	KUNIT_CASE(flow_lost_stops_at_its_end),
	KUNIT_CASE(flow_fitting_fills_the_counter),
	KUNIT_CASE(flow_as_the_reference),
	{}
};

struct kunit_suite flow_suite = {
	.name = "flowfd_flow",
	.test_cases = cases,
};
