/* SPDX-License-Identifier: MIT */
/*
 * The interface of event loops: what the server needs of epoll(7), io_uring(7) and the
 * ring of flowfd. All files are watched for the same events, as long as they are open.
 * Events are edge-triggered: they announce a change, and the server then reads and
 * writes until EAGAIN.
 */
#ifndef LOOP_H
#define LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP)

/* Not an EPOLL* bit. */
#define LOOP_LOST (1U << 5)

/* How many files or events one call takes at most. */
#define LOOP_BATCH 256

/**
 * struct loop_file - a file to watch
 * @fd: the file
 * @error: receives 0 or a negative errno
 */
struct loop_file {
	int fd;
	int error;
};

/**
 * struct loop_event - an event of a file
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
 * @open: prepare for descriptors below @max_files; returns 0 or a negative errno
 * @watch: watch @count files; a file that is ready now has an event
 * @forget: stop watching a file that is about to be closed; NULL: not needed
 * @wait: wait for at most @timeout milliseconds, -1: for ever; returns the number of
 *	@events, at most LOOP_BATCH, or a negative errno
 * @close: free the loop with all watches
 * @strerror: describe an error of these functions
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
