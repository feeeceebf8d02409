/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - ways to signal one that sleeps, behind one table of functions. A signal
 * says that there is something to do; several may be taken at once.
 */
#ifndef FLOWFD_BENCH_CHANNEL_H
#define FLOWFD_BENCH_CHANNEL_H

#include <stdatomic.h>

#include "bench.h"
#include "calls.h"

/**
 * struct end - an open channel, of which each has some members
 * @awake: taking never sleeps
 * @in: descriptor to read or to watch
 * @out: descriptor to write
 * @ep: epoll that watches @in, edge-triggered; -1: none
 * @counter: in memory
 * @ring: with the post @item, or with @in
 * @word: of a futex
 * @futex: flags of its calls
 */
struct end {
	bool awake;
	int in;
	int out;
	int ep;
	struct flowfd_counter counter;
	struct flowfd_ring ring;
	uint32_t item;
	atomic_uint word;
	int futex;
};

/**
 * struct channel - a way to signal
 * @kind: what is opened: the descriptor or the counter in memory of @subject, a post of a
 *	ring, a word of this process or of several, or a pair of descriptors
 * @loop: what an event loop waits for it with
 * @subject: a descriptor, or the bucket of a counter in memory
 * @options: FLOWFD_* of a counter in memory
 * @signal: signals @count times
 * @take: sleeps until there is a signal, takes all, and returns how many; 0: there is
 *	none
 */
struct channel {
	const char *name;
	enum { DESCRIPTOR, IN_MEMORY, POST, FUTEX, SHARED_FUTEX, PIPE, DATAGRAM } kind;
	enum { NO_LOOP, EPOLL, RING } loop;
	struct subject subject;
	unsigned int options;
	void (*signal)(struct end *end, unsigned long count);
	uint64_t (*take)(struct end *end);
};

/* Of a counter with a bucket. */
#define CAPACITY 2
#define RATE	 1000

extern const struct channel channel_eventfd, channel_flowfd, channel_bucket,
	channel_memory, channel_memory_bucket, channel_post, channel_futex;
extern const struct channel channel_epoll_eventfd, channel_epoll_flowfd,
	channel_epoll_memory, channel_ring_eventfd;
/* Of two processes. */
extern const struct channel channel_by_default, channel_no_poll, channel_one_consumer,
	channel_shared_futex, channel_pipe, channel_datagram;

/* What needs no module. */
bool channel_without(const struct channel *channel);
struct end *channel_open(const struct channel *channel, bool awake);
/* That of another process. */
struct end *channel_import(const struct channel *channel, struct end *end);
void channel_close(const struct channel *channel, struct end *end);

int epoll_open(int fd);
void futex_turns(void *end, unsigned long count);

#endif /* FLOWFD_BENCH_CHANNEL_H */
