// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watched files, as many as a benchmark needs.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <flowfd.h>

#include "watcher.h"

/* Descriptors for standard streams and the watcher, and a reserve. */
#define OTHER_FILES 64

static unsigned int open_files;

/* The soft limit of 1024 exists for select(2) alone. */
static void allow_files(unsigned int more)
{
	unsigned int count = open_files + more;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		err(EXIT_FAILURE, "getrlimit");
	if (limit.rlim_cur >= count + OTHER_FILES)
		return;
	limit.rlim_cur = count + OTHER_FILES;
	if (limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(EXIT_FAILURE, "%u files (see ulimit -n)", count);
}

static void open_one(enum files_kind kind, int fd[2])
{
	const struct subject subject = {
		.flowfd = kind == COUNTERS || kind == MAPPED_COUNTERS,
		.mapped = kind == MAPPED_COUNTERS,
		.maximum = NO_MAXIMUM,
	};
	int error = 0;

	switch (kind) {
	case EVENTFDS:
	case COUNTERS:
	case MAPPED_COUNTERS:
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

static unsigned int descriptors(enum files_kind kind, unsigned int count)
{
	return kind == SOCKETS || kind == PIPES ? 2 * count : count;
}

static void map_counters(struct files *files)
{
	unsigned int i;
	int error;

	files->counter = calloc(files->count, sizeof(*files->counter));
	if (!files->counter)
		err(EXIT_FAILURE, "%u files", files->count);
	for (i = 0; i < files->count; i++) {
		error = flowfd_counter_map(&files->counter[i], files->fd[i],
					   FLOWFD_PRODUCER | FLOWFD_CONSUMER);
		if (error)
			errx(EXIT_FAILURE, "map: %s", flowfd_strerror(error));
	}
}

void files_open(struct files *files, enum files_kind kind, unsigned int count)
{
	unsigned int i;
	int fd[2];

	allow_files(descriptors(kind, count));
	open_files += descriptors(kind, count);
	files->kind = kind;
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
	files->counter = NULL;
	if (kind == MAPPED_COUNTERS)
		map_counters(files);
}

void files_close(struct files *files)
{
	unsigned int i;

	for (i = 0; i < files->count; i++) {
		if (files->counter)
			flowfd_counter_unmap(&files->counter[i]);
		close(files->fd[i]);
		if (files->peer[i] != files->fd[i])
			close(files->peer[i]);
	}
	open_files -= descriptors(files->kind, files->count);
	free(files->fd);
	free(files->peer);
	free(files->counter);
}

/* Makes an event of each file, with eight bytes, as eventfds need. */
void files_write(const struct files *files)
{
	const int *peer = files->peer, *end = peer + files->count;
	uint64_t one = 1;
	unsigned int i;

	for (i = 0; files->counter && i < files->count; i++)
		if (flowfd_add(&files->counter[i], 1))
			errx(EXIT_FAILURE, "add");
	if (files->counter)
		return;
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
		[MAPPED_COUNTERS] = "mapped",
	};

	return names[kind];
}

/* The subject of a case: flowfd if files or watcher are flowfd's. */
const struct subject *watcher_subject(const struct watcher *watcher,
				      enum files_kind kind)
{
	static const struct subject eventfd, flowfd = { .flowfd = true };

	return watcher->flowfd || kind == COUNTERS || kind == MAPPED_COUNTERS ? &flowfd : &eventfd;
}
