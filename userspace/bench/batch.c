// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a low-water mark of readers gains and costs: how often a consumer is woken for
 * events that come at a pace, and how long each event waits. A maximum delay bounds the
 * wait where few events come, an urgent write ends it.
 */
#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench.h"
#include "calls.h"

#define MARK	   64
#define DELAY_NS   2000000
#define FAST	   100000
#define MEDIUM	   50000
#define SLOW	   5000
#define URGENT_ONE 100 /* of so many writes one is urgent */

/* Goals: wakeups against eventfd's, and how much later than the delay, in us. */
#define FEWER	60
#define LATE_US 1000

static const struct subject eventfd_subject = { .maximum = NO_MAXIMUM };

static const struct subject plain = { .flowfd = true, .maximum = NO_MAXIMUM };

static const struct subject marked = {
	.flowfd = true,
	.maximum = NO_MAXIMUM,
	.read_mark = MARK,
	.max_delay = DELAY_NS,
};

static const struct subject marked_in_memory = {
	.flowfd = true,
	.mapped = true,
	.maximum = NO_MAXIMUM,
	.read_mark = MARK,
	.max_delay = DELAY_NS,
};

enum {
	EVENTFD_FAST,
	PLAIN_FAST,
	MARK_FAST,
	MAPPED_FAST,
	URGENT_FAST,
	EVENTFD_MEDIUM,
	MARK_MEDIUM,
	EVENTFD_SLOW,
	MARK_SLOW,
	MAPPED_SLOW,
	KINDS,
};

/**
 * struct kind - what is measured
 * @rate: writes per second
 * @urgent: some writes are, and their latency is measured alone
 */
static const struct kind {
	const struct subject *subject;
	unsigned int rate;
	bool urgent;
} kinds[KINDS] = {
	[EVENTFD_FAST] = { &eventfd_subject, FAST, false },
	[PLAIN_FAST] = { &plain, FAST, false },
	[MARK_FAST] = { &marked, FAST, false },
	[MAPPED_FAST] = { &marked_in_memory, FAST, false },
	[URGENT_FAST] = { &marked, FAST, true },
	[EVENTFD_MEDIUM] = { &eventfd_subject, MEDIUM, false },
	[MARK_MEDIUM] = { &marked, MEDIUM, false },
	[EVENTFD_SLOW] = { &eventfd_subject, SLOW, false },
	[MARK_SLOW] = { &marked, SLOW, false },
	[MAPPED_SLOW] = { &marked_in_memory, SLOW, false },
};

enum { WAKEUPS, CALLS, P50, P99, MAX, CONSUMER_CPU, RATIO };

static const struct column columns[] = {
	{ "wakeups", "wakeups/write", 4, true },
	{ "calls", "calls/write", 3, false },
	{ "p50_us", "p50_us", 0, true },
	{ "p99_us", "p99_us", 0, true },
	{ "max_us", "max_us", 0, false },
	{ "consumer_ms", "consumer_ms", 1, false },
	{ "ratio", "ratio of wakeups", 3, false },
	{ 0 },
};

static const char *const labels[] = { "subject", "mark", "writes/s", NULL };

static struct samples samples[KINDS];

struct batch {
	const struct kind *kind;
	struct flowfd_counter counter;
	int fd;
	int epoll;
	unsigned int events;
	uint64_t *written;
	uint64_t *taken;
	uint64_t wakeups;
	uint64_t calls;
	double consumer_ms;
};

static const struct subject *subject(unsigned int number)
{
	return kinds[number].subject;
}

static struct row *find_row(struct table *table, unsigned int number)
{
	const struct kind *kind = &kinds[number];
	char mark[24] = "none", rate[24];

	if (kind->subject->read_mark)
		snprintf(mark, sizeof(mark), "%d, %d ms%s", MARK, DELAY_NS / 1000000,
			 kind->urgent ? ", urgent" : "");
	snprintf(rate, sizeof(rate), "%u", kind->rate);
	return table_row(table, (const char *[]){ subject_name(kind->subject), mark,
						  rate });
}

static bool is_urgent(const struct batch *batch, unsigned int event)
{
	return batch->kind->urgent && event % URGENT_ONE == URGENT_ONE - 1;
}

static void publish(const struct batch *batch, unsigned int event)
{
	uint64_t one = 1;
	int error = 0;

	if (batch->kind->subject->mapped) {
		error = flowfd_add(&batch->counter, 1);
	} else {
		calls_made++;
		if (is_urgent(batch, event))
			error = flowfd_write_with(batch->fd, 1, 0, FLOWFD_URGENT);
		else if (write(batch->fd, &one, sizeof(one)) != sizeof(one))
			error = -errno;
	}
	if (error)
		errx(EXIT_FAILURE, "batch: write: %s", flowfd_strerror(error));
}

static void *write_at_pace(void *arg)
{
	struct batch *batch = arg;
	uint64_t next = clock_now();
	unsigned int i;

	for (i = 0; i < batch->events; i++) {
		next += 1000000000 / batch->kind->rate;
		pair_work_until(next);
		batch->written[i] = clock_now();
		publish(batch, i);
	}
	batch->calls = calls_made;
	return NULL;
}

static uint64_t take(struct batch *batch)
{
	uint64_t value;

	if (batch->kind->subject->mapped)
		return flowfd_try_take(&batch->counter, &value) ? 0 : value;
	return flowfd_read(batch->fd, &value) ? 0 : value;
}

/* Ends when all has come, so nothing may be held back for ever. */
static void *take_all(void *arg)
{
	struct batch *batch = arg;
	struct epoll_event event;
	uint64_t count, now;
	unsigned int i = 0;

	while (i < batch->events) {
		if (epoll_wait(batch->epoll, &event, 1, -1) != 1)
			continue;
		batch->wakeups++;
		count = take(batch);
		now = clock_now();
		while (count-- && i < batch->events)
			batch->taken[i++] = now;
	}
	batch->consumer_ms = clock_thread_ms();
	return NULL;
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		err(EXIT_FAILURE, "batch: %zu events", count);
	return memory;
}

static void batch_open(struct batch *batch, const struct kind *kind,
		       unsigned int events)
{
	struct epoll_event event = { .events = EPOLLIN };

	memset(batch, 0, sizeof(*batch));
	batch->kind = kind;
	batch->events = events;
	batch->written = allocate(events, sizeof(*batch->written));
	batch->taken = allocate(events, sizeof(*batch->taken));
	batch->fd = subject_open(kind->subject, 0, FLOWFD_NONBLOCK);
	if (kind->subject->mapped &&
	    flowfd_counter_map(&batch->counter, batch->fd,
			       FLOWFD_PRODUCER | FLOWFD_CONSUMER))
		errx(EXIT_FAILURE, "batch: map");
	batch->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (batch->epoll < 0 ||
	    epoll_ctl(batch->epoll, EPOLL_CTL_ADD, batch->fd, &event))
		err(EXIT_FAILURE, "batch: epoll");
}

static void batch_close(struct batch *batch)
{
	close(batch->epoll);
	if (batch->kind->subject->mapped)
		flowfd_counter_unmap(&batch->counter);
	close(batch->fd);
	free(batch->written);
	free(batch->taken);
}

/* Latencies, of urgent writes alone where there are some. */
static void keep(const struct batch *batch, struct row *row, unsigned int number)
{
	double *us = allocate(batch->events, sizeof(*us));
	unsigned int i, count = 0;

	for (i = 0; i < batch->events; i++)
		if (!batch->kind->urgent || is_urgent(batch, i))
			us[count++] = ((double)batch->taken[i] -
				       (double)batch->written[i]) / 1e3;
	samples_add(&samples[number], us, count);
	series_add(&row->series[P50], us[count / 2]);
	series_add(&row->series[P99], us[count * 99 / 100]);
	series_add(&row->series[MAX], us[count - 1]);
	free(us);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct kind *kind = &kinds[number];
	unsigned int events = kind->rate / 1000 * settings->bucket_ms;
	struct row *row = find_row(table, number);
	struct batch batch;
	struct pair pair;

	batch_open(&batch, kind, events);
	pair_start(&pair, take_all, write_at_pace, &batch);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	keep(&batch, row, number);
	series_add(&row->series[WAKEUPS], (double)batch.wakeups / events);
	series_add(&row->series[CALLS], (double)batch.calls / events);
	series_add(&row->series[CONSUMER_CPU], batch.consumer_ms);
	batch_close(&batch);
}

static const struct series *figure(struct table *table, unsigned int number,
				   unsigned int column)
{
	return &find_row(table, number)->series[column];
}

/* To an eventfd's at the same pace. */
static void compare_wakeups(struct table *table)
{
	const struct row *control;
	unsigned int i;

	for (i = 0; i < table->rows; i++) {
		control = table_find(table, (const char *[]){ "eventfd", "none",
							      table->row[i]->label[2] });
		if (control)
			row_ratios(table->row[i], control, WAKEUPS, RATIO);
	}
}

/*
 * A machine that is too slow for the pace takes several events of an eventfd at once
 * anyhow, so the goal holds where each wakes the consumer.
 */
static void conclude_wakeups(struct table *table, unsigned int control,
			     unsigned int number)
{
	double before = series_median(figure(table, control, WAKEUPS));
	double after = series_median(figure(table, number, WAKEUPS));

	table_verdict(table, before / after, before > 0.98 ? ">=" : NULL, FEWER,
		      "wakeups with a mark of %d, %u writes/s: %.1f times fewer (eventfd "
		      "%.3f a write)",
		      MARK, kinds[number].rate, before / after, before);
}

static void conclude_latency(struct table *table, unsigned int number, double goal,
			     const char *what)
{
	double p99 = series_median(figure(table, number, P99));

	table_verdict(table, p99, "<=", goal, "p99 of %s, %u writes/s: %.0f us", what,
		      kinds[number].rate, p99);
}

static void conclude(const struct settings *settings, struct table *table)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++)
		if (samples[i].count)
			find_row(table, i)->distribution =
				samples_distribution(&samples[i]);
	compare_wakeups(table);
	if (settings->only)
		return;
	conclude_wakeups(table, EVENTFD_FAST, MARK_FAST);
	conclude_wakeups(table, EVENTFD_MEDIUM, MARK_MEDIUM);
	conclude_latency(table, MARK_FAST, DELAY_NS / 1e3 + LATE_US,
			 "an event with mark and delay");
	conclude_latency(table, MARK_SLOW, DELAY_NS / 1e3 + LATE_US,
			 "an event with mark and delay");
	conclude_latency(table, URGENT_FAST, LATE_US, "an urgent event");
}

const struct bench bench_batch = {
	.name = "batch",
	.title = "events at a pace, and a consumer that is woken for 64 or after 2 ms",
	.labels = labels,
	.columns = columns,
	.cases = KINDS,
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
