// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels of an event loop that sleeps in epoll_wait(2): an eventfd or a counter, which
 * is edge-triggered and never read, or a mapped counter, which is taken in memory.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "calls.h"
#include "channel.h"

static const struct subject eventfd_subject = { .maximum = NO_MAXIMUM };
static const struct subject flowfd_subject = { .flowfd = true, .maximum = NO_MAXIMUM };
static const struct subject mapped_subject = {
	.flowfd = true,
	.mapped = true,
	.maximum = NO_MAXIMUM,
};

struct loop {
	int fd;
	int ep;
	int timeout;
	bool mapped;
	struct flowfd_counter counter;
};

static void *loop_open(const struct channel *channel, unsigned int senders, bool awake)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct loop *loop = channel_new(sizeof(*loop));
	int error = 0;

	(void)senders;
	loop->mapped = channel->subject->mapped;
	loop->timeout = awake ? 0 : -1;
	loop->fd = subject_open(channel->subject, 0, FLOWFD_NONBLOCK);
	if (loop->mapped)
		error = flowfd_counter_map(&loop->counter, loop->fd,
					   FLOWFD_PRODUCER | FLOWFD_CONSUMER);
	if (error)
		errx(EXIT_FAILURE, "loop: map: %s", flowfd_strerror(error));
	loop->ep = epoll_create1(EPOLL_CLOEXEC);
	if (loop->ep < 0 || epoll_ctl(loop->ep, EPOLL_CTL_ADD, loop->fd, &event))
		err(EXIT_FAILURE, "loop: epoll");
	return loop;
}

static void write_signal(void *self, unsigned int sender, unsigned long count)
{
	const struct loop *loop = self;
	uint64_t one = 1;

	(void)sender;
	calls_made += count;
	while (count--)
		if (write(loop->fd, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "loop: write");
}

static void add_signal(void *self, unsigned int sender, unsigned long count)
{
	const struct loop *loop = self;

	(void)sender;
	while (count--)
		if (flowfd_add(&loop->counter, 1))
			errx(EXIT_FAILURE, "loop: add");
}

static bool loop_take(void *self)
{
	const struct loop *loop = self;
	struct epoll_event event;
	uint64_t value;

	calls_made++;
	if (epoll_wait(loop->ep, &event, 1, loop->timeout) != 1)
		return false;
	return !loop->mapped || !flowfd_try_take(&loop->counter, &value);
}

static void loop_close(void *self)
{
	struct loop *loop = self;

	close(loop->ep);
	if (loop->mapped)
		flowfd_counter_unmap(&loop->counter);
	close(loop->fd);
	free(loop);
}

const struct channel channel_epoll_eventfd = {
	.name = "eventfd, epoll",
	.subject = &eventfd_subject,
	.open = loop_open,
	.signal = write_signal,
	.take = loop_take,
	.close = loop_close,
};

const struct channel channel_epoll_flowfd = {
	.name = "flowfd, epoll",
	.subject = &flowfd_subject,
	.open = loop_open,
	.signal = write_signal,
	.take = loop_take,
	.close = loop_close,
};

const struct channel channel_epoll_mapped = {
	.name = "mapped, epoll",
	.subject = &mapped_subject,
	.open = loop_open,
	.signal = add_signal,
	.take = loop_take,
	.close = loop_close,
};
