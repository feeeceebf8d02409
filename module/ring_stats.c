// SPDX-License-Identifier: GPL-2.0-only
/*
 * What was counted of a ring: for FLOWFD_IOC_RING_STATS and fdinfo. Takes no lock, so the
 * numbers are not of one moment.
 */
#include <linux/cpumask.h>
#include <linux/seq_file.h>

#include "ring.h"

/* Each processor counts modulo 2^64 (2^32 with 32-bit kernels), and so does the sum. */
static struct ring_stats stats_sum(const struct flowfd_ring *ring)
{
	struct ring_stats sum = {};
	const struct ring_stats *s;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		s = per_cpu_ptr(ring->stats, cpu);
		sum.coalesced += READ_ONCE(s->coalesced);
		sum.waits += READ_ONCE(s->waits);
		sum.sleeps += READ_ONCE(s->sleeps);
	}
	return sum;
}

void flowfd_ring_get_stats(struct flowfd_ring *ring, struct flowfd_ring_stats *answer)
{
	struct ring_stats sum = stats_sum(ring);

	*answer = (struct flowfd_ring_stats){
		.published = (unsigned long)atomic_long_read(&ring->tail),
		.coalesced = sum.coalesced,
		.waits = sum.waits,
		.sleeps = sum.sleeps,
	};
}

/* For fdinfo. */
void flowfd_ring_show_stats(struct seq_file *m, struct flowfd_ring *ring)
{
	struct flowfd_ring_stats stats;

	flowfd_ring_get_stats(ring, &stats);
	seq_printf(m,
		   "flowfd-ring-published: %llu\n"
		   "flowfd-ring-coalesced: %llu\n"
		   "flowfd-ring-waits: %llu\n"
		   "flowfd-ring-sleeps: %llu\n",
		   stats.published, stats.coalesced, stats.waits, stats.sleeps);
}
