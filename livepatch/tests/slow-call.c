// SPDX-License-Identifier: GPL-2.0-only
/*
 * slow-call: a thread reads a fault from a userfaultfd into memory that nobody provides. Prints
 * "waits" when it waits for that, and then waits to be killed.
 */
#include "uffd.h"

static struct area first, second;

static void *touch(void *unused)
{
	*(volatile char *)first.memory = 1;
	return NULL;
}

static void *read_slowly(void *unused)
{
	if (read(first.fd, second.memory, sizeof(struct uffd_msg)) < 0)
		perror("read");
	return NULL;
}

/* Returns once there is a message of the area. */
static void start(void *(*run)(void *), const struct area *area)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, NULL);
	while (messages_pending(area->fd) != 1)
		uffd_nap();
}

int main(void)
{
	if (area_open(&first, 1, 0) || area_open(&second, 1, 0)) {
		puts("failed");
		return 1;
	}
	start(touch, &first);
	start(read_slowly, &second);
	puts("waits");
	fflush(stdout);
	pause();
	return 0;
}
