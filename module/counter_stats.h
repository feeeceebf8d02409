/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted of a counter, under the lock of its wait queue, which the calls have in
 * any case. docs/statistics.md says what each number means.
 */
#ifndef FLOWFD_COUNTER_STATS_H
#define FLOWFD_COUNTER_STATS_H

#include <linux/types.h>

struct flowfd_counter;
struct flowfd_counter_stats;
struct seq_file;

/**
 * struct counter_stats - what is counted of a counter
 * @writes: writes that succeeded
 * @reads: reads that took something
 * @taken: sum of what they took; with the count it is what was added. Not of a mapped
 *	counter, whose words have it
 * @highest: highest count that was taken, or of which something was; a count only grows
 *	between takes, so the present one is compared when the number is read
 * @wakeups: times that readers were woken
 * @held_back: times that they were not, for mark, delay or bucket
 * @again: calls that failed with EAGAIN
 * @waits: writers that slept
 * @wait_ns: how long, in ns, less the time at which each of @waiting began
 * @waiting: writers that sleep now
 *
 * The fast paths change the first four only.
 */
struct counter_stats {
	u64 writes;
	u64 reads;
	u64 taken;
	u64 highest;
	u64 wakeups;
	u64 held_back;
	u64 again;
	u64 waits;
	u64 wait_ns;
	u32 waiting;
};

static inline void stats_see_count(struct counter_stats *s, u64 count)
{
	if (unlikely(count > s->highest))
		s->highest = count;
}

/* A read took @value of the count @before. */
static __always_inline void stats_take(struct counter_stats *s, u64 before, u64 value)
{
	s->reads++;
	s->taken += value;
	stats_see_count(s, before);
}

static inline void stats_begin_wait(struct counter_stats *s, u64 now)
{
	s->waits++;
	s->waiting++;
	s->wait_ns -= now;
}

static inline void stats_end_wait(struct counter_stats *s, u64 now)
{
	s->waiting--;
	s->wait_ns += now;
}

/* Writers that sleep now have slept so far, too. Modulo 2^64 it does not matter when. */
static inline u64 stats_wait_ns(const struct counter_stats *s, u64 now)
{
	return s->wait_ns + s->waiting * now;
}

/* counter_stats.c */
void flowfd_counter_get_stats(struct flowfd_counter *c,
			      struct flowfd_counter_stats *answer);
void flowfd_counter_show_stats(struct seq_file *m, struct flowfd_counter *c);

#endif /* FLOWFD_COUNTER_STATS_H */
