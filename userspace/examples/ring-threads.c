// SPDX-License-Identifier: MIT
/*
 * Several threads take the events of one ring in turn. The thread that holds the lock
 * waits and takes one event; it works on the event without the lock. Runs without the
 * module, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include <flowfd.h>

#define THREADS 3
#define FILES 4
#define EVENTS 3000

/* EPOLLONESHOT, until flowfd_ring_mod(): no two threads work on one file. */
#define ONCE (EPOLLIN | EPOLLET | EPOLLONESHOT)

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
/* The last counter ends the threads. */
#define QUIT FILES

static struct flowfd_counter counters[FILES + 1];
static struct flowfd_ring ring;
static uint64_t sum;

static void check(const char *what, int result)
{
	if (result >= 0 || result == -EINTR || result == -EAGAIN)
		return;
	fprintf(stderr, "%s: %s\n", what, flowfd_ring_strerror(result));
	exit(EXIT_FAILURE);
}

/* Waits under the lock, too: only one thread at a time may wait or take events. */
static void take(struct flowfd_event *event)
{
	pthread_mutex_lock(&turn);
	while (!flowfd_ring_next(&ring, event))
		check("wait", flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER));
	pthread_mutex_unlock(&turn);
}

static void *work(void *unused)
{
	struct flowfd_event event;

	for (;;) {
		struct flowfd_counter *counter;
		uint64_t count = 0;

		take(&event);
		if (event.data == QUIT)
			break;
		counter = &counters[event.data];
		/* -EAGAIN: after an event there may be nothing to take. */
		check("take", flowfd_take(counter, &count));
		if (count &&
		    __atomic_add_fetch(&sum, count, __ATOMIC_RELAXED) == EVENTS)
			check("quit", flowfd_add(&counters[QUIT], 1));
		check("arm",
		      flowfd_ring_mod(&ring, counter->fd, ONCE, event.data));
	}
	/* It was not taken, so rearming makes another event, for the next thread. */
	check("arm", flowfd_ring_mod(&ring, counters[QUIT].fd, ONCE, QUIT));
	return unused;
}

/* Non-blocking, as every watched file must be. */
static void watch(int number)
{
	const struct flowfd_create_counter settings = {
		.flags = FLOWFD_NONBLOCK,
	};
	struct flowfd_counter *counter = &counters[number];

	check("counter",
	      flowfd_counter_open(counter, &settings, sizeof(settings),
				  FLOWFD_FALLBACK));
	check("watch", flowfd_ring_add(&ring, counter->fd, ONCE, number));
}

int main(void)
{
	pthread_t threads[THREADS];

	check("create", flowfd_ring_create(&ring, FILES + 1, FLOWFD_FALLBACK));
	for (int i = 0; i <= FILES; i++)
		watch(i);
	for (int i = 0; i < THREADS; i++)
		check("thread", -pthread_create(&threads[i], NULL, work, NULL));

	for (int i = 0; i < EVENTS; i++)
		check("add", flowfd_add(&counters[i % FILES], 1));

	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	flowfd_ring_destroy(&ring);
	printf("%" PRIu64 " events by %d threads\n", sum, THREADS);
	return EXIT_SUCCESS;
}
