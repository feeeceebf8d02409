// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library whose constructor waits for a thread that makes an eventfd, and calls a
 * library with its own liburing if this one needs that, while dlopen(3) holds the dynamic
 * linker's lock.
 */
#include <pthread.h>
#include <sys/eventfd.h>

int constructor_fd;
int constructor_registered = 1;

int uring_use(void *uring, int fd) __attribute__((weak));

static void *make(void *argument)
{
	/* Larger than a struct io_uring. */
	static long uring[128];
	/* volatile: a tail call would not return into this library. */
	volatile int fd = eventfd(7, 0);

	(void)argument;
	constructor_fd = fd;
	if (uring_use)
		constructor_registered = uring_use(uring, -1);
	return NULL;
}

__attribute__((constructor)) static void wait_for_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make, NULL) == 0)
		pthread_join(thread, NULL);
}
