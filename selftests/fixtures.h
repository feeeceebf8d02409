/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters that tests run on. A test of "counter" runs on the kernel's
 * eventfd too, so what it expects is what the running kernel does; a test of
 * "flowfd" is about what only flowfd has.
 */
#ifndef FIXTURES_H
#define FIXTURES_H

#include "selftest.h"

FIXTURE(counter)
{
	int fd;
};

FIXTURE_VARIANT(counter)
{
	enum origin origin;
};

FIXTURE_VARIANT_ADD(counter, eventfd) { .origin = EVENTFD };
FIXTURE_VARIANT_ADD(counter, flowfd_device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(counter, flowfd_created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(counter, flowfd_set_up) { .origin = SET_UP };

FIXTURE_SETUP(counter)
{
	self->fd = open_counter(variant->origin, 0, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(counter)
{
	close(self->fd);
}

FIXTURE(semaphore)
{
	int fd;
};

FIXTURE_VARIANT(semaphore)
{
	enum origin origin;
};

FIXTURE_VARIANT_ADD(semaphore, eventfd) { .origin = EVENTFD };
FIXTURE_VARIANT_ADD(semaphore, flowfd_created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(semaphore, flowfd_set_up) { .origin = SET_UP };

FIXTURE_SETUP(semaphore)
{
	self->fd = open_counter(variant->origin, 0, EFD_SEMAPHORE);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(semaphore)
{
	close(self->fd);
}

FIXTURE(flowfd)
{
	int fd;
};

FIXTURE_VARIANT(flowfd)
{
	enum origin origin;
};

FIXTURE_VARIANT_ADD(flowfd, device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(flowfd, created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(flowfd, set_up) { .origin = SET_UP };

FIXTURE_SETUP(flowfd)
{
	self->fd = open_counter(variant->origin, 0, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(flowfd)
{
	close(self->fd);
}

#endif /* FIXTURES_H */
