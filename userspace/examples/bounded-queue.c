// SPDX-License-Identifier: MIT
/*
 * A queue between two threads: the producer sleeps while DEPTH items wait, and
 * nothing is lost. It is the first program of README.md and of flowfd(7). Runs without
 * the module, too.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <flowfd.h>

#define ITEMS 20000
#define DEPTH 64

/* DEPTH wait, DEPTH are worked on, and one is stored but not yet counted. */
#define SLOTS (2 * DEPTH + 1)

static int slots[SLOTS];
static struct flowfd_counter counter;

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, flowfd_strerror(result));
	exit(EXIT_FAILURE);
}

static void *produce(void *unused)
{
	for (int item = 0; item < ITEMS; item++) {
		slots[item % SLOTS] = item;
		/* After the item is stored. Sleeps while DEPTH items wait. */
		check("add", flowfd_add(&counter, 1));
	}
	return unused;
}

int main(void)
{
	/* The count stays below the maximum, so it is one more than DEPTH. */
	const struct flowfd_create_counter settings = { .maximum = DEPTH + 1 };
	uint64_t batch, largest = 0;
	pthread_t producer;
	int next = 0;

	check("open", flowfd_counter_open(&counter, &settings, sizeof(settings),
					  FLOWFD_FALLBACK));
	check("thread", -pthread_create(&producer, NULL, produce, NULL));

	while (next < ITEMS) {
		/* Sleeps while nothing waits, then takes all that does. */
		check("take", flowfd_take(&counter, &batch));
		for (uint64_t i = 0; i < batch; i++, next++) {
			if (slots[next % SLOTS] != next) {
				fprintf(stderr, "item %d was lost\n", next);
				return EXIT_FAILURE;
			}
		}
		if (batch > largest)
			largest = batch;
	}
	pthread_join(producer, NULL);
	printf("%d items, at most %" PRIu64 " at once, none lost\n", next,
	       largest);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
