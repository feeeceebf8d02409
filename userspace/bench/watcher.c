// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watched files, and the ways to watch them.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "watcher.h"

/* The kernel's default of fs.nr_open: more than all rounds have open. */
#define DESCRIPTORS 1048576

/* Only root may raise the hard limit. The soft one of 1024 exists for select(2) alone. */
static void allow_files(void)
{
	struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };

	if (!setrlimit(RLIMIT_NOFILE, &limit) || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void open_one(enum files_kind kind, int fd[2])
{
	const struct subject subject = {
		.flowfd = kind == COUNTERS,
		.maximum = NO_MAXIMUM,
	};
	int error = 0;

	switch (kind) {
	case EVENTFDS:
	case COUNTERS:
		fd[0] = fd[1] = subject_open(&subject, 0, FLOWFD_NONBLOCK);
		break;
	case SOCKETS:
		error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd);
		break;
	case PIPES:
		error = pipe(fd);
		break;
	}
	if (error)
		err(EXIT_FAILURE, "%s", files_name(kind));
}

void files_open(struct files *files, enum files_kind kind, unsigned int count)
{
	unsigned int i;
	int fd[2];

	allow_files();
	files->count = count;
	files->fd = calloc(count, sizeof(*files->fd));
	files->peer = calloc(count, sizeof(*files->peer));
	if (!files->fd || !files->peer)
		err(EXIT_FAILURE, "%u files", count);
	for (i = 0; i < count; i++) {
		open_one(kind, fd);
		files->fd[i] = fd[0];
		files->peer[i] = fd[1];
	}
}

void files_close(struct files *files)
{
	unsigned int i;

	for (i = 0; i < files->count; i++) {
		close(files->fd[i]);
		if (files->peer[i] != files->fd[i])
			close(files->peer[i]);
	}
	free(files->fd);
	free(files->peer);
}

/* Makes an event of each file, with eight bytes, as eventfds need. */
void files_write(const struct files *files)
{
	const int *peer = files->peer, *end = peer + files->count;
	uint64_t one = 1;

	for (; peer < end; peer++)
		if (write(*peer, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "write");
}

const char *files_name(enum files_kind kind)
{
	static const char *const names[] = {
		[EVENTFDS] = "eventfd",
		[COUNTERS] = "flowfd",
		[SOCKETS] = "socketpair",
		[PIPES] = "pipe",
	};

	return names[kind];
}

const char *watcher_name(unsigned int which)
{
	return which == WATCHER_RING ? "ring" : "epoll ET";
}

/* A watcher of @files at most. */
void watcher_open(struct watcher *watcher, unsigned int which, unsigned int files)
{
	int error;

	watcher->ep = -1;
	watcher->entry = calloc(files, sizeof(*watcher->entry));
	if (!watcher->entry)
		err(EXIT_FAILURE, "%u files", files);
	if (which == WATCHER_RING) {
		error = flowfd_ring_create(&watcher->ring, files, 0);
		if (error)
			errx(EXIT_FAILURE, "ring: %s", flowfd_strerror(error));
		return;
	}
	watcher->ep = epoll_create1(EPOLL_CLOEXEC);
	if (watcher->ep < 0)
		err(EXIT_FAILURE, "epoll_create1");
}

void watcher_close(struct watcher *watcher)
{
	if (watcher->ep >= 0)
		close(watcher->ep);
	else
		flowfd_ring_destroy(&watcher->ring);
	free(watcher->entry);
}

static void epoll_each(const struct watcher *watcher, const struct files *files, int what)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	unsigned int i;

	for (i = 0; i < files->count; i++) {
		event.data.u64 = i;
		if (epoll_ctl(watcher->ep, what, files->fd[i], &event))
			err(EXIT_FAILURE, "epoll_ctl");
	}
}

/* All in one call. */
static void ring_each(const struct watcher *watcher, const struct files *files, int what)
{
	unsigned int i;
	int failed;

	for (i = 0; i < files->count; i++)
		watcher->entry[i] = (struct flowfd_ring_entry){
			.op = what,
			.fd = files->fd[i],
			.events = what == FLOWFD_RING_ADD ? EPOLLIN | EPOLLET : 0,
			.data = what == FLOWFD_RING_ADD ? i : 0,
		};
	failed = flowfd_ring_control(&watcher->ring, watcher->entry, files->count);
	if (failed)
		errx(EXIT_FAILURE, "ring: %d of %u files refused", failed, files->count);
}

/* The data of an event is the number of its file. */
void watcher_add(struct watcher *watcher, const struct files *files)
{
	if (watcher->ep >= 0)
		epoll_each(watcher, files, EPOLL_CTL_ADD);
	else
		ring_each(watcher, files, FLOWFD_RING_ADD);
}

void watcher_remove(struct watcher *watcher, const struct files *files)
{
	if (watcher->ep >= 0)
		epoll_each(watcher, files, EPOLL_CTL_DEL);
	else
		ring_each(watcher, files, FLOWFD_RING_DEL);
}

static uint64_t epoll_take(struct watcher *watcher, unsigned int count)
{
	const int most = sizeof(watcher->event) / sizeof(*watcher->event);
	uint64_t sum = 0;
	int i, taken;

	while (count) {
		taken = epoll_wait(watcher->ep, watcher->event, most, 0);
		if (taken <= 0)
			break;
		for (i = 0; i < taken; i++)
			sum += watcher->event[i].data.u64;
		count -= (unsigned int)taken;
	}
	return sum;
}

static uint64_t ring_take(struct watcher *watcher)
{
	struct flowfd_cursor cursor = flowfd_cursor_begin(&watcher->ring);
	struct flowfd_event event;
	uint64_t sum = 0;

	while (flowfd_cursor_next(&cursor, &event))
		sum += event.data;
	flowfd_cursor_end(&cursor);
	return sum;
}

/* Takes @count events, which are there, and returns the sum of their data. */
uint64_t watcher_take(struct watcher *watcher, unsigned int count)
{
	return watcher->ep >= 0 ? epoll_take(watcher, count) : ring_take(watcher);
}
