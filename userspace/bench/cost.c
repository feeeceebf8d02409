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
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

/* Far above what the loops write: counters have a maximum. */
#define MAXIMUM (1ULL << 40)
/* More than the loops read from a semaphore. */
#define PLENTY	(1ULL << 39)
#define FULL	UINT64_MAX

enum { EVENTFD, FLOWFD, BUCKET, MEMORY, SUBJECTS };

static const struct subject subjects[] = {
	[EVENTFD] = { .maximum = NO_MAXIMUM },
	[FLOWFD] = { .flowfd = true, .maximum = MAXIMUM },
	[BUCKET] = { .flowfd = true, .maximum = MAXIMUM, .capacity = 2, .rate = 1000 },
};

static const char *const names[SUBJECTS] = { "eventfd", "flowfd", "+ bucket",
					     "in memory" };

/** struct call - what the loops use: a descriptor, or a counter in memory */
struct call {
	int fd;
	struct flowfd_counter counter;
};

static void failed(const char *what)
{
	err(EXIT_FAILURE, "cost: %s", what);
}

static void loop_getppid(void *arg, unsigned long n)
{
	(void)arg;
	while (n--)
		getppid();
}

static void loop_write(void *arg, unsigned long n)
{
	const struct call *call = arg;
	uint64_t one = 1;

	while (n--)
		if (write(call->fd, &one, sizeof(one)) != sizeof(one))
			failed("write");
}

static void loop_read(void *arg, unsigned long n)
{
	const struct call *call = arg;
	uint64_t value;

	while (n--)
		if (read(call->fd, &value, sizeof(value)) != sizeof(value))
			failed("read");
}

static void loop_write_read(void *arg, unsigned long n)
{
	const struct call *call = arg;
	uint64_t value = 1;

	while (n--)
		if (write(call->fd, &value, sizeof(value)) != sizeof(value) ||
		    read(call->fd, &value, sizeof(value)) != sizeof(value))
			failed("write and read");
}

static void loop_write_full(void *arg, unsigned long n)
{
	const struct call *call = arg;
	uint64_t one = 1;

	while (n--)
		if (write(call->fd, &one, sizeof(one)) >= 0 || errno != EAGAIN)
			failed("write when full");
}

static void loop_read_empty(void *arg, unsigned long n)
{
	const struct call *call = arg;
	uint64_t value;

	while (n--)
		if (read(call->fd, &value, sizeof(value)) >= 0 || errno != EAGAIN)
			failed("read when empty");
}

static void loop_poll(void *arg, unsigned long n)
{
	const struct call *call = arg;
	struct pollfd pollfd = { .fd = call->fd, .events = POLLIN };

	while (n--)
		if (poll(&pollfd, 1, 0) < 0)
			failed("poll");
}

static void memory_add_take(void *arg, unsigned long n)
{
	struct call *call = arg;
	uint64_t value;

	while (n--)
		if (flowfd_add(&call->counter, 1) || flowfd_take(&call->counter, &value))
			failed("add and take");
}

static void memory_add(void *arg, unsigned long n)
{
	struct call *call = arg;

	while (n--)
		if (flowfd_add(&call->counter, 1))
			failed("add");
}

static void memory_take_nothing(void *arg, unsigned long n)
{
	struct call *call = arg;
	uint64_t value;

	while (n--)
		if (flowfd_try_take(&call->counter, &value) != -EAGAIN)
			failed("take nothing");
}

static void create_eventfd(void *arg, unsigned long n)
{
	(void)arg;
	while (n--)
		close(eventfd(0, EFD_CLOEXEC));
}

static const struct flowfd_create_counter created = { .maximum = MAXIMUM };

/* On a device that stays open. */
static void create_counter(void *arg, unsigned long n)
{
	const struct call *call = arg;

	while (n--)
		close(ioctl(call->fd, FLOWFD_IOC_CREATE_COUNTER, &created));
}

static void create_by_library(void *arg, unsigned long n)
{
	const struct call *call = arg;

	while (n--)
		close(flowfd_counter_create_on(call->fd, &created, sizeof(created)));
}

/* Opens the device for each counter, as most programs do. */
static void create_alone(void *arg, unsigned long n)
{
	(void)arg;
	while (n--)
		close(flowfd_counter_create_from(&created, sizeof(created)));
}

/**
 * struct operation - a loop for each subject, or NULL
 * @initial: count before the loop; FULL: the highest possible
 * @flags: FLOWFD_* of the descriptor
 * @device: flowfd's loop uses the device, and makes its own counters
 */
static const struct operation {
	const char *name;
	void (*loop[SUBJECTS])(void *arg, unsigned long n);
	uint64_t initial;
	unsigned int flags;
	bool device;
} operations[] = {
	{ "getppid", { loop_getppid }, 0, 0, false },
	{ "write + read",
	  { loop_write_read, loop_write_read, loop_write_read, memory_add_take }, 0, 0, false },
	{ "write", { loop_write, loop_write, loop_write, memory_add }, 0, 0, false },
	/* A semaphore can have no bucket. */
	{ "read", { loop_read, loop_read }, PLENTY, FLOWFD_SEMAPHORE, false },
	{ "write, full", { loop_write_full, loop_write_full }, FULL, FLOWFD_NONBLOCK, false },
	{ "read, empty",
	  { loop_read_empty, loop_read_empty, loop_read_empty, memory_take_nothing },
	  0, FLOWFD_NONBLOCK, false },
	{ "poll, ready", { loop_poll, loop_poll, loop_poll }, 1, 0, false },
	{ "poll, not ready", { loop_poll, loop_poll, loop_poll }, 0, 0, false },
	{ "create + close", { create_eventfd, create_counter }, 0, 0, true },
	{ "same, libflowfd", { create_eventfd, create_by_library }, 0, 0, true },
	{ "same, opens it", { create_eventfd, create_alone }, 0, 0, true },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

static void open_memory(struct flowfd_counter *counter)
{
	int error = flowfd_counter_open(counter, &created, sizeof(created),
					FLOWFD_FALLBACK | FLOWFD_ONE_CONSUMER);

	if (error)
		errx(EXIT_FAILURE, "cost: %s", flowfd_strerror(error));
}

static int open_call(const struct operation *operation, const struct subject *subject)
{
	uint64_t initial = operation->initial;

	if (operation->device)
		return subject->flowfd ? flowfd_device_open() : -1;
	if (initial == FULL)
		initial = subject->maximum - 1;
	return subject_open(subject, initial, operation->flags);
}

static bool without(unsigned int number)
{
	return operations[number / SUBJECTS].loop[MEMORY] &&
	       (number % SUBJECTS == EVENTFD || number % SUBJECTS == MEMORY);
}

static void measure(struct table *table, unsigned int number)
{
	const struct operation *operation = &operations[number / SUBJECTS];
	unsigned int which = number % SUBJECTS;
	struct call call = { .fd = -1 };
	struct row *row;

	if (!operation->loop[which])
		return;
	if (which == MEMORY)
		open_memory(&call.counter);
	else
		call.fd = open_call(operation, &subjects[which]);
	row = table_row(table, (const char *[]){ operation->name, names[which] });
	series_add(&row->series[0], clock_loop(operation->loop[which], &call));
	if (which == MEMORY)
		flowfd_counter_close(&call.counter);
	else if (call.fd >= 0)
		close(call.fd);
}

const struct bench bench_cost = {
	.name = "cost",
	.title = "one call in a tight loop, nobody waiting",
	.labels = (const char *const[]){ "operation", "subject", NULL },
	.columns = (const struct column[]){ { "cost", "cost", 1, 0 },
					    { "ratio", "ratio", 3, 1 },
					    { 0 } },
	.control = { NULL, "eventfd" },
	.cases = OPERATIONS * SUBJECTS,
	.without = without,
	.measure = measure,
};
