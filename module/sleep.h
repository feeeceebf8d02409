/* SPDX-License-Identifier: GPL-2.0-only */
/* Sleeping with a deadline, in a read, write or wait. */
#ifndef FLOWFD_SLEEP_H
#define FLOWFD_SLEEP_H

#include <linux/hrtimer.h>
#include <linux/sched/rt.h>

/*
 * Sleeps until the task is woken, or until @end on CLOCK_MONOTONIC, KTIME_MAX for never;
 * returns whether that time has come. The caller has set the state of the task. As with
 * all sleeps, deadlines of ordinary tasks are merged. Kernels before 6.3 have a slack for
 * real-time tasks as well.
 */
static inline bool sleep_until(ktime_t end)
{
	u64 slack;

	if (end == KTIME_MAX) {
		schedule();
		return false;
	}
	slack = rt_task(current) ? 0 : current->timer_slack_ns;
	return !schedule_hrtimeout_range(&end, slack, HRTIMER_MODE_ABS);
}

#endif /* FLOWFD_SLEEP_H */
