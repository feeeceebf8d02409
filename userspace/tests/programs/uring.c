// SPDX-License-Identifier: GPL-2.0-only
/* A library that needs liburing and libaio. It calls liburing by a tail call. */
#include <stddef.h>

#include <libaio.h>
#include <liburing.h>

#include "preload/uring.h"

_Static_assert(offsetof(struct uring, ring_fd) == offsetof(struct io_uring, ring_fd),
	       "the shim knows the descriptor");
_Static_assert(offsetof(struct uring, registered) ==
		       offsetof(struct io_uring, enter_ring_fd),
	       "the shim knows the registered number");

int uring_use(struct io_uring *uring, int fd);
int uring_use_number(void);
long aio_use(void);

/* Not all releases of liburing have it. */
int io_uring_register(unsigned int fd, unsigned int opcode, const void *arg,
		      unsigned int nr_args) __attribute__((weak));

int uring_use(struct io_uring *uring, int fd)
{
	return io_uring_register_eventfd(uring, fd);
}

/* No descriptor: the kernel is to look at a number, which this thread does not have. */
int uring_use_number(void)
{
	struct io_uring uring = { .ring_fd = -1, .enter_ring_fd = 7 };

	if (io_uring_register)
		io_uring_register(-1, 0, NULL, 0);
	return io_uring_register_eventfd_async(&uring, -1);
}

/* The kernel refuses a context that is none, and a number below 0. */
long aio_use(void)
{
	return io_submit(NULL, -1, NULL);
}
