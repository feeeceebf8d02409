// SPDX-License-Identifier: MIT
/*
 * The event loop on epoll(7): a system call for each file that is watched, and
 * one for each batch of events.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

static int epoll_fd;

static int open_epoll(unsigned int max_files)
{
	(void)max_files;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -errno : 0;
}

static void watch(struct loop_file *files, unsigned int count)
{
	struct epoll_event event = { .events = LOOP_EVENTS | EPOLLET };

	for (struct loop_file *f = files; f < files + count; f++) {
		event.data.fd = f->fd;
		f->error = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, f->fd, &event) ?
				   -errno :
				   0;
	}
}

static int wait_for_events(struct loop_event *events, int timeout)
{
	struct epoll_event batch[LOOP_BATCH];
	int count = epoll_wait(epoll_fd, batch, LOOP_BATCH, timeout);

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		events[i].fd = batch[i].data.fd;
		events[i].events = batch[i].events;
	}
	return count;
}

static void close_epoll(void)
{
	close(epoll_fd);
}

static const char *explain(int error)
{
	return strerror(-error);
}

const struct loop loop_epoll = {
	.name = "epoll",
	.open = open_epoll,
	.watch = watch,
	.wait = wait_for_events,
	.close = close_epoll,
	.strerror = explain,
};
