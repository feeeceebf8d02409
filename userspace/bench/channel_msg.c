// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of io_uring: each sender has a ring, and sends completions to that of the
 * thread that takes them.
 */
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "channel.h"

/* Completions that fit; the kernel keeps others in a list. */
#define COMPLETIONS 16384

struct messages {
	struct io_uring target;
	unsigned int senders;
	bool awake;
	struct io_uring sender[];
};

static const char *messages_missing(void)
{
	static const char *reason;
	static bool asked;
	struct io_uring_probe *probe;
	struct io_uring ring;
	int error;

	if (asked)
		return reason;
	asked = true;
	error = io_uring_queue_init(2, &ring, 0);
	if (error) {
		reason = strerror(-error);
		return reason;
	}
	probe = io_uring_get_probe_ring(&ring);
	if (!probe || !io_uring_opcode_supported(probe, IORING_OP_MSG_RING))
		reason = "this kernel does not have it";
	if (probe)
		io_uring_free_probe(probe);
	io_uring_queue_exit(&ring);
	return reason;
}

static void *messages_open(const struct channel *channel, unsigned int senders,
			   bool awake)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE,
		.cq_entries = COMPLETIONS,
	};
	struct messages *messages;
	unsigned int i;

	(void)channel;
	messages = channel_new(sizeof(*messages) + senders * sizeof(*messages->sender));
	errno = -io_uring_queue_init_params(2, &messages->target, &params);
	for (i = 0; !errno && i < senders; i++)
		errno = -io_uring_queue_init(2, &messages->sender[i], 0);
	if (errno)
		err(EXIT_FAILURE, "io_uring_queue_init");
	messages->senders = senders;
	messages->awake = awake;
	return messages;
}

/* The sender gets a completion only of a message that failed. */
static inline void message(struct io_uring *from, int target)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(from);

	io_uring_prep_msg_ring(sqe, target, 0, 1, 0);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	if (io_uring_submit(from) != 1 || io_uring_cq_ready(from))
		errx(EXIT_FAILURE, "MSG_RING");
}

static void messages_signal(void *self, unsigned int sender, unsigned long count)
{
	struct messages *messages = self;

	calls_made += count;
	while (count--)
		message(&messages->sender[sender], messages->target.ring_fd);
}

static bool messages_take(void *self)
{
	struct messages *messages = self;
	struct io_uring *target = &messages->target;
	struct io_uring_cqe *cqe;

	if (messages->awake) {
		if (io_uring_peek_cqe(target, &cqe))
			return false;
	} else {
		calls_made += !io_uring_cq_ready(target);
		errno = -io_uring_wait_cqe(target, &cqe);
		if (errno)
			err(EXIT_FAILURE, "io_uring_wait_cqe");
	}
	io_uring_cq_advance(target, io_uring_cq_ready(target));
	return true;
}

static void messages_turns(void *self, unsigned long count)
{
	struct messages *messages = self;
	struct io_uring *target = &messages->target;
	struct io_uring_cqe *cqe;

	while (count--) {
		message(&messages->sender[0], target->ring_fd);
		if (io_uring_peek_cqe(target, &cqe))
			errx(EXIT_FAILURE, "MSG_RING: no message");
		io_uring_cqe_seen(target, cqe);
	}
}

static void messages_close(void *self)
{
	struct messages *messages = self;
	unsigned int i;

	for (i = 0; i < messages->senders; i++)
		io_uring_queue_exit(&messages->sender[i]);
	io_uring_queue_exit(&messages->target);
	free(messages);
}

const struct channel channel_msg = {
	.name = "MSG_RING",
	.missing = messages_missing,
	.open = messages_open,
	.signal = messages_signal,
	.take = messages_take,
	.turns = messages_turns,
	.close = messages_close,
};
