// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much memory a watched file takes: the growth of the kernel's slab caches, and a
 * ring's mapping. Only root can read the slabs.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "watcher.h"

#define FILES	1024
/* The size of ring whose mapping is reported. */
#define ITEMS	4096

static const enum files_kind kinds[] = { EVENTFDS, COUNTERS, SOCKETS };
static const struct watcher *const watchers[] = {
	&watcher_epoll,
	&watcher_ring,
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

enum { SLAB };

static const struct column columns[] = {
	{ "slab", "slab bytes", 1, true },
	{ 0 },
};

static const char *const labels[] = { "source", "watcher", NULL };

/* Calls back for each cache; false: the slabs cannot be read. */
static bool read_slabs(void (*cache)(void *arg, const char *name, double bytes,
				     double object),
		       void *arg)
{
	FILE *file = fopen("/proc/slabinfo", "re");
	double object, pages, slabs;
	char line[512], name[64];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line,
			   "%63s %*u %*u %lf %*u %lf : tunables %*u %*u %*u "
			   ": slabdata %*u %lf",
			   name, &object, &pages, &slabs) == 4)
			cache(arg, name,
			      slabs * pages * (double)sysconf(_SC_PAGESIZE),
			      object);
	fclose(file);
	return true;
}

static void add_bytes(void *arg, const char *name, double bytes, double object)
{
	double *sum = arg;

	(void)name;
	(void)object;
	*sum += bytes;
}

struct wanted {
	const char *name;
	double size;
};

static void find_size(void *arg, const char *name, double bytes, double object)
{
	struct wanted *wanted = arg;

	(void)bytes;
	if (!strcmp(name, wanted->name))
		wanted->size = object;
}

static const struct subject *subject(unsigned int number)
{
	return watcher_subject(watchers[number % WATCHERS],
			       kinds[number / WATCHERS]);
}

/*
 * The growth of the slabs per file. The files are watched until the process ends:
 * freed objects stay in the caches for a while, and using them again is no growth.
 */
static double watch_for_good(const struct watcher *watcher,
			     enum files_kind kind)
{
	double before = 0, after = 0;
	struct files files;
	void *self;

	files_open(&files, kind, FILES);
	self = watcher->open(FILES);
	read_slabs(add_bytes, &before);
	watcher->add(self, &files);
	read_slabs(add_bytes, &after);
	return (after - before) / FILES;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct watcher *watcher = watchers[number % WATCHERS];
	enum files_kind kind = kinds[number / WATCHERS];
	double nothing = 0;
	struct row *row;

	(void)settings;
	if (!read_slabs(add_bytes, &nothing))
		return;
	row = table_row(table,
			(const char *[]){ files_name(kind), watcher->name });
	/* A first time, to use up objects that were freed before. */
	if (!row->series[SLAB].count)
		watch_for_good(watcher, kind);
	series_add(&row->series[SLAB], watch_for_good(watcher, kind));
}

static void conclude_size(struct table *table, const char *cache,
			  const char *what, double goal)
{
	struct wanted wanted = { .name = cache };

	read_slabs(find_size, &wanted);
	if (wanted.size)
		table_verdict(table, wanted.size, "<=", goal,
			      "%s: %.0f bytes (%s)", what, wanted.size, cache);
}

static void conclude_mapping(struct table *table)
{
	struct flowfd_ring ring;
	double bytes;
	int error;

	error = flowfd_ring_create(&ring, ITEMS, 0);
	if (error)
		errx(EXIT_FAILURE, "ring: %s", flowfd_strerror(error));
	bytes = (double)ring.map_size / ITEMS;
	flowfd_ring_destroy(&ring);
	table_verdict(table, bytes, "<=", 24,
		      "the mapping of a ring for %u files: %.1f bytes each",
		      ITEMS, bytes);
}

static void conclude(const struct settings *settings, struct table *table)
{
	table->note = "bytes per file, of 1024";
	if (!table->rows)
		table->note = "not measured: /proc/slabinfo is for root";
	if (settings->only && !strcmp(settings->only, "eventfd"))
		return;
	conclude_size(table, "flowfd_watch", "a watch", 192);
	conclude_size(table, "flowfd_counter", "a counter", 384);
	conclude_mapping(table);
}

const struct bench bench_memory = {
	.name = "memory",
	.title = "memory that watching takes, beside the files themselves",
	.labels = labels,
	.columns = columns,
	.cases = KINDS * WATCHERS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
