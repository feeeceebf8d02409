// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many watched files, by edge-triggered epoll(7) and by a ring: what an event costs, what
 * adding and removing a file costs, and what that costs programs without a ring.
 */
#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "watcher.h"

/* Of control; one call adds them all. */
#define FILES	1000

/**
 * struct work - a watcher and what it watches
 * @time: of both halves of @rounds
 */
struct work {
	struct watcher watcher;
	struct files files;
	uint64_t time[2];
	double rounds;
};

static void begin(struct work *work, unsigned int which, enum files_kind kind,
		  unsigned int count)
{
	watcher_open(&work->watcher, which, count);
	files_open(&work->files, kind, count);
}

static void end(struct work *work)
{
	watcher_close(&work->watcher);
	files_close(&work->files);
}

/* Writes to all files and takes all events, @n times. */
static void write_and_take(void *arg, unsigned long n)
{
	struct work *work = arg;
	uint64_t count = work->files.count, start, written;
	unsigned long i;

	work->time[0] = 0;
	work->time[1] = 0;
	work->rounds = (double)n;
	for (i = 0; i < n; i++) {
		start = clock_now();
		files_write(&work->files);
		written = clock_now();
		if (watcher_take(&work->watcher, (unsigned int)count) !=
		    count * (count - 1) / 2)
			errx(EXIT_FAILURE, "ring: wrong events");
		work->time[0] += written - start;
		work->time[1] += clock_now() - written;
	}
}

/* Adds and removes all files, @n times. */
static void add_and_remove(void *arg, unsigned long n)
{
	struct work *work = arg;
	uint64_t start, added;
	unsigned long i;

	work->time[0] = 0;
	work->time[1] = 0;
	work->rounds = (double)n;
	for (i = 0; i < n; i++) {
		start = clock_now();
		watcher_add(&work->watcher, &work->files);
		added = clock_now();
		watcher_remove(&work->watcher, &work->files);
		work->time[0] += added - start;
		work->time[1] += clock_now() - added;
	}
}

/* Both times for each file, without the clock's; returns their sum. */
static double keep_times(const struct work *work, struct row *row)
{
	double overhead = clock_cost() * work->rounds;
	double all = work->rounds * work->files.count;
	double first = ((double)work->time[0] - overhead) / all;
	double second = ((double)work->time[1] - overhead) / all;

	series_add(&row->series[0], first);
	series_add(&row->series[1], second);
	return first + second;
}

static const unsigned int counts[] = { 1, 16, 256, 4096 };

#define COUNTS (sizeof(counts) / sizeof(*counts))

static void measure_ring(struct table *table, unsigned int number)
{
	unsigned int count = counts[number / WATCHERS % COUNTS];
	enum files_kind kind = number / WATCHERS / COUNTS ? COUNTERS : EVENTFDS;
	static struct work work;
	struct row *row;
	char text[24];

	begin(&work, number % WATCHERS, kind, count);
	watcher_add(&work.watcher, &work.files);
	clock_loop(write_and_take, &work);
	snprintf(text, sizeof(text), "%u", count);
	row = table_row(table, (const char *[]){ files_name(kind), text,
						 watcher_name(number % WATCHERS) });
	series_add(&row->series[2], keep_times(&work, row));
	end(&work);
}

const struct bench bench_ring = {
	.name = "ring",
	.title = "an event of many watched files: written, and taken",
	.labels = { "source", "files", "watcher" },
	.columns = { { "write", "write", 1, 0 },
		     { "take", "take", 2, 0 },
		     { "total", "total", 1, 0 },
		     { "write_ratio", "ratio of write", 3, 1 },
		     { "take_ratio", "of take", 3, 2 },
		     { "ratio", "of total", 3, 3 } },
	/* Counters are compared with eventfds, too. */
	.control = { "eventfd", NULL, "epoll ET" },
	.cases = 2 * COUNTS * WATCHERS,
	.measure = measure_ring,
};

static void measure_control(struct table *table, unsigned int number)
{
	enum files_kind kind = number / WATCHERS ? SOCKETS : EVENTFDS;
	static struct work work;

	begin(&work, number % WATCHERS, kind, FILES);
	clock_loop(add_and_remove, &work);
	keep_times(&work, table_row(table, (const char *[]){ files_name(kind),
							     watcher_name(number % WATCHERS) }));
	end(&work);
}

const struct bench bench_control = {
	.name = "control",
	.title = "watching 1000 files, and watching them no longer",
	.labels = { "source", "watcher" },
	.columns = { { "add", "add", 1, 0 },
		     { "remove", "remove", 1, 0 },
		     { "add_ratio", "ratio of add", 3, 1 },
		     { "remove_ratio", "of remove", 3, 2 } },
	.control = { NULL, "epoll ET" },
	.cases = 2 * WATCHERS,
	.measure = measure_control,
};

/* Writes 8 bytes to a file and reads them, @n times. */
static void write_and_read(void *arg, unsigned long n)
{
	const struct files *files = arg;
	uint64_t value;

	while (n--) {
		files_write(files);
		if (read(files->fd[0], &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "others: read");
	}
}

/* A ring is told of closes by fsnotify, which looks at each file of the same kind. */
static void measure_others(struct table *table, unsigned int number)
{
	enum files_kind kind = number / 2 ? PIPES : SOCKETS;
	static struct work work;
	struct files files;

	begin(&work, WATCHER_RING, kind, 1);
	if (number % 2)
		watcher_add(&work.watcher, &work.files);
	files_open(&files, kind, 1);
	table_add(table, 0, clock_loop(write_and_read, &files), files_name(kind),
		  number % 2 ? "another" : "none");
	files_close(&files);
	end(&work);
}

const struct bench bench_others = {
	.name = "others",
	.title = "write and read of a file that no ring watches",
	.labels = { "file", "a ring watches" },
	.columns = { { "cost", "write + read", 1, 0 }, { "ratio", "ratio", 3, 1 } },
	.control = { NULL, "none" },
	.cases = 4,
	.measure = measure_others,
};
