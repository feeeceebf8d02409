// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a signal costs while a thread on another CPU takes without rest, so that both
 * compete for the same memory. Only what was measured while both ran counts: on a busy
 * machine one of them often waits for its CPU.
 */
#include <err.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"

/* Goal: the ratio of an add in memory to a write to an eventfd. */
#define MEMORY_LIMIT 0.12

/* Signals between two looks at the clock, and looks of the taker meanwhile if it ran. */
#define BATCH	    1000
#define LOOKS	    10
#define BATCHES_MAX 1000
#define PATIENCE_NS 2000000000

enum { COST, RATIO, SEEN };

static const struct column columns[] = {
	{ "cost", "signal", 1, true },
	{ "ratio", "ratio", 3, true },
	{ "looks", "looks/signal", 3, false },
	{ 0 },
};

static const char *const labels[] = { "channel", NULL };

/**
 * struct contend - what both threads do
 * @wanted: batches to measure while both run
 * @measured: those that were
 * @cost: of a signal in each of them, in nanoseconds
 * @seen: looks of the taker for a signal, in each of them
 * @looks: of the taker, in a cache line of its own
 */
struct contend {
	const struct channel *channel;
	void *self;
	unsigned int wanted;
	unsigned int measured;
	double cost[BATCHES_MAX];
	double seen[BATCHES_MAX];
	atomic_bool done;
	_Alignas(64) atomic_ulong looks;
	_Alignas(64) char other;
};

static void *take_all(void *arg)
{
	struct contend *contend = arg;
	unsigned long looks = 0;

	while (!contend->done) {
		contend->channel->take(contend->self);
		atomic_store_explicit(&contend->looks, ++looks, memory_order_relaxed);
	}
	return NULL;
}

static void *signal_all(void *arg)
{
	struct contend *contend = arg;
	uint64_t start, time, end = clock_now() + PATIENCE_NS;
	unsigned long looks;

	do {
		looks = contend->looks;
		start = clock_now();
		contend->channel->signal(contend->self, 0, BATCH);
		time = clock_now();
		looks = contend->looks - looks;
		if (looks < LOOKS)
			continue;
		contend->seen[contend->measured] = (double)looks / BATCH;
		contend->cost[contend->measured++] = (double)(time - start) / BATCH;
	} while (contend->measured < contend->wanted && clock_now() < end);
	contend->done = true;
	return NULL;
}

static const struct subject *subject(unsigned int number)
{
	return channels[number]->subject;
}

static unsigned int batches(const struct settings *settings)
{
	unsigned long wanted = settings->iterations / BATCH + 1;

	return wanted < BATCHES_MAX ? (unsigned int)wanted : BATCHES_MAX;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct channel *channel = channels[number];
	static struct contend contend;
	struct pair pair;
	struct row *row;

	if (pair_cpus() < 2 || !channel_is_here(channel))
		return;
	memset(&contend, 0, sizeof(contend));
	contend.channel = channel;
	contend.wanted = batches(settings);
	contend.self = channel->open(channel, 1, true);
	pair_start(&pair, take_all, signal_all, &contend);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	channel->close(contend.self);
	if (!contend.measured)
		errx(EXIT_FAILURE, "contend: %s: two threads never ran together",
		     channel->name);
	row = channel_row(table, channel);
	series_add(&row->series[SEEN], samples_median(contend.seen, contend.measured));
	series_add(&row->series[COST], samples_median(contend.cost, contend.measured));
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *row = channel_find(table, &channel_mapped);
	const struct row *control = channel_find(table, channels[0]);
	const struct series *ratio;

	(void)settings;
	table->note = pair_cpus() < 2 ?
			      "not measured: it takes two CPUs" :
			      channel_note(channels, CHANNELS, "nanoseconds per signal");
	table_ratios(table, control, COST, RATIO);
	if (!row || !control)
		return;
	ratio = &row->series[RATIO];
	table_verdict(table, series_median(ratio), "<=", MEMORY_LIMIT,
		      "add in memory while another CPU takes: %.3f of eventfd "
		      "(%.0f ns, %.0f)",
		      series_median(ratio), series_median(&row->series[COST]),
		      series_median(&control->series[COST]));
}

const struct bench bench_contend = {
	.name = "contend",
	.title = "a thread signals, another takes without rest",
	.labels = labels,
	.columns = columns,
	.cases = CHANNELS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
