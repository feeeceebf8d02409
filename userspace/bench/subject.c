// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subject of a measurement: a stock eventfd, or a flowfd counter with settings.
 */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

static int open_eventfd(uint64_t initial, unsigned int flags)
{
	int efd_flags = EFD_CLOEXEC;
	int fd;

	if (flags & FLOWFD_SEMAPHORE)
		efd_flags |= EFD_SEMAPHORE;
	if (flags & FLOWFD_NONBLOCK)
		efd_flags |= EFD_NONBLOCK;
	fd = eventfd(0, efd_flags);
	if (fd < 0)
		err(EXIT_FAILURE, "eventfd");
	/* The initial count of eventfd(2) has only 32 bits. */
	if (initial && eventfd_write(fd, initial))
		err(EXIT_FAILURE, "eventfd: write");
	return fd;
}

static void set_policies(const struct subject *subject, int fd)
{
	const struct flowfd_flow flow = {
		.maximum = subject->maximum,
		.read_mark = subject->read_mark,
		.max_delay = subject->max_delay,
		.qos.token_capacity = subject->capacity,
		.qos.token_rate = subject->rate,
		.overflow = subject->overflow,
	};
	int error;

	if (!subject->read_mark && !subject->overflow)
		return;
	error = flowfd_set_flow(fd, &flow, sizeof(flow));
	if (error)
		errx(EXIT_FAILURE, "policies: %s", flowfd_strerror(error));
}

/* Opens a subject; @flags: FLOWFD_*. */
int subject_open(const struct subject *subject, uint64_t initial,
		 unsigned int flags)
{
	struct flowfd_create_counter counter = {
		.initial = initial,
		.maximum = subject->maximum,
		.flags = flags,
		.qos.token_capacity = subject->capacity,
		.qos.token_rate = subject->rate,
	};
	int fd;

	if (subject->mapped)
		counter.flags |= FLOWFD_MAPPED | FLOWFD_EDGE_PER_TAKE;
	if (!subject->flowfd)
		return open_eventfd(initial, flags);
	fd = flowfd_counter_create_from(&counter, sizeof(counter));
	if (fd < 0)
		errx(EXIT_FAILURE, "%s: %s", FLOWFD_DEVICE,
		     flowfd_strerror(fd));
	set_policies(subject, fd);
	return fd;
}

const char *subject_name(const struct subject *subject)
{
	if (subject->mapped)
		return "mapped";
	return subject->flowfd ? "flowfd" : "eventfd";
}

const char *subject_maximum(const struct subject *subject, char text[24])
{
	if (subject->maximum == NO_MAXIMUM)
		return "unlimited";
	snprintf(text, 24, "%" PRIu64, subject->maximum);
	return text;
}
