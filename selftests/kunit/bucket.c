// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of the token bucket (module/bucket.h), built by the compiler of this
 * kernel with its checks. userspace/tests/bucket.c covers longer times.
 */
#include "bucket.h"
#include "kunit.h"

#define ROUNDS 200
#define STEPS 500

static const u32 numbers[] = { 1, 2, 3, 1000, 999999999, 1000000000, U32_MAX };

static u32 take_all(struct bucket *b, u64 now, u32 most)
{
	u32 taken = 0;

	while (taken < most && bucket_take(b, now))
		taken++;
	return taken;
}

static void bucket_without_a_rate(struct kunit *test)
{
	struct bucket b;

	bucket_init(&b, 0, 0);
	KUNIT_EXPECT_FALSE(test, bucket_is_limited(&b));
	KUNIT_EXPECT_EQ(test, take_all(&b, 0, 1000), 1000);
}

static void bucket_burst_is_the_capacity(struct kunit *test)
{
	struct bucket b;
	int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		u32 burst = min(numbers[i], 1000000U);

		bucket_init(&b, burst, 1);
		KUNIT_EXPECT_TRUE(test, bucket_is_limited(&b));
		KUNIT_EXPECT_EQ(test, take_all(&b, NSEC_PER_SEC, U32_MAX),
				burst);
	}
}

/* All settings, at the first and the last moments: nothing wraps. */
static void bucket_next_token_is_not_early(struct kunit *test)
{
	const u64 times[] = { 0, 1, NSEC_PER_SEC, S64_MAX - NSEC_PER_SEC };
	int i, j, k;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		for (j = 0; j < ARRAY_SIZE(numbers); j++)
			for (k = 0; k < ARRAY_SIZE(times); k++) {
				struct bucket b;

				bucket_init(&b, numbers[i], numbers[j]);
				KUNIT_EXPECT_GE(test, (u64)b.interval * numbers[j],
						NSEC_PER_SEC);
				KUNIT_EXPECT_LT(test, bucket_tolerance(&b), 1ULL << 62);
				KUNIT_EXPECT_TRUE(test,
						  bucket_take(&b, times[k]));
				/* The same state as if all tokens had been taken. */
				b.virtual_time = times[k] + bucket_tolerance(&b) +
						 b.interval;
				KUNIT_EXPECT_EQ(test, bucket_due(&b),
						times[k] + b.interval);
				KUNIT_EXPECT_FALSE(test,
						   bucket_take(&b,
							       bucket_due(&b) - 1));
				KUNIT_EXPECT_TRUE(test,
						  bucket_take(&b,
							      bucket_due(&b)));
			}
}

/* A reference: the bucket as credit that grows with time up to @full. */
struct reference {
	wide credit;
	wide full;
	u64 interval;
	u64 time;
};

static bool reference_take(struct reference *r, u64 now)
{
	r->credit = min(r->credit + (now - r->time), r->full);
	r->time = now;
	if (r->credit < r->interval)
		return false;
	r->credit -= r->interval;
	return true;
}

static void bucket_as_credit(struct kunit *test)
{
	struct rnd_state random;
	int i, j;

	random_start(&random);
	for (i = 0; i < ROUNDS; i++) {
		u32 capacity = max(random_bits(&random, 32), 1ULL);
		u32 rate = clamp(random_bits(&random, 32), 1ULL, 1000000000ULL);
		struct reference r = {};
		struct bucket b;

		bucket_init(&b, capacity, rate);
		r.interval = DIV_ROUND_UP_ULL(NSEC_PER_SEC, rate);
		r.full = (wide)capacity * r.interval;
		r.credit = r.full;
		for (j = 0; j < STEPS; j++) {
			u64 now = r.time + random_bits(&random, 40);
			bool taken = reference_take(&r, now);

			KUNIT_ASSERT_EQ_MSG(test, taken, bucket_take(&b, now),
					    "capacity %u, rate %u, at %llu",
					    capacity, rate, now);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(bucket_without_a_rate),
	KUNIT_CASE(bucket_burst_is_the_capacity),
	KUNIT_CASE(bucket_next_token_is_not_early),
	KUNIT_CASE(bucket_as_credit),
	{}
};

struct kunit_suite bucket_suite = {
	.name = "flowfd_bucket",
	.test_cases = cases,
};
