// SPDX-License-Identifier: GPL-2.0-only
/*
 * The latency of events that come every 100 µs and take 125 µs to handle: without a
 * maximum the queue grows without bound, with one it stays short. The counters are
 * semaphores, so that every event is read by itself.
 */
#include <err.h>
#include <poll.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

#define EVENTS		5000
#define WRITER_NS	100000
#define READER_NS	125000

static const struct subject subjects[] = {
	{ .maximum = NO_MAXIMUM },
	{ .flowfd = true, .maximum = NO_MAXIMUM },
	{ .flowfd = true, .maximum = 100 },
	{ .flowfd = true, .maximum = 10 },
};

#define SUBJECTS (sizeof(subjects) / sizeof(*subjects))

enum { P99, P999, MAX };

static const struct column columns[] = {
	{ "p99_us", "p99_us", 0, false },
	{ "p999_us", "p99.9_us", 0, true },
	{ "max_us", "max_us", 0, true },
	{ 0 },
};

static const char *const labels[] = { "subject", "maximum", NULL };

struct latency {
	int fd;
	uint64_t written[EVENTS];
	uint64_t taken[EVENTS];
};

/* Samples of all rounds of each subject, for the distribution. */
static struct samples samples[SUBJECTS];

static void *write_at_pace(void *arg)
{
	struct latency *latency = arg;
	uint64_t one = 1, next = clock_now();
	unsigned int i;

	for (i = 0; i < EVENTS; i++, next += WRITER_NS) {
		pair_work_until(next);
		latency->written[i] = clock_now();
		if (write(latency->fd, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "latency: write");
	}
	return NULL;
}

static void *read_one_by_one(void *arg)
{
	struct latency *latency = arg;
	struct pollfd pollfd = { .fd = latency->fd, .events = POLLIN };
	unsigned int i;
	uint64_t value;

	for (i = 0; i < EVENTS; i++) {
		while (poll(&pollfd, 1, 200) <= 0)
			;
		if (read(latency->fd, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "latency: read");
		latency->taken[i] = clock_now();
		pair_work_until(latency->taken[i] + READER_NS);
	}
	return NULL;
}

static struct row *find_row(struct table *table, unsigned int number)
{
	const struct subject *subject = &subjects[number];
	char maximum[24];

	return table_row(table,
			 (const char *[]){ subject_name(subject),
					   subject_maximum(subject, maximum) });
}

/* Adds the latencies of this round to the samples and returns them sorted. */
static const double *keep(const struct latency *latency, unsigned int number)
{
	static double us[EVENTS];
	unsigned int i;

	for (i = 0; i < EVENTS; i++)
		us[i] = ((double)latency->taken[i] -
			 (double)latency->written[i]) / 1e3;
	samples_add(&samples[number], us, EVENTS);
	return us;
}

static const struct subject *subject(unsigned int number)
{
	return &subjects[number];
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	struct row *row = find_row(table, number);
	static struct latency latency;
	const double *us;
	struct pair pair;

	(void)settings;
	latency.fd = subject_open(&subjects[number], 0, FLOWFD_SEMAPHORE);
	pair_start(&pair, read_one_by_one, write_at_pace, &latency);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	close(latency.fd);
	us = keep(&latency, number);
	series_add(&row->series[P99], us[EVENTS * 99 / 100]);
	series_add(&row->series[P999], us[EVENTS * 999 / 1000]);
	series_add(&row->series[MAX], us[EVENTS - 1]);
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control, *row;
	double before, after;
	unsigned int i;

	(void)settings;
	for (i = 0; i < SUBJECTS; i++) {
		if (!samples[i].count)
			continue;
		find_row(table, i)->distribution =
			samples_distribution(&samples[i]);
	}
	control = table_find(table,
			     (const char *[]){ "eventfd", "unlimited" });
	row = table_find(table, (const char *[]){ "flowfd", "10" });
	if (!control || !row)
		return;
	before = series_median(&control->series[P999]);
	after = series_median(&row->series[P999]);
	table_verdict(table, before / after, ">=", 60,
		      "p99.9 at maximum 10: %.0f times lower "
		      "(eventfd %.0f us, flowfd %.0f us)",
		      before / after, before, after);
}

const struct bench bench_latency = {
	.name = "latency",
	.title = "5000 events, one in 100 us, each handled in 125 us (semaphore)",
	.labels = labels,
	.columns = columns,
	.cases = SUBJECTS,
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
