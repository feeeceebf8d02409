// SPDX-License-Identifier: MIT
/*
 * A queue between two threads whose length is bounded by a counter's maximum:
 * the producer sleeps in flowfd_write() while DEPTH items wait, and the
 * consumer, however slow, never takes more than DEPTH at once.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flowfd.h>

#define ITEMS 1000
#define DEPTH 8

/* DEPTH wait, DEPTH are worked on, and one is stored but not yet counted. */
#define SLOTS (2 * DEPTH + 1)

static int slots[SLOTS];
static int counter;

static void stop(const char *what, int error)
{
	fprintf(stderr, "bounded-queue: %s: %s\n", what,
		flowfd_strerror(error));
	exit(EXIT_FAILURE);
}

static void *produce(void *argument)
{
	for (int item = 0; item < ITEMS; item++) {
		int error;

		slots[item % SLOTS] = item;
		error = flowfd_write(counter, 1);
		if (error)
			stop("write", error);
	}
	return argument;
}

int main(void)
{
	const struct flowfd_create_counter settings = {.maximum = DEPTH + 1};
	const struct timespec work = {.tv_nsec = 1000000};
	uint64_t largest = 0;
	int batches = 0;
	int next = 0;
	pthread_t producer;
	int error;

	counter = flowfd_counter_create_from(&settings, sizeof(settings));
	if (counter < 0)
		stop("create", counter);
	error = pthread_create(&producer, NULL, produce, NULL);
	if (error)
		stop("thread", -error);

	while (next < ITEMS) {
		uint64_t batch;

		error = flowfd_read(counter, &batch);
		if (error)
			stop("read", error);
		for (uint64_t i = 0; i < batch; i++, next++) {
			if (slots[next % SLOTS] != next) {
				fprintf(stderr, "bounded-queue: item %d lost\n",
					next);
				return EXIT_FAILURE;
			}
		}
		nanosleep(&work, NULL);
		if (batch > largest)
			largest = batch;
		batches++;
	}
	pthread_join(producer, NULL);
	printf("%d items in %d batches, the largest of %" PRIu64 "\n", next,
	       batches, largest);
	return EXIT_SUCCESS;
}
