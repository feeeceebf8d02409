/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls that programs are made of, and their state: a few descriptors at fixed
 * numbers, a few mappings, and addresses and values of which some are bad.
 */
#ifndef CALLS_H
#define CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "fuzz.h"

/* Files are at these numbers, out of the way of new descriptors, or are closed. */
#define FILES 10
#define FILE_BASE 300
#define RINGS 3
#define RING_BASE 400
#define EPOLLS 2
#define EPOLL_BASE 500
#define MAPS 3

struct map {
	char *at;
	size_t size;
};

/* place.c */
void place_init(void);
void place_clear(void);
void place_fd(int fd, int at);
int any_file(__u32 a);
int any_ring(__u32 a);
int any_epoll(__u32 a);
int any_fd(__u32 a);
struct map *any_map(__u32 a);
__u64 any_value(__u32 a);
int open_creator(__u32 a);
__u32 any_events(__u32 a);
void *any_address(__u32 a, const void *good, size_t size);
size_t any_size(__u32 a);

/* waiting.c */
void waiting_clear(void);

/* The calls, with weights for choosing, in the order of the files that have them. */
#define CALLS(CALL) \
	CALL(open, 3) \
	CALL(eventfd, 2) \
	CALL(timer, 2) \
	CALL(terminal, 2) \
	CALL(pipe, 3) \
	CALL(sockets, 3) \
	CALL(other_file, 2) \
	CALL(close, 6) \
	CALL(dup, 2) \
	CALL(shutdown, 1) \
	CALL(send, 3) \
	CALL(receive, 2) \
	CALL(flags, 2) \
	CALL(fdinfo, 2) \
	CALL(create_counter, 5) \
	CALL(setup_counter, 2) \
	CALL(read, 5) \
	CALL(write, 6) \
	CALL(read_parts, 2) \
	CALL(write_parts, 2) \
	CALL(set_maximum, 3) \
	CALL(set_qos, 4) \
	CALL(set_flow, 4) \
	CALL(transfer, 5) \
	CALL(bridge, 5) \
	CALL(splice, 1) \
	CALL(create_ring, 5) \
	CALL(control, 25) \
	CALL(batch, 3) \
	CALL(wait, 3) \
	CALL(any_ioctl, 10) \
	CALL(map, 8) \
	CALL(unmap, 2) \
	CALL(remap, 1) \
	CALL(protect, 1) \
	CALL(advise, 1) \
	CALL(scribble, 8) \
	CALL(harvest, 5) \
	CALL(poll, 3) \
	CALL(epoll, 2) \
	CALL(epoll_add, 4) \
	CALL(epoll_wait, 2) \
	CALL(aio_poll, 2) \
	CALL(uring_poll, 3) \
	CALL(uring_transfer, 2) \
	CALL(uring_wait, 1) \
	CALL(pause, 2) \
	CALL(signal, 1) \
	CALL(fork, 2)

#define DECLARE(name, weight) void call_##name(const __u32 *a);
CALLS(DECLARE)
#undef DECLARE

#endif /* CALLS_H */
