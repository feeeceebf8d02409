// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that only create and close, one, or one on each of two CPUs: whether they
 * slow each other down.
 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

static const struct subject an_eventfd = { .maximum = NO_MAXIMUM };
static const struct subject a_counter = { .flowfd = true,
					  .maximum = NO_MAXIMUM };

static int by_eventfd(int device)
{
	(void)device;
	return eventfd(0, EFD_CLOEXEC);
}

static int by_ioctl(int device)
{
	const struct flowfd_create_counter counter = { 0 };

	return ioctl(device, FLOWFD_IOC_CREATE_COUNTER, &counter);
}

static int by_library(int device)
{
	(void)device;
	return flowfd_counter_create(0, 0);
}

static const struct way {
	const char *name;
	const struct subject *subject;
	int (*create)(int device);
} ways[] = {
	{ "eventfd", &an_eventfd, by_eventfd },
	{ "ioctl", &a_counter, by_ioctl },
	{ "libflowfd", &a_counter, by_library },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

enum { ONE, TWO, SCALING, TO_EVENTFD };

static const struct column columns[] = {
	{ "one", "1 thread, /s", 0, true },
	{ "two", "2 threads, /s", 0, true },
	{ "scaling", "2 to 1", 2, true },
	{ "to_eventfd", "to eventfd", 2, true },
	{ 0 },
};

static const char *const labels[] = { "created by", NULL };

struct crowd {
	const struct way *way;
	unsigned int threads;
	unsigned long each;
	int device;
	pthread_barrier_t begin;
};

static void create_and_close(struct crowd *crowd)
{
	unsigned long n;
	int fd;

	pthread_barrier_wait(&crowd->begin);
	for (n = 0; n < crowd->each; n++) {
		fd = crowd->way->create(crowd->device);
		if (fd < 0)
			errx(EXIT_FAILURE, "creators: %s", crowd->way->name);
		close(fd);
	}
}

static void *first(void *arg)
{
	create_and_close(arg);
	return NULL;
}

static void *second(void *arg)
{
	struct crowd *crowd = arg;

	if (crowd->threads > 1)
		create_and_close(crowd);
	return NULL;
}

/* Descriptors created per second, by all threads together. */
static double run(struct crowd *crowd)
{
	struct pair pair;
	uint64_t time;

	pthread_barrier_init(&crowd->begin, NULL, crowd->threads + 1);
	pair_start(&pair, first, second, crowd);
	pthread_barrier_wait(&crowd->begin);
	time = clock_now();
	pthread_join(pair.reader, NULL);
	pthread_join(pair.writer, NULL);
	time = clock_now() - time;
	pthread_barrier_destroy(&crowd->begin);
	return (double)crowd->each * crowd->threads * 1e9 / (double)time;
}

static const struct subject *subject(unsigned int number)
{
	return ways[number].subject;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	struct crowd crowd = {
		.way = &ways[number],
		.each = settings->iterations / 5 + 1,
		.device = -1,
	};
	struct row *row;
	double rate;

	if (crowd.way->subject->flowfd)
		crowd.device = open(FLOWFD_DEVICE, O_RDWR | O_CLOEXEC);
	row = table_row(table, (const char *[]){ crowd.way->name });
	for (crowd.threads = 1; crowd.threads <= 2; crowd.threads++) {
		rate = run(&crowd);
		series_add(&row->series[crowd.threads == 1 ? ONE : TWO], rate);
	}
	if (crowd.device >= 0)
		close(crowd.device);
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control =
		table_find(table, (const char *[]){ ways[0].name });
	const struct series *two;
	struct row *row;
	unsigned int i, j;

	(void)settings;
	table->note = pair_cpus() < 2 ? "both threads on one CPU" : NULL;
	for (i = 0; i < table->rows; i++) {
		row = table->row[i];
		two = &row->series[TWO];
		for (j = 0; j < two->count; j++) {
			series_add(&row->series[SCALING],
				   two->value[j] / row->series[ONE].value[j]);
			if (control)
				series_add(&row->series[TO_EVENTFD],
					   two->value[j] /
					   control->series[TWO].value[j]);
		}
	}
}

const struct bench bench_creators = {
	.name = "creators",
	.title = "threads that create and close, one and two",
	.labels = labels,
	.columns = columns,
	.cases = WAYS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
