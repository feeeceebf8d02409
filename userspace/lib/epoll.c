// SPDX-License-Identifier: MIT
/*
 * epoll(7) for rings without the module: its system calls, and the list of what it
 * watches. Only flowfd__epoll_wait_cancellably() is a cancellation point.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device.h"
#include "epoll.h"
#include "sanitizer.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#define NS_PER_S  1000000000ULL
#define NS_PER_MS 1000000ULL
/* Bytes that the kernel reads of a signal mask. */
#define MASK_SIZE 8

/* Returns @ret, or the negative errno, and restores errno. */
static int result_of(long ret, int saved)
{
	if (ret < 0) {
		ret = -errno;
		errno = saved;
	}
	return (int)ret;
}

int flowfd__epoll_open(void)
{
	int saved = errno;

	return result_of(epoll_create1(EPOLL_CLOEXEC), saved);
}

int flowfd__epoll_control(int epoll, int op, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = { .events = events, .data.u64 = tag };
	int saved = errno;

	return result_of(epoll_ctl(epoll, op, fd, &event), saved);
}

/* Rounds up, so that the rest of a timeout is no busy loop. */
static int milliseconds(uint64_t timeout)
{
	uint64_t ms = timeout / NS_PER_MS + (timeout % NS_PER_MS != 0);

	if (timeout == FLOWFD_RING_FOREVER)
		return -1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static long wait_for_ms(int epoll, struct epoll_event *events, int count,
			const struct flowfd__epoll_sleep *sleep)
{
	return syscall(SYS_epoll_pwait, epoll, events, count,
		       milliseconds(sleep->timeout), (void *)(uintptr_t)sleep->sigmask,
		       (size_t)MASK_SIZE);
}

int flowfd__epoll_wait(int epoll, struct epoll_event *events, int count,
		       const struct flowfd__epoll_sleep *sleep)
{
	const struct {
		int64_t seconds;
		int64_t nanoseconds;
	} timeout = { (int64_t)(sleep->timeout / NS_PER_S),
		      (int64_t)(sleep->timeout % NS_PER_S) };
	int saved = errno;
	long ret;

	if (!sleep->timeout || sleep->timeout == FLOWFD_RING_FOREVER)
		ret = wait_for_ms(epoll, events, count, sleep);
	else
		ret = syscall(SYS_epoll_pwait2, epoll, events, count, &timeout,
			      (void *)(uintptr_t)sleep->sigmask, (size_t)MASK_SIZE);
	if (ret < 0 && flowfd__is_filtered(-errno)) {
		errno = saved;
		ret = wait_for_ms(epoll, events, count, sleep);
	}
	flowfd__stored(events, ret * (long)sizeof(*events));
	return result_of(ret, saved);
}

/* AddressSanitizer: it has nothing on the stack that a cancellation would leave there. */
int flowfd__epoll_wait_cancellably(int epoll, struct epoll_event *events, int count,
				   bool for_ever)
{
	int saved = errno;

	return result_of(epoll_pwait(epoll, events, count, for_ever ? -1 : 0, NULL),
			 saved);
}

/* A line of a watched file has "tfd:" at its beginning, and later "data:", in hex. */
static void read_line(const char *line, void (*each)(void *argument, uint64_t tag),
		      void *argument)
{
	const char *data = strstr(line, "data:");

	if (!strncmp(line, "tfd:", 4) && data)
		each(argument, strtoull(data + strlen("data:"), NULL, 16));
}

/* Returns the rest, which is a part of a line, moved to the beginning of @text. */
static size_t read_lines(char *text, void (*each)(void *argument, uint64_t tag),
			 void *argument)
{
	char *line = text, *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		read_line(line, each, argument);
	}
	memmove(text, line, strlen(line) + 1);
	return strlen(text);
}

/* The kernel makes the list at the first read, under epoll's lock. */
static int read_all(int fd, void (*each)(void *argument, uint64_t tag), void *argument)
{
	char text[4096];
	size_t rest = 0;
	long bytes;

	do {
		bytes = syscall(SYS_read, fd, text + rest, sizeof(text) - 1 - rest);
		flowfd__stored(text + rest, bytes);
		if (bytes > 0) {
			text[rest + (size_t)bytes] = '\0';
			rest = read_lines(text, each, argument);
		}
	} while (bytes > 0 && rest < sizeof(text) - 1);
	return bytes ? -EIO : 0;
}

int flowfd__epoll_list(int epoll, void (*each)(void *argument, uint64_t tag),
		       void *argument)
{
	int saved = errno, fd, ret;
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", epoll);
	fd = result_of(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), saved);
	if (fd < 0)
		return fd;
	ret = read_all(fd, each, argument);
	flowfd__close(fd);
	errno = saved;
	return ret;
}
