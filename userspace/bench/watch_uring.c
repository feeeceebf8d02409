// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many files watched by io_uring's multishot polls.
 */
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>

#include "watcher.h"

/* The data of completions of removals. */
#define REMOVED UINT64_MAX

struct uring {
	struct io_uring ring;
	const struct files *files;
};

static void *uring_open(unsigned int files)
{
	struct uring *uring = malloc(sizeof(*uring));
	int error;

	if (!uring)
		err(EXIT_FAILURE, "io_uring");
	error = io_uring_queue_init(files, &uring->ring, 0);
	if (error == -ENOSYS || error == -EPERM) {
		free(uring);
		return NULL;
	}
	errno = -error;
	if (error)
		err(EXIT_FAILURE, "io_uring_queue_init");
	return uring;
}

static void submit(struct io_uring *ring, unsigned int count)
{
	int submitted = io_uring_submit(ring);

	if (submitted != (int)count)
		errx(EXIT_FAILURE, "io_uring_submit: %d of %u", submitted,
		     count);
}

static void prepare(struct uring *uring, uint64_t number)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

	io_uring_prep_poll_multishot(sqe, uring->files->fd[number], POLLIN);
	sqe->user_data = number;
}

static void uring_add(void *self, const struct files *files)
{
	struct uring *uring = self;
	unsigned int i;

	uring->files = files;
	for (i = 0; i < files->count; i++)
		prepare(uring, i);
	submit(&uring->ring, files->count);
}

/* Each poll ends with a completion, beside that of its removal. */
static void uring_remove(void *self, const struct files *files)
{
	struct io_uring *ring = &((struct uring *)self)->ring;
	unsigned int i, left = 2 * files->count;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;

	for (i = 0; i < files->count; i++) {
		sqe = io_uring_get_sqe(ring);
		io_uring_prep_poll_remove(sqe, i);
		sqe->user_data = REMOVED;
	}
	submit(ring, files->count);
	while (left--) {
		errno = -io_uring_wait_cqe(ring, &cqe);
		if (errno)
			err(EXIT_FAILURE, "io_uring_wait_cqe");
		io_uring_cqe_seen(ring, cqe);
	}
}

/* A multishot poll ends when the completion queue is full, and must be rearmed. */
static unsigned int take(struct uring *uring, uint64_t *sum)
{
	unsigned int head, taken = 0, ended = 0;
	struct io_uring_cqe *cqe;

	io_uring_for_each_cqe(&uring->ring, head, cqe) {
		if (!(cqe->flags & IORING_CQE_F_MORE)) {
			prepare(uring, cqe->user_data);
			ended++;
		}
		*sum += cqe->user_data;
		taken++;
	}
	io_uring_cq_advance(&uring->ring, taken);
	if (ended)
		submit(&uring->ring, ended);
	return taken;
}

static uint64_t uring_take(void *self, unsigned int count)
{
	uint64_t sum = 0;

	(void)count;
	take(self, &sum);
	return sum;
}

static unsigned int uring_sleep(void *self)
{
	struct uring *uring = self;
	struct io_uring_cqe *cqe;
	uint64_t sum = 0;

	errno = -io_uring_wait_cqe(&uring->ring, &cqe);
	if (errno)
		err(EXIT_FAILURE, "io_uring_wait_cqe");
	return take(uring, &sum);
}

static void uring_close(void *self)
{
	struct uring *uring = self;

	io_uring_queue_exit(&uring->ring);
	free(uring);
}

const struct watcher watcher_uring = {
	.name = "io_uring",
	.open = uring_open,
	.add = uring_add,
	.remove = uring_remove,
	.take = uring_take,
	.wait = uring_sleep,
	.close = uring_close,
};
