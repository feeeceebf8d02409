// SPDX-License-Identifier: GPL-2.0-only
/*
 * The project's goals: all of them, and nowhere else. Each row of README.md and
 * docs/performance.md has one here, but those in nanoseconds.
 */
#include <string.h>

#include "bench.h"

/*
 * Instructions are the same on every machine. What two threads do to each other is not,
 * but is not checked where an emulator decides how long it takes.
 */
enum when {
	ALWAYS,
	INSTRUCTIONS, /* only if the clock counts them */
	UNDISTORTED,  /* unless the processor is emulated and the clock is real */
};

static const struct goal {
	const char *bench;
	const char *label[LABELS_MAX];
	const char *key;
	double most;
	enum when when;
} goals[] = {
	{ "cost", { "write + read", "flowfd" }, "ratio", 0.86, INSTRUCTIONS },
	{ "cost", { "write + read", "+ bucket" }, "ratio", 0.86, INSTRUCTIONS },
	{ "cost", { "write", "flowfd" }, "ratio", 0.95, INSTRUCTIONS },
	{ "cost", { "read", "flowfd" }, "ratio", 0.83, INSTRUCTIONS },
	{ "cost", { "write, full", "flowfd" }, "ratio", 0.98, INSTRUCTIONS },
	{ "cost", { "read, empty", "flowfd" }, "ratio", 0.93, INSTRUCTIONS },
	{ "cost", { "poll, ready", "flowfd" }, "ratio", 1.00, INSTRUCTIONS },
	{ "cost", { "poll, not ready", "flowfd" }, "ratio", 1.01, INSTRUCTIONS },
	{ "cost", { "create + close", "flowfd" }, "ratio", 1.22, INSTRUCTIONS },
	{ "cost", { "same, opens it", "flowfd" }, "ratio", 2.2, INSTRUCTIONS },
	{ "cost", { "write + read", "in memory" }, "ratio", 0.03, INSTRUCTIONS },
	{ "cost", { "write + read", "post" }, "ratio", 0.05, INSTRUCTIONS },
	{ "cost", { "write + epoll_wait", "post" }, "ratio", 0.05, INSTRUCTIONS },
	{ "cost", { "write", "in memory" }, "ratio", 0.04, INSTRUCTIONS },
	{ "cost", { "read, empty", "in memory" }, "ratio", 0.06, INSTRUCTIONS },

	{ "ring", { "eventfd", "256", "ring" }, "write_ratio", 0.90, INSTRUCTIONS },
	{ "ring", { "eventfd", "256", "ring" }, "take_ratio", 0.10, INSTRUCTIONS },
	{ "ring", { "eventfd", "256", "ring" }, "ratio", 0.78, INSTRUCTIONS },
	{ "ring", { "flowfd", "256", "ring" }, "ratio", 0.70, INSTRUCTIONS },
	{ "ring", { "eventfd", "1", "ring" }, "ratio", 0.56, INSTRUCTIONS },
	{ "control", { "eventfd", "ring" }, "add_ratio", 0.70, INSTRUCTIONS },
	{ "control", { "eventfd", "ring" }, "remove_ratio", 0.58, INSTRUCTIONS },
	{ "control", { "socketpair", "ring" }, "add_ratio", 1.25, INSTRUCTIONS },
	{ "control", { "socketpair", "ring" }, "remove_ratio", 1.05, INSTRUCTIONS },
	{ "others", { "socketpair", "another" }, "ratio", 1.07, INSTRUCTIONS },
	{ "others", { "pipe", "another" }, "ratio", 1.12, INSTRUCTIONS },
	{ "accept", { "balanced" }, "ratio", 1.03, INSTRUCTIONS },
	{ "memory", { "watched eventfd", "ring" }, "ratio", 1, ALWAYS },
	{ "memory", { "watched socketpair", "ring" }, "ratio", 1.65, ALWAYS },
	{ "memory", { "a counter", "flowfd" }, "bytes", 384, ALWAYS },

	{ "pingpong", { "flowfd" }, "ratio", 1.05, INSTRUCTIONS },
	{ "pingpong", { "in memory" }, "ratio", 1.2, INSTRUCTIONS },
	{ "pingpong", { "post" }, "ratio", 1.1, INSTRUCTIONS },
	{ "fanin", { "flowfd" }, "ratio", 0.90, INSTRUCTIONS },
	{ "fanin", { "in memory" }, "ratio", 0.05, INSTRUCTIONS },
	{ "fanin", { "post" }, "ratio", 0.05, INSTRUCTIONS },
	{ "fanin", { "in memory" }, "calls", 0.5, ALWAYS },
	{ "fanin", { "post" }, "calls", 0.5, ALWAYS },
	{ "loop", { "busy", "flowfd, epoll" }, "signal_ratio", 0.99, INSTRUCTIONS },
	{ "loop", { "busy", "memory, epoll" }, "signal_ratio", 1.23, INSTRUCTIONS },
	{ "loop", { "busy", "post" }, "signal_ratio", 0.06, INSTRUCTIONS },
	{ "loop", { "busy", "post" }, "look_ratio", 0.08, INSTRUCTIONS },
	{ "loop", { "idle", "flowfd, epoll" }, "taken_ratio", 1.01, INSTRUCTIONS },
	{ "loop", { "idle", "memory, epoll" }, "taken_ratio", 1.05, INSTRUCTIONS },
	{ "loop", { "idle", "eventfd, ring" }, "taken_ratio", 1, INSTRUCTIONS },
	{ "loop", { "idle", "post" }, "taken_ratio", 0.97, INSTRUCTIONS },

	{ "burst", { "flowfd", "blocking", "10" }, "ratio", 0.03, UNDISTORTED },
	{ "burst", { "flowfd", "O_NONBLOCK+poll", "10" }, "ratio", 0.05, UNDISTORTED },
	{ "latency", { "flowfd", "10" }, "ratio", 1 / 60., UNDISTORTED },
	{ "bucket", { "epoll ET", "flat out", "flowfd", "1000/s, 2" }, "ratio", 0.2,
	  UNDISTORTED },
	{ "bucket", { "poll", "one in 50 us", "flowfd", "1000/s, 2" }, "ratio", 0.2,
	  UNDISTORTED },
	/*
	 * A call for each token, and one in vain if the timer interrupts an add before it
	 * looks for sleepers: the consumer that the timer wakes takes that add, and the
	 * next one notifies again. A publisher that sleeps is not interrupted there.
	 */
	{ "bucket", { "epoll ET", "flat out", "in memory", "1000/s, 2" }, "per_token", 1.5,
	  UNDISTORTED },
	{ "bucket", { "epoll ET", "one in 50 us", "in memory", "1000/s, 2" }, "per_token",
	  1.1, UNDISTORTED },
};

static unsigned int find_column(const struct bench *bench, const char *key)
{
	unsigned int j = 0;

	while (strcmp(bench->columns[j].key, key))
		j++;
	return j;
}

static bool is_for(const struct goal *goal, const struct table *table)
{
	if (strcmp(goal->bench, table->bench->name))
		return false;
	return goal->when == ALWAYS || settings.instructions ||
	       (goal->when == UNDISTORTED && !result_emulated());
}

/* What was not measured is missed. */
static bool print_goal(const struct goal *goal, struct table *table, FILE *file)
{
	const struct row *row = table_find(table, goal->label);
	const struct series *series =
		row ? &row->series[find_column(table->bench, goal->key)] : NULL;
	bool met = series && series->count && series_median(series) <= goal->most;

	fprintf(file, "  goal: %s", goal->bench);
	for (unsigned int j = 0; j < LABELS_MAX && goal->label[j]; j++)
		fprintf(file, ", %s", goal->label[j]);
	fprintf(file, ": %s ", goal->key);
	if (series && series->count)
		fprintf(file, "%.4g", series_median(series));
	else
		fprintf(file, "not measured");
	fprintf(file, ", at most %.4g: %s\n", goal->most, met ? "met" : "MISSED");
	return met;
}

/* Prints the goals for @table; returns whether all are met. */
bool goals_print(struct table *table, FILE *file)
{
	bool met = true;
	size_t i;

	for (i = 0; i < sizeof(goals) / sizeof(*goals); i++)
		if (is_for(&goals[i], table))
			met &= print_goal(&goals[i], table, file);
	return met;
}
