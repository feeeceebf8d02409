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

/*
 * Adds *@value or, @partly, what there is room for, and subtracts from *@value what it
 * added. Returns 0; -EAGAIN: there is no room for the rest; -EBUSY: others were faster
 * each time.
 */
int flowfd_mapped_try_add(struct flowfd_mapped *m, u64 *value, bool partly)
{
	u64 consumed, produced;
	unsigned int tries;
	__u64 part;

	for (tries = 0; tries < MAPPED_TRIES; tries++) {
		consumed = atomic64_read_acquire(m->consumed);
		produced = atomic64_read_acquire(m->produced);
		if (!flow_may_add(produced - consumed, m->maximum, *value, partly,
				  &part)) {
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

/*
 * Takes the count if there is one. Returns 0; -EAGAIN: there is none; -EBUSY: others were
 * faster each time.
 */
int flowfd_mapped_try_take(struct flowfd_mapped *m, u64 *value)
{
	u64 consumed, produced;
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
