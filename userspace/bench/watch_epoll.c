// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many files watched by edge-triggered epoll(7).
 */
#include <err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "watcher.h"

#define BATCH 256

struct epoll {
	int fd;
	struct epoll_event event[BATCH];
};

static void *epoll_open(unsigned int files)
{
	struct epoll *epoll = malloc(sizeof(*epoll));

	(void)files;
	if (!epoll)
		err(EXIT_FAILURE, "epoll");
	epoll->fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll->fd < 0)
		err(EXIT_FAILURE, "epoll_create1");
	return epoll;
}

static void epoll_add(void *self, const struct files *files)
{
	const struct epoll *epoll = self;
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	unsigned int i;

	for (i = 0; i < files->count; i++) {
		event.data.u64 = i;
		if (epoll_ctl(epoll->fd, EPOLL_CTL_ADD, files->fd[i], &event))
			err(EXIT_FAILURE, "epoll_ctl: add");
	}
}

static void epoll_remove(void *self, const struct files *files)
{
	const struct epoll *epoll = self;
	unsigned int i;

	for (i = 0; i < files->count; i++)
		if (epoll_ctl(epoll->fd, EPOLL_CTL_DEL, files->fd[i], NULL))
			err(EXIT_FAILURE, "epoll_ctl: delete");
}

static uint64_t epoll_take(void *self, unsigned int count)
{
	struct epoll *epoll = self;
	uint64_t sum = 0;
	int i, taken;

	while (count) {
		taken = epoll_wait(epoll->fd, epoll->event, BATCH, 0);
		if (taken <= 0)
			break;
		for (i = 0; i < taken; i++)
			sum += epoll->event[i].data.u64;
		count -= (unsigned int)taken;
	}
	return sum;
}

static unsigned int epoll_sleep(void *self)
{
	struct epoll *epoll = self;
	int taken = epoll_wait(epoll->fd, epoll->event, BATCH, -1);

	if (taken < 0)
		err(EXIT_FAILURE, "epoll_wait");
	return (unsigned int)taken;
}

static void epoll_close(void *self)
{
	struct epoll *epoll = self;

	close(epoll->fd);
	free(epoll);
}

const struct watcher watcher_epoll = {
	.name = "epoll ET",
	.open = epoll_open,
	.add = epoll_add,
	.remove = epoll_remove,
	.take = epoll_take,
	.wait = epoll_sleep,
	.close = epoll_close,
};
