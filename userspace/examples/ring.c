// SPDX-License-Identifier: MIT
/*
 * An event loop on a ring: threads count events in their own counters, and the loop
 * adds them up. While events keep coming it takes them without system calls.
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

static int counters[SOURCES];

static void stop(const char *what, int error)
{
	fprintf(stderr, "ring: %s: %s\n", what, flowfd_ring_strerror(error));
	exit(EXIT_FAILURE);
}

static void *produce(void *argument)
{
	int *counter = argument;

	for (int i = 0; i < EVENTS; i++) {
		int error = flowfd_write(*counter, 1);

		if (error)
			stop("write", error);
	}
	return NULL;
}

/*
 * Watched files must be non-blocking. The data given with a file, here its number,
 * comes with its events.
 */
static void watch(struct flowfd_ring *ring, int number)
{
	int counter = flowfd_counter_create(0, FLOWFD_NONBLOCK);
	int error;

	if (counter < 0)
		stop("counter", counter);
	counters[number] = counter;
	error = flowfd_ring_add(ring, counter, EPOLLIN | EPOLLET, number);
	if (error)
		stop("add", error);
}

int main(void)
{
	pthread_t threads[SOURCES];
	struct flowfd_ring ring;
	uint64_t sum = 0;
	int error;

	error = flowfd_ring_create(&ring, SOURCES, 0);
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
		 * One read takes the whole count; other files must be read until
		 * -EAGAIN. After an event there may be nothing to read.
		 */
		error = flowfd_read(counters[event.data], &count);
		if (!error)
			sum += count;
		else if (error != -EAGAIN)
			stop("read", error);
	}
	printf("%" PRIu64 " events of %d counters\n", sum, SOURCES);

	for (int i = 0; i < SOURCES; i++)
		pthread_join(threads[i], NULL);
	flowfd_ring_destroy(&ring);
	return EXIT_SUCCESS;
}
