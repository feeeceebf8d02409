/* SPDX-License-Identifier: GPL-2.0-only */
/* Signals for a thread that sleeps in a call. */
#ifndef FLOWFD_TESTS_INTERRUPT_H
#define FLOWFD_TESTS_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct interrupt {
	pthread_t sender;
	pthread_t target;
	_Atomic bool done;
};

static void interrupt_handle(int number)
{
	(void)number;
}

/* Repeatedly: the first may come before the call that waits. */
static void *interrupt_send(void *argument)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct interrupt *interrupt = argument;

	while (!interrupt->done) {
		nanosleep(&pause, NULL);
		pthread_kill(interrupt->target, SIGUSR1);
	}
	return NULL;
}

/* The calls of this thread fail with EINTR from now on, if they sleep. */
static void interrupt_begin(struct interrupt *interrupt)
{
	const struct sigaction action = { .sa_handler = interrupt_handle };

	sigaction(SIGUSR1, &action, NULL);
	*interrupt = (struct interrupt){ .target = pthread_self() };
	pthread_create(&interrupt->sender, NULL, interrupt_send, interrupt);
}

static void interrupt_end(struct interrupt *interrupt)
{
	interrupt->done = true;
	pthread_join(interrupt->sender, NULL);
}

#endif /* FLOWFD_TESTS_INTERRUPT_H */
