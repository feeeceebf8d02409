// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two threads that signal each other in turn, so that each sleeps before each signal that
 * it takes.
 */
#include "channel.h"

enum { COST, RATIO, SLEEPS };

static const struct column columns[] = {
	{ "cost", "round", 0, true },
	{ "ratio", "ratio", 3, true },
	{ "sleeps", "sleeps/round", 2, false },
	{ 0 },
};

static const char *const labels[] = { "channel", NULL };

struct pingpong {
	const struct channel *channel;
	void *there;
	void *back;
	unsigned long rounds;
	uint64_t time;
	unsigned long sleeps[2];
};

static void wait_for(const struct pingpong *pingpong, void *self)
{
	while (!pingpong->channel->take(self))
		;
}

static void *answer(void *arg)
{
	struct pingpong *pingpong = arg;
	unsigned long before = channel_sleeps(), n = pingpong->rounds;

	while (n--) {
		wait_for(pingpong, pingpong->there);
		pingpong->channel->signal(pingpong->back, 0, 1);
	}
	pingpong->sleeps[0] = channel_sleeps() - before;
	return NULL;
}

static void *begin(void *arg)
{
	struct pingpong *pingpong = arg;
	unsigned long before = channel_sleeps(), n = pingpong->rounds;

	pingpong->time = clock_now();
	while (n--) {
		pingpong->channel->signal(pingpong->there, 0, 1);
		wait_for(pingpong, pingpong->back);
	}
	pingpong->time = clock_now() - pingpong->time;
	pingpong->sleeps[1] = channel_sleeps() - before;
	return NULL;
}

static const struct subject *subject(unsigned int number)
{
	return channels[number]->subject;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct channel *channel = channels[number];
	struct pingpong pingpong = {
		.channel = channel,
		.rounds = settings->iterations / 50 + 1,
	};
	struct pair pair;
	struct row *row;

	if (!channel_is_here(channel))
		return;
	pingpong.there = channel->open(channel, 1, false);
	pingpong.back = channel->open(channel, 1, false);
	pair_start(&pair, answer, begin, &pingpong);
	pthread_join(pair.writer, NULL);
	pthread_join(pair.reader, NULL);
	channel->close(pingpong.there);
	channel->close(pingpong.back);
	row = channel_row(table, channel);
	series_add(&row->series[COST], (double)pingpong.time / (double)pingpong.rounds);
	series_add(&row->series[SLEEPS],
		   (double)(pingpong.sleeps[0] + pingpong.sleeps[1]) /
			   (double)pingpong.rounds);
}

static void conclude_channel(const struct settings *settings, struct table *table,
			     const struct channel *channel)
{
	const struct row *row = channel_find(table, channel);
	const struct row *control = channel_find(table, channels[0]);
	double ratio;

	if (!row || !control)
		return;
	ratio = series_median(&row->series[RATIO]);
	table_verdict(table, ratio, NULL, 0,
		      "threads that always sleep: %s %.3f of eventfd (%.0f %s, %.0f)",
		      channel->name, ratio, series_median(&row->series[COST]),
		      settings->instructions ? "instructions" : "ns",
		      series_median(&control->series[COST]));
}

static void conclude(const struct settings *settings, struct table *table)
{
	table->note = channel_note(channels, CHANNELS,
				   settings->instructions ?
					   "instructions per round, both on one CPU" :
					   "nanoseconds per round");
	table_ratios(table, channel_find(table, channels[0]), COST, RATIO);
	conclude_channel(settings, table, &channel_mapped);
	conclude_channel(settings, table, &channel_post);
}

const struct bench bench_pingpong = {
	.name = "pingpong",
	.title = "two threads signal each other in turn, and sleep between",
	.labels = labels,
	.columns = columns,
	.cases = CHANNELS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
