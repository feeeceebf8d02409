// SPDX-License-Identifier: GPL-2.0-only
/*
 * A writer without pauses against a reader that takes 1 ms for each event: how much CPU
 * time the writer burns, with and without a maximum, and what it does when the counter
 * is full.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

enum mode { BLOCKING, SPIN, POLL };

static const struct burst_case {
	const char *writer;
	enum mode mode;
	struct subject subject;
} cases[] = {
	{ "blocking", BLOCKING, { .maximum = NO_MAXIMUM } },
	{ "blocking", BLOCKING, { .flowfd = true, .maximum = NO_MAXIMUM } },
	{ "blocking", BLOCKING, { .flowfd = true, .maximum = 10 } },
	{ "O_NONBLOCK+spin", SPIN, { .flowfd = true, .maximum = 10 } },
	{ "O_NONBLOCK+poll", POLL, { .flowfd = true, .maximum = 10 } },
};

enum { WRITER_CPU, READER_CPU, EAGAINS, WRITES, READS };

static const struct column columns[] = {
	{ "wcpu_ms", "wcpu_ms", 1, true },
	{ "rcpu_ms", "rcpu_ms", 1, true },
	{ "eagain", "EAGAIN", 0, false },
	{ "writes", "writes", 0, false },
	{ "reads", "reads", 0, false },
	{ 0 },
};

static const char *const labels[] = { "subject", "writer", "maximum", NULL };

struct burst {
	int fd;
	enum mode mode;
	atomic_bool stop;
	double figures[READS + 1];
};

static bool readable(int fd, int timeout)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, timeout) > 0 && pollfd.revents & POLLIN;
}

/* Continues after the end until the counter is empty: the writer may be blocked. */
static void *read_slowly(void *arg)
{
	struct burst *burst = arg;
	double start = clock_thread_ms();
	uint64_t value, reads = 0;

	while (!burst->stop || readable(burst->fd, 0)) {
		if (!readable(burst->fd, 5))
			continue;
		if (read(burst->fd, &value, sizeof(value)) == sizeof(value))
			reads++;
		usleep(1000);
	}
	burst->figures[READER_CPU] = clock_thread_ms() - start;
	burst->figures[READS] = (double)reads;
	return NULL;
}

static void *write_flat_out(void *arg)
{
	struct burst *burst = arg;
	struct pollfd pollfd = { .fd = burst->fd, .events = POLLOUT };
	double start = clock_thread_ms();
	uint64_t one = 1, writes = 0, eagains = 0;

	while (!burst->stop) {
		if (burst->mode == POLL && poll(&pollfd, 1, 20) <= 0)
			continue;
		if (write(burst->fd, &one, sizeof(one)) == sizeof(one))
			writes++;
		else if (errno == EAGAIN)
			eagains++;
	}
	burst->figures[WRITER_CPU] = clock_thread_ms() - start;
	burst->figures[WRITES] = (double)writes;
	burst->figures[EAGAINS] = (double)eagains;
	return NULL;
}

static const struct subject *subject(unsigned int number)
{
	return &cases[number].subject;
}

static struct row *find_row(struct table *table, const struct burst_case *c)
{
	char maximum[24];

	return table_row(table, (const char *[]){
					subject_name(&c->subject), c->writer,
					subject_maximum(&c->subject, maximum) });
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct burst_case *c = &cases[number];
	struct row *row = find_row(table, c);
	struct burst burst = { .mode = c->mode };
	struct pair pair;
	unsigned int i;

	burst.fd = subject_open(&c->subject, 0,
				c->mode == BLOCKING ? 0 : FLOWFD_NONBLOCK);
	pair_start(&pair, read_slowly, write_flat_out, &burst);
	clock_sleep_until(clock_now() + settings->burst_ms * 1000000ULL);
	burst.stop = true;
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	close(burst.fd);
	for (i = 0; i <= READS; i++)
		series_add(&row->series[i], burst.figures[i]);
}

static void conclude_mode(struct table *table, const char *writer,
			  const char *relation)
{
	const struct row *control, *row;
	double before, after, saved;

	control = table_find(
		table, (const char *[]){ "eventfd", "blocking", "unlimited" });
	row = table_find(table, (const char *[]){ "flowfd", writer, "10" });
	if (!control || !row)
		return;
	before = series_median(&control->series[WRITER_CPU]);
	after = series_median(&row->series[WRITER_CPU]);
	saved = 100 * (1 - after / before);
	table_verdict(table, saved, relation, 97,
		      "writer CPU saved by maximum 10, %s: %.1f %% "
		      "(eventfd %.1f ms, flowfd %.1f ms)",
		      writer, saved, before, after);
}

static void conclude(const struct settings *settings, struct table *table)
{
	(void)settings;
	conclude_mode(table, "blocking", ">=");
	conclude_mode(table, "O_NONBLOCK+poll", NULL);
	conclude_mode(table, "O_NONBLOCK+spin", NULL);
}

const struct bench bench_burst = {
	.name = "burst",
	.title = "CPU of a writer that never rests; reader sleeps 1 ms per read",
	.labels = labels,
	.columns = columns,
	.cases = sizeof(cases) / sizeof(*cases),
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
