// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapped counters watched by edge-triggered epoll(7), and taken in memory after each
 * event: the next add then notifies again.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <flowfd.h>

#include "watcher.h"

#define BATCH 256

struct mapped {
	int fd;
	const struct flowfd_counter *counter;
	struct epoll_event event[BATCH];
};

static void *mapped_open(unsigned int files)
{
	struct mapped *mapped = malloc(sizeof(*mapped));

	(void)files;
	if (!mapped)
		err(EXIT_FAILURE, "mapped");
	mapped->fd = epoll_create1(EPOLL_CLOEXEC);
	if (mapped->fd < 0)
		err(EXIT_FAILURE, "epoll_create1");
	return mapped;
}

static void mapped_add(void *self, const struct files *files)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct mapped *mapped = self;
	unsigned int i;

	mapped->counter = files->counter;
	for (i = 0; i < files->count; i++) {
		event.data.u64 = i;
		if (epoll_ctl(mapped->fd, EPOLL_CTL_ADD, files->fd[i], &event))
			err(EXIT_FAILURE, "epoll_ctl: add");
	}
}

static unsigned int mapped_wait(void *self)
{
	struct mapped *mapped = self;
	int taken = epoll_wait(mapped->fd, mapped->event, BATCH, -1), i;
	uint64_t value;

	if (taken < 0)
		err(EXIT_FAILURE, "epoll_wait");
	for (i = 0; i < taken; i++)
		flowfd_try_take(&mapped->counter[mapped->event[i].data.u64], &value);
	return (unsigned int)taken;
}

static void mapped_close(void *self)
{
	struct mapped *mapped = self;

	close(mapped->fd);
	free(mapped);
}

const struct watcher watcher_mapped = {
	.name = "mapped",
	.flowfd = true,
	.kind = MAPPED_COUNTERS,
	.open = mapped_open,
	.add = mapped_add,
	.wait = mapped_wait,
	.close = mapped_close,
};
