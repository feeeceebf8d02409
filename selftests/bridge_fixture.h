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
	self->in = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	self->out = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
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

static inline void *read_late(void *arg)
{
	__u64 value = 0;

	take(*(int *)arg, &value);
	return (void *)(unsigned long)value;
}

static inline pthread_t start_reader(int *fd)
{
	pthread_t thread = 0;

	set_nonblock(*fd, false);
	pthread_create(&thread, NULL, read_late, fd);
	sleep_ms(20);
	return thread;
}

static inline unsigned long reader_result(pthread_t thread)
{
	void *value = NULL;

	pthread_join(thread, &value);
	return (unsigned long)value;
}

#endif /* BRIDGE_FIXTURE_H */
