// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of single system calls: a tight loop of each, the same code for eventfd and
 * flowfd. And what signalling costs where it is none: in the memory of a mapped counter
 * or of a ring, and in a futex.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"

/* Far above what the loops write: counters have a maximum. */
#define MAXIMUM (1ULL << 40)
/* More than the loops read from a semaphore. */
#define PLENTY	(1ULL << 39)
#define FULL	UINT64_MAX

static const struct channel counter = {
	.name = "flowfd", .subject = { true, MAXIMUM, 0, 0 },
};
static const struct channel counter_bucket = {
	.name = "+ bucket", .subject = { true, MAXIMUM, CAPACITY, RATE },
};

/* The operations use their descriptors, not their functions. */
static const struct channel *const subjects[] = {
	&channel_eventfd, &counter, &counter_bucket, &channel_memory, &channel_post,
	&channel_futex,
};

#define SUBJECTS (sizeof(subjects) / sizeof(*subjects))

static void failed(const char *what)
{
	err(EXIT_FAILURE, "cost: %s", what);
}

static void loop_write(void *arg, unsigned long n)
{
	const struct end *end = arg;
	uint64_t one = 1;

	while (n--)
		if (write(end->out, &one, sizeof(one)) != sizeof(one))
			failed("write");
}

static void loop_read(void *arg, unsigned long n)
{
	const struct end *end = arg;
	uint64_t value;

	while (n--)
		if (read(end->in, &value, sizeof(value)) != sizeof(value))
			failed("read");
}

static void loop_write_read(void *arg, unsigned long n)
{
	const struct end *end = arg;
	uint64_t value = 1;

	while (n--)
		if (write(end->out, &value, sizeof(value)) != sizeof(value) ||
		    read(end->in, &value, sizeof(value)) != sizeof(value))
			failed("write and read");
}

static void loop_write_full(void *arg, unsigned long n)
{
	const struct end *end = arg;
	uint64_t one = 1;

	while (n--)
		if (write(end->out, &one, sizeof(one)) >= 0 || errno != EAGAIN)
			failed("write when full");
}

static void loop_read_empty(void *arg, unsigned long n)
{
	const struct end *end = arg;
	uint64_t value;

	while (n--)
		if (read(end->in, &value, sizeof(value)) >= 0 || errno != EAGAIN)
			failed("read when empty");
}

static void loop_poll(void *arg, unsigned long n)
{
	const struct end *end = arg;
	struct pollfd pollfd = { .fd = end->in, .events = POLLIN };

	while (n--)
		if (poll(&pollfd, 1, 0) < 0)
			failed("poll");
}

static void loop_write_epoll(void *arg, unsigned long n)
{
	const struct end *end = arg;
	struct epoll_event event;
	uint64_t one = 1;

	while (n--)
		if (write(end->out, &one, sizeof(one)) != sizeof(one) ||
		    epoll_wait(end->ep, &event, 1, 0) != 1)
			failed("write and epoll_wait");
}

static void memory_add_take(void *arg, unsigned long n)
{
	struct end *end = arg;
	uint64_t value;

	while (n--)
		if (flowfd_add(&end->counter, 1) || flowfd_take(&end->counter, &value))
			failed("add and take");
}

static void post_harvest(void *arg, unsigned long n)
{
	struct end *end = arg;
	struct flowfd_event event;

	while (n--)
		if (flowfd_ring_post(&end->ring, end->item, 1) ||
		    !flowfd_ring_next(&end->ring, &event))
			failed("post and harvest");
}

static void memory_add(void *arg, unsigned long n)
{
	struct end *end = arg;

	while (n--)
		if (flowfd_add(&end->counter, 1))
			failed("add");
}

static void memory_take_nothing(void *arg, unsigned long n)
{
	struct end *end = arg;
	uint64_t value;

	while (n--)
		if (flowfd_try_take(&end->counter, &value) != -EAGAIN)
			failed("take nothing");
}

static void must_close(int fd)
{
	if (fd < 0)
		failed("create");
	close(fd);
}

static void create_eventfd(void *arg, unsigned long n)
{
	(void)arg;
	while (n--)
		must_close(eventfd(0, EFD_CLOEXEC));
}

static const struct flowfd_create_counter created = { .maximum = MAXIMUM };

/* On a device that stays open. */
static void create_on_device(void *arg, unsigned long n)
{
	const struct end *end = arg;

	while (n--)
		must_close(flowfd_counter_create_on(end->in, &created, sizeof(created)));
}

/* Opens the device for each counter, as most programs do. */
static void create_alone(void *arg, unsigned long n)
{
	(void)arg;
	while (n--)
		must_close(flowfd_counter_create_from(&created, sizeof(created)));
}

/**
 * struct operation - a loop for each subject, or NULL
 * @initial: count before the loop; FULL: the highest possible
 * @flags: FLOWFD_* of the descriptor
 * @uses: the device, where flowfd's loop makes its own counters; an epoll
 */
static const struct operation {
	const char *name;
	void (*loop[SUBJECTS])(void *arg, unsigned long n);
	uint64_t initial;
	unsigned int flags;
	enum { NOTHING, THE_DEVICE, AN_EPOLL } uses;
} operations[] = {
	{ "write + read",
	  { loop_write_read, loop_write_read, loop_write_read, memory_add_take, post_harvest,
	    futex_turns },
	  0, 0, NOTHING },
	{ "write + epoll_wait",
	  { loop_write_epoll, NULL, NULL, NULL, post_harvest },
	  0, FLOWFD_NONBLOCK, AN_EPOLL },
	{ "write", { loop_write, loop_write, NULL, memory_add }, 0, 0, NOTHING },
	{ "read", { loop_read, loop_read }, PLENTY, FLOWFD_SEMAPHORE, NOTHING },
	{ "write, full", { loop_write_full, loop_write_full }, FULL, FLOWFD_NONBLOCK,
	  NOTHING },
	{ "read, empty",
	  { loop_read_empty, loop_read_empty, NULL, memory_take_nothing },
	  0, FLOWFD_NONBLOCK, NOTHING },
	{ "poll, ready", { loop_poll, loop_poll }, 1, 0, NOTHING },
	{ "poll, not ready", { loop_poll, loop_poll }, 0, 0, NOTHING },
	{ "create + close", { create_eventfd, create_on_device }, 0, 0, THE_DEVICE },
	{ "same, opens it", { create_eventfd, create_alone }, 0, 0, THE_DEVICE },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

static int open_descriptor(const struct operation *operation,
			   const struct subject *subject)
{
	uint64_t initial = operation->initial;

	if (operation->uses == THE_DEVICE)
		return subject->flowfd ? flowfd_device_open() : -1;
	if (initial == FULL)
		initial = subject->maximum - 1;
	return subject_open(subject, initial, operation->flags);
}

static void measure(struct table *table, unsigned int number)
{
	const struct operation *operation = &operations[number / SUBJECTS];
	const struct channel *channel = subjects[number % SUBJECTS];
	void (*loop)(void *arg, unsigned long n) = operation->loop[number % SUBJECTS];
	struct end *end;

	if (!loop)
		return;
	end = channel_open(channel, false);
	if (channel->kind == DESCRIPTOR) {
		close(end->in);
		end->in = end->out = open_descriptor(operation, &channel->subject);
		if (operation->uses == AN_EPOLL)
			end->ep = epoll_open(end->in);
	}
	table_add(table, 0, clock_loop(loop, end), operation->name, channel->name);
	channel_close(channel, end);
}

const struct bench bench_cost = {
	.name = "cost",
	.title = "one call in a tight loop, nobody waiting; in memory none",
	.labels = { "operation", "subject" },
	.columns = { { "cost", "cost", 1, 0 }, { "ratio", "ratio", 3, 1 } },
	.control = { NULL, "eventfd" },
	.cases = OPERATIONS * SUBJECTS,
	.channels = subjects,
	.count = SUBJECTS,
	.measure = measure,
};
