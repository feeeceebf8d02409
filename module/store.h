/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the count of a counter is: here, or in words of memory that programs map. All of it
 * is under the lock of the counter.
 */
#ifndef FLOWFD_STORE_H
#define FLOWFD_STORE_H

#include "count.h"
#include "flow.h"
#include "mapped.h"

/**
 * struct store - the count of a counter
 * @count: what a read returns, never above @maximum
 * @maximum: writes keep @count below it
 * @mapped: of a mapped counter, whose @count and @maximum are 0: the fast paths find neither
 *	a count nor room. Or NULL. Fixed
 * @semaphore: a read takes 1
 */
struct store {
	u64 count;
	u64 maximum;
	struct flowfd_mapped *mapped;
	bool semaphore;
};

static inline bool store_is_mapped(const struct store *s)
{
	return s->mapped;
}

/* As it is now. That of a mapped counter may be too high, and is 0 only if there is none. */
static inline u64 store_count(const struct store *s)
{
	return s->mapped ? mapped_count(s->mapped) : s->count;
}

static inline u64 store_maximum(const struct store *s)
{
	return s->mapped ? READ_ONCE(s->mapped->maximum) : s->maximum;
}

static inline void store_set_maximum(struct store *s, u64 maximum)
{
	struct flowfd_mapped *m = s->mapped;

	if (!m) {
		s->maximum = maximum;
		return;
	}
	WRITE_ONCE(m->maximum, maximum);
	WRITE_ONCE(m->header->maximum, maximum);
}

/* False if the count is above the maximum: programs can put it there. */
static inline bool store_has_room(const struct store *s, u64 value)
{
	u64 count = store_count(s), maximum = store_maximum(s);

	return count < maximum && count_has_room(count, maximum, value);
}

/*
 * Adds *@value or, @partly, what there is room for, and subtracts from *@value what it added.
 * 0; -EAGAIN: there is no room for the rest; -EBUSY: programs change the count all the time.
 */
static inline int store_try_add(struct store *s, u64 *value, bool partly)
{
	__u64 part; /* as in flow.h */

	if (s->mapped)
		return flowfd_mapped_try_add(s->mapped, value, partly);
	if (!flow_may_add(s->count, s->maximum, *value, partly, &part))
		return -EAGAIN;
	s->count += part;
	*value -= part;
	return *value ? -EAGAIN : 0;
}

/* Likewise; -EAGAIN: there is no count. *@before: the count of which *@value was taken. */
static inline int store_try_take(struct store *s, u64 *value, u64 *before)
{
	int err;

	if (s->mapped) {
		err = flowfd_mapped_try_take(s->mapped, value);
		*before = *value;
		return err;
	}
	*before = s->count;
	if (!s->count)
		return -EAGAIN;
	*value = s->semaphore ? 1 : s->count;
	s->count -= *value;
	return 0;
}

#endif /* FLOWFD_STORE_H */
