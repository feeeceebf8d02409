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

/* files.c */
void call_open(const __u32 *a);
void call_eventfd(const __u32 *a);
void call_timer(const __u32 *a);
void call_terminal(const __u32 *a);
void call_pipe(const __u32 *a);
void call_sockets(const __u32 *a);
void call_other_file(const __u32 *a);
void call_close(const __u32 *a);
void call_dup(const __u32 *a);
void call_shutdown(const __u32 *a);
void call_send(const __u32 *a);
void call_receive(const __u32 *a);
void call_flags(const __u32 *a);
void call_fdinfo(const __u32 *a);

/* counters.c */
void call_create_counter(const __u32 *a);
void call_setup_counter(const __u32 *a);
void call_read(const __u32 *a);
void call_write(const __u32 *a);
void call_read_parts(const __u32 *a);
void call_write_parts(const __u32 *a);
void call_set_maximum(const __u32 *a);
void call_get_maximum(const __u32 *a);
void call_set_qos(const __u32 *a);
void call_get_qos(const __u32 *a);
void call_set_flow(const __u32 *a);
void call_get_flow(const __u32 *a);
void call_transfer(const __u32 *a);
void call_stats(const __u32 *a);
void call_bridge(const __u32 *a);
void call_splice(const __u32 *a);

/* rings.c */
void call_create_ring(const __u32 *a);
void call_add(const __u32 *a);
void call_change(const __u32 *a);
void call_delete(const __u32 *a);
void call_add_post(const __u32 *a);
void call_delete_post(const __u32 *a);
void call_notify_ring(const __u32 *a);
void call_control(const __u32 *a);
void call_wait(const __u32 *a);
void call_query(const __u32 *a);
void call_notify(const __u32 *a);
void call_any_ioctl(const __u32 *a);

/* memory.c */
void call_map(const __u32 *a);
void call_map_counter(const __u32 *a);
void call_count(const __u32 *a);
void call_unmap(const __u32 *a);
void call_remap(const __u32 *a);
void call_protect(const __u32 *a);
void call_advise(const __u32 *a);
void call_scribble(const __u32 *a);
void call_post(const __u32 *a);
void call_take_posts(const __u32 *a);
void call_harvest(const __u32 *a);

/* waiting.c */
void waiting_clear(void);
void call_poll(const __u32 *a);
void call_epoll(const __u32 *a);
void call_epoll_add(const __u32 *a);
void call_epoll_wait(const __u32 *a);
void call_aio_poll(const __u32 *a);
void call_uring_poll(const __u32 *a);
void call_uring_transfer(const __u32 *a);
void call_uring_wait(const __u32 *a);
void call_pause(const __u32 *a);
void call_signal(const __u32 *a);
void call_fork(const __u32 *a);

#endif /* CALLS_H */
