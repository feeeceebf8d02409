/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - ways to watch many files, behind one table of functions, and the
 * files. Each function processes many events, so that the cost of a call through a
 * pointer is not part of the cost of an event.
 */
#ifndef FLOWFD_BENCH_WATCHER_H
#define FLOWFD_BENCH_WATCHER_H

#include <flowfd.h>

#include "bench.h"

enum files_kind { EVENTFDS, COUNTERS, SOCKETS, PIPES, MAPPED_COUNTERS };

/**
 * struct files - the files to watch
 * @kind: their kind
 * @count: length of @fd and @peer
 * @fd: descriptors to watch
 * @peer: descriptors whose writes make @fd readable; may be @fd itself
 * @counter: MAPPED_COUNTERS: the same in memory
 */
struct files {
	enum files_kind kind;
	unsigned int count;
	int *fd;
	int *peer;
	struct flowfd_counter *counter;
};

/* files.c */
void files_open(struct files *files, enum files_kind kind, unsigned int count);
void files_close(struct files *files);
void files_write(const struct files *files);
const char *files_name(enum files_kind kind);

struct watcher;
const struct subject *watcher_subject(const struct watcher *watcher,
				      enum files_kind kind);

/**
 * struct watcher - a way to learn which of many files are readable
 * @flowfd: needs the module
 * @kind: of the files that it can watch, unless it can watch all
 * @open: makes one for @files at most; returns NULL if it is not available
 * @add: watches all files, edge-triggered; the data is the index of the file
 * @remove: removes all files
 * @take: takes @count events, which are there, and returns the sum of their data
 * @wait: sleeps until there is an event, takes all, and returns their number
 */
struct watcher {
	const char *name;
	bool flowfd;
	enum files_kind kind;
	void *(*open)(unsigned int files);
	void (*add)(void *self, const struct files *files);
	void (*remove)(void *self, const struct files *files);
	uint64_t (*take)(void *self, unsigned int count);
	unsigned int (*wait)(void *self);
	void (*close)(void *self);
};

extern const struct watcher watcher_epoll;
extern const struct watcher watcher_uring;
extern const struct watcher watcher_ring;
extern const struct watcher watcher_mapped;
extern const struct watcher watcher_array;

#endif /* FLOWFD_BENCH_WATCHER_H */
