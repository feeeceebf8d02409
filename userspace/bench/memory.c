// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much memory a watched file takes: the growth of the kernel's slab caches, which
 * only root can read.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "watcher.h"

#define FILES 1024

/*
 * The bytes of all slabs, or the size of an object of the cache @of; 0: the slabs cannot
 * be read, or there is no such cache.
 */
static double read_slabs(const char *of)
{
	FILE *file = fopen("/proc/slabinfo", "re");
	double object, pages, slabs, result = 0;
	char line[512], name[64];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line,
			   "%63s %*u %*u %lf %*u %lf : tunables %*u %*u %*u "
			   ": slabdata %*u %lf",
			   name, &object, &pages, &slabs) != 4)
			continue;
		if (!of)
			result += slabs * pages * (double)sysconf(_SC_PAGESIZE);
		else if (!strcmp(name, of))
			result = object;
	}
	fclose(file);
	return result;
}

/*
 * The growth of the slabs per file. The files are watched until the process ends:
 * freed objects stay in the caches for a while, and using them again is no growth.
 */
static double watch_for_good(unsigned int which, enum files_kind kind)
{
	double before;
	struct watcher watcher;
	struct files files;

	files_open(&files, kind, FILES);
	watcher_open(&watcher, which, FILES);
	before = read_slabs(NULL);
	watcher_add(&watcher, &files);
	return (read_slabs(NULL) - before) / FILES;
}

static void measure(struct table *table, unsigned int number)
{
	unsigned int which = number % WATCHERS;
	enum files_kind kind = number / WATCHERS ? SOCKETS : EVENTFDS;
	double bytes;
	char what[32];

	if (number == 2 * WATCHERS) {
		/* After the others, so that the cache exists. */
		bytes = read_slabs("flowfd_counter");
		if (bytes)
			table_add(table, 0, bytes, "a counter", "flowfd");
		return;
	}
	if (!read_slabs(NULL))
		return;
	snprintf(what, sizeof(what), "watched %s", files_name(kind));
	/* A first time, to use up objects that were freed before. */
	if (!table_find(table, (const char *[]){ what, watcher_name(which) }))
		watch_for_good(which, kind);
	table_add(table, 0, watch_for_good(which, kind), what, watcher_name(which));
}

const struct bench bench_memory = {
	.name = "memory",
	.title = "memory of a watched file, of 1024 (slabs; measured by root only)",
	.labels = { "what", "by" },
	.columns = { { "bytes", "bytes", 1, 0 }, { "ratio", "ratio", 3, 1 } },
	.control = { NULL, "epoll ET" },
	.unit = "bytes",
	.cases = 2 * WATCHERS + 1,
	.measure = measure,
};
