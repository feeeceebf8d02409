/* SPDX-License-Identifier: MIT */
/*
 * An event loop, in several ways: what the server needs of epoll(7), io_uring(7)
 * and the ring of flowfd. All files are watched for the same events and for as
 * long as they are open. Events are edge-triggered: they say that something has
 * changed, and the server goes on until EAGAIN.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP)

/* No EPOLL* bit. */
#define LOOP_LOST (1U << 5)

/* Most files and events of one call. */
#define LOOP_BATCH 256

/**
 * struct loop_file - a file to watch
 * @fd: the file
 * @error: filled in: 0, or a negative errno
 */
struct loop_file {
	int fd;
	int error;
};

/**
 * struct loop_event - what happened to a file
 * @fd: the file
 * @events: EPOLL* bits, or LOOP_LOST: it could not be watched
 */
struct loop_event {
	int fd;
	uint32_t events;
};

/**
 * struct loop - a way to wait for events; a program has one at a time
 * @name: for the command line
 * @open: get ready for descriptors below @max_files; 0 or a negative errno
 * @watch: begin to watch @count files; what they are ready for is an event
 * @forget: a file is about to be closed; NULL: nothing to do
 * @wait: wait for at most @timeout milliseconds, -1: for ever; returns how many
 *	@events there are, at most LOOP_BATCH, or a negative errno
 * @close: end, with all that is watched
 * @strerror: explain an error of these
 */
struct loop {
	const char *name;
	int (*open)(unsigned int max_files);
	void (*watch)(struct loop_file *files, unsigned int count);
	void (*forget)(int fd);
	int (*wait)(struct loop_event *events, int timeout);
	void (*close)(void);
	const char *(*strerror)(int error);
};

extern const struct loop loop_epoll;
extern const struct loop loop_uring;
extern const struct loop loop_ring;
extern const struct loop loop_gather;

#endif /* LOOP_H */
