// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of a ring that watches a socket or a pipe, for other files: the ring asks
 * fsnotify for closes, and from then on each read and write of any socket, or of any
 * pipe, pays an fsnotify check.
 */
#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "watcher.h"

static const enum files_kind kinds[] = { SOCKETS, PIPES };

/**
 * struct state - what is watched while a file is written and read
 * @watcher: NULL: nothing is watched
 * @other: another file of the same kind is watched
 */
static const struct state {
	const char *name;
	const struct watcher *watcher;
	bool other;
} states[] = {
	{ "nobody", NULL, false },
	{ "ring, another", &watcher_ring, true },
	{ "epoll, this", &watcher_epoll, false },
	{ "ring, this", &watcher_ring, false },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define STATES (sizeof(states) / sizeof(*states))

enum { COST, RATIO };

static const struct column columns[] = {
	{ "cost", "write + read", 1, true },
	{ "ratio", "ratio", 3, true },
	{ 0 },
};

static const char *const labels[] = { "source", "watched by", NULL };

static const struct subject *subject(unsigned int number)
{
	const struct state *state = &states[number % STATES];
	static const struct subject eventfd;

	return state->watcher ? watcher_subject(state->watcher, SOCKETS) :
				&eventfd;
}

static void loop(const struct files *files, unsigned long n)
{
	int fd = files->fd[0], peer = files->peer[0];
	uint64_t value = 1;

	while (n--)
		if (write(peer, &value, sizeof(value)) != sizeof(value) ||
		    read(fd, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "mark: write and read");
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct state *state = &states[number % STATES];
	enum files_kind kind = kinds[number / STATES];
	unsigned long n = settings->iterations / 4 + 1;
	struct files files, other;
	void *self = NULL;
	struct row *row;
	uint64_t start;

	files_open(&files, kind, 1);
	files_open(&other, kind, 1);
	if (state->watcher) {
		self = state->watcher->open(1);
		state->watcher->add(self, state->other ? &other : &files);
	}
	loop(&files, n / 20 + 1); /* warms the caches */
	start = clock_now();
	loop(&files, n);
	start = clock_now() - start;
	if (self)
		state->watcher->close(self);
	files_close(&files);
	files_close(&other);
	row = table_row(table,
			(const char *[]){ files_name(kind), state->name });
	series_add(&row->series[COST], (double)start / (double)n);
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control;
	struct row *row;
	unsigned int i;

	table->note = settings->instructions ?
			      "instructions per write and read" :
			      "nanoseconds per write and read";
	for (i = 0; i < table->rows; i++) {
		row = table->row[i];
		control = table_find(table, (const char *[]){ row->label[0],
							      states[0].name });
		if (control)
			row_ratios(row, control, COST, RATIO);
	}
}

const struct bench bench_mark = {
	.name = "mark",
	.title = "writing and reading 8 bytes, while a socket or pipe is watched",
	.labels = labels,
	.columns = columns,
	.cases = KINDS * STATES,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
