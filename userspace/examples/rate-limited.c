// SPDX-License-Identifier: MIT
/*
 * A reader that is woken at most a hundred times a second, while a writer signals at
 * any rate. No event is lost: they come in larger batches.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flowfd.h>

#define EVENTS 2000

static void stop(const char *what, int error)
{
	fprintf(stderr, "rate-limited: %s: %s\n", what, flowfd_strerror(error));
	exit(EXIT_FAILURE);
}

static void *signal_events(void *argument)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	const int *counter = argument;

	for (int i = 0; i < EVENTS; i++) {
		int error = flowfd_write(*counter, 1);

		if (error)
			stop("write", error);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Receives all events and prints how many reads that took. */
static void receive(const char *how, int counter)
{
	uint64_t events = 0;
	pthread_t writer;
	int reads = 0;
	int error;

	error = pthread_create(&writer, NULL, signal_events, &counter);
	if (error)
		stop("thread", -error);
	while (events < EVENTS) {
		uint64_t count;

		error = flowfd_read(counter, &count);
		if (error)
			stop("read", error);
		events += count;
		reads++;
	}
	pthread_join(writer, NULL);
	printf("%s: %" PRIu64 " events in %d reads\n", how, events, reads);
}

int main(void)
{
	int counter = flowfd_counter_create(0, 0);
	int error;

	if (counter < 0)
		stop("create", counter);
	receive("no limit", counter);

	error = flowfd_set_bucket(counter, 2, 100);
	if (error)
		stop("bucket", error);
	receive("100 a second, burst 2", counter);
	return EXIT_SUCCESS;
}
