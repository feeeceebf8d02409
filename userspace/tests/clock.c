// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls with a timeout end where a filter refuses the clock, on a machine whose vDSO has
 * none: the library's calls of it are these.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/tap.h"

#define BRIEFLY 20000000

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	(void)time;
	errno = EPERM;
	return -1;
}

static void test_counter(unsigned int options, const char *what)
{
	const struct flowfd_create_counter settings = { .maximum = 5 };
	struct flowfd_counter c;
	uint64_t value;

	tap_is(flowfd_counter_open(&c, &settings, sizeof(settings),
				   FLOWFD_FALLBACK | options),
	       0, what);
	tap_is(flowfd_take_with(&c, &value, BRIEFLY, 0), -ETIMEDOUT, "a take ends");
	tap_is(flowfd_add(&c, 4), 0, "an add");
	tap_is(flowfd_add_with(&c, 1, BRIEFLY, 0), -ETIMEDOUT, "an add without room ends");
	tap_is(flowfd_take_spin(&c, &value, BRIEFLY), 0, "a take that spins");
	tap_is(flowfd_add(&c, 1), 0, "an add");
	tap_is(flowfd_take(&c, &value), 0, "a take");
	flowfd_counter_close(&c);
}

static void test_ring(void)
{
	struct flowfd_ring ring;

	tap_is(flowfd_ring_create(&ring, 8, FLOWFD_FALLBACK), 0, "a ring");
	tap_is(flowfd_ring_wait(&ring, BRIEFLY), 0, "a wait ends");
	flowfd_ring_destroy(&ring);
}

int main(void)
{
	setenv("FLOWFD_BACKEND", "fallback", 1);
	alarm(60);
	test_counter(0, "a counter");
	test_counter(FLOWFD_ONE_CONSUMER, "one consumer");
	test_counter(FLOWFD_NO_POLL, "nobody polls");
	test_ring();
	return tap_done();
}
