/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The suites that suites.c registers, and the reproducible random numbers that they
 * test with.
 */
#ifndef FLOWFD_KUNIT_H
#define FLOWFD_KUNIT_H

#include <kunit/test.h>
#include <linux/prandom.h>

/* 128 bits: sums in this type cannot wrap. */
typedef unsigned __int128 wide;

extern struct kunit_suite bucket_suite;
extern struct kunit_suite count_suite;
extern struct kunit_suite flow_suite;

/* The same numbers in each run. */
static inline void random_start(struct rnd_state *random)
{
	prandom_seed_state(random, 20260101);
}

static inline u64 random_u64(struct rnd_state *random)
{
	u64 high = prandom_u32_state(random);

	return high << 32 | prandom_u32_state(random);
}

/* Each length up to @bits is equally likely. */
static inline u64 random_bits(struct rnd_state *random, u32 bits)
{
	return random_u64(random) >> (64 - 1 - prandom_u32_state(random) % bits);
}

#endif /* FLOWFD_KUNIT_H */
