// SPDX-License-Identifier: MIT
/*
 * Signals in memory: a producer adds to a counter and a consumer takes, without a system
 * call while both are busy. The consumer sleeps in epoll when there is nothing. Runs
 * without the module, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include <flowfd.h>

#define ITEMS 1000000
#define DEPTH 1000

static struct flowfd_counter counter;

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, flowfd_strerror(result));
	exit(EXIT_FAILURE);
}

/* Sleeps while DEPTH items wait. */
static void *produce(void *unused)
{
	for (int item = 0; item < ITEMS; item++)
		check("add", flowfd_add(&counter, 1));
	return unused;
}

/* The descriptor is that of a file like any other. */
static int watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		check("epoll", -errno);
	return epoll;
}

int main(void)
{
	const struct flowfd_create_counter settings = { .maximum = DEPTH + 1 };
	uint64_t count, sum = 0;
	struct epoll_event event;
	pthread_t producer;
	int epoll, error;

	/* This thread alone takes, and until there is nothing. */
	error = flowfd_counter_open(&counter, &settings, sizeof(settings),
				    FLOWFD_FALLBACK | FLOWFD_ONE_CONSUMER);
	check("open", error);
	epoll = watch(counter.fd);
	check("thread", -pthread_create(&producer, NULL, produce, NULL));

	while (sum < ITEMS) {
		error = flowfd_try_take(&counter, &count);
		if (!error)
			sum += count;
		else if (error != -EAGAIN)
			check("take", error);
		else if (epoll_wait(epoll, &event, 1, -1) < 0 && errno != EINTR)
			check("epoll_wait", -errno);
	}
	pthread_join(producer, NULL);
	printf("%" PRIu64 " items\n", sum);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
