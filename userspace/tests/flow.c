// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of marks, delay and overflow (module/flow.h), alone and with the token
 * bucket (module/bucket.h), against a reference in 128 bits through years of virtual time.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "bucket.h"
#include "flow.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define YEAR (365 * 24 * 3600 * SECOND)

/* Sums in this type cannot wrap. */
typedef unsigned __int128 wide;

#define NEVER ((wide)1 << 100)

static uint64_t random64(void)
{
	return (uint64_t)mrand48() << 32 | (uint32_t)mrand48();
}

/* Each number of bits is equally likely, so that small values are frequent. */
static uint64_t random_below_2_to(int bits)
{
	return random64() >> (64 - 1 - random64() % bits);
}

static uint64_t random_up_to(uint64_t most)
{
	uint64_t value = random_below_2_to(64);

	return value < most ? value : most;
}

static wide smaller(wide a, wide b)
{
	return a < b ? a : b;
}

static wide greater(wide a, wide b)
{
	return a > b ? a : b;
}

static void test_as_eventfd(void)
{
	struct flow f;

	flow_init(&f);
	tap_ok(!flow_is_ready(&f, 0), "without settings 0 is not ready");
	tap_ok(flow_is_ready(&f, 1), "and 1 is");
	tap_ok(!flow_needs_due(&f), "there is no delay");
	tap_ok(!flow_expire(&f, INT64_MAX), "and none that passes");
	tap_ok(!flow_loses(&f), "nothing is lost");
	tap_is(f.write_mark, 1, "poll reports room for 1");
}

static void test_mark(void)
{
	static const uint64_t marks[] = {
		1, 2, 64, UINT32_MAX, INT64_MAX, UINT64_MAX - 1,
	};
	bool below = false, at = true, above = true, empty = false;

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		struct flow f = {.read_mark = marks[i]};

		empty |= flow_is_ready(&f, 0);
		below |= flow_is_ready(&f, marks[i] - 1);
		at &= flow_is_ready(&f, marks[i]);
		above &= flow_is_ready(&f, UINT64_MAX);
	}
	tap_ok(!empty, "0 is below every mark");
	tap_ok(!below, "a count below the mark is not ready");
	tap_ok(at, "at the mark it is");
	tap_ok(above, "and so is the highest");
}

static void test_forced(void)
{
	struct flow f = {.read_mark = 10, .forced = true};

	tap_ok(!flow_is_ready(&f, 0), "0 cannot be forced to be ready");
	tap_ok(flow_is_ready(&f, 1), "1 can, below the mark");
	flow_restart(&f);
	tap_ok(!flow_is_ready(&f, 9), "until the count is taken");
	tap_ok(flow_is_ready(&f, 10), "the mark remains");
}

static void test_delay(void)
{
	struct flow f = {.read_mark = 10, .max_delay = 5 * SECOND};

	tap_ok(flow_needs_due(&f), "a delay has to begin");
	flow_begin(&f, YEAR);
	tap_ok(!flow_needs_due(&f), "and begins once");
	tap_ok(!flow_expire(&f, YEAR), "it has not passed at once");
	tap_ok(!flow_expire(&f, YEAR + 5 * SECOND - 1), "nor a nanosecond before");
	tap_ok(!flow_is_ready(&f, 9), "and the count is not ready");
	tap_ok(flow_expire(&f, YEAR + 5 * SECOND), "then it has");
	tap_ok(flow_is_ready(&f, 1), "and the count is ready");
	tap_ok(!flow_expire(&f, 2 * YEAR), "it passes once");
	flow_restart(&f);
	tap_ok(!flow_is_ready(&f, 1), "what comes after a take is not ready");
	tap_ok(flow_needs_due(&f), "and has a delay of its own");
	flow_begin(&f, 2 * YEAR);
	flow_restart(&f);
	tap_ok(!flow_expire(&f, 3 * YEAR), "a take ends the delay");
}

/* Nothing wraps at the last moment for which the clock is made. */
static void test_largest_delay(void)
{
	struct flow f = {.read_mark = 2, .max_delay = FLOWFD_MAX_DELAY_MAX};

	flow_begin(&f, INT64_MAX);
	tap_ok((wide)f.due == (wide)INT64_MAX + FLOWFD_MAX_DELAY_MAX,
	       "the longest delay at the end of time");
	tap_ok(!flow_expire(&f, INT64_MAX), "has not passed");
	f.due = 0;
	f.max_delay = 1;
	flow_begin(&f, 1);
	tap_ok(!flow_expire(&f, 1), "the shortest lasts");
	tap_ok(flow_expire(&f, 2), "a nanosecond");
}

static void test_policies(void)
{
	static const bool loses[] = {
		[FLOWFD_OVERFLOW_WAIT] = false,
		[FLOWFD_OVERFLOW_FAIL] = false,
		[FLOWFD_OVERFLOW_SATURATE] = true,
		[FLOWFD_OVERFLOW_DROP] = true,
	};
	bool same = true;

	for (uint32_t i = 0; i < sizeof(loses) / sizeof(*loses); i++) {
		struct flow f = {.overflow = i};

		same &= flow_loses(&f) == loses[i];
	}
	tap_ok(same, "saturate and drop lose, wait and fail do not");
}

static void test_lost(void)
{
	struct flow f = {.lost = UINT64_MAX - 10};
	bool same = true;

	flow_lose(&f, 0);
	tap_ok(f.lost == UINT64_MAX - 10, "nothing is lost of 0");
	flow_lose(&f, 10);
	tap_ok(f.lost == UINT64_MAX, "the sum reaches its highest value");
	flow_lose(&f, 1);
	tap_ok(f.lost == UINT64_MAX, "and stops there");
	flow_lose(&f, UINT64_MAX);
	tap_ok(f.lost == UINT64_MAX, "for good");

	for (int round = 0; round < 20000; round++) {
		wide lost = 0;

		f.lost = 0;
		for (int i = 0; i < 100; i++) {
			uint64_t value = random_below_2_to(64);

			flow_lose(&f, value);
			lost = smaller(lost + value, UINT64_MAX);
			same &= f.lost == lost;
		}
	}
	tap_ok(same, "2 million random sums are those of 128 bits");
}

static uint64_t fitting_in_128_bits(wide count, wide maximum, wide value)
{
	if (count + 1 >= maximum)
		return 0;
	return smaller(value, maximum - 1 - count);
}

static void test_fitting(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 9, 10, INT64_MAX, UINT64_MAX - 1, UINT64_MAX,
	};
	const size_t n = sizeof(edges) / sizeof(*edges);
	bool same = true;

	for (size_t i = 0; i < n * n * n; i++) {
		uint64_t count = edges[i % n], maximum = edges[i / n % n];
		uint64_t value = edges[i / n / n];

		same &= flow_fitting(count, maximum, value) ==
			fitting_in_128_bits(count, maximum, value);
	}
	tap_ok(same, "what fits, at the edges");
	tap_is(flow_fitting(3, 10, 100), 6, "a count stays below its maximum");
	tap_is(flow_fitting(12, 10, 1), 0, "nothing fits above it");

	same = true;
	for (int i = 0; i < 1000000; i++) {
		uint64_t maximum = random_below_2_to(64) | 1;
		uint64_t count = maximum - random_up_to(maximum);
		uint64_t value = maximum - count + random64() % 5 - 2;

		same &= flow_fitting(count, maximum, value) ==
			fitting_in_128_bits(count, maximum, value);
	}
	tap_ok(same, "a million values near the room that is left");
}

/*
 * A counter whose reader sleeps all the time, and takes all when it is woken. It uses the
 * arithmetic as the module does, with a timer that is always in time.
 */
struct counter {
	struct flow flow;
	struct bucket bucket;
	uint64_t maximum;
	uint64_t count;
	bool deferred;
	uint64_t wakeups;
	uint64_t woken; /* when the last one was */
	wide taken;
};

static void counter_wake(struct counter *c, uint64_t now)
{
	c->wakeups++;
	c->woken = now;
	c->taken += c->count;
	c->count = 0;
	c->deferred = false;
	flow_restart(&c->flow);
}

/* After an add, or when the timer expired. */
static void counter_look(struct counter *c, uint64_t now)
{
	if (!flow_is_ready(&c->flow, c->count)) {
		if (c->count && flow_needs_due(&c->flow))
			flow_begin(&c->flow, now);
		return;
	}
	if (!bucket_is_limited(&c->bucket) || bucket_take(&c->bucket, now))
		counter_wake(c, now);
	else
		c->deferred = true;
}

/* When the timer expires; 0: never. */
static uint64_t counter_timer(const struct counter *c)
{
	return c->deferred ? bucket_due(&c->bucket) : c->flow.due;
}

/* At most for the delay, and then for a token. */
static void counter_run(struct counter *c, uint64_t now)
{
	for (int i = 0; i < 2 && counter_timer(c) && counter_timer(c) <= now; i++) {
		uint64_t then = counter_timer(c);

		flow_expire(&c->flow, then);
		counter_look(c, then);
	}
}

static void counter_write(struct counter *c, uint64_t now, uint64_t value, bool urgent)
{
	uint64_t fits = value;

	counter_run(c, now);
	if (c->maximum - c->count <= value) {
		fits = c->flow.overflow == FLOWFD_OVERFLOW_SATURATE ?
			       flow_fitting(c->count, c->maximum, value) :
			       0;
		if (flow_loses(&c->flow))
			flow_lose(&c->flow, value - fits);
		urgent = false;
		c->flow.forced |= c->count || fits;
	}
	c->count += fits;
	c->flow.forced |= urgent && c->count;
	if (urgent && c->count)
		counter_wake(c, now);
	else
		counter_look(c, now);
}

/*
 * The reference has no timer: it knows at any time when the reader will be woken if
 * nothing else happens. A token costs @interval of credit; credit grows with time up to
 * @full.
 */
struct reference {
	struct flowfd_flow set;
	wide credit;
	wide full;
	wide interval; /* 0: no bucket */
	wide time;     /* of @credit */
	wide count;
	wide left_zero; /* when the count did */
	wide ready;	/* when the mark was reached, or something forced it */
	wide lost;
	wide taken;
	wide wakeups;
	wide woken;
};

static void reference_wake(struct reference *r, wide now, bool pays)
{
	r->credit = smaller(r->credit + (now - r->time), r->full);
	r->time = now;
	if (pays)
		r->credit -= r->interval;
	r->wakeups++;
	r->woken = now;
	r->taken += r->count;
	r->count = 0;
	r->ready = NEVER;
}

/* When the reader will be woken. */
static wide reference_next(const struct reference *r)
{
	wide ready = r->ready, token = 0;

	if (!r->count)
		return NEVER;
	if (r->set.max_delay)
		ready = smaller(ready, r->left_zero + r->set.max_delay);
	if (r->credit < r->interval)
		token = r->time + (r->interval - r->credit);
	return greater(ready, token);
}

static void reference_run(struct reference *r, wide now)
{
	wide next = reference_next(r);

	if (next <= now)
		reference_wake(r, next, true);
}

static void reference_write(struct reference *r, wide now, wide value, bool urgent)
{
	wide added;
	bool fits;

	reference_run(r, now);
	fits = r->count + value < r->set.maximum;
	added = fits ? value : 0;
	if (!fits && r->set.overflow == FLOWFD_OVERFLOW_SATURATE)
		added = r->set.maximum - 1 - r->count;
	if (!fits && r->set.overflow >= FLOWFD_OVERFLOW_SATURATE)
		r->lost = smaller(r->lost + (value - added), UINT64_MAX);
	if (!r->count)
		r->left_zero = now;
	r->count += added;
	if (r->count && (!fits || urgent || r->count >= r->set.read_mark))
		r->ready = smaller(r->ready, now);
	if (r->count && fits && urgent)
		reference_wake(r, now, false);
	else
		reference_run(r, now);
}

static void both_init(struct counter *c, struct reference *r,
		      const struct flowfd_flow *set)
{
	const struct eventfd_qos *qos = &set->qos;

	*c = (struct counter){.maximum = set->maximum};
	flow_init(&c->flow);
	c->flow.read_mark = set->read_mark;
	c->flow.max_delay = set->max_delay;
	c->flow.overflow = set->overflow;
	bucket_init(&c->bucket, qos->token_capacity, qos->token_rate);

	*r = (struct reference){.set = *set, .ready = NEVER};
	if (qos->token_rate)
		r->interval = (SECOND + qos->token_rate - 1) / qos->token_rate;
	r->full = r->interval * qos->token_capacity;
	r->credit = r->full;
}

static bool both_are_same(const struct counter *c, const struct reference *r)
{
	return c->count == r->count && c->taken == r->taken &&
	       c->flow.lost == r->lost && c->wakeups == r->wakeups &&
	       c->woken == r->woken;
}

static void random_settings(struct flowfd_flow *set)
{
	*set = (struct flowfd_flow){
		.maximum = random_below_2_to(64) | 2,
		.overflow = random64() % 4,
	};
	set->read_mark = 1 + random_up_to(set->maximum - 2);
	if (random64() % 4)
		set->max_delay = 1 + random_up_to(FLOWFD_MAX_DELAY_MAX - 1);
	if (random64() % 2)
		set->qos = (struct eventfd_qos){
			.token_capacity = random_below_2_to(8) | 1,
			.token_rate = random_below_2_to(29) | 1,
		};
}

/* Near what the counter waits for, or far away: up to two years. */
static uint64_t random_time(const struct counter *c, uint64_t now)
{
	uint64_t timer = counter_timer(c);

	if (timer > now && random64() % 4 == 0)
		return timer - random64() % 2;
	return now + random_below_2_to(random64() % 8 ? 32 : 56);
}

static bool settings_are_kept(const struct flowfd_flow *set, int steps, uint64_t *wakeups)
{
	uint64_t now = 1 + random_below_2_to(60);
	struct reference r;
	struct counter c;

	both_init(&c, &r, set);
	while (steps-- && now < INT64_MAX / 2) {
		uint64_t most = random64() % 8 ? set->read_mark : UINT64_MAX - 1;
		uint64_t value = random_up_to(most);
		bool urgent = random64() % 16 == 0;

		counter_write(&c, now, value, urgent);
		reference_write(&r, now, value, urgent);
		if (!both_are_same(&c, &r))
			return false;
		now = random_time(&c, now);
	}
	*wakeups += c.wakeups;
	return true;
}

static void test_against_reference(void)
{
	uint64_t wakeups = 0;
	bool same = true;

	for (int round = 0; round < 20000; round++) {
		struct flowfd_flow set;

		random_settings(&set);
		same &= settings_are_kept(&set, 200, &wakeups);
	}
	tap_ok(same, "4 million writes wake when those of the reference do");
	tap_ok(wakeups > 400000, "which is often");
}

/* A write each second for years: none waits for longer than the delay. */
static void test_years_of_batches(void)
{
	struct flowfd_flow set = {
		.maximum = UINT64_MAX,
		.read_mark = 64,
		.max_delay = 40 * SECOND,
	};
	struct reference r;
	struct counter c;
	wide written = 0;
	bool same = true;

	both_init(&c, &r, &set);
	for (uint64_t now = SECOND; now < YEAR / 8; now += SECOND) {
		counter_write(&c, now, 1, false);
		reference_write(&r, now, 1, false);
		written++;
		same &= both_are_same(&c, &r) && now - c.woken <= 41 * SECOND;
	}
	tap_ok(same, "a mark that is not reached in time ends with the delay");
	tap_ok(c.taken + c.count == written, "and each write is in one batch");
}

/* Settings that change while a count waits. */
static void test_another_delay(void)
{
	struct flow f;

	flow_init(&f);
	f.max_delay = 10;
	flow_begin(&f, 100);
	flow_move_due(&f, 30);
	tap_is(f.due, 130, "a longer delay has begun when the old one did");
	f.max_delay = 30;
	flow_move_due(&f, 5);
	tap_is(f.due, 105, "and so has a shorter one");
	flow_move_due(&f, 0);
	tap_is(f.due, 0, "without a delay there is none");
	flow_move_due(&f, 7);
	tap_is(f.due, 0, "nor has one begun that was not waited for");
}

static void test_full(void)
{
	struct flow f;

	flow_init(&f);
	tap_ok(!flow_is_full(&f, 8, 10), "there is room for 1");
	tap_ok(flow_is_full(&f, 9, 10), "there is none");
	f.write_mark = 5;
	tap_ok(!flow_is_full(&f, 4, 10), "there is room for the mark");
	tap_ok(flow_is_full(&f, 5, 10), "there is none for the mark");
	tap_ok(flow_is_full(&f, 12, 10), "nor above the maximum");
}

int main(void)
{
	srand48(1);
	test_another_delay();
	test_full();
	test_as_eventfd();
	test_mark();
	test_forced();
	test_delay();
	test_largest_delay();
	test_policies();
	test_lost();
	test_fitting();
	test_against_reference();
	test_years_of_batches();
	return tap_done();
}
