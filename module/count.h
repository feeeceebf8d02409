/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of the counter, which is eventfd's with a maximum in place of
 * ULLONG_MAX. All of it is of a count that is at most the maximum, so no
 * difference is negative and no sum is formed that could wrap.
 * Outside of the kernel a host test calls it.
 */
#ifndef FLOWFD_COUNT_H
#define FLOWFD_COUNT_H

#ifdef __KERNEL__
#include <linux/poll.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <linux/eventpoll.h>
#include <linux/types.h>
#define likely(condition) (condition)
#endif

/* Whether a write of @value may be added: the sum stays below @maximum. */
static inline bool count_has_room(__u64 count, __u64 maximum, __u64 value)
{
	return maximum - count > value;
}

/* Whether a write of @value can ever fit: if not into an empty counter, then never. */
static inline bool count_can_fit(__u64 maximum, __u64 value)
{
	return value < maximum;
}

/*
 * What poll answers, if readers are to know of the count (@ready), and writers of room for
 * @mark. Not EPOLLERR, an eventfd's overflow: no write causes it.
 */
static inline __poll_t count_events_at(__u64 count, __u64 maximum, bool ready, __u64 mark)
{
	__poll_t events = 0;

	if (ready)
		events |= EPOLLIN;
	if (likely(count_has_room(count, maximum, mark)))
		events |= EPOLLOUT;
	return events;
}

/* The same as eventfd answers. */
static inline __poll_t count_events(__u64 count, __u64 maximum)
{
	return count_events_at(count, maximum, count > 0, 1);
}

#endif /* FLOWFD_COUNT_H */
