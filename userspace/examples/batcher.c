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
	const int *counter = argument;

	for (int i = 0; i < ITEMS; i++) {
		check("write", flowfd_write(*counter, 1));
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Receives all items and prints how many reads that took. */
static void receive(const char *how, int counter)
{
	uint64_t items = 0;
	pthread_t producer;
	int reads = 0;

	check("thread", -pthread_create(&producer, NULL, produce, &counter));
	while (items < ITEMS) {
		uint64_t count;

		/* Sleeps until the counter is ready. */
		check("read", flowfd_read(counter, &count));
		items += count;
		reads++;
	}
	pthread_join(producer, NULL);
	printf("%s: %" PRIu64 " items in %d reads\n", how, items, reads);
}

int main(void)
{
	const struct flowfd_flow flow = {
		.read_mark = 64,
		.max_delay = FLOWFD_MS(2),
	};
	int counter = flowfd_counter_create(0, 0);

	check("create", counter);
	receive("no mark", counter);
	check("policies", flowfd_set_flow(counter, &flow, sizeof(flow)));
	receive("mark 64, 2 ms", counter);
	return EXIT_SUCCESS;
}
