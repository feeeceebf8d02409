// SPDX-License-Identifier: MIT
/*
 * An event loop on a ring: threads count events in their own counters, and the loop
 * adds them up. While events keep coming it takes them without system calls. Runs
 * without the module, too, where each wait is a system call of epoll(7).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include <flowfd.h>

#define SOURCES 3
#define EVENTS 1000

static struct flowfd_counter counters[SOURCES];

static void stop(const char *what, int error)
{
	fprintf(stderr, "ring: %s: %s\n", what, flowfd_ring_strerror(error));
	exit(EXIT_FAILURE);
}

static void *produce(void *argument)
{
	struct flowfd_counter *counter = argument;

	for (int i = 0; i < EVENTS; i++) {
		int error = flowfd_add(counter, 1);

		if (error)
			stop("add", error);
	}
	return NULL;
}

/*
 * Watched files must be non-blocking. The data given with a file, here its number,
 * comes with its events.
 */
static void watch(struct flowfd_ring *ring, int number)
{
	const struct flowfd_create_counter settings = {
		.flags = FLOWFD_NONBLOCK,
	};
	struct flowfd_counter *counter = &counters[number];
	int error;

	error = flowfd_counter_open(counter, &settings, sizeof(settings),
				    FLOWFD_FALLBACK);
	if (error)
		stop("counter", error);
	error = flowfd_ring_add(ring, counter->fd, EPOLLIN | EPOLLET, number);
	if (error)
		stop("watch", error);
}

int main(void)
{
	pthread_t threads[SOURCES];
	struct flowfd_ring ring;
	uint64_t sum = 0;
	int error;

	error = flowfd_ring_create(&ring, SOURCES, FLOWFD_FALLBACK);
	if (error)
		stop("create", error);
	for (int i = 0; i < SOURCES; i++) {
		watch(&ring, i);
		error = pthread_create(&threads[i], NULL, produce,
				       &counters[i]);
		if (error)
			stop("thread", -error);
	}

	while (sum < SOURCES * EVENTS) {
		struct flowfd_event event;
		uint64_t count;

		if (!flowfd_ring_next(&ring, &event)) {
			error = flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER);
			if (error < 0 && error != -EINTR)
				stop("wait", error);
			continue;
		}
		/*
		 * One take has the whole count; other files must be read until
		 * -EAGAIN. After an event there may be nothing to take.
		 */
		error = flowfd_take(&counters[event.data], &count);
		if (!error)
			sum += count;
		else if (error != -EAGAIN)
			stop("take", error);
	}
	printf("%" PRIu64 " events of %d counters\n", sum, SOURCES);

	for (int i = 0; i < SOURCES; i++) {
		pthread_join(threads[i], NULL);
		flowfd_ring_del(&ring, counters[i].fd);
		flowfd_counter_close(&counters[i]);
	}
	flowfd_ring_destroy(&ring);
	return EXIT_SUCCESS;
}
