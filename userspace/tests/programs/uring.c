// SPDX-License-Identifier: GPL-2.0-only
/* A library that needs liburing, and calls it by a tail call. */
#include <liburing.h>

int uring_use(struct io_uring *uring, int fd);

int uring_use(struct io_uring *uring, int fd)
{
	return io_uring_register_eventfd(uring, fd);
}
