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
#define KINDS (sizeof(kinds) / sizeof(*kinds))

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

/*
 * The growth of the slabs per file. The files are watched until the process ends:
 * freed objects stay in the caches for a while, and using them again is no growth.
 */
static double watch_for_good(unsigned int which, enum files_kind kind)
{
	double before = 0, after = 0;
	struct watcher watcher;
	struct files files;

	files_open(&files, kind, FILES);
	watcher_open(&watcher, which, FILES);
	read_slabs(add_bytes, &before);
	watcher_add(&watcher, &files);
	read_slabs(add_bytes, &after);
	return (after - before) / FILES;
}

static void add_row(struct table *table, const char *what, const char *by, double bytes)
{
	series_add(&table_row(table, (const char *[]){ what, by })->series[0], bytes);
}

static void measure_size(struct table *table, const char *cache, const char *what,
			 const char *by)
{
	struct wanted wanted = { .name = cache };

	read_slabs(find_size, &wanted);
	if (wanted.size)
		add_row(table, what, by, wanted.size);
}

static void measure_mapping(struct table *table)
{
	struct flowfd_ring ring;
	int error = flowfd_ring_create(&ring, ITEMS, 0);

	if (error)
		errx(EXIT_FAILURE, "ring: %s", flowfd_strerror(error));
	add_row(table, "mapping, per file", watcher_name(WATCHER_RING),
		(double)ring.map_size / ITEMS);
	flowfd_ring_destroy(&ring);
}

/* After the others, so that the caches exist. */
static void measure_sizes(struct table *table)
{
	measure_size(table, "flowfd_watch", "a watch", watcher_name(WATCHER_RING));
	measure_size(table, "flowfd_counter", "a counter", "flowfd");
	measure_mapping(table);
}

static void measure(struct table *table, unsigned int number)
{
	unsigned int which = number % WATCHERS;
	enum files_kind kind;
	double nothing = 0;
	char what[32];

	if (number == KINDS * WATCHERS) {
		measure_sizes(table);
		return;
	}
	kind = kinds[number / WATCHERS];
	if (!read_slabs(add_bytes, &nothing))
		return;
	snprintf(what, sizeof(what), "watched %s", files_name(kind));
	/* A first time, to use up objects that were freed before. */
	if (!table_find(table, (const char *[]){ what, watcher_name(which) }))
		watch_for_good(which, kind);
	add_row(table, what, watcher_name(which), watch_for_good(which, kind));
}

const struct bench bench_memory = {
	.name = "memory",
	.title = "memory of a watched file, of 1024 (slabs; measured by root only)",
	.labels = (const char *const[]){ "what", "by", NULL },
	.columns = (const struct column[]){ { "bytes", "bytes", 1, 0 },
					    { "ratio", "ratio", 3, 1 },
					    { 0 } },
	.control = { NULL, "epoll ET" },
	.unit = "bytes",
	.cases = KINDS * WATCHERS + 1,
	.measure = measure,
};
