// SPDX-License-Identifier: MIT
/*
 * The event loop on io_uring(7): a multishot poll for each file. The system call that
 * waits also submits new polls and removals.
 *
 * A poll holds its file: a socket stays open after close(2) until its poll is removed.
 * Events from before that can still be in the queue. The number of the poll in their
 * user data tells them from events of the next file with the same descriptor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <liburing.h>

#include "loop.h"

static struct io_uring uring;
static uint32_t *polls; /* number of the poll of each descriptor */

/* User data of requests whose completion is ignored; no poll has the number 0. */
#define NOBODY 0

static int open_uring(unsigned int max_files)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = 16 * LOOP_BATCH,
	};
	int error;

	polls = calloc(max_files, sizeof(*polls));
	if (!polls)
		return -ENOMEM;
	error = io_uring_queue_init_params(2 * LOOP_BATCH, &uring, &params);
	if (error)
		free(polls);
	return error;
}

static struct io_uring_sqe *get_sqe(void)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&uring)))
		io_uring_submit(&uring);
	return sqe;
}

static uint64_t user_data(int fd)
{
	return (uint64_t)polls[fd] << 32 | (uint32_t)fd;
}

static void begin_poll(int fd)
{
	struct io_uring_sqe *sqe = get_sqe();

	if (!++polls[fd])
		polls[fd] = 1;
	io_uring_prep_poll_multishot(sqe, fd, LOOP_EVENTS);
	io_uring_sqe_set_data64(sqe, user_data(fd));
}

/* Errors come later, as completions. */
static void watch(struct loop_file *files, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		begin_poll(files[i].fd);
		files[i].error = 0;
	}
}

/*
 * Not io_uring_prep_poll_remove(): it fails with EALREADY while an event is being
 * delivered, and the socket would stay open.
 */
static void forget(int fd)
{
	struct io_uring_sqe *sqe = get_sqe();

	io_uring_prep_cancel64(sqe, user_data(fd), 0);
	io_uring_sqe_set_data64(sqe, NOBODY);
	io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
	if (!++polls[fd])
		polls[fd] = 1;
}

/* Returns false if it is not an event of a watched file. */
static bool get_event(const struct io_uring_cqe *cqe, struct loop_event *event)
{
	int fd = (uint32_t)cqe->user_data;

	if (cqe->user_data == NOBODY || cqe->user_data != user_data(fd))
		return false;
	event->fd = fd;
	event->events = cqe->res < 0 ? LOOP_LOST : (uint32_t)cqe->res;
	/* It ended as the queue was full; adding it again makes an event if one was lost. */
	if (cqe->res >= 0 && !(cqe->flags & IORING_CQE_F_MORE))
		begin_poll(fd);
	return true;
}

static int wait_for_events(struct loop_event *events, int timeout)
{
	struct __kernel_timespec time = {
		.tv_sec = timeout / 1000,
		.tv_nsec = timeout % 1000 * 1000000LL,
	};
	struct io_uring_cqe *cqes[LOOP_BATCH];
	unsigned int seen;
	int count = 0;
	int error;

	error = io_uring_submit_and_wait_timeout(
		&uring, cqes, 1, timeout < 0 ? NULL : &time, NULL);
	if (error < 0 && error != -ETIME)
		return error;
	seen = io_uring_peek_batch_cqe(&uring, cqes, LOOP_BATCH);
	for (unsigned int i = 0; i < seen; i++)
		count += get_event(cqes[i], &events[count]);
	io_uring_cq_advance(&uring, seen);
	return count;
}

static void close_uring(void)
{
	io_uring_queue_exit(&uring);
	free(polls);
}

static const char *explain(int error)
{
	return strerror(-error);
}

const struct loop loop_uring = {
	.name = "io_uring",
	.open = open_uring,
	.watch = watch,
	.forget = forget,
	.wait = wait_for_events,
	.close = close_uring,
	.strerror = explain,
};
