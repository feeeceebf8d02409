/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - ways for threads to signal one that sleeps, behind one table of
 * functions. A signal says that there is something to do; several may be taken at once.
 */
#ifndef FLOWFD_BENCH_CHANNEL_H
#define FLOWFD_BENCH_CHANNEL_H

#include "bench.h"

/**
 * struct channel - a way to signal
 * @subject: eventfd or flowfd; NULL: neither
 * @missing: NULL, or a function that returns why this machine has no such channel, or
 *	NULL
 * @uncounted: its system calls are glibc's, which cannot be counted
 * @open: makes one for @senders threads; if @awake, @take never sleeps
 * @signal: signals @count times, as number @sender of the threads
 * @take: sleeps until there is a signal, takes all, and returns true; false: there is
 *	none
 * @turns: signals once and takes that, @count times
 */
struct channel {
	const char *name;
	const struct subject *subject;
	const char *(*missing)(void);
	bool uncounted;
	void *(*open)(const struct channel *channel, unsigned int senders, bool awake);
	void (*signal)(void *self, unsigned int sender, unsigned long count);
	bool (*take)(void *self);
	void (*turns)(void *self, unsigned long count);
	void (*close)(void *self);
};

/* The first is the control. */
extern const struct channel channel_eventfd;
extern const struct channel channel_flowfd;
extern const struct channel channel_mapped;
extern const struct channel channel_post;
extern const struct channel channel_pipe;
extern const struct channel channel_futex;
extern const struct channel channel_condition;
extern const struct channel channel_msg;

/* Of event loops, which watch other files as well: without @turns. */
extern const struct channel channel_epoll_eventfd;
extern const struct channel channel_epoll_flowfd;
extern const struct channel channel_epoll_mapped;

/* channel.c */
#define CHANNELS 8
extern const struct channel *const channels[CHANNELS];

void *channel_new(size_t size);
bool channel_is_here(const struct channel *channel);
const char *channel_note(const struct channel *const *of, unsigned int count,
			 const char *what);
struct row *channel_row(struct table *table, const struct channel *channel);
const struct row *channel_find(const struct table *table, const struct channel *channel);
unsigned long channel_sleeps(void);

#endif /* FLOWFD_BENCH_CHANNEL_H */
