// SPDX-License-Identifier: MIT
/*
 * A logger whose program never waits for the disk: a line for which there is no room is
 * dropped, and the log says how many were. The descriptor blocks, as the logger's own
 * thread sleeps in a take; only adds fail at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <flowfd.h>

#define LINES 20000
#define DEPTH 256

/* DEPTH wait, DEPTH are being written, and one is stored but not yet counted. */
#define SLOTS (2 * DEPTH + 1)

struct line {
	int number;
	int dropped_before;
};

static struct line lines[SLOTS];
static struct flowfd_counter counter;

static void check(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "logger: %s: %s\n", what, flowfd_strerror(result));
	exit(EXIT_FAILURE);
}

/* The program. A dropped line leaves its slot to the next one. */
static void *log_lines(void *unused)
{
	int slot = 0, dropped = 0, result;

	for (int number = 0; number < LINES; number++) {
		lines[slot] = (struct line){ number, dropped };
		result = flowfd_add(&counter, 1);
		if (result == -EAGAIN) {
			dropped++;
			continue;
		}
		check("add", result);
		slot = (slot + 1) % SLOTS;
		dropped = 0;
	}
	/* The end is worth waiting for. */
	lines[slot] = (struct line){ LINES, dropped };
	while ((result = flowfd_add(&counter, 1)) == -EAGAIN)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	check("last add", result);
	return unused;
}

static void write_to_slow_disk(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

int main(void)
{
	const struct flowfd_create_counter settings = { .maximum = DEPTH + 1 };
	const struct flowfd_flow flow = {
		.overflow = FLOWFD_OVERFLOW_FAIL,
		.set = FLOWFD_SET_OVERFLOW,
	};
	int slot = 0, next = 0, written = 0, dropped = 0, error;
	pthread_t program;

	check("open",
	      flowfd_counter_open(&counter, &settings, sizeof(settings), 0));
	error = flowfd_set_flow(counter.fd, &flow, sizeof(flow));
	if (error) {
		fprintf(stderr, "logger: policies: %s\n",
			flowfd_flow_strerror(error));
		return EXIT_FAILURE;
	}
	check("thread", -pthread_create(&program, NULL, log_lines, NULL));
	while (next <= LINES) {
		uint64_t batch;

		check("take", flowfd_take(&counter, &batch));
		for (; batch > 0; batch--, slot = (slot + 1) % SLOTS) {
			const struct line *line = &lines[slot];

			if (line->number != next + line->dropped_before) {
				fprintf(stderr, "line %d is missing\n", next);
				return EXIT_FAILURE;
			}
			dropped += line->dropped_before;
			written += line->number < LINES;
			next = line->number + 1;
		}
		write_to_slow_disk();
	}
	pthread_join(program, NULL);
	printf("%d lines: %d written, %d dropped\n", written + dropped, written,
	       dropped);
	flowfd_counter_close(&counter);
	return EXIT_SUCCESS;
}
