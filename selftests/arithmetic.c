// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bucket's arithmetic, taken from the module's own header and run through
 * years of virtual time beside a bucket that counts its credit in 128 bits.
 * Needs no module.
 */
#include "selftest.h"

#include "../module/bucket.h"

#define SECOND 1000000000ULL
#define YEAR (365 * 24 * 3600 * SECOND)

/* Credit in ns: a token is worth an interval, the bucket holds capacity. */
struct ledger {
	__u64 interval;
	unsigned __int128 limit;
	unsigned __int128 credit;
	__u64 time;
};

static struct ledger ledger_of(__u32 capacity, __u32 rate, __u64 now)
{
	__u64 interval = (SECOND + rate - 1) / rate;
	unsigned __int128 limit = (unsigned __int128)capacity * interval;

	return (struct ledger){ interval, limit, limit, now };
}

static bool ledger_take(struct ledger *l, __u64 now)
{
	l->credit += now - l->time;
	l->time = now;
	if (l->credit > l->limit)
		l->credit = l->limit;
	if (l->credit < l->interval)
		return false;
	l->credit -= l->interval;
	return true;
}

static __u64 random_up_to(unsigned int *seed, __u64 limit)
{
	__u64 r = (__u64)rand_r(seed) << 31 | rand_r(seed);

	return r % (limit + 1);
}

/* Mostly short steps, now and then a very long one. */
static __u64 random_step(unsigned int *seed, __u64 interval)
{
	switch (rand_r(seed) % 50) {
	case 0:
		return random_up_to(seed, YEAR / 1000);
	case 1:
		return 20 * SECOND;
	case 2:
		return interval;
	case 3:
		return interval - 1;
	case 4:
		return 0;
	default:
		return random_up_to(seed, interval);
	}
}

TEST(same_as_a_ledger)
{
	static const __u32 capacities[] = { 1, 2, 3, 10, 1000, UINT_MAX };
	static const __u32 rates[] = { 1, 3, 7, 100, 1000, 999999999,
				       FLOWFD_TOKEN_RATE_MAX };
	unsigned int seed = 1;

	for (size_t c = 0; c < ARRAY_SIZE(capacities); c++) {
		for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
			__u64 now = random_up_to(&seed, YEAR);
			struct ledger l = ledger_of(capacities[c], rates[r],
						    now);
			struct bucket b;

			bucket_init(&b, capacities[c], rates[r]);
			for (int i = 0; i < 5000; i++) {
				bool expected = ledger_take(&l, now);

				ASSERT_EQ(expected, bucket_take(&b, now))
					TH_LOG("capacity %u rate %u step %d",
					       capacities[c], rates[r], i);
				now += random_step(&seed, l.interval);
			}
		}
	}
}

/* The time that it names is exactly the first at which there is a token. */
TEST(due_is_exact)
{
	unsigned int seed = 1;

	for (int i = 0; i < 10000; i++) {
		__u32 capacity = 1 + rand_r(&seed) % 20;
		__u32 rate = 1 + random_up_to(&seed, SECOND - 1);
		__u64 now = random_up_to(&seed, 100 * YEAR);
		struct bucket b, early;
		__u64 due;

		bucket_init(&b, capacity, rate);
		for (__u32 n = 0; n < capacity; n++) {
			ASSERT_TRUE(bucket_take(&b, now));
		}
		ASSERT_FALSE(bucket_take(&b, now));
		due = bucket_due(&b);
		ASSERT_EQ(now + (SECOND + rate - 1) / rate, due);
		early = b;
		ASSERT_FALSE(bucket_take(&early, due - 1));
		ASSERT_TRUE(bucket_take(&b, due));
	}
}

static void expect_full(struct __test_metadata *_metadata, struct bucket *b,
			__u64 now, int capacity)
{
	for (int n = 0; n < capacity; n++) {
		ASSERT_TRUE(bucket_take(b, now));
	}
	ASSERT_FALSE(bucket_take(b, now));
}

/*
 * Time multiplied by rate, as in the patch that proposed the bucket, is too
 * large for 64 bits after 18.446744073 seconds at the highest rate.
 */
TEST(idle_for_long_at_the_highest_rate)
{
	static const __u64 idle[] = { 20 * SECOND, 40 * SECOND, 3600 * SECOND,
				      YEAR, 100 * YEAR };
	struct bucket b;
	__u64 now = SECOND;

	bucket_init(&b, 5, FLOWFD_TOKEN_RATE_MAX);
	for (int more = -20; more < 20; more++) {
		now += 18446744073 + more;
		expect_full(_metadata, &b, now, 5);
	}
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		now += idle[i];
		expect_full(_metadata, &b, now, 5);
	}
}

TEST(rate_is_never_exceeded)
{
	static const __u32 rates[] = { 3, 7, 999, 300000007, 999999999 };

	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		__u64 interval = (SECOND + rates[r] - 1) / rates[r];
		__u64 tokens = 0, step = interval / 3 + 1, now;
		struct bucket b;

		bucket_init(&b, 4, rates[r]);
		for (now = 0; now < 30000 * interval; now += step)
			tokens += bucket_take(&b, SECOND + now);
		EXPECT_GE(4 + (unsigned __int128)now * rates[r] / SECOND,
			  tokens);
		EXPECT_LE(now / interval, tokens);
	}
}

TEST(no_rate_is_no_limit)
{
	struct bucket b;

	bucket_init(&b, 5, 0);
	EXPECT_FALSE(bucket_is_limited(&b));
	bucket_init(&b, UINT_MAX, 1);
	EXPECT_TRUE(bucket_is_limited(&b));
}

TEST_HARNESS_MAIN
