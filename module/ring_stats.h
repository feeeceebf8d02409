/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted of a ring. Publishers and those that wait share no lock, so each
 * processor counts for itself. docs/statistics.md says what each number means.
 */
#ifndef FLOWFD_RING_STATS_H
#define FLOWFD_RING_STATS_H

#include <linux/percpu.h>

struct flowfd_ring;
struct flowfd_ring_stats;
struct seq_file;

/**
 * struct ring_stats - what a processor counts of a ring
 * @coalesced: events that found their entry in the index already
 * @waits: calls that wait
 * @sleeps: of these, those that slept
 *
 * What was put into the index is the tail of the ring.
 */
struct ring_stats {
	unsigned long coalesced;
	unsigned long waits;
	unsigned long sleeps;
};

/* ring_stats.c */
void flowfd_ring_get_stats(struct flowfd_ring *ring, struct flowfd_ring_stats *answer);
void flowfd_ring_show_stats(struct seq_file *m, struct flowfd_ring *ring);

#endif /* FLOWFD_RING_STATS_H */
