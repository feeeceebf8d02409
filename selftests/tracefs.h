/* SPDX-License-Identifier: GPL-2.0-only */
/* On which processors a tracepoint of the module is passed. */
#ifndef TRACEFS_H
#define TRACEFS_H

#include "selftest.h"

#include <sys/mount.h>
#include <sys/stat.h>

#define TRACEFS "/sys/kernel/tracing"
#define TRACEFS_INSTANCE TRACEFS "/instances/flowfd-selftest"

static inline bool tracefs_store(const char *name, const char *text)
{
	ssize_t size = strlen(text);
	char path[128];
	bool done;
	int fd;

	snprintf(path, sizeof(path), TRACEFS_INSTANCE "/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = write(fd, text, size) == size;
	close(fd);
	return done;
}

static inline void tracefs_end(void)
{
	tracefs_store("events/flowfd/enable", "0");
	rmdir(TRACEFS_INSTANCE);
}

/* Counts writes to a counter; false: without root rights, or the kernel cannot. */
static inline bool tracefs_begin(int fd)
{
	char filter[32];

	if (access(TRACEFS "/instances", F_OK))
		mount("none", TRACEFS, "tracefs", 0, NULL);
	/* Perhaps of a test that did not end. */
	tracefs_end();
	if (mkdir(TRACEFS_INSTANCE, 0700))
		return false;
	snprintf(filter, sizeof(filter), "counter == %d", id_of(fd));
	if (tracefs_store("events/flowfd/flowfd_write/filter", filter) &&
	    tracefs_store("events/flowfd/flowfd_write/enable", "1"))
		return true;
	tracefs_end();
	return false;
}

/* How many of them were on a processor. */
static inline unsigned long tracefs_entries(int cpu)
{
	char path[128], entries[32];

	snprintf(path, sizeof(path), TRACEFS_INSTANCE "/per_cpu/cpu%d/stats", cpu);
	proc_value(path, "entries", entries, sizeof(entries));
	return strtoul(entries, NULL, 10);
}

#endif /* TRACEFS_H */
