// SPDX-License-Identifier: MIT
/*
 * A logger whose program never waits for the disk: a line for which there is no room is
 * dropped, and the log says how many were. The descriptor blocks, as the logger's own
 * thread sleeps in a read; only writes fail at once.
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
static int counter;

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
		result = flowfd_write(counter, 1);
		if (result == -EAGAIN) {
			dropped++;
			continue;
		}
		check("write", result);
		slot = (slot + 1) % SLOTS;
		dropped = 0;
	}
	/* The end is worth waiting for. */
	lines[slot] = (struct line){ LINES, dropped };
	while ((result = flowfd_write(counter, 1)) == -EAGAIN)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	check("last write", result);
	return unused;
}

static void write_to_slow_disk(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

int main(void)
{
	const struct flowfd_flow flow = {
		.maximum = DEPTH + 1,
		.overflow = FLOWFD_OVERFLOW_FAIL,
	};
	int slot = 0, next = 0, written = 0, dropped = 0;
	pthread_t program;

	counter = flowfd_counter_create(0, 0);
	check("create", counter);
	check("policies", flowfd_set_flow(counter, &flow, sizeof(flow)));
	check("thread", -pthread_create(&program, NULL, log_lines, NULL));
	while (next <= LINES) {
		uint64_t batch;

		check("read", flowfd_read(counter, &batch));
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
	return EXIT_SUCCESS;
}
