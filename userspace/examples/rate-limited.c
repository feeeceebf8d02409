// SPDX-License-Identifier: MIT
/*
 * A consumer that is woken at most a hundred times a second, while a producer signals at
 * any rate. No event is lost: they come in larger batches. A consumer that always finds
 * something does not sleep, and is not limited.
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
	const struct flowfd_counter *counter = argument;

	for (int i = 0; i < EVENTS; i++) {
		int error = flowfd_add(counter, 1);

		if (error)
			stop("add", error);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Receives all events and prints how many takes that took. */
static void receive(const char *how, struct flowfd_counter *counter)
{
	uint64_t events = 0;
	pthread_t producer;
	int takes = 0;
	int error;

	error = pthread_create(&producer, NULL, signal_events, counter);
	if (error)
		stop("thread", -error);
	while (events < EVENTS) {
		uint64_t count;

		error = flowfd_take(counter, &count);
		if (error)
			stop("take", error);
		events += count;
		takes++;
	}
	pthread_join(producer, NULL);
	printf("%s: %" PRIu64 " events in %d takes\n", how, events, takes);
}

int main(void)
{
	const struct flowfd_create_counter settings = { .maximum = 0 };
	struct flowfd_counter counter;
	int error;

	error = flowfd_counter_open(&counter, &settings, sizeof(settings), 0);
	if (error)
		stop("open", error);
	receive("no limit", &counter);

	error = flowfd_set_bucket(counter.fd, 2, 100);
	if (error)
		stop("bucket", error);
	receive("100 a second, burst 2", &counter);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
