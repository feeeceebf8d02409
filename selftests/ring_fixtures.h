/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fixtures of the ring_ tests: "ring" has an eventfd that is not watched yet, "wait"
 * watches three of them.
 */
#ifndef RING_FIXTURES_H
#define RING_FIXTURES_H

#include "ring_user.h"

FIXTURE(ring)
{
	struct user_ring ring;
	int event;
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	self->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ASSERT_LE(0, self->event);
}

FIXTURE_TEARDOWN(ring)
{
	ring_close(&self->ring);
	close(self->event);
}

FIXTURE(wait)
{
	struct user_ring ring;
	int events[3];
};

FIXTURE_SETUP(wait)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	for (int i = 0; i < 3; i++) {
		self->events[i] = eventfd(0, EFD_CLOEXEC);
		ASSERT_LE(0, ring_add(&self->ring, self->events[i], EPOLLIN, i));
	}
}

FIXTURE_TEARDOWN(wait)
{
	ring_close(&self->ring);
	for (int i = 0; i < 3; i++)
		close(self->events[i]);
}

#endif /* RING_FIXTURES_H */
