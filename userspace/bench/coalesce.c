// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many writes one read takes if 125 µs of work follow every read: a maximum
 * bounds how far behind the reader can be.
 */
#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

#define WRITES		10000
#define READER_NS	125000

static const struct subject subjects[] = {
	{ .maximum = NO_MAXIMUM },
	{ .flowfd = true, .maximum = NO_MAXIMUM },
	{ .flowfd = true, .maximum = 100 },
	{ .flowfd = true, .maximum = 10 },
};

enum { WRITTEN, READS, BATCH };

static const struct column columns[] = {
	{ "writes", "writes", 0, false },
	{ "reads", "reads", 0, true },
	{ "batch", "avg_batch", 1, true },
	{ 0 },
};

static const char *const labels[] = { "subject", "maximum", NULL };

struct coalesce {
	int fd;
	unsigned int reads;
};

static void *write_all(void *arg)
{
	struct coalesce *coalesce = arg;
	uint64_t one = 1;
	unsigned int i;

	for (i = 0; i < WRITES; i++)
		if (write(coalesce->fd, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "coalesce: write");
	return NULL;
}

static void *read_all(void *arg)
{
	struct coalesce *coalesce = arg;
	uint64_t value, total;

	for (total = 0; total < WRITES; total += value) {
		if (read(coalesce->fd, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "coalesce: read");
		coalesce->reads++;
		pair_work_until(clock_now() + READER_NS);
	}
	return NULL;
}

static const struct subject *subject(unsigned int number)
{
	return &subjects[number];
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct subject *s = &subjects[number];
	struct coalesce coalesce = { .fd = subject_open(s, 0, 0) };
	struct pair pair;
	struct row *row;
	char maximum[24];

	(void)settings;
	row = table_row(table,
			(const char *[]){ subject_name(s),
					  subject_maximum(s, maximum) });
	pair_start(&pair, read_all, write_all, &coalesce);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	close(coalesce.fd);
	series_add(&row->series[WRITTEN], WRITES);
	series_add(&row->series[READS], coalesce.reads);
	series_add(&row->series[BATCH], (double)WRITES / coalesce.reads);
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control, *row;
	double before, after;

	(void)settings;
	control = table_find(table,
			     (const char *[]){ "eventfd", "unlimited" });
	row = table_find(table, (const char *[]){ "flowfd", "10" });
	if (!control || !row)
		return;
	before = series_median(&control->series[BATCH]);
	after = series_median(&row->series[BATCH]);
	table_verdict(table, after, "<=", 9,
		      "average batch at maximum 10: %.1f (eventfd %.1f)", after,
		      before);
}

const struct bench bench_coalesce = {
	.name = "coalesce",
	.title = "10000 writes, reader works 125 us per read",
	.labels = labels,
	.columns = columns,
	.cases = sizeof(subjects) / sizeof(*subjects),
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
