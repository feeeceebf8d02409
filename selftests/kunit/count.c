// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arithmetic of the counter (module/count.h): what fits, which events are true,
 * what is given back. Compared with sums of 128 bits.
 */
#include "count.h"
#include "kunit.h"

#define ROUNDS 200000

/* A count, a maximum that is not below it, and a value. */
struct count_case {
	u64 count;
	u64 maximum;
	u64 value;
};

static const u64 edges[] = {
	0, 1, 2, 3, 1000, S64_MAX - 1ULL, S64_MAX, S64_MAX + 1ULL,
	U64_MAX - 2, U64_MAX - 1, U64_MAX,
};

static void check_room(struct kunit *test, const struct count_case *c)
{
	bool fits = (wide)c->count + c->value < c->maximum;

	KUNIT_EXPECT_EQ_MSG(test, fits,
			    count_has_room(c->count, c->maximum, c->value),
			    "%llu + %llu below %llu", c->count, c->value,
			    c->maximum);
	KUNIT_EXPECT_EQ_MSG(test, count_can_fit(c->maximum, c->value),
			    count_has_room(0, c->maximum, c->value),
			    "%llu below %llu", c->value, c->maximum);
}

/* As poll(2) of eventfd(2): readable if not 0, writable if 1 fits. */
static void check_events(struct kunit *test, const struct count_case *c)
{
	__poll_t events = count_events(c->count, c->maximum);

	KUNIT_EXPECT_EQ_MSG(test, !!(events & EPOLLIN), c->count != 0,
			    "%llu of %llu", c->count, c->maximum);
	KUNIT_EXPECT_EQ_MSG(test, !!(events & EPOLLOUT),
			    (wide)c->count + 1 < c->maximum,
			    "%llu of %llu", c->count, c->maximum);
	KUNIT_EXPECT_EQ_MSG(test, !!(events & EPOLLERR),
			    c->count == c->maximum,
			    "%llu of %llu", c->count, c->maximum);
	KUNIT_EXPECT_FALSE(test, events & ~(EPOLLIN | EPOLLOUT | EPOLLERR));
}

static void check_edges(struct kunit *test,
			void (*check)(struct kunit *test, const struct count_case *c))
{
	struct count_case c;
	int i, j, k;

	for (i = 0; i < ARRAY_SIZE(edges); i++)
		for (j = max(i, 1); j < ARRAY_SIZE(edges); j++)
			for (k = 0; k < ARRAY_SIZE(edges); k++) {
				c.count = edges[i];
				c.maximum = edges[j];
				c.value = edges[k];
				check(test, &c);
			}
}

/* Values near the room that is left, where errors are likely. */
static void check_random(struct kunit *test,
			 void (*check)(struct kunit *test, const struct count_case *c))
{
	struct rnd_state random;
	struct count_case c;
	int i;

	random_start(&random);
	for (i = 0; i < ROUNDS; i++) {
		c.maximum = max(random_bits(&random, 64), 1ULL);
		c.count = c.maximum - min(random_bits(&random, 64), c.maximum);
		c.value = c.maximum - c.count + prandom_u32_state(&random) % 5;
		c.value -= min(c.value, 2ULL);
		check(test, &c);
		c.value = random_u64(&random);
		check(test, &c);
	}
}

static void count_room_at_the_edges(struct kunit *test)
{
	check_edges(test, check_room);
}

static void count_room_at_random(struct kunit *test)
{
	check_random(test, check_room);
}

static void count_events_at_the_edges(struct kunit *test)
{
	check_edges(test, check_events);
}

static void count_events_at_random(struct kunit *test)
{
	check_random(test, check_events);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(count_room_at_the_edges),
	KUNIT_CASE(count_room_at_random),
	KUNIT_CASE(count_events_at_the_edges),
	KUNIT_CASE(count_events_at_random),
	{}
};

struct kunit_suite count_suite = {
	.name = "flowfd_count",
	.test_cases = cases,
};
