// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread that wakes an event loop: one that sleeps, and a busy one, which looks for
 * events between its other work and never sleeps in the call that waits for them. What
 * the signal costs the thread, what a look costs the busy loop, and when the loop has the
 * signal.
 */
#include <stdatomic.h>
#include <string.h>

#include "channel.h"

#define SIGNALS 1000
/* An idle loop can sleep again; a busy one has looked several times. */
#define IDLE_PACE_NS 1000000
#define BUSY_PACE_NS 100000
#define WORK_NS	     20000

static const struct channel *const loops[] = {
	&channel_epoll_eventfd, &channel_epoll_flowfd, &channel_epoll_mapped,
	&channel_post,		&channel_msg,
};

#define LOOPS (sizeof(loops) / sizeof(*loops))
#define CASES (2 * LOOPS)

enum { SIGNAL, SIGNAL_RATIO, LOOK, LOOK_RATIO, MEDIAN, MEDIAN_RATIO, P99 };

static const struct column columns[] = {
	{ "signal", "signal", 0, true },      { "signal_ratio", "ratio", 3, true },
	{ "look", "look", 0, true },	      { "look_ratio", "ratio", 3, false },
	{ "median", "until taken", 0, true }, { "median_ratio", "ratio", 3, true },
	{ "p99", "p99", 0, false },	      { 0 },
};

static const char *const labels[] = { "loop", "channel", NULL };

static struct samples samples[CASES];

/**
 * struct loop - the loop, and times of its signals
 * @clock: what the clock takes, which is part of each time
 * @taken: signals that the loop has
 * @looks: calls of @channel's take()
 * @look: how long the last of them took
 * @signal: how long each signal took the thread
 * @begun: when it was begun
 * @had: when the loop had it
 */
struct loop {
	const struct channel *channel;
	void *self;
	bool busy;
	double clock;
	atomic_uint taken;
	unsigned long looks;
	double look[SIGNALS];
	double signal[SIGNALS];
	uint64_t begun[SIGNALS];
	uint64_t had[SIGNALS];
};

static double clock_cost(void)
{
	uint64_t best = UINT64_MAX, time;
	unsigned int i;

	for (i = 0; i < SIGNALS; i++) {
		time = clock_now();
		time = clock_now() - time;
		if (time < best)
			best = time;
	}
	return (double)best;
}

static void look(struct loop *loop)
{
	uint64_t start = clock_now(), end;
	bool found = loop->channel->take(loop->self);

	end = clock_now();
	loop->look[loop->looks++ % SIGNALS] = (double)(end - start);
	if (!found)
		return;
	loop->had[loop->taken] = end;
	loop->taken++;
}

static void *run_loop(void *arg)
{
	struct loop *loop = arg;

	loop->clock = clock_cost();
	while (loop->taken < SIGNALS) {
		look(loop);
		if (loop->busy)
			pair_work_until(clock_now() + WORK_NS);
	}
	return NULL;
}

/* Waits for a late loop: two signals would be one. */
static void *signal_at_pace(void *arg)
{
	struct loop *loop = arg;
	unsigned int i;

	for (i = 0; i < SIGNALS; i++) {
		do {
			clock_sleep_until(clock_now() +
					  (loop->busy ? BUSY_PACE_NS : IDLE_PACE_NS));
		} while (loop->taken < i);
		loop->begun[i] = clock_now();
		loop->channel->signal(loop->self, 0, 1);
		loop->signal[i] = (double)(clock_now() - loop->begun[i]);
	}
	return NULL;
}

static const struct subject *subject(unsigned int number)
{
	return loops[number % LOOPS]->subject;
}

static struct row *find_row(struct table *table, unsigned int number)
{
	return table_row(table, (const char *[]){ number < LOOPS ? "idle" : "busy",
						  loops[number % LOOPS]->name });
}

static void keep(struct loop *loop, struct row *row, unsigned int number)
{
	static double us[SIGNALS];
	unsigned int i;

	for (i = 0; i < SIGNALS; i++)
		us[i] = ((double)loop->had[i] - (double)loop->begun[i]) / 1e3;
	samples_add(&samples[number], us, SIGNALS);
	series_add(&row->series[SIGNAL],
		   samples_median(loop->signal, SIGNALS) - loop->clock);
	series_add(&row->series[MEDIAN], us[SIGNALS / 2] * 1e3);
	series_add(&row->series[P99], us[SIGNALS * 99 / 100] * 1e3);
	if (loop->busy)
		series_add(&row->series[LOOK],
			   samples_median(loop->look, SIGNALS) - loop->clock);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	static struct loop loop;
	struct pair pair;

	(void)settings;
	memset(&loop, 0, sizeof(loop));
	loop.channel = loops[number % LOOPS];
	loop.busy = number >= LOOPS;
	if (!channel_is_here(loop.channel))
		return;
	loop.self = loop.channel->open(loop.channel, 1, loop.busy);
	pair_start(&pair, run_loop, signal_at_pace, &loop);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	loop.channel->close(loop.self);
	keep(&loop, find_row(table, number), number);
}

/* Ratios to an eventfd, of the same kind of loop. */
static void add_ratios(struct table *table)
{
	const struct row *control;
	struct row *row;
	unsigned int i, j;

	for (i = 0; i < table->rows; i++) {
		row = table->row[i];
		control = table_find(table,
				     (const char *[]){ row->label[0], loops[0]->name });
		for (j = SIGNAL; control && j <= MEDIAN; j += 2)
			row_ratios(row, control, j, j + 1);
	}
}

static void conclude_row(const struct settings *settings, struct table *table,
			 const char *which, const struct channel *channel)
{
	const char *const at[] = { which, channel->name };
	const struct row *row = table_find(table, at);

	if (!row || !row->series[SIGNAL_RATIO].count)
		return;
	table_verdict(table, series_median(&row->series[SIGNAL_RATIO]), NULL, 0,
		      "to signal the %s loop, %s: %.3f of an eventfd (%.0f %s)", which,
		      channel->name, series_median(&row->series[SIGNAL_RATIO]),
		      series_median(&row->series[SIGNAL]),
		      settings->instructions ? "instructions" : "ns");
}

static void conclude(const struct settings *settings, struct table *table)
{
	unsigned int i;

	table->note = channel_note(
		loops, LOOPS,
		settings->instructions ? "instructions, both on one CPU" : "nanoseconds");
	add_ratios(table);
	for (i = 0; i < CASES; i++)
		if (samples[i].count)
			find_row(table, i)->distribution =
				samples_distribution(&samples[i]);
	conclude_row(settings, table, "idle", &channel_epoll_mapped);
	conclude_row(settings, table, "idle", &channel_post);
	conclude_row(settings, table, "busy", &channel_epoll_mapped);
	conclude_row(settings, table, "busy", &channel_post);
}

const struct bench bench_loop = {
	.name = "loop",
	.title = "a thread wakes an event loop, which sleeps or is busy",
	.labels = labels,
	.columns = columns,
	.cases = CASES,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
