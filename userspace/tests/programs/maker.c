// SPDX-License-Identifier: GPL-2.0-only
/* See maker.h. */
#include <sys/eventfd.h>

#include "tests/programs/maker.h"

int maker_eventfd(unsigned int initial)
{
	/* volatile: a tail call would not return into this library. */
	volatile int fd = eventfd(initial, 0);

	return fd;
}
