/* SPDX-License-Identifier: GPL-2.0-only */
/* Sleeping with a deadline, in a read, write or wait. */
#ifndef FLOWFD_SLEEP_H
#define FLOWFD_SLEEP_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/rt.h>

/* The end of a timeout in ns; without one, or if it is centuries away, KTIME_MAX: never. */
static inline ktime_t sleep_end(u64 timeout)
{
	u64 now = ktime_get_ns();

	if (!timeout || timeout >= KTIME_MAX - now)
		return KTIME_MAX;
	return ns_to_ktime(now + timeout);
}

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
