/* SPDX-License-Identifier: GPL-2.0-only */
/* A counter of each kind, and two eventfds to bridge it with. */
#ifndef BRIDGE_FIXTURE_H
#define BRIDGE_FIXTURE_H

#include "bridge_user.h"
#include "mapped_user.h"
#include "fixtures.h"

FIXTURE(bridge)
{
	int fd;
	int in;		/* an eventfd */
	int out;	/* another */
};

FIXTURE_VARIANT(bridge)
{
	enum origin origin;
};

FIXTURE_VARIANT_ADD(bridge, device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(bridge, created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(bridge, set_up) { .origin = SET_UP };
FIXTURE_VARIANT_ADD(bridge, mapped) { .origin = MAPPED };

FIXTURE_SETUP(bridge)
{
	self->fd = open_counter(variant->origin, 0, EFD_NONBLOCK);
	self->in = new_eventfd();
	self->out = new_eventfd();
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->in);
	ASSERT_LE(0, self->out);
}

FIXTURE_TEARDOWN(bridge)
{
	close(self->fd);
	close(self->in);
	close(self->out);
}

#endif /* BRIDGE_FIXTURE_H */
