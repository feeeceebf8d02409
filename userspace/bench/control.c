// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of adding and of removing a file, of a thousand: one by one with epoll, all
 * in one system call with a ring and io_uring.
 */
#include <err.h>
#include <stdlib.h>

#include "watcher.h"

#define FILES 1000
/* In a loop of this many iterations, one call adds and one removes all files. */
#define SHARE 10

static const enum files_kind kinds[] = { EVENTFDS, COUNTERS, SOCKETS, PIPES };
static const struct watcher *const watchers[] = {
	&watcher_epoll,
	&watcher_uring,
	&watcher_ring,
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

enum { ADD, REMOVE, ADD_RATIO, REMOVE_RATIO };

static const struct column columns[] = {
	{ "add", "add", 1, true },
	{ "remove", "remove", 1, true },
	{ "add_ratio", "ratio of add", 3, true },
	{ "remove_ratio", "ratio of remove", 3, true },
	{ 0 },
};

static const char *const labels[] = { "source", "watcher", NULL };

static const struct subject *subject(unsigned int number)
{
	return watcher_subject(watchers[number % WATCHERS],
			       kinds[number / WATCHERS]);
}

static void measure_loop(const struct watcher *watcher, void *self,
			 const struct files *files, unsigned long rounds,
			 struct row *row)
{
	uint64_t start, added, removed, add = 0, remove = 0;
	double all = (double)files->count * (double)rounds;
	unsigned long i;

	for (i = 0; i < rounds; i++) {
		start = clock_now();
		watcher->add(self, files);
		added = clock_now();
		watcher->remove(self, files);
		removed = clock_now();
		add += added - start;
		remove += removed - added;
	}
	if (!row)
		return;
	series_add(&row->series[ADD], (double)add / all);
	series_add(&row->series[REMOVE], (double)remove / all);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct watcher *watcher = watchers[number % WATCHERS];
	enum files_kind kind = kinds[number / WATCHERS];
	unsigned long rounds = settings->iterations / FILES / SHARE + 1;
	struct files files;
	void *self;

	self = watcher->open(FILES);
	if (!self)
		return;
	files_open(&files, kind, FILES);
	measure_loop(watcher, self, &files, 2, NULL); /* warms the caches */
	measure_loop(watcher, self, &files, rounds,
		     table_row(table, (const char *[]){ files_name(kind),
							watcher->name }));
	watcher->close(self);
	files_close(&files);
}

/* Ratios to epoll with the same files. */
static void add_ratios(const struct table *table, struct row *row)
{
	const struct row *control;
	unsigned int i;

	control = table_find(table, (const char *[]){ row->label[0],
						      watcher_epoll.name });
	for (i = 0; control && i < row->series[ADD].count; i++) {
		series_add(&row->series[ADD_RATIO],
			   row->series[ADD].value[i] /
				   control->series[ADD].value[i]);
		series_add(&row->series[REMOVE_RATIO],
			   row->series[REMOVE].value[i] /
				   control->series[REMOVE].value[i]);
	}
}

static void conclude(const struct settings *settings, struct table *table)
{
	const char *unit = settings->instructions ? "instructions" : "ns";
	const struct row *row, *control;
	double ratio;
	unsigned int i;

	table->note = settings->instructions ?
			      "instructions per file; ratios to epoll" :
			      "nanoseconds per file; ratios to epoll";
	for (i = 0; i < table->rows; i++)
		add_ratios(table, table->row[i]);
	row = table_find(table, (const char *[]){ files_name(EVENTFDS),
						  watcher_ring.name });
	control = table_find(table, (const char *[]){ files_name(EVENTFDS),
						      watcher_epoll.name });
	if (!row || !control)
		return;
	ratio = series_median(&row->series[ADD_RATIO]);
	table_verdict(table, ratio, "<=", 0.6,
		      "adding %u eventfds in one call: %.3f of epoll_ctl(2) "
		      "(%.0f %s, %.0f)",
		      FILES, ratio, series_median(&row->series[ADD]), unit,
		      series_median(&control->series[ADD]));
}

const struct bench bench_control = {
	.name = "control",
	.title = "watching 1000 files, and watching them no longer",
	.labels = labels,
	.columns = columns,
	.cases = KINDS * WATCHERS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
