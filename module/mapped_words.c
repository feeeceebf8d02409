// SPDX-License-Identifier: GPL-2.0-only
/*
 * The words of a mapped counter, which programs add to and take from in memory: looking at
 * them and changing them as programs do. A program may store anything there at any moment:
 * no loop depends on it.
 */
#include "flow.h"
#include "mapped.h"

/* How often a call tries to change a word with interrupts off. */
#define MAPPED_TRIES 64

/**
 * flowfd_mapped_count_exactly - the count, at one moment
 * @m: of a mapped counter
 * @count: result
 *
 * Looks once more if somebody took meanwhile.
 *
 * Return: false if somebody did so each time: then @count may be too high.
 */
bool flowfd_mapped_count_exactly(const struct flowfd_mapped *m, u64 *count)
{
	unsigned int tries;

	for (tries = 0; tries < MAPPED_TRIES; tries++)
		if (mapped_try_count(m, count))
			return true;
	return false;
}

/**
 * flowfd_mapped_count - the count
 * @m: of a mapped counter
 */
u64 flowfd_mapped_count(const struct flowfd_mapped *m)
{
	u64 count;

	flowfd_mapped_count_exactly(m, &count);
	return count;
}

/**
 * flowfd_mapped_try_add - add to the count if it fits
 * @m: of a mapped counter
 * @value: what to add
 *
 * Return: 0; -EAGAIN: there is no room; -EBUSY: others were faster each time.
 */
int flowfd_mapped_try_add(struct flowfd_mapped *m, u64 value)
{
	s64 consumed, produced;
	unsigned int tries;
	u64 count;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		count = produced - consumed;
		if (count >= m->maximum || !count_has_room(count, m->maximum, value)) {
			if (atomic64_read(m->consumed) == consumed)
				return -EAGAIN;
			continue;
		}
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->produced, produced, produced + value) == produced)
			return 0;
	}
	return -EBUSY;
}

/**
 * flowfd_mapped_try_add_some - add as much as there is room for
 * @m: of a mapped counter
 * @value: what to add; reduced by what was added
 *
 * Return: 0; -EAGAIN: there is no room for the rest; -EBUSY: others were faster each time.
 */
int flowfd_mapped_try_add_some(struct flowfd_mapped *m, u64 *value)
{
	s64 consumed, produced;
	unsigned int tries;
	u64 part;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		part = flow_fitting(produced - consumed, m->maximum, *value);
		if (!part) {
			if (atomic64_read(m->consumed) == consumed)
				return -EAGAIN;
			continue;
		}
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->produced, produced, produced + part) != produced)
			continue;
		*value -= part;
		return *value ? -EAGAIN : 0;
	}
	return -EBUSY;
}

/**
 * flowfd_mapped_try_take - take the count if there is one
 * @m: of a mapped counter
 * @value: result
 *
 * Return: 0; -EAGAIN: there is none; -EBUSY: others were faster each time.
 */
int flowfd_mapped_try_take(struct flowfd_mapped *m, u64 *value)
{
	s64 consumed, produced;
	unsigned int tries;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		/* c: see mapped_count(). */
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		if (produced == consumed)
			return -EAGAIN;
		/* a: a full barrier, as in programs. */
		if (atomic64_cmpxchg(m->consumed, consumed, produced) == consumed) {
			*value = produced - consumed;
			return 0;
		}
	}
	return -EBUSY;
}
