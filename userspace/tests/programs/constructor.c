// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library whose constructor waits for a thread that makes an eventfd and calls the
 * io_submit() of a library that this one needs, while dlopen(3) holds the dynamic
 * linker's lock.
 */
#include <pthread.h>
#include <sys/eventfd.h>

int constructor_fd;
long constructor_submitted;

long io_submit(long a, long b, long c, long d, long e, long f);

static void *make(void *argument)
{
	/* volatile: a tail call would not return into this library. */
	volatile int fd = eventfd(7, 0);

	(void)argument;
	constructor_fd = fd;
	constructor_submitted = io_submit(1, 2, 3, 4, 5, 6);
	return NULL;
}

__attribute__((constructor)) static void wait_for_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make, NULL) == 0)
		pthread_join(thread, NULL);
}
