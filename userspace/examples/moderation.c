// SPDX-License-Identifier: MIT
/*
 * Interrupt moderation, as network cards do it (rx-frames and rx-usecs of ethtool(8)): the
 * driver is interrupted after 32 frames, or 500 microseconds after the first, and is woken
 * a thousand times a second at most. A change of the link is urgent and passes all that.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flowfd.h>

#define FRAMES 20000
#define LINK_ONE 4000 /* the link changes once in so many frames */

static struct flowfd_counter counter;
static atomic_int link_changes;

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "moderation: %s: %s\n", what, flowfd_strerror(result));
	exit(EXIT_FAILURE);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* The card. The frame with a change of the link is urgent. */
static void *receive_frames(void *unused)
{
	for (int i = 1; i <= FRAMES; i++) {
		if (i % LINK_ONE == 0) {
			atomic_fetch_add(&link_changes, 1);
			check("urgent add",
			      flowfd_add_with(&counter, 1, 0, FLOWFD_URGENT));
		} else {
			check("add", flowfd_add(&counter, 1));
		}
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	return unused;
}

/* The driver: counts interrupts until all frames have come. */
int main(void)
{
	const struct flowfd_flow flow = {
		.read_mark = 32,
		.max_delay = 500000,
		.qos = { .token_capacity = 1, .token_rate = 1000 },
	};
	uint64_t frames = 0, count;
	int fd = flowfd_counter_create(0, 0);
	int interrupts = 0, changes = 0, error;
	double start = now(), seconds;
	pthread_t card;

	/* Not flowfd_counter_open(): a counter in memory has no marks. */
	check("create", fd);
	check("map", flowfd_counter_map(&counter, fd,
					FLOWFD_PRODUCER | FLOWFD_CONSUMER));
	error = flowfd_set_flow(fd, &flow, sizeof(flow));
	if (error) {
		fprintf(stderr, "moderation: policies: %s\n",
			flowfd_flow_strerror(error));
		return EXIT_FAILURE;
	}
	check("thread", -pthread_create(&card, NULL, receive_frames, NULL));
	while (frames < FRAMES) {
		check("take",
		      flowfd_take_with(&counter, &count, FLOWFD_SEC(10), 0));
		interrupts++;
		changes += atomic_exchange(&link_changes, 0);
		frames += count;
	}
	seconds = now() - start;
	pthread_join(card, NULL);
	printf("%" PRIu64
	       " frames and %d link changes in %d interrupts, %.0f a second\n",
	       frames, changes, interrupts, interrupts / seconds);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
