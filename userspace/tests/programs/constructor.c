// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library whose constructor waits for a thread that makes an eventfd, while dlopen(3)
 * holds the dynamic linker's lock.
 */
#include <pthread.h>
#include <sys/eventfd.h>

int constructor_fd;

static void *make(void *argument)
{
	/* volatile: a tail call would not return into this library. */
	volatile int fd = eventfd(7, 0);

	constructor_fd = fd;
	return argument;
}

__attribute__((constructor)) static void wait_for_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make, NULL) == 0)
		pthread_join(thread, NULL);
}
