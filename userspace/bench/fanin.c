// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight threads that signal without rest by one channel, and one that takes, and sleeps
 * when there is nothing. How often it sleeps, and how many system calls all make
 * together, for each signal.
 */
#include <err.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "channel.h"

#define SENDERS 8

enum { COST, RATE, RATIO, SLEEPS, CALLS, CALLS_RATIO };

static const struct column columns[] = {
	{ "cost", "signal", 0, true },
	{ "rate", "signals/s", 0, false },
	{ "ratio", "ratio", 3, true },
	{ "sleeps", "sleeps/signal", 5, false },
	{ "calls", "calls/signal", 5, false },
	{ "calls_ratio", "ratio of calls", 5, false },
	{ 0 },
};

static const char *const labels[] = { "channel", NULL };

struct fanin {
	const struct channel *channel;
	void *self;
	unsigned long each;
	pthread_barrier_t begin;
	atomic_bool done;
	unsigned long sleeps;
	atomic_ulong calls;
};

struct sender {
	struct fanin *fanin;
	unsigned int number;
	pthread_t thread;
};

static void *send_all(void *arg)
{
	const struct sender *sender = arg;
	struct fanin *fanin = sender->fanin;

	pthread_barrier_wait(&fanin->begin);
	fanin->channel->signal(fanin->self, sender->number, fanin->each);
	fanin->calls += calls_made;
	return NULL;
}

/* One more signal comes after @done. */
static void *take_all(void *arg)
{
	struct fanin *fanin = arg;
	unsigned long before = channel_sleeps();

	while (!fanin->done)
		fanin->channel->take(fanin->self);
	fanin->sleeps = channel_sleeps() - before;
	fanin->calls += calls_made;
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	errno = pthread_create(thread, NULL, run, arg);
	if (errno)
		err(EXIT_FAILURE, "pthread_create");
}

/* Nanoseconds until all have signalled. */
static uint64_t run(struct fanin *fanin)
{
	struct sender senders[SENDERS];
	pthread_t taker;
	unsigned int i;
	uint64_t time;

	pthread_barrier_init(&fanin->begin, NULL, SENDERS + 1);
	start(&taker, take_all, fanin);
	for (i = 0; i < SENDERS; i++) {
		senders[i].fanin = fanin;
		senders[i].number = i;
		start(&senders[i].thread, send_all, &senders[i]);
	}
	time = clock_now();
	pthread_barrier_wait(&fanin->begin);
	for (i = 0; i < SENDERS; i++)
		pthread_join(senders[i].thread, NULL);
	time = clock_now() - time;
	fanin->done = true;
	fanin->channel->signal(fanin->self, 0, 1);
	pthread_join(taker, NULL);
	pthread_barrier_destroy(&fanin->begin);
	return time;
}

static const struct subject *subject(unsigned int number)
{
	return channels[number]->subject;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	struct fanin fanin = {
		.channel = channels[number],
		.each = settings->iterations / SENDERS + 1,
	};
	double signals = (double)fanin.each * SENDERS, time;
	struct row *row;

	if (!channel_is_here(fanin.channel))
		return;
	fanin.self = fanin.channel->open(fanin.channel, SENDERS, false);
	time = (double)run(&fanin);
	fanin.channel->close(fanin.self);
	row = channel_row(table, fanin.channel);
	series_add(&row->series[COST], time / signals);
	series_add(&row->series[RATE], signals * 1e9 / time);
	series_add(&row->series[SLEEPS], (double)fanin.sleeps / signals);
	if (!fanin.channel->uncounted)
		series_add(&row->series[CALLS], (double)fanin.calls / signals);
}

static void conclude_channel(struct table *table, const struct channel *channel)
{
	const struct row *row = channel_find(table, channel);

	if (!row || !row->series[RATIO].count)
		return;
	table_verdict(
		table, series_median(&row->series[RATIO]), NULL, 0,
		"a signal of 8 threads by %s: %.3f of the time, %.4f of the calls of "
		"eventfd",
		channel->name, series_median(&row->series[RATIO]),
		series_median(&row->series[CALLS_RATIO]));
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control = channel_find(table, channels[0]);

	table->note = channel_note(
		channels, CHANNELS,
		settings->instructions ? "instructions per signal, all on one CPU" :
					 "nanoseconds per signal, all threads together");
	table_ratios(table, control, COST, RATIO);
	table_ratios(table, control, CALLS, CALLS_RATIO);
	conclude_channel(table, &channel_mapped);
	conclude_channel(table, &channel_post);
}

const struct bench bench_fanin = {
	.name = "fanin",
	.title = "8 threads signal without rest, one takes",
	.labels = labels,
	.columns = columns,
	.cases = CHANNELS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
