// SPDX-License-Identifier: GPL-2.0-only
/*
 * The token bucket's arithmetic (module/bucket.h) against a reference that
 * keeps the credit itself, in 128 bits, through years of virtual time.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "bucket.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define YEAR (365 * 24 * 3600 * SECOND)

/* A token costs @interval of credit; credit grows with time up to @full. */
struct reference {
	unsigned __int128 credit;
	unsigned __int128 full;
	uint64_t interval;
	uint64_t time;
};

static void reference_init(struct reference *r, uint32_t capacity,
			   uint32_t rate)
{
	r->interval = (SECOND + rate - 1) / rate;
	r->full = (unsigned __int128)capacity * r->interval;
	r->credit = r->full;
	r->time = 0;
}

static bool reference_take(struct reference *r, uint64_t now)
{
	r->credit += now - r->time;
	r->time = now;
	if (r->credit > r->full)
		r->credit = r->full;
	if (r->credit < r->interval)
		return false;
	r->credit -= r->interval;
	return true;
}

static uint64_t random64(void)
{
	return (uint64_t)mrand48() << 32 | (uint32_t)mrand48();
}

/* Each number of bits is equally likely, so that small values are frequent. */
static uint64_t random_below_2_to(int bits)
{
	return random64() >> (64 - 1 - random64() % bits);
}

static uint32_t take_all(struct bucket *b, uint64_t now, uint32_t most)
{
	uint32_t taken = 0;

	while (taken < most && bucket_take(b, now))
		taken++;
	return taken;
}

static void test_burst(void)
{
	struct bucket b;

	bucket_init(&b, 5, 1000);
	tap_is(take_all(&b, SECOND, 100), 5, "the burst equals the capacity");
	tap_is(bucket_due(&b), SECOND + SECOND / 1000,
	       "the next token is due one interval later");
	tap_ok(!bucket_take(&b, bucket_due(&b) - 1), "not a nanosecond before");
	tap_ok(bucket_take(&b, bucket_due(&b)), "and then it is there");

	bucket_init(&b, 1, 1);
	tap_is(take_all(&b, 0, 100), 1, "a capacity of 1 is no burst");
	tap_is(bucket_due(&b), SECOND, "1 per second");
}

static void test_off(void)
{
	struct bucket b;

	bucket_init(&b, 7, 0);
	tap_ok(!bucket_is_limited(&b), "a rate of 0 is no limit");
	bucket_init(&b, 1, SECOND);
	tap_ok(bucket_is_limited(&b), "the highest rate is one");
	tap_is(b.interval, 1, "of a token per nanosecond");
}

/* The refill of the original patch lost credit at each look. */
static void test_steady_writer(void)
{
	struct bucket b;
	uint32_t taken = 0;

	bucket_init(&b, 1, 1000);
	for (uint64_t now = SECOND; now < 2 * SECOND; now += 1000)
		taken += bucket_take(&b, now);
	tap_is(taken, 1000,
	       "a writer that asks every microsecond earns tokens");
}

static void test_rate_is_never_exceeded(void)
{
	static const uint32_t rates[] = {1, 3, 7, 999, 1001, 333333, 70000000};
	bool within = true;

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		uint64_t now = YEAR, end = now + 1000 * SECOND;
		uint32_t taken = 0, most = 1000000;
		struct bucket b;

		bucket_init(&b, 1, rates[i]);
		for (; now < end && taken < most; now = bucket_due(&b))
			taken += bucket_take(&b, now);
		now -= YEAR;
		within &=
			taken <= (unsigned __int128)now * rates[i] / SECOND + 1;
	}
	tap_ok(within, "rates that do not divide a second are not exceeded");
}

static void test_years_of_idleness(void)
{
	static const uint32_t rates[] = {1, 1000, SECOND};
	bool full = true;

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		for (uint64_t years = 1; years < 290; years += 17) {
			struct bucket b;

			bucket_init(&b, 3, rates[i]);
			full &= take_all(&b, SECOND, 9) == 3;
			full &= take_all(&b, years * YEAR, 9) == 3;

			/* A large one lacks one token then, if time × rate does not wrap. */
			bucket_init(&b, UINT32_MAX, rates[i]);
			full &= bucket_take(&b, SECOND) && bucket_take(&b, years * YEAR);
			full &= b.virtual_time == years * YEAR + b.interval;
		}
	}
	tap_ok(full, "after years a bucket is full and not fuller");
}

static bool same_as_reference(uint32_t capacity, uint32_t rate, int steps)
{
	uint64_t now = random_below_2_to(62);
	struct reference r;
	struct bucket b;

	bucket_init(&b, capacity, rate);
	reference_init(&r, capacity, rate);
	while (steps-- && now < INT64_MAX / 2) {
		bool taken = bucket_take(&b, now);

		if (taken != reference_take(&r, now))
			return false;
		if (!taken && random64() % 2)
			now = bucket_due(&b) - random64() % 2;
		else
			now += random_below_2_to(random64() % 8 ? 20 : 56);
	}
	return true;
}

static void test_against_reference(void)
{
	static const uint32_t edges[] = {1, 2, 1000, SECOND - 1, SECOND};
	bool same = true;

	for (int round = 0; round < 20000; round++) {
		uint32_t capacity = random_below_2_to(32) | 1;
		uint32_t rate = random_below_2_to(29) | 1;

		if (round % 4 == 0)
			rate = edges[random64() % 5];
		if (round % 8 == 0)
			capacity = UINT32_MAX;
		same &= same_as_reference(capacity, rate, 200);
	}
	tap_ok(same, "4 million random decisions are those of the reference");
}

static void test_largest_settings(void)
{
	uint64_t now = INT64_MAX;
	struct bucket b;

	bucket_init(&b, UINT32_MAX, 1);
	tap_ok(bucket_take(&b, now), "the largest capacity at the end of time");
	tap_is(take_all(&b, now, 1000), 1000, "gives as many as are asked for");
	b.virtual_time = now + (uint64_t)UINT32_MAX * SECOND;
	tap_ok(!bucket_take(&b, now), "and is empty in the end");
	tap_ok(bucket_due(&b) - now == SECOND, "until one interval later");
}

int main(void)
{
	srand48(1);
	test_burst();
	test_off();
	test_steady_writer();
	test_rate_is_never_exceeded();
	test_years_of_idleness();
	test_against_reference();
	test_largest_settings();
	return tap_done();
}
