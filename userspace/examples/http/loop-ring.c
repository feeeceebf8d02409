// SPDX-License-Identifier: MIT
/*
 * The event loop on the ring of flowfd: one system call adds many files, and one
 * sleeps when there is nothing to do. While events keep coming they are taken from
 * memory. There are two variants: a sleep ends with the first event, or gathers some.
 * Without the module, events come with each wait, also one that does not sleep.
 */
#include <errno.h>

#include <flowfd.h>

#include "loop.h"

/* A sleep of loop_gather ends with this many events, or after this time. */
#define GATHER_EVENTS 8
#define GATHER_NS 50000

static struct flowfd_ring ring;

static int open_ring(unsigned int max_files)
{
	if (max_files > FLOWFD_RING_ITEMS_MAX)
		max_files = FLOWFD_RING_ITEMS_MAX;
	return flowfd_ring_create(&ring, max_files, FLOWFD_FALLBACK);
}

/*
 * With plain FLOWFD_RING_ADD no forget() is needed: the watch of a socket ends with
 * its close. Pinning is cheaper, as the kernel need not watch for the close.
 */
static void watch(struct loop_file *files, unsigned int count)
{
	struct flowfd_ring_entry entries[LOOP_BATCH];
	int ret;

	for (unsigned int i = 0; i < count; i++) {
		entries[i] = (struct flowfd_ring_entry){
			.op = FLOWFD_RING_ADD_PINNED,
			.fd = files[i].fd,
			.events = LOOP_EVENTS | EPOLLET,
			.data = files[i].fd,
		};
	}
	ret = flowfd_ring_control(&ring, entries, count);
	for (unsigned int i = 0; i < count; i++) {
		files[i].error = ret < 0 ? ret : entries[i].result;
		if (files[i].error > 0)
			files[i].error = 0;
	}
}

static void forget(int fd)
{
	flowfd_ring_del(&ring, fd);
}

static int harvest(struct loop_event *events)
{
	struct flowfd_event event;
	int count = 0;

	while (count < LOOP_BATCH && flowfd_ring_next(&ring, &event)) {
		events[count].fd = event.data;
		events[count].events = event.events;
		count++;
	}
	return count;
}

static uint64_t nanoseconds(int timeout)
{
	return timeout < 0 ? FLOWFD_RING_FOREVER : timeout * 1000000ULL;
}

static int sleep_plainly(int timeout)
{
	return flowfd_ring_wait(&ring, nanoseconds(timeout));
}

/* Sleeps less often; with few connections an event can be GATHER_NS late. */
static int sleep_and_gather(int timeout)
{
	struct flowfd_ring_wait args = {
		.timeout = nanoseconds(timeout),
		.min_wait = GATHER_NS,
		.min_events = GATHER_EVENTS,
	};

	return flowfd_ring_wait_with(&ring, &args, sizeof(args));
}

static int wait_for(struct loop_event *events, int timeout,
		    int (*sleep_for)(int timeout))
{
	int count = harvest(events);
	int ret;

	/* With the module, what is not in memory by now has not happened yet. */
	if (count ||
	    (!timeout && flowfd_ring_features(&ring) & FLOWFD_HAS_EVENTS))
		return count;
	ret = sleep_for(timeout);
	return ret < 0 ? ret : harvest(events);
}

static int wait_for_events(struct loop_event *events, int timeout)
{
	return wait_for(events, timeout, sleep_plainly);
}

static int gather_events(struct loop_event *events, int timeout)
{
	return wait_for(events, timeout, sleep_and_gather);
}

static void close_ring(void)
{
	flowfd_ring_destroy(&ring);
}

const struct loop loop_ring = {
	.name = "ring",
	.open = open_ring,
	.watch = watch,
	.forget = forget,
	.wait = wait_for_events,
	.close = close_ring,
	.strerror = flowfd_strerror,
};

const struct loop loop_gather = {
	.name = "ring-gather",
	.open = open_ring,
	.watch = watch,
	.forget = forget,
	.wait = gather_events,
	.close = close_ring,
	.strerror = flowfd_strerror,
};
