// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many files watched by a ring of flowfd: with a cursor, and into an array.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include <flowfd.h>

#include "watcher.h"

#define BATCH 256

struct ring {
	struct flowfd_ring ring;
	struct flowfd_event event[BATCH];
	struct flowfd_ring_entry *entry;
};

static void *ring_open(unsigned int files)
{
	struct ring *ring = malloc(sizeof(*ring));
	int error;

	if (!ring)
		err(EXIT_FAILURE, "ring");
	error = flowfd_ring_create(&ring->ring, files, 0);
	if (error)
		errx(EXIT_FAILURE, "ring: %s", flowfd_strerror(error));
	ring->entry = calloc(files, sizeof(*ring->entry));
	if (!ring->entry)
		err(EXIT_FAILURE, "ring");
	return ring;
}

static void control(const struct ring *ring, const struct files *files)
{
	int failed = flowfd_ring_control(&ring->ring, ring->entry,
					 files->count);

	if (failed < 0)
		errx(EXIT_FAILURE, "ring: %s", flowfd_strerror(failed));
	if (failed)
		errx(EXIT_FAILURE, "ring: %d of %u files refused", failed,
		     files->count);
}

static void ring_add(void *self, const struct files *files)
{
	struct ring *ring = self;
	unsigned int i;

	for (i = 0; i < files->count; i++)
		ring->entry[i] = (struct flowfd_ring_entry){
			.op = FLOWFD_RING_ADD,
			.fd = files->fd[i],
			.events = EPOLLIN | EPOLLET,
			.data = i,
		};
	control(ring, files);
}

static void ring_remove(void *self, const struct files *files)
{
	struct ring *ring = self;
	unsigned int i;

	for (i = 0; i < files->count; i++)
		ring->entry[i] = (struct flowfd_ring_entry){
			.op = FLOWFD_RING_DEL,
			.fd = files->fd[i],
		};
	control(ring, files);
}

static uint64_t ring_take(void *self, unsigned int count)
{
	struct ring *ring = self;
	struct flowfd_cursor cursor = flowfd_cursor_begin(&ring->ring);
	struct flowfd_event event;
	uint64_t sum = 0;

	(void)count;
	while (flowfd_cursor_next(&cursor, &event))
		sum += event.data;
	flowfd_cursor_end(&cursor);
	return sum;
}

static uint64_t array_take(void *self, unsigned int count)
{
	struct ring *ring = self;
	unsigned int i, taken;
	uint64_t sum = 0;

	while (count) {
		taken = flowfd_ring_harvest(&ring->ring, ring->event, BATCH);
		if (!taken)
			break;
		for (i = 0; i < taken; i++)
			sum += ring->event[i].data;
		count -= taken;
	}
	return sum;
}

static unsigned int ring_sleep(void *self)
{
	struct ring *ring = self;
	unsigned int taken;
	int result;

	for (;;) {
		taken = flowfd_ring_harvest(&ring->ring, ring->event, BATCH);
		if (taken)
			return taken;
		result = flowfd_ring_wait(&ring->ring, FLOWFD_RING_FOREVER);
		if (result < 0 && result != -EINTR)
			errx(EXIT_FAILURE, "ring: %s", flowfd_strerror(result));
	}
}

static void ring_close(void *self)
{
	struct ring *ring = self;

	flowfd_ring_destroy(&ring->ring);
	free(ring->entry);
	free(ring);
}

const struct watcher watcher_ring = {
	.name = "ring",
	.flowfd = true,
	.open = ring_open,
	.add = ring_add,
	.remove = ring_remove,
	.take = ring_take,
	.wait = ring_sleep,
	.close = ring_close,
};

const struct watcher watcher_array = {
	.name = "ring, array",
	.flowfd = true,
	.open = ring_open,
	.add = ring_add,
	.remove = ring_remove,
	.take = array_take,
	.wait = ring_sleep,
	.close = ring_close,
};
