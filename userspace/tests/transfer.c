// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd_read() and flowfd_write() on a real eventfd, which they treat like a counter:
 * values and every documented error.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/interrupt.h"
#include "tests/tap.h"

#define FULL (UINT64_MAX - 1)

static void test_values(void)
{
	int fd = eventfd(3, EFD_NONBLOCK);
	uint64_t value = 0;

	tap_is(flowfd_read(fd, &value), 0, "read the initial count");
	tap_is(value, 3, "which is 3");
	tap_is(flowfd_read(fd, &value), -EAGAIN, "read nothing");
	tap_is(value, 3, "a failed read leaves the value alone");
	tap_is(flowfd_write(fd, 0), 0, "write 0");
	tap_is(flowfd_read(fd, &value), -EAGAIN, "which adds nothing");
	tap_is(flowfd_write(fd, 5), 0, "write 5");
	tap_is(flowfd_write(fd, FULL - 5), 0, "fill it");
	tap_is(flowfd_write(fd, 1), -EAGAIN, "write to a full one");
	tap_is(flowfd_read(fd, &value), 0, "read it empty");
	tap_ok(value == FULL, "all of it");
	tap_is(flowfd_write(fd, UINT64_MAX), -EINVAL, "write ULLONG_MAX");
	close(fd);
}

static void test_semaphore(void)
{
	int fd = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE);
	uint64_t value = 0;

	tap_is(flowfd_read(fd, &value), 0, "take one");
	tap_is(value, 1, "which is 1");
	tap_is(flowfd_read(fd, &value), 0, "take another");
	tap_is(flowfd_read(fd, &value), -EAGAIN, "no third");
	close(fd);
}

static void test_signal(void)
{
	struct interrupt interrupt;
	uint64_t value;
	int fd = eventfd(0, 0);

	interrupt_begin(&interrupt);
	tap_is(flowfd_read(fd, &value), -EINTR, "read interrupted");
	tap_is(flowfd_write(fd, FULL), 0, "fill it");
	tap_is(flowfd_write(fd, 1), -EINTR, "write interrupted");
	interrupt_end(&interrupt);
	close(fd);
}

int main(void)
{
	test_values();
	test_semaphore();
	test_signal();
	return tap_done();
}
