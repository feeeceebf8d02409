// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels that are file descriptors, with a system call for each signal: an eventfd, a
 * counter, and a pipe.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "channel.h"

/* All that a pipe holds. */
#define PIPE_BYTES 65536

static const struct subject eventfd_subject = { .maximum = NO_MAXIMUM };
static const struct subject flowfd_subject = { .flowfd = true, .maximum = NO_MAXIMUM };

/**
 * struct ends - the descriptors of a channel
 * @in: where signals are written
 * @out: where they are read; may be @in
 */
struct ends {
	int in;
	int out;
};

static void *counter_open(const struct channel *channel, unsigned int senders, bool awake)
{
	struct ends *ends = channel_new(sizeof(*ends));

	(void)senders;
	ends->in = subject_open(channel->subject, 0, awake ? FLOWFD_NONBLOCK : 0);
	ends->out = ends->in;
	return ends;
}

static void counter_signal(void *self, unsigned int sender, unsigned long count)
{
	const struct ends *ends = self;
	uint64_t one = 1;

	(void)sender;
	calls_made += count;
	while (count--)
		if (write(ends->in, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "signal: write");
}

static bool counter_take(void *self)
{
	const struct ends *ends = self;
	uint64_t value;

	calls_made++;
	if (read(ends->out, &value, sizeof(value)) == sizeof(value))
		return true;
	if (errno != EAGAIN)
		err(EXIT_FAILURE, "signal: read");
	return false;
}

static void counter_turns(void *self, unsigned long count)
{
	const struct ends *ends = self;
	uint64_t value = 1;

	while (count--)
		if (write(ends->in, &value, sizeof(value)) != sizeof(value) ||
		    read(ends->out, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "signal: write and read");
}

static void ends_close(void *self)
{
	struct ends *ends = self;

	close(ends->in);
	if (ends->out != ends->in)
		close(ends->out);
	free(ends);
}

/* A full pipe says enough, so the writer does not wait. */
static void *pipe_open(const struct channel *channel, unsigned int senders, bool awake)
{
	struct ends *ends = channel_new(sizeof(*ends));
	int fd[2];

	(void)channel;
	(void)senders;
	if (pipe2(fd, O_CLOEXEC) || fcntl(fd[1], F_SETFL, O_NONBLOCK) ||
	    (awake && fcntl(fd[0], F_SETFL, O_NONBLOCK)))
		err(EXIT_FAILURE, "pipe");
	ends->out = fd[0];
	ends->in = fd[1];
	return ends;
}

static void pipe_signal(void *self, unsigned int sender, unsigned long count)
{
	const struct ends *ends = self;

	(void)sender;
	calls_made += count;
	while (count--)
		if (write(ends->in, "", 1) != 1 && errno != EAGAIN)
			err(EXIT_FAILURE, "signal: write to a pipe");
}

static bool pipe_take(void *self)
{
	const struct ends *ends = self;
	static char bytes[PIPE_BYTES];

	calls_made++;
	if (read(ends->out, bytes, sizeof(bytes)) > 0)
		return true;
	if (errno != EAGAIN)
		err(EXIT_FAILURE, "signal: read from a pipe");
	return false;
}

static void pipe_turns(void *self, unsigned long count)
{
	const struct ends *ends = self;
	char byte;

	while (count--)
		if (write(ends->in, "", 1) != 1 || read(ends->out, &byte, 1) != 1)
			err(EXIT_FAILURE, "signal: write to a pipe and read");
}

const struct channel channel_eventfd = {
	.name = "eventfd",
	.subject = &eventfd_subject,
	.open = counter_open,
	.signal = counter_signal,
	.take = counter_take,
	.turns = counter_turns,
	.close = ends_close,
};

const struct channel channel_flowfd = {
	.name = "flowfd",
	.subject = &flowfd_subject,
	.open = counter_open,
	.signal = counter_signal,
	.take = counter_take,
	.turns = counter_turns,
	.close = ends_close,
};

const struct channel channel_pipe = {
	.name = "pipe",
	.open = pipe_open,
	.signal = pipe_signal,
	.take = pipe_take,
	.turns = pipe_turns,
	.close = ends_close,
};
