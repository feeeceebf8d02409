// SPDX-License-Identifier: GPL-2.0-only
/*
 * What was counted of a counter: for FLOWFD_IOC_COUNTER_STATS and fdinfo.
 */
#include <linux/ktime.h>
#include <linux/seq_file.h>

#include "counter.h"

/* What was counted, at one moment. Takes the lock. */
void flowfd_counter_get_stats(struct flowfd_counter *c,
			      struct flowfd_counter_stats *answer)
{
	const struct counter_stats *s = &c->stats;

	spin_lock_irq(&c->wqh.lock);
	counter_see_count(c);
	*answer = (struct flowfd_counter_stats){
		.produced = counter_produced(c),
		.writes = s->writes,
		.reads = s->reads,
		.wakeups = s->wakeups,
		.held_back = s->held_back,
		.again = s->again,
		.waits = s->waits,
		.wait_ns = stats_wait_ns(s, ktime_get_ns()),
		.highest = s->highest,
		.lost = c->ready.flow.lost,
	};
	spin_unlock_irq(&c->wqh.lock);
}

/* The same for fdinfo. */
void flowfd_counter_show_stats(struct seq_file *m, struct flowfd_counter *c)
{
	struct flowfd_counter_stats stats;

	flowfd_counter_get_stats(c, &stats);
	seq_printf(m,
		   "flowfd-lost: %llu\n"
		   "flowfd-produced: %llu\n"
		   "flowfd-writes: %llu\n"
		   "flowfd-reads: %llu\n"
		   "flowfd-wakeups: %llu\n"
		   "flowfd-held-back: %llu\n"
		   "flowfd-again: %llu\n"
		   "flowfd-waits: %llu\n"
		   "flowfd-wait-ns: %llu\n"
		   "flowfd-highest: %llu\n",
		   stats.lost, stats.produced, stats.writes, stats.reads, stats.wakeups,
		   stats.held_back, stats.again, stats.waits, stats.wait_ns,
		   stats.highest);
}
