/* SPDX-License-Identifier: GPL-2.0-only */
/* Bridges between counters and eventfds, for the tests of them. */
#ifndef BRIDGE_USER_H
#define BRIDGE_USER_H

#include <sys/utsname.h>

#include "selftest.h"

#define NO_EVENTFD (-1)

/* How many a signal moves of an eventfd that is a semaphore. */
#define SEMAPHORE_TAKES 1024

static inline int new_eventfd(void)
{
	return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static inline long bridge(int fd, int eventfd, unsigned int flags)
{
	struct flowfd_bridge args = { .eventfd = eventfd, .flags = flags };

	return result_of(ioctl(fd, FLOWFD_IOC_COUNTER_BRIDGE, &args));
}

static inline long source(int fd, int eventfd)
{
	return bridge(fd, eventfd, FLOWFD_BRIDGE_SOURCE);
}

static inline long sink(int fd, int eventfd)
{
	return bridge(fd, eventfd, FLOWFD_BRIDGE_SINK);
}

static inline long remove_source(int fd)
{
	return bridge(fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE);
}

static inline long remove_sink(int fd)
{
	return bridge(fd, -1, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE);
}

/* The eventfd-id of a source or sink; NO_EVENTFD: there is none. */
static inline int bridged_id(int fd, const char *end)
{
	char value[32];

	fdinfo_line(fd, end, value, sizeof(value));
	return strcmp(value + strspn(value, "\t "), "none") ? atoi(value) : NO_EVENTFD;
}

static inline bool end_goes(int fd, const char *end)
{
	__u64 until = ms_from_now(PATIENCE_MS);

	while (bridged_id(fd, end) != NO_EVENTFD) {
		if (now_ns() > until)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* What is read from an eventfd until no more comes; 0 if a read fails. */
static inline __u64 sum_of_signals(int eventfd)
{
	__u64 value, sum = 0;

	while (poll_for(eventfd, POLLIN, QUIET_MS) == POLLIN) {
		if (take(eventfd, &value) != 8)
			return 0;
		sum += value;
	}
	return sum;
}

/* Work items do most of it, so it takes a while. */
static inline bool count_becomes(int fd, __u64 count)
{
	__u64 until = ms_from_now(PATIENCE_MS);

	while (count_of(fd) != count) {
		if (now_ns() > until)
			return false;
		sleep_ms(1);
	}
	return true;
}

static inline __u64 waiting_of(int fd)
{
	return fdinfo_number(fd, "flowfd-source-waiting", 10);
}

/* From 6.8 on a signal by the kernel adds 1 to an eventfd, before that any value. */
static inline bool signals_have_values(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	uname(&name);
	sscanf(name.release, "%d.%d", &major, &minor);
	return major < 6 || (major == 6 && minor < 8);
}

/* What one signal for a count adds. */
static inline __u64 signalled(__u64 count)
{
	return signals_have_values() ? count : 1;
}

static inline unsigned long per_second(__u64 n, __u64 ns)
{
	return n * 1000000000 / ns;
}

#endif /* BRIDGE_USER_H */
