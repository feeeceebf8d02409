/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When readers may be told of a count: marks and delay say when it is ready (flow.h), the
 * token bucket how often a ready one wakes them (bucket.h). What must wait is left to the
 * timer. All of it is under the lock of the counter, and knows a count only as a number.
 */
#ifndef FLOWFD_READY_H
#define FLOWFD_READY_H

#include <linux/hrtimer.h>

#include "bucket.h"
#include "flow.h"

/**
 * struct ready - the pace of a counter
 * @flow: marks, delay and overflow
 * @bucket: limits the wakeups of readers; its @deferred is also read without the lock
 * @timer: expires when @bucket has its next token, or the delay of @flow has passed
 */
struct ready {
	struct flow flow;
	struct bucket bucket;
	struct hrtimer timer;
};

/* ready.c */
bool flowfd_qos_is_valid(const struct eventfd_qos *qos);
void flowfd_ready_set_bucket(struct ready *r, const struct eventfd_qos *qos);
void flowfd_ready_wait_for_due(struct ready *r);
bool flowfd_ready_check(struct ready *r, u64 count, bool blocked);
bool flowfd_ready_force(struct ready *r, u64 count);
bool flowfd_ready_take_token(struct ready *r);
bool flowfd_ready_end_deferral(struct ready *r);
bool flowfd_ready_expire(struct ready *r, u64 count);

/*
 * Whether readers are to know of @count. @blocked: writers wait for room, or may do so, and
 * readers that wait for their mark would wait for them.
 */
static inline bool ready_check(struct ready *r, u64 count, bool blocked)
{
	if (likely(r->flow.read_mark == 1))
		return count;
	return flowfd_ready_check(r, count, blocked);
}

/* Something was taken and nothing is left: the next count begins anew. */
static inline void ready_restart(struct ready *r)
{
	if (r->flow.has_policies)
		flow_restart(&r->flow);
}

/* Whether readers may be woken now. If not, the timer does it. */
static inline bool ready_passes_bucket(struct ready *r)
{
	return likely(!bucket_is_limited(&r->bucket)) || flowfd_ready_take_token(r);
}

#endif /* FLOWFD_READY_H */
