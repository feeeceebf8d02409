/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A counter whose count is in memory that programs map, and may write. docs/mapped.md
 * has the protocol, and the letters of the barriers.
 */
#ifndef FLOWFD_MAPPED_H
#define FLOWFD_MAPPED_H

#include <linux/atomic.h>
#include <linux/poll.h>

#include "count.h"
#include "flowfd.h"
#include "memory.h"
#include "work.h"

struct flowfd_counter;

/**
 * struct flowfd_mapped - what a mapped counter has beside the rest of a counter
 * @header: first page of the memory; only the kernel writes it
 * @produced: in the second page, which producers write
 * @consumed: in the third page, which consumers write
 * @closes: behind the copy of @maximum in @header: descriptors that were closed
 * @armed: behind @consumed: FLOWFD_ARMED_* bits
 * @memory: what the five above are in; fixed, as they are
 * @maximum: see struct store; @header has a copy for programs
 * @counter: whose memory this is
 * @heal: for processes that ended
 * @work_class: of the task that made the counter; fixed
 *
 * The lock is that of the counter's wait queue.
 */
struct flowfd_mapped {
	struct flowfd_counter_header *header;
	atomic64_t *produced;
	atomic64_t *consumed;
	atomic64_t *closes;
	atomic_t *armed;
	struct flowfd_memory memory;
	u64 maximum;
	struct flowfd_counter *counter;
	struct work_struct heal;
	const struct work_class *work_class;
};

/*
 * The count, or more: what was taken between the two loads is still in it. It is 0 only
 * if there is none. Writers that wait for room are told of a take.
 */
static inline u64 mapped_count(const struct flowfd_mapped *m)
{
	/* c: the acquire orders the loads. Or the difference could be negative. */
	u64 consumed = atomic64_read_acquire(m->consumed);

	return atomic64_read(m->produced) - consumed;
}

/* The same; false if a program took meanwhile: then @count may be too high. */
static inline bool mapped_try_count(const struct flowfd_mapped *m, u64 *count)
{
	u64 consumed = atomic64_read_acquire(m->consumed);

	*count = atomic64_read_acquire(m->produced) - consumed;
	return atomic64_read(m->consumed) == consumed;
}

/*
 * b: a full barrier after the bits, before the caller looks at the count. Pairs with a,
 * which is after an add or a take in memory and before it looks at the bits.
 */
static inline void mapped_arm(struct flowfd_mapped *m, int bits)
{
	atomic_or(bits, m->armed);
	/* b */
	smp_mb__after_atomic();
}

/* d: a full barrier after the bits, before the caller delivers and looks again. */
static inline void mapped_disarm(struct flowfd_mapped *m, int bits)
{
	atomic_andnot(bits, m->armed);
	/* d */
	smp_mb__after_atomic();
}

/* mapped_words.c */
int flowfd_mapped_try_add(struct flowfd_mapped *m, u64 *value, bool partly);
int flowfd_mapped_try_take(struct flowfd_mapped *m, u64 *value);

/* mapped_poll.c */
__poll_t flowfd_mapped_poll(struct flowfd_counter *c, const poll_table *wait);

/* mapped_memory.c */
struct flowfd_mapped *flowfd_mapped_alloc(const struct flowfd_create_counter *args);
void flowfd_mapped_free(struct flowfd_mapped *m);
int flowfd_mapped_map(struct flowfd_mapped *m, struct vm_area_struct *vma);
void flowfd_mapped_closed(struct flowfd_mapped *m);

#endif /* FLOWFD_MAPPED_H */
