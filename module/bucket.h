/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of the token bucket, without kernel types so that a host test
 * can run it through years of virtual time. The caller holds the lock that
 * protects the bucket.
 *
 * It is the generic cell rate algorithm in its virtual scheduling form (ITU-T
 * I.371). A bucket of capacity C that earns a token every T ns is one
 * timestamp: the time at which it will be full again. Taking a token moves that
 * time by T; there is a token to take while it is at most (C - 1) * T ahead of
 * the clock. Credit is never computed, so it can neither overflow nor be
 * rounded away.
 */
#ifndef FLOWFD_BUCKET_H
#define FLOWFD_BUCKET_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <linux/types.h>
#endif

#define BUCKET_NSEC_PER_SEC 1000000000U

struct bucket {
	__u64 virtual_time; /* ns on the caller's clock */
	__u32 interval;	    /* T in ns; 0: no limit */
	__u32 capacity;	    /* C */
	__u32 rate;	    /* tokens a second, as it was set */
	bool deferred;	    /* the caller's: a wakeup waits for the next token */
};

/* Makes the bucket full. T is rounded up, so that the rate is never exceeded. */
static inline void bucket_init(struct bucket *b, __u32 capacity, __u32 rate)
{
	b->virtual_time = 0;
	b->interval = rate ? (BUCKET_NSEC_PER_SEC - 1) / rate + 1 : 0;
	b->capacity = capacity;
	b->rate = rate;
}

static inline bool bucket_is_limited(const struct bucket *b)
{
	return b->interval;
}

/* (C - 1) * T in ns, below 2^32 * 10^9 < 2^62. */
static inline __u64 bucket_tolerance(const struct bucket *b)
{
	return (__u64)(b->capacity - 1) * b->interval;
}

/* Takes a token if there is one at time @now (ns, below 2^63). */
static inline bool bucket_take(struct bucket *b, __u64 now)
{
	if (b->virtual_time > now + bucket_tolerance(b))
		return false;
	if (b->virtual_time < now)
		b->virtual_time = now;
	b->virtual_time += b->interval;
	return true;
}

/* The time at which the next token is due, for a bucket that has none. */
static inline __u64 bucket_due(const struct bucket *b)
{
	return b->virtual_time - bucket_tolerance(b);
}

#endif /* FLOWFD_BUCKET_H */
