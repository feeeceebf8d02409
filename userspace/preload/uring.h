/* SPDX-License-Identifier: MIT */
/*
 * The beginning of liburing's struct io_uring. It is the same since liburing 2.0: programs
 * have it in their own memory, and inline functions read it.
 */
#ifndef FLOWFD_PRELOAD_URING_H
#define FLOWFD_PRELOAD_URING_H

#include <stddef.h>

struct uring_queue {
	size_t ring_size;
	void *ring;
	unsigned int words[4];
};

/* Only the two members with comments are used. */
struct uring {
	void *submission[8];
	unsigned int submitted[2];
	struct uring_queue submissions;
	void *completion[7];
	struct uring_queue completions;
	unsigned int flags;
	int ring_fd; /* -1: the ring has no descriptor, but a number */
	unsigned int features;
	int registered; /* the number, among the descriptors registered for io_uring */
};

#endif /* FLOWFD_PRELOAD_URING_H */
