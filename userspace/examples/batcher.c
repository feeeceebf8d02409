// SPDX-License-Identifier: MIT
/*
 * A consumer that works best on 64 items at a time: it sleeps until 64 are there, or
 * until 2 ms have passed since the first of them, so that the last few do not wait for
 * others which never come.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flowfd.h>

#define ITEMS 6410 /* a hundred times 64, and a few more */

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "batcher: %s: %s\n", what, flowfd_strerror(result));
	exit(EXIT_FAILURE);
}

static void *produce(void *argument)
{
	const struct timespec pause = { .tv_nsec = 10000 };
	const struct flowfd_counter *counter = argument;

	for (int i = 0; i < ITEMS; i++) {
		check("add", flowfd_add(counter, 1));
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Receives all items and prints how many takes that took. */
static void receive(const char *how, struct flowfd_counter *counter)
{
	uint64_t items = 0;
	pthread_t producer;
	int takes = 0;

	check("thread", -pthread_create(&producer, NULL, produce, counter));
	while (items < ITEMS) {
		uint64_t count;

		/* Sleeps until the counter is ready. */
		check("take", flowfd_take(counter, &count));
		items += count;
		takes++;
	}
	pthread_join(producer, NULL);
	printf("%s: %" PRIu64 " items in %d takes\n", how, items, takes);
}

int main(void)
{
	const struct flowfd_flow flow = {
		.read_mark = 64,
		.max_delay = FLOWFD_MS(2),
	};
	struct flowfd_counter counter;
	int fd = flowfd_counter_create(0, 0);
	int error;

	/* Not flowfd_counter_open(): a counter in memory has no marks. */
	check("create", fd);
	check("map", flowfd_counter_map(&counter, fd,
					FLOWFD_PRODUCER | FLOWFD_CONSUMER));
	receive("no mark", &counter);
	error = flowfd_set_flow(fd, &flow, sizeof(flow));
	if (error) {
		fprintf(stderr, "batcher: policies: %s\n",
			flowfd_flow_strerror(error));
		return EXIT_FAILURE;
	}
	receive("mark 64, 2 ms", &counter);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
