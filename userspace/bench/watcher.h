/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - the ways to watch many files, behind one table of functions,
 * and the files. Each measures itself, so that no call through a pointer is in
 * what is measured per event.
 */
#ifndef FLOWFD_BENCH_WATCHER_H
#define FLOWFD_BENCH_WATCHER_H

#include "bench.h"

enum files_kind { EVENTFDS, COUNTERS, SOCKETS, PIPES };

/**
 * struct files - what is watched
 * @kind: what they are
 * @count: length of @fd and @peer
 * @fd: watched
 * @peer: where to write so that @fd is readable; may be @fd itself
 */
struct files {
	enum files_kind kind;
	unsigned int count;
	int *fd;
	int *peer;
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
 * struct watcher - a way to be told which of many files are readable
 * @flowfd: needs the module
 * @open: for @files at most; NULL: it is not to be had here
 * @add: watches all files, edge-triggered; the data is a file's number
 * @remove: watches none of them any more
 * @take: takes @count events that are there, and returns the sum of their data
 * @wait: sleeps until there is an event, takes all, and returns how many
 */
struct watcher {
	const char *name;
	bool flowfd;
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
extern const struct watcher watcher_array;

#endif /* FLOWFD_BENCH_WATCHER_H */
