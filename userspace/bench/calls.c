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

_Thread_local uint64_t calls_made;

#define COUNTED(name, parameters, arguments)            \
	int flowfd_##name parameters;                   \
	int calls_##name parameters                     \
	{                                               \
		calls_made++;                           \
		return flowfd_##name arguments;         \
	}

COUNTED(counter_notify, (const struct flowfd_counter *c, unsigned int role), (c, role))
COUNTED(counter_write, (const struct flowfd_counter *c, uint64_t value), (c, value))
COUNTED(counter_read, (const struct flowfd_counter *c, uint64_t *value), (c, value))
COUNTED(ring_notify, (const struct flowfd_ring *ring), (ring))
COUNTED(ring_wait, (const struct flowfd_ring *ring, uint64_t timeout), (ring, timeout))
