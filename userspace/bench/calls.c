// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the inline functions of libflowfd call instead of the library, in files that
 * include calls.h: the same, and counted.
 */
#include "calls.h"

#undef flowfd_counter_notify
#undef flowfd_counter_write
#undef flowfd_counter_read
#undef flowfd_ring_notify
#undef flowfd_ring_wait

int flowfd_counter_notify(const struct flowfd_counter *c, unsigned int role);
int flowfd_counter_write(const struct flowfd_counter *c, uint64_t value);
int flowfd_counter_read(const struct flowfd_counter *c, uint64_t *value);
int flowfd_ring_notify(const struct flowfd_ring *ring);
int flowfd_ring_wait(const struct flowfd_ring *ring, uint64_t timeout);

_Thread_local uint64_t calls_made;

int calls_counter_notify(const struct flowfd_counter *c, unsigned int role)
{
	calls_made++;
	return flowfd_counter_notify(c, role);
}

int calls_counter_write(const struct flowfd_counter *c, uint64_t value)
{
	calls_made++;
	return flowfd_counter_write(c, value);
}

int calls_counter_read(const struct flowfd_counter *c, uint64_t *value)
{
	calls_made++;
	return flowfd_counter_read(c, value);
}

int calls_ring_notify(const struct flowfd_ring *ring)
{
	calls_made++;
	return flowfd_ring_notify(ring);
}

int calls_ring_wait(const struct flowfd_ring *ring, uint64_t timeout)
{
	calls_made++;
	return flowfd_ring_wait(ring, timeout);
}
