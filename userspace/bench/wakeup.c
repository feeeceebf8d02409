// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time from a write until the sleeping consumer that it wakes has taken the event.
 */
#include <stdatomic.h>

#include "watcher.h"

#define EVENTS		1000
/* Long enough for the consumer to sleep again. */
#define PACE_NS		1000000

static const struct watcher *const watchers[] = {
	&watcher_epoll,
	&watcher_uring,
	&watcher_ring,
	&watcher_mapped,
};

#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

enum { P50, P90, P99, MAX, RATIO };

static const struct column columns[] = {
	{ "p50", "median", 0, true },
	{ "p90", "p90", 0, false },
	{ "p99", "p99", 0, true },
	{ "max", "max", 0, false },
	{ "ratio", "ratio of median", 3, true },
	{ 0 },
};

static const char *const labels[] = { "watcher", NULL };

static struct samples samples[WATCHERS];

struct wakeup {
	const struct watcher *watcher;
	void *self;
	struct files files;
	atomic_uint done;
	uint64_t written[EVENTS];
	uint64_t taken[EVENTS];
};

/* Waits for a late consumer: two writes would be one event. */
static void *write_at_pace(void *arg)
{
	struct wakeup *wakeup = arg;
	unsigned int i;

	for (i = 0; i < EVENTS; i++) {
		do {
			clock_sleep_until(clock_now() + PACE_NS);
		} while (wakeup->done < i);
		wakeup->written[i] = clock_now();
		files_write(&wakeup->files);
	}
	return NULL;
}

static void *take_all(void *arg)
{
	struct wakeup *wakeup = arg;
	unsigned int i;

	for (i = 0; i < EVENTS; i++) {
		wakeup->watcher->wait(wakeup->self);
		wakeup->taken[i] = clock_now();
		wakeup->done = i + 1;
	}
	return NULL;
}

static const struct subject *subject(unsigned int number)
{
	return watcher_subject(watchers[number], watchers[number]->kind);
}

static void keep(const struct wakeup *wakeup, struct row *row,
		 unsigned int number)
{
	static double us[EVENTS];
	unsigned int i;

	for (i = 0; i < EVENTS; i++)
		us[i] = ((double)wakeup->taken[i] -
			 (double)wakeup->written[i]) / 1e3;
	samples_add(&samples[number], us, EVENTS);
	series_add(&row->series[P50], us[EVENTS / 2] * 1e3);
	series_add(&row->series[P90], us[EVENTS * 9 / 10] * 1e3);
	series_add(&row->series[P99], us[EVENTS * 99 / 100] * 1e3);
	series_add(&row->series[MAX], us[EVENTS - 1] * 1e3);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	static struct wakeup wakeup;
	struct pair pair;

	(void)settings;
	wakeup.watcher = watchers[number];
	wakeup.done = 0;
	wakeup.self = wakeup.watcher->open(1);
	if (!wakeup.self)
		return;
	files_open(&wakeup.files, wakeup.watcher->kind, 1);
	wakeup.watcher->add(wakeup.self, &wakeup.files);
	pair_start(&pair, take_all, write_at_pace, &wakeup);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	wakeup.watcher->close(wakeup.self);
	files_close(&wakeup.files);
	keep(&wakeup,
	     table_row(table, (const char *[]){ wakeup.watcher->name }),
	     number);
}

/* A @goal of 0 is none. */
static void conclude_watcher(const struct settings *settings, struct table *table,
			     const struct watcher *watcher, double goal)
{
	const struct row *row = table_find(table, (const char *[]){ watcher->name });
	const struct row *control =
		table_find(table, (const char *[]){ watcher_epoll.name });
	double ratio;

	if (!row || !control)
		return;
	ratio = series_median(&row->series[RATIO]);
	table_verdict(table, ratio, goal ? "<=" : NULL, goal,
		      "waking a consumer: %s %.3f of epoll (%.0f %s, %.0f)",
		      watcher->name, ratio, series_median(&row->series[P50]),
		      settings->instructions ? "instructions" : "ns",
		      series_median(&control->series[P50]));
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control;
	struct row *row;
	unsigned int i;
	double goal;

	table->note = settings->instructions ?
			      "instructions, both on one CPU; ratios to epoll" :
			      "nanoseconds; ratios to epoll";
	control = table_find(table, (const char *[]){ watcher_epoll.name });
	for (i = 0; i < WATCHERS; i++) {
		row = table_find(table, (const char *[]){ watchers[i]->name });
		if (row)
			row->distribution = samples_distribution(&samples[i]);
	}
	table_ratios(table, control, P50, RATIO);
	/* Times vary by a few percent between rounds. */
	goal = settings->instructions ? 1 : 1.05;
	conclude_watcher(settings, table, &watcher_ring, goal);
	conclude_watcher(settings, table, &watcher_mapped, 0);
}

const struct bench bench_wakeup = {
	.name = "wakeup",
	.title = "an event in 1 ms wakes a sleeping consumer, who takes it",
	.labels = labels,
	.columns = columns,
	.cases = WATCHERS,
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
