// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of single system calls: a tight loop of each, the same code for eventfd and
 * flowfd, with getppid(2) as a bare system call to compare with. And what they cost in
 * the memory of a mapped counter, where they are none.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

/* Far above what the loops write: measures the cost of having a maximum. */
#define MAXIMUM		(1ULL << 40)
/* More than the loops read from a semaphore. */
#define PLENTY		(1ULL << 39)
#define FULL		UINT64_MAX
/* Goal: the ratio of add + take in memory to eventfd's write + read. */
#define MEMORY_LIMIT	0.03

enum { EVENTFD, FLOWFD, FLOWFD_MAXIMUM, FLOWFD_BUCKET, MAPPED, SUBJECTS };

static const struct subject subjects[SUBJECTS] = {
	[EVENTFD] = { .maximum = NO_MAXIMUM },
	[FLOWFD] = { .flowfd = true, .maximum = NO_MAXIMUM },
	[FLOWFD_MAXIMUM] = { .flowfd = true, .maximum = MAXIMUM },
	[FLOWFD_BUCKET] = { .flowfd = true,
			    .maximum = NO_MAXIMUM,
			    .capacity = 2,
			    .rate = 1000 },
	[MAPPED] = { .flowfd = true, .mapped = true, .maximum = MAXIMUM },
};

/* From FLOWFD on, each column is followed by its ratio to eventfd. */
static const struct column columns[] = {
	{ "eventfd", "eventfd", 1, false },
	{ "flowfd", "flowfd", 1, false },
	{ "ratio", "ratio", 3, true },
	{ "maximum", "+maximum", 1, false },
	{ "maximum_ratio", "ratio", 3, false },
	{ "bucket", "+bucket", 1, false },
	{ "bucket_ratio", "ratio", 3, false },
	{ "mapped", "in memory", 1, false },
	{ "mapped_ratio", "ratio", 3, false },
	{ 0 },
};

static const unsigned int subject_column[SUBJECTS] = { 0, 1, 3, 5, 7 };

static const char *const labels[] = { "operation", NULL };

static void failed(const char *what)
{
	err(EXIT_FAILURE, "cost: %s", what);
}

static void loop_getppid(const struct subject *subject, int fd, unsigned long n)
{
	(void)subject;
	(void)fd;
	while (n--)
		getppid();
}

static void loop_write(const struct subject *subject, int fd, unsigned long n)
{
	uint64_t one = 1;

	(void)subject;
	while (n--)
		if (write(fd, &one, sizeof(one)) != sizeof(one))
			failed("write");
}

static void loop_read(const struct subject *subject, int fd, unsigned long n)
{
	uint64_t value;

	(void)subject;
	while (n--)
		if (read(fd, &value, sizeof(value)) != sizeof(value))
			failed("read");
}

static void loop_write_read(const struct subject *subject, int fd,
			    unsigned long n)
{
	uint64_t value = 1;

	(void)subject;
	while (n--)
		if (write(fd, &value, sizeof(value)) != sizeof(value) ||
		    read(fd, &value, sizeof(value)) != sizeof(value))
			failed("write and read");
}

static void loop_write_full(const struct subject *subject, int fd,
			    unsigned long n)
{
	uint64_t one = 1;

	(void)subject;
	while (n--)
		if (write(fd, &one, sizeof(one)) >= 0 || errno != EAGAIN)
			failed("write when full");
}

static void loop_read_empty(const struct subject *subject, int fd,
			    unsigned long n)
{
	uint64_t value;

	(void)subject;
	while (n--)
		if (read(fd, &value, sizeof(value)) >= 0 || errno != EAGAIN)
			failed("read when empty");
}

static void loop_poll(const struct subject *subject, int fd, unsigned long n)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	(void)subject;
	while (n--)
		if (poll(&pollfd, 1, 0) < 0)
			failed("poll");
}

static struct flowfd_counter map_counter(int fd)
{
	struct flowfd_counter c;
	int error = flowfd_counter_map(&c, fd, FLOWFD_PRODUCER | FLOWFD_CONSUMER);

	if (error)
		errx(EXIT_FAILURE, "cost: map: %s", flowfd_strerror(error));
	return c;
}

static void memory_add_take(int fd, unsigned long n)
{
	struct flowfd_counter c = map_counter(fd);
	uint64_t value;

	while (n--)
		if (flowfd_add(&c, 1) || flowfd_take(&c, &value))
			failed("add and take");
	flowfd_counter_unmap(&c);
}

static void memory_add(int fd, unsigned long n)
{
	struct flowfd_counter c = map_counter(fd);

	while (n--)
		if (flowfd_add(&c, 1))
			failed("add");
	flowfd_counter_unmap(&c);
}

static void memory_take_nothing(int fd, unsigned long n)
{
	struct flowfd_counter c = map_counter(fd);
	uint64_t value;

	while (n--)
		if (flowfd_try_take(&c, &value) != -EAGAIN)
			failed("take nothing");
	flowfd_counter_unmap(&c);
}

/* With or without libflowfd, as a program that keeps the device open. */
static inline __attribute__((always_inline)) void
create_on_device(const struct subject *subject, unsigned long n, bool library)
{
	const struct flowfd_create_counter counter = {
		.maximum = subject->maximum,
		.qos = { subject->capacity, subject->rate },
	};
	int device = subject->flowfd ? flowfd_device_open() : -1, created;

	while (n--) {
		if (!subject->flowfd)
			created = eventfd(0, EFD_CLOEXEC);
		else if (library)
			created = flowfd_counter_create_on(device, &counter,
							   sizeof(counter));
		else
			created = ioctl(device, FLOWFD_IOC_CREATE_COUNTER, &counter);
		if (created < 0)
			failed("create");
		close(created);
	}
	if (device >= 0)
		close(device);
}

static void loop_create(const struct subject *subject, int fd, unsigned long n)
{
	(void)fd;
	create_on_device(subject, n, false);
}

static void loop_on_device(const struct subject *subject, int fd, unsigned long n)
{
	(void)fd;
	create_on_device(subject, n, true);
}

/* Opens the device for each counter, as most programs do. */
static void loop_library(const struct subject *subject, int fd, unsigned long n)
{
	(void)fd;
	while (n--)
		close(subject_open(subject, 0, 0));
}

/**
 * struct operation - a loop and the state that it needs
 * @initial: count before the loop; FULL: the highest possible
 * @flags: FLOWFD_* of the descriptor
 * @share: divisor of the number of iterations, above 1 for slow operations
 * @limit: goal, the highest ratio to eventfd; 0: no goal
 * @bare: needs no descriptor
 * @memory: the same in memory, or NULL
 */
static const struct operation {
	const char *name;
	void (*loop)(const struct subject *subject, int fd, unsigned long n);
	uint64_t initial;
	unsigned int flags;
	unsigned int share;
	double limit;
	bool bare;
	void (*memory)(int fd, unsigned long n);
} operations[] = {
	{ "getppid", loop_getppid, 0, 0, 1, 0, true, NULL },
	{ "write + read", loop_write_read, 0, 0, 1, 0.95, false, memory_add_take },
	{ "write", loop_write, 0, 0, 1, 1.02, false, memory_add },
	{ "read", loop_read, PLENTY, FLOWFD_SEMAPHORE, 1, 1.02, false, NULL },
	{ "write, full", loop_write_full, FULL, FLOWFD_NONBLOCK, 1, 1.02, false, NULL },
	{ "read, empty", loop_read_empty, 0, FLOWFD_NONBLOCK, 1, 1.02, false,
	  memory_take_nothing },
	{ "poll, ready", loop_poll, 1, 0, 1, 1.02, false, NULL },
	{ "poll, not ready", loop_poll, 0, 0, 1, 1.02, false, NULL },
	{ "create + close", loop_create, 0, 0, 20, 1.2, false, NULL },
	{ "same, libflowfd", loop_on_device, 0, 0, 20, 1.5, false, NULL },
	/* Two system calls instead of one, and a walk of the device's path. */
	{ "same, opens it", loop_library, 0, 0, 20, 2.2, false, NULL },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

static const struct subject *subject(unsigned int number)
{
	if (operations[number / SUBJECTS].bare)
		return NULL;
	return &subjects[number % SUBJECTS];
}

static void run_loop(const struct operation *operation, const struct subject *subject,
		     int fd, unsigned long n)
{
	if (subject->mapped)
		operation->memory(fd, n);
	else
		operation->loop(subject, fd, n);
}

static double measure_loop(const struct operation *operation,
			   const struct subject *subject, unsigned long n)
{
	uint64_t initial = operation->initial;
	uint64_t start;
	int fd = -1;

	if (initial == FULL)
		initial = subject->maximum - 1;
	if (!operation->bare)
		fd = subject_open(subject, initial, operation->flags);
	run_loop(operation, subject, fd, n / 20 + 1); /* warms the caches */
	start = clock_now();
	run_loop(operation, subject, fd, n);
	start = clock_now() - start;
	if (fd >= 0)
		close(fd);
	return (double)start / (double)n;
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct operation *operation = &operations[number / SUBJECTS];
	unsigned int which = number % SUBJECTS;
	unsigned long n = settings->iterations / operation->share;
	const struct subject *subject = &subjects[which];
	struct row *row;

	/* A semaphore can have no bucket, and getppid() needs no descriptor. */
	if ((subject->rate && operation->flags & FLOWFD_SEMAPHORE) ||
	    (operation->bare && which != EVENTFD) ||
	    (subject->mapped && !operation->memory))
		return;
	row = table_row(table, (const char *[]){ operation->name });
	series_add(&row->series[subject_column[which]],
		   measure_loop(operation, subject, n ? n : 1));
}

/* Signals without system calls. */
static void conclude_memory(struct table *table, const char *unit)
{
	const struct row *row = table_find(table, (const char *[]){ "write + read" });
	const struct series *ratio;

	if (!row)
		return;
	ratio = &row->series[subject_column[MAPPED] + 1];
	if (!ratio->count)
		return;
	table_verdict(table, series_median(ratio), "<=", MEMORY_LIMIT,
		      "add + take in memory: %.3f of eventfd (%.0f %s)",
		      series_median(ratio),
		      series_median(&row->series[subject_column[MAPPED]]), unit);
}

/* A ratio for each round, so that a disturbance of a whole round cancels out. */
static void add_ratios(struct row *row)
{
	const struct series *control = &row->series[subject_column[EVENTFD]];
	unsigned int which, i;

	for (which = FLOWFD; which < SUBJECTS; which++) {
		const struct series *series =
			&row->series[subject_column[which]];

		for (i = 0; i < series->count && i < control->count; i++)
			series_add(&row->series[subject_column[which] + 1],
				   series->value[i] / control->value[i]);
	}
}

static void conclude(const struct settings *settings, struct table *table)
{
	const char *unit = settings->instructions ? "instructions" : "ns";
	const struct operation *operation;
	const struct series *ratio;
	struct row *row;

	table->note = settings->instructions ? "instructions per call"
					     : "nanoseconds per call";
	for (operation = operations; operation < operations + OPERATIONS;
	     operation++) {
		row = table_find(table, (const char *[]){ operation->name });
		if (!row)
			continue;
		add_ratios(row);
		ratio = &row->series[subject_column[FLOWFD] + 1];
		if (!operation->limit || !ratio->count)
			continue;
		table_verdict(table, series_median(ratio), "<=",
			      operation->limit,
			      "%s: %.3f of eventfd (%.0f %s, eventfd %.0f)",
			      operation->name, series_median(ratio),
			      series_median(&row->series[1]), unit,
			      series_median(&row->series[0]));
	}
	conclude_memory(table, unit);
}

const struct bench bench_cost = {
	.name = "cost",
	.title = "one call in a tight loop, nobody waiting",
	.labels = labels,
	.columns = columns,
	.cases = OPERATIONS * SUBJECTS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
