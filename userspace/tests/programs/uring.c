// SPDX-License-Identifier: GPL-2.0-only
/* A library that needs liburing and libaio. It calls liburing by a tail call. */
#include <libaio.h>
#include <liburing.h>

int uring_use(struct io_uring *uring, int fd);
long aio_use(void);

int uring_use(struct io_uring *uring, int fd)
{
	return io_uring_register_eventfd(uring, fd);
}

/* The kernel refuses a context that is none, and a number below 0. */
long aio_use(void)
{
	return io_submit(NULL, -1, NULL);
}
