/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fixtures with a counter. Tests of "counter" and "semaphore" also run on an eventfd,
 * so that they expect what the running kernel does. Tests of "flowfd" are about what
 * only flowfd has.
 */
#ifndef FIXTURES_H
#define FIXTURES_H

#include "selftest.h"

/* A fixture whose variants are the origins of its counter. */
#define COUNTER_FIXTURE(name, flags)                                 \
	FIXTURE(name)                                                \
	{                                                            \
		int fd;                                              \
	};                                                           \
	FIXTURE_VARIANT(name)                                        \
	{                                                            \
		enum origin origin;                                  \
	};                                                           \
	FIXTURE_SETUP(name)                                          \
	{                                                            \
		self->fd = open_counter(variant->origin, 0, flags);  \
		ASSERT_LE(0, self->fd);                              \
	}                                                            \
	FIXTURE_TEARDOWN(name)                                       \
	{                                                            \
		close(self->fd);                                     \
	}

COUNTER_FIXTURE(counter, 0)
FIXTURE_VARIANT_ADD(counter, eventfd) { .origin = EVENTFD };
FIXTURE_VARIANT_ADD(counter, flowfd_device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(counter, flowfd_created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(counter, flowfd_set_up) { .origin = SET_UP };
FIXTURE_VARIANT_ADD(counter, flowfd_mapped) { .origin = MAPPED };

COUNTER_FIXTURE(semaphore, EFD_SEMAPHORE)
FIXTURE_VARIANT_ADD(semaphore, eventfd) { .origin = EVENTFD };
FIXTURE_VARIANT_ADD(semaphore, flowfd_created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(semaphore, flowfd_set_up) { .origin = SET_UP };

COUNTER_FIXTURE(flowfd, 0)
FIXTURE_VARIANT_ADD(flowfd, device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(flowfd, created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(flowfd, set_up) { .origin = SET_UP };
FIXTURE_VARIANT_ADD(flowfd, mapped) { .origin = MAPPED };

/* Of a mapped counter marks and delay are refused. */
COUNTER_FIXTURE(marked, 0)
FIXTURE_VARIANT_ADD(marked, device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(marked, created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(marked, set_up) { .origin = SET_UP };

#endif /* FIXTURES_H */
