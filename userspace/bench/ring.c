// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of an event of one of many watched files: the write that makes it, and
 * taking it. One thread repeatedly writes to all files and then takes all events.
 */
#include <err.h>
#include <stdlib.h>

#include "watcher.h"

static const enum files_kind kinds[] = { EVENTFDS, COUNTERS };
static const unsigned int counts[] = { 1, 16, 256, 4096 };
static const struct watcher *const watchers[] = {
	&watcher_epoll,
	&watcher_uring,
	&watcher_ring,
	&watcher_array,
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define COUNTS (sizeof(counts) / sizeof(*counts))
#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

/* The number of files that the goals are for. */
#define GOAL_COUNT "256"

enum { WRITE, TAKE, TOTAL, RATIO };

static const struct column columns[] = {
	{ "write", "write", 1, false },
	{ "take", "take", 2, false },
	{ "total", "total", 1, true },
	{ "ratio", "ratio", 3, true },
	{ 0 },
};

static const char *const labels[] = { "source", "files", "watcher", NULL };

static const struct watcher *case_watcher(unsigned int number)
{
	return watchers[number % WATCHERS];
}

static unsigned int case_count(unsigned int number)
{
	return counts[number / WATCHERS % COUNTS];
}

static enum files_kind case_kind(unsigned int number)
{
	return kinds[number / WATCHERS / COUNTS];
}

static const struct subject *subject(unsigned int number)
{
	return watcher_subject(case_watcher(number), case_kind(number));
}

static struct row *find_row(struct table *table, unsigned int number)
{
	char count[24];

	snprintf(count, sizeof(count), "%u", case_count(number));
	return table_row(table,
			 (const char *[]){ files_name(case_kind(number)), count,
					   case_watcher(number)->name });
}

/* The time that the clock itself adds to each measurement. */
static double clock_overhead(void)
{
	uint64_t start = clock_now();
	unsigned int i;

	for (i = 0; i < 1000; i++)
		clock_now();
	return (double)(clock_now() - start) / 1001;
}

struct cost {
	double write;
	double take;
};

static struct cost measure_loop(const struct watcher *watcher, void *self,
				const struct files *files, unsigned long rounds)
{
	uint64_t expected = (uint64_t)files->count * (files->count - 1) / 2;
	double events = (double)files->count * (double)rounds;
	double overhead = clock_overhead() * (double)rounds;
	uint64_t start, written, taken, write = 0, take = 0;
	unsigned long i;

	for (i = 0; i < rounds; i++) {
		start = clock_now();
		files_write(files);
		written = clock_now();
		if (watcher->take(self, files->count) != expected)
			errx(EXIT_FAILURE, "ring: %s: wrong events",
			     watcher->name);
		taken = clock_now();
		write += written - start;
		take += taken - written;
	}
	return (struct cost){ ((double)write - overhead) / events,
			      ((double)take - overhead) / events };
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct watcher *watcher = case_watcher(number);
	unsigned int count = case_count(number);
	struct files files;
	struct cost cost;
	struct row *row;
	void *self;

	self = watcher->open(count);
	if (!self)
		return;
	row = find_row(table, number);
	files_open(&files, case_kind(number), count);
	watcher->add(self, &files);
	measure_loop(watcher, self, &files, 20); /* warms the caches */
	cost = measure_loop(watcher, self, &files,
			    settings->iterations / count + 1);
	watcher->close(self);
	files_close(&files);
	series_add(&row->series[WRITE], cost.write);
	series_add(&row->series[TAKE], cost.take);
	series_add(&row->series[TOTAL], cost.write + cost.take);
}

/* The row that others are compared with: epoll with as many eventfds. */
static const struct row *control_of(const struct table *table,
				    const struct row *row)
{
	return table_find(table, (const char *[]){ files_name(EVENTFDS),
						   row->label[1],
						   watcher_epoll.name });
}

static void add_ratios(const struct table *table, struct row *row)
{
	const struct row *control = control_of(table, row);
	unsigned int i;

	for (i = 0; control && i < row->series[TOTAL].count; i++)
		series_add(&row->series[RATIO],
			   row->series[TOTAL].value[i] /
				   control->series[TOTAL].value[i]);
}

static void conclude_ratio(struct table *table, enum files_kind kind,
			   const struct watcher *control_watcher,
			   unsigned int column, double goal)
{
	static const char *const what[] = {
		[TAKE] = "taking an event",
		[TOTAL] = "an event, written and taken",
	};
	const struct row *row, *control;
	double ratio;

	row = table_find(table, (const char *[]){ files_name(kind), GOAL_COUNT,
						  watcher_ring.name });
	control = table_find(table, (const char *[]){ files_name(EVENTFDS),
						      GOAL_COUNT,
						      control_watcher->name });
	if (!row || !control)
		return;
	ratio = series_median(&row->series[column]) /
		series_median(&control->series[column]);
	table_verdict(table, ratio, "<=", goal,
		      "%s, " GOAL_COUNT " files: ring with %s %.3f of %s with "
		      "eventfd (%.1f, %.1f)",
		      what[column], files_name(kind), ratio,
		      control_watcher->name,
		      series_median(&row->series[column]),
		      series_median(&control->series[column]));
}

static void conclude(const struct settings *settings, struct table *table)
{
	unsigned int i;

	table->note = settings->instructions ?
			      "instructions per event; ratios to epoll with "
			      "as many eventfds" :
			      "nanoseconds per event; ratios to epoll with as "
			      "many eventfds";
	for (i = 0; i < table->rows; i++)
		add_ratios(table, table->row[i]);
	conclude_ratio(table, EVENTFDS, &watcher_epoll, TOTAL, 0.76);
	conclude_ratio(table, EVENTFDS, &watcher_uring, TOTAL, 0.54);
	conclude_ratio(table, COUNTERS, &watcher_epoll, TOTAL, 0.70);
	conclude_ratio(table, EVENTFDS, &watcher_epoll, TAKE, 0.10);
}

const struct bench bench_ring = {
	.name = "ring",
	.title = "an event of many watched files: written, and taken",
	.labels = labels,
	.columns = columns,
	.cases = KINDS * COUNTS * WATCHERS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
