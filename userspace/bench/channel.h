/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - ways for threads to signal one that sleeps, behind one table of
 * functions. A signal says that there is something to do; several may be taken at once.
 */
#ifndef FLOWFD_BENCH_CHANNEL_H
#define FLOWFD_BENCH_CHANNEL_H

#include <stdatomic.h>

#include "bench.h"
#include "calls.h"

/**
 * struct end - an open channel, of which each has some members
 * @awake: taking never sleeps
 * @memory: @fd is that of @counter
 * @fd: descriptor to write and read, or to watch
 * @ep: epoll that watches @fd, edge-triggered; -1: none
 * @counter: in memory
 * @ring: with the post @item
 * @word: of a futex
 */
struct end {
	bool awake;
	bool memory;
	int fd;
	int ep;
	struct flowfd_counter counter;
	struct flowfd_ring ring;
	uint32_t item;
	atomic_uint word;
};

enum { MODULE = 1, MEMORY = 2, EPOLL = 4, POST = 8, FUTEX = 16 };

/**
 * struct channel - a way to signal
 * @is: MODULE: a counter that needs it; MEMORY: a counter in memory; EPOLL: an event loop
 *	on epoll waits for it; POST: a post of a ring; FUTEX: a word
 * @signal: signals @count times
 * @take: sleeps until there is a signal, takes all, and returns true; false: there is
 *	none
 * @turns: signals once and takes that, @count times
 */
struct channel {
	const char *name;
	unsigned int is;
	void (*signal)(struct end *end, unsigned long count);
	bool (*take)(struct end *end);
	void (*turns)(void *end, unsigned long count);
};

extern const struct channel channel_eventfd, channel_flowfd, channel_memory, channel_post,
	channel_futex, channel_epoll_eventfd, channel_epoll_flowfd, channel_epoll_memory;

struct end *channel_open(const struct channel *channel, bool awake);
void channel_close(const struct channel *channel, struct end *end);

/* With a bucket, unless @rate is 0. */
void open_in_memory(struct flowfd_counter *counter, uint32_t capacity, uint32_t rate);

#endif /* FLOWFD_BENCH_CHANNEL_H */
