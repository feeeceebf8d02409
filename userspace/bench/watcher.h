/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - many files, and two ways to watch them: edge-triggered epoll(7), and a
 * ring. Each function has many events, so that its own cost is not that of an event.
 */
#ifndef FLOWFD_BENCH_WATCHER_H
#define FLOWFD_BENCH_WATCHER_H

#include <sys/epoll.h>

#include <flowfd.h>

#include "bench.h"

enum files_kind { EVENTFDS, COUNTERS, SOCKETS, PIPES };

/**
 * struct files - the files to watch
 * @count: length of @fd and @peer
 * @fd: descriptors to watch
 * @peer: descriptors whose writes make @fd readable; may be @fd itself
 */
struct files {
	unsigned int count;
	int *fd;
	int *peer;
};

void files_open(struct files *files, enum files_kind kind, unsigned int count);
void files_close(struct files *files);
void files_write(const struct files *files);
const char *files_name(enum files_kind kind);

#define WATCHERS     2
#define WATCHER_RING 1

/**
 * struct watcher - an epoll, or a ring
 * @ep: descriptor of the epoll; -1: it is a ring
 * @entry: for calls that add or remove
 */
struct watcher {
	int ep;
	struct epoll_event event[256];
	struct flowfd_ring ring;
	struct flowfd_ring_entry *entry;
};

const char *watcher_name(unsigned int which);
void watcher_open(struct watcher *watcher, unsigned int which, unsigned int files);
void watcher_close(struct watcher *watcher);
void watcher_add(struct watcher *watcher, const struct files *files);
void watcher_remove(struct watcher *watcher, const struct files *files);
uint64_t watcher_take(struct watcher *watcher, unsigned int count);

#endif /* FLOWFD_BENCH_WATCHER_H */
