/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of marks, delay and overflow, without kernel types so that a host test
 * can run it through years of virtual time. The caller holds the lock that protects
 * it. A count is *ready* when readers are to know of it.
 */
#ifndef FLOWFD_FLOW_H
#define FLOWFD_FLOW_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <linux/types.h>
#endif

#include "../uapi/linux/flowfd.h"

struct flow {
	__u64 read_mark;  /* 1 or more: ready at this count */
	__u64 write_mark; /* 1 or more: poll reports room for this */
	__u64 max_delay;  /* ns; 0: no limit */
	__u64 due;	/* ns on the caller's clock: when max_delay passes; 0: not set */
	__u64 lost;	/* sum of what did not fit and was lost */
	__u32 overflow; /* FLOWFD_OVERFLOW_* */
	bool forced;	/* ready below the mark, until the count is taken */
	bool has_policies; /* these are not the settings of an eventfd */
};

/* What an eventfd does. */
static inline void flow_init(struct flow *f)
{
	*f = (struct flow){ .read_mark = 1, .write_mark = 1 };
}

static inline bool flow_is_ready(const struct flow *f, __u64 count)
{
	return count && (count >= f->read_mark || f->forced);
}

/*
 * No room for the write mark. A writer may be waiting, so readers must not wait for the read
 * mark: deadlock.
 */
static inline bool flow_is_full(const struct flow *f, __u64 count, __u64 maximum)
{
	return count >= maximum || maximum - count <= f->write_mark;
}

/* Whether a count that is not ready has no due time yet, and must get one. */
static inline bool flow_needs_due(const struct flow *f)
{
	return f->max_delay && !f->due;
}

/* The delay begins at @now: ns, not 0, and below 2^63. */
static inline void flow_begin(struct flow *f, __u64 now)
{
	f->due = now + f->max_delay;
}

/* Before another delay is set: it is that of a count that waits already, too. */
static inline void flow_move_due(struct flow *f, __u64 max_delay)
{
	if (f->due)
		f->due = max_delay ? f->due - f->max_delay + max_delay : 0;
}

/* Whether the delay has passed; then the count is ready. */
static inline bool flow_expire(struct flow *f, __u64 now)
{
	if (!f->due || now < f->due)
		return false;
	f->due = 0;
	f->forced = true;
	return true;
}

/* The count was taken: the next one begins anew. */
static inline void flow_restart(struct flow *f)
{
	f->due = 0;
	f->forced = false;
}

/* Whether a write that does not fit is lost; none waits then. */
static inline bool flow_loses(const struct flow *f)
{
	return f->overflow >= FLOWFD_OVERFLOW_SATURATE;
}

/* The sum stops at its highest value. */
static inline void flow_lose(struct flow *f, __u64 value)
{
	f->lost = f->lost + value < value ? ~(__u64)0 : f->lost + value;
}

/* How much of @value fits below @maximum. */
static inline __u64 flow_fitting(__u64 count, __u64 maximum, __u64 value)
{
	__u64 room = count < maximum ? maximum - 1 - count : 0;

	return value < room ? value : room;
}

/* What an add changes: @part is all of @value or, @partly, what fits. Whether it may. */
static inline bool flow_may_add(__u64 count, __u64 maximum, __u64 value, bool partly,
				__u64 *part)
{
	*part = flow_fitting(count, maximum, value);
	return partly ? *part : *part == value && count < maximum;
}

#endif /* FLOWFD_FLOW_H */
