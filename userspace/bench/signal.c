// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a signal costs where nobody sleeps: one thread signals and takes that, by each
 * channel.
 */
#include "channel.h"

enum { COST, RATIO };

static const struct column columns[] = {
	{ "cost", "signal + take", 1, true },
	{ "ratio", "ratio", 3, true },
	{ 0 },
};

static const char *const labels[] = { "channel", NULL };

static const struct subject *subject(unsigned int number)
{
	return channels[number]->subject;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct channel *channel = channels[number];
	unsigned long n = settings->iterations;
	uint64_t start;
	void *self;

	if (!channel_is_here(channel))
		return;
	self = channel->open(channel, 1, false);
	channel->turns(self, n / 20 + 1); /* warms the caches */
	start = clock_now();
	channel->turns(self, n);
	start = clock_now() - start;
	channel->close(self);
	series_add(&channel_row(table, channel)->series[COST], (double)start / (double)n);
}

/* @channel as a ratio to @control; a @goal of 0 is none. */
static void conclude_ratio(struct table *table, const struct channel *channel,
			   const struct channel *control, double goal, const char *unit)
{
	const struct row *row = channel_find(table, channel);
	const struct row *base = channel_find(table, control);
	double ratio;

	if (!row || !base)
		return;
	ratio = series_median(&row->series[COST]) / series_median(&base->series[COST]);
	table_verdict(table, ratio, goal ? "<=" : NULL, goal,
		      "%s and its take: %.3f of %s (%.0f %s, %.0f)", channel->name, ratio,
		      control->name, series_median(&row->series[COST]), unit,
		      series_median(&base->series[COST]));
}

static void conclude(const struct settings *settings, struct table *table)
{
	const char *unit = settings->instructions ? "instructions" : "ns";

	table->note = channel_note(channels, CHANNELS,
				   settings->instructions ? "instructions per signal" :
							    "nanoseconds per signal");
	table_ratios(table, channel_find(table, channels[0]), COST, RATIO);
	conclude_ratio(table, &channel_post, &channel_msg, 0, unit);
	conclude_ratio(table, &channel_mapped, &channel_pipe, 0, unit);
	conclude_ratio(table, &channel_mapped, &channel_condition, 0, unit);
	conclude_ratio(table, &channel_mapped, &channel_futex, 0, unit);
}

const struct bench bench_signal = {
	.name = "signal",
	.title = "one thread signals and takes that",
	.labels = labels,
	.columns = columns,
	.cases = CHANNELS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
