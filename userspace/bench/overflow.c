// SPDX-License-Identifier: GPL-2.0-only
/*
 * A writer that is faster than its reader, with each policy for what does not fit: how
 * long a write takes, and what is lost. All that was written is read, was refused, or was
 * counted as lost.
 */
#include <err.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

#define WRITES	  5000
#define VALUE	  8
#define WRITER_NS 100000
/* For each of the value: half as fast as the writer. */
#define READER_NS 25000
#define MAXIMUM	  100

static const struct policy {
	const char *name;
	struct subject subject;
} policies[] = {
	{ "none", { .maximum = NO_MAXIMUM } },
	{ "wait", { .flowfd = true, .maximum = MAXIMUM } },
	{ "fail",
	  { .flowfd = true, .maximum = MAXIMUM, .overflow = FLOWFD_OVERFLOW_FAIL } },
	{ "saturate",
	  { .flowfd = true, .maximum = MAXIMUM, .overflow = FLOWFD_OVERFLOW_SATURATE } },
	{ "drop",
	  { .flowfd = true, .maximum = MAXIMUM, .overflow = FLOWFD_OVERFLOW_DROP } },
};

#define POLICIES (sizeof(policies) / sizeof(*policies))

enum { P50, P99, MAX, HIGHEST, READ, REFUSED, LOST, OFF };

static const struct column columns[] = {
	{ "p50_us", "write p50_us", 1, false },
	{ "p99_us", "write p99_us", 1, true },
	{ "max_us", "write max_us", 0, false },
	{ "highest", "most at once", 0, false },
	{ "read", "read %", 1, true },
	{ "refused", "refused %", 1, false },
	{ "lost", "lost %", 1, false },
	{ "off", "unaccounted", 0, false },
	{ 0 },
};

static const char *const labels[] = { "subject", "overflow", NULL };

struct overflow {
	int fd;
	double us[WRITES];
	atomic_bool done;
	uint64_t refused;
	uint64_t read;
	uint64_t highest;
};

static struct samples samples[POLICIES];

static const struct subject *subject(unsigned int number)
{
	return &policies[number].subject;
}

/* Blocking, so that only the policy decides. */
static void *write_at_pace(void *arg)
{
	struct overflow *overflow = arg;
	uint64_t start, next = clock_now();
	unsigned int i;
	int error;

	for (i = 0; i < WRITES; i++) {
		next += WRITER_NS;
		pair_work_until(next);
		start = clock_now();
		error = flowfd_write(overflow->fd, VALUE);
		overflow->us[i] = (double)(clock_now() - start) / 1e3;
		if (error == -EAGAIN)
			overflow->refused += VALUE;
		else if (error)
			errx(EXIT_FAILURE, "overflow: %s", flowfd_strerror(error));
	}
	overflow->done = true;
	return NULL;
}

static void *read_slowly(void *arg)
{
	struct overflow *overflow = arg;
	struct pollfd pollfd = { .fd = overflow->fd, .events = POLLIN };
	uint64_t value;
	bool done;

	do {
		done = overflow->done;
		if (poll(&pollfd, 1, done ? 0 : 10) <= 0)
			continue;
		if (flowfd_read(overflow->fd, &value))
			errx(EXIT_FAILURE, "overflow: read");
		overflow->read += value;
		if (value > overflow->highest)
			overflow->highest = value;
		if (!done)
			pair_work_until(clock_now() + value * READER_NS);
	} while (!done);
	return NULL;
}

static uint64_t lost_of(const struct overflow *overflow, const struct policy *policy)
{
	struct flowfd_flow flow;
	int error;

	if (!policy->subject.overflow)
		return 0;
	error = flowfd_get_flow(overflow->fd, &flow, sizeof(flow));
	if (error)
		errx(EXIT_FAILURE, "overflow: %s", flowfd_strerror(error));
	return flow.lost;
}

static struct row *find_row(struct table *table, unsigned int number)
{
	const struct policy *policy = &policies[number];

	return table_row(table, (const char *[]){ subject_name(&policy->subject),
						  policy->name });
}

static void keep(struct overflow *overflow, struct row *row, unsigned int number)
{
	const double percent = 100.0 / (WRITES * VALUE);
	uint64_t lost = lost_of(overflow, &policies[number]);

	samples_add(&samples[number], overflow->us, WRITES);
	series_add(&row->series[P50], overflow->us[WRITES / 2]);
	series_add(&row->series[P99], overflow->us[WRITES * 99 / 100]);
	series_add(&row->series[MAX], overflow->us[WRITES - 1]);
	series_add(&row->series[HIGHEST], (double)overflow->highest);
	series_add(&row->series[READ], percent * (double)overflow->read);
	series_add(&row->series[REFUSED], percent * (double)overflow->refused);
	series_add(&row->series[LOST], percent * (double)lost);
	series_add(&row->series[OFF],
		   (double)WRITES * VALUE - (double)overflow->read -
			   (double)overflow->refused - (double)lost);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	static struct overflow overflow;
	struct pair pair;

	(void)settings;
	memset(&overflow, 0, sizeof(overflow));
	overflow.fd = subject_open(subject(number), 0, 0);
	pair_start(&pair, read_slowly, write_at_pace, &overflow);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	keep(&overflow, find_row(table, number), number);
	close(overflow.fd);
}

static void conclude(const struct settings *settings, struct table *table)
{
	double off = 0;
	unsigned int i;

	for (i = 0; i < POLICIES; i++)
		if (samples[i].count)
			find_row(table, i)->distribution =
				samples_distribution(&samples[i]);
	for (i = 0; i < table->rows; i++) {
		const struct series *series = &table->row[i]->series[OFF];

		off = fmax(off, fmax(series_max(series), -series_min(series)));
	}
	table_verdict(table, off, "<=", 0,
		      "most events neither read nor refused nor counted as lost: %.0f",
		      off);
	if (!settings->only)
		table_verdict(table, series_median(&find_row(table, 4)->series[P99]),
			      NULL, 0,
			      "p99 of a write for which there may be no room: wait %.0f "
			      "us, drop %.0f us",
			      series_median(&find_row(table, 1)->series[P99]),
			      series_median(&find_row(table, 4)->series[P99]));
}

const struct bench bench_overflow = {
	.name = "overflow",
	.title = "5000 writes of 8 in 100 us each, to a reader half as fast, maximum 100",
	.labels = labels,
	.columns = columns,
	.cases = POLICIES,
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
