/* SPDX-License-Identifier: MIT */
/*
 * Checks for programs that are compiled with FLOWFD_DEBUG defined: included by <flowfd.h>.
 * They end a program where it would lose a count, or where its event loop would hang, with
 * a message and abort(3). flowfd-ring.h has the check for two consumers.
 */
#ifndef FLOWFD_DEBUG_H
#define FLOWFD_DEBUG_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void flowfd_debug_end(int fd, const char *text)
{
	fprintf(stderr, "flowfd: descriptor %d %s\n", fd, text);
	abort();
}

/* An event says what was announced: a read may find nothing, and would wait. */
static inline void flowfd_debug_watched(int fd)
{
	int saved = errno, flags = fcntl(fd, F_GETFL);

	errno = saved;
	if (flags >= 0 && !(flags & O_NONBLOCK))
		flowfd_debug_end(fd, "is blocking, and is added to a ring:"
				     " set O_NONBLOCK");
}

static inline int flowfd_debug_ring_add(const struct flowfd_ring *ring, int fd,
					uint32_t events, uint64_t data)
{
	flowfd_debug_watched(fd);
	return flowfd_ring_add(ring, fd, events, data);
}

static inline int flowfd_debug_ring_add_pinned(const struct flowfd_ring *ring, int fd,
					       uint32_t events, uint64_t data)
{
	flowfd_debug_watched(fd);
	return flowfd_ring_add_pinned(ring, fd, events, data);
}

static inline int flowfd_debug_ring_control(const struct flowfd_ring *ring,
					    struct flowfd_ring_entry *entries,
					    uint32_t count)
{
	uint32_t i;

	for (i = 0; entries && i < count; i++)
		if (entries[i].op == FLOWFD_RING_ADD ||
		    entries[i].op == FLOWFD_RING_ADD_PINNED)
			flowfd_debug_watched(entries[i].fd);
	return flowfd_ring_control(ring, entries, count);
}

/* Of a counter without the module, the descriptor has no count. */
static inline void flowfd_debug_counter(int fd)
{
	uint64_t maximum;
	int ret = flowfd_get_maximum(fd, &maximum);

	if (ret == -ENOTTY || ret == -EINVAL)
		flowfd_debug_end(fd,
				 "is not a counter of the flowfd module: with a struct"
				 " flowfd_counter call flowfd_add() and flowfd_take()");
}

static inline int flowfd_debug_write(int fd, uint64_t value)
{
	flowfd_debug_counter(fd);
	return flowfd_write(fd, value);
}

static inline int flowfd_debug_read(int fd, uint64_t *value)
{
	flowfd_debug_counter(fd);
	return flowfd_read(fd, value);
}

/* Arguments can have commas, in compound literals; a structure has the name of a function. */
#define flowfd_ring_add(...)	    flowfd_debug_ring_add(__VA_ARGS__)
#define flowfd_ring_add_pinned(...) flowfd_debug_ring_add_pinned(__VA_ARGS__)
#define flowfd_ring_control(...)    flowfd_debug_ring_control(__VA_ARGS__)
#define flowfd_write(...)	    flowfd_debug_write(__VA_ARGS__)
#define flowfd_read(...)	    flowfd_debug_read(__VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif /* FLOWFD_DEBUG_H */
