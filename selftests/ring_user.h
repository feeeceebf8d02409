/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring as programs use it: create, map, harvest. The ring_ tests share it. The
 * harvest is that of <linux/flowfd.h>.
 */
#ifndef RING_USER_H
#define RING_USER_H

#include "selftest.h"

#include <sys/resource.h>

struct user_ring {
	int fd;
	__u32 map_size;
	__u32 mask;
	struct flowfd_ring_header *header;
	struct flowfd_ring_item *items;
	volatile __u32 *index;
};

struct ring_event {
	__u32 events;
	__u64 data;
};

static inline long ring_create(struct flowfd_create_ring *args)
{
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	long fd;

	if (device < 0)
		return -errno;
	fd = result_of(ioctl(device, FLOWFD_IOC_CREATE_RING, args));
	close(device);
	return fd;
}

/* Maps a ring of which only the descriptor is known. Returns 0 or a negative errno. */
static inline int ring_map(struct user_ring *r, int fd)
{
	struct flowfd_ring_header *header;
	__u32 map_size;
	char *map;

	*r = (struct user_ring){ .fd = fd };
	header = mmap(NULL, sizeof(*header), PROT_READ, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		return -errno;
	map_size = header->map_size;
	munmap(header, sizeof(*header));
	map = mmap(NULL, map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r->map_size = map_size;
	r->header = (void *)map;
	r->mask = r->header->index_slots - 1;
	r->items = (void *)(map + r->header->items_offset);
	r->index = (void *)(map + r->header->index_offset);
	return 0;
}

/* Returns 0 or a negative errno. */
static inline int ring_open(struct user_ring *r, __u32 max_items)
{
	struct flowfd_create_ring args = { .max_items = max_items };
	int fd = ring_create(&args), err;

	if (fd < 0)
		return fd;
	err = ring_map(r, fd);
	if (err)
		close(fd);
	return err;
}

static inline void ring_close(struct user_ring *r)
{
	munmap(r->header, r->map_size);
	close(r->fd);
}

/* Takes one event; false: there is none. */
static inline bool ring_take(struct user_ring *r, struct ring_event *event)
{
	__u32 head = r->header->head, v;

	for (;;) {
		v = __atomic_load_n(&r->index[head & r->mask],
				    __ATOMIC_ACQUIRE);
		if (!v)
			return false;
		r->index[head & r->mask] = 0;
		__atomic_store_n(&r->header->head, ++head, __ATOMIC_RELEASE);
		__atomic_store_n(&r->items[v - 1].queued, 0, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		event->events = __atomic_exchange_n(&r->items[v - 1].ready, 0,
						    __ATOMIC_SEQ_CST);
		event->data = r->items[v - 1].data;
		if (event->events)
			return true;
	}
}

/* The bits of the only event; 0: no event; ~0: more than one. */
static inline __u32 ring_take_only(struct user_ring *r)
{
	struct ring_event event, more;

	if (!ring_take(r, &event))
		return 0;
	return ring_take(r, &more) ? ~0U : event.events;
}

static inline long ring_control(int fd, struct flowfd_ring_entry *entries,
				__u32 count)
{
	struct flowfd_ring_control args = {
		.entries = (uintptr_t)entries,
		.count = count,
	};

	return result_of(ioctl(fd, FLOWFD_IOC_RING_CONTROL, &args));
}

/* Carries out one control entry and returns its result. */
static inline int ring_change(struct user_ring *r, __u32 op, int fd,
			      __u32 events, __u64 data)
{
	struct flowfd_ring_entry entry = {
		.op = op, .fd = fd, .events = events, .data = data,
		.result = 12345,
	};
	long failed = ring_control(r->fd, &entry, 1);

	if (failed < 0)
		return failed;
	return failed == (entry.result < 0) ? entry.result : -12345;
}

static inline int ring_add(struct user_ring *r, int fd, __u32 events,
			   __u64 data)
{
	return ring_change(r, FLOWFD_RING_ADD, fd, events | EPOLLET, data);
}

static inline int ring_add_pinned(struct user_ring *r, int fd, __u32 events,
				  __u64 data)
{
	return ring_change(r, FLOWFD_RING_ADD_PINNED, fd, events | EPOLLET,
			   data);
}

static inline int ring_mod(struct user_ring *r, int fd, __u32 events,
			   __u64 data)
{
	return ring_change(r, FLOWFD_RING_MOD, fd, events | EPOLLET, data);
}

static inline int ring_del(struct user_ring *r, int fd)
{
	return ring_change(r, FLOWFD_RING_DEL, fd, 0, 0);
}

/* Returns the number of watches that had this data. */
static inline int ring_del_data(struct user_ring *r, __u64 data)
{
	return ring_change(r, FLOWFD_RING_DEL_DATA, -1, 0, data);
}

static inline long ring_wait_with(struct user_ring *r,
				  struct flowfd_ring_wait args)
{
	return result_of(ioctl(r->fd, FLOWFD_IOC_RING_WAIT, &args));
}

static inline long ring_wait_ms(struct user_ring *r, __u32 min_events,
				unsigned int ms)
{
	return ring_wait_with(r, (struct flowfd_ring_wait){
		.min_events = min_events,
		.timeout = ms * 1000000ULL,
	});
}

/* Waits for an event, which may come from a work item. */
static inline bool ring_take_wait(struct user_ring *r,
				  struct ring_event *event)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (!ring_take(r, event)) {
		if (now_ns() > end)
			return false;
		ring_wait_ms(r, 1, 100);
	}
	return true;
}

/* The number of watches in fdinfo; -1: the ring is being changed. */
static inline int ring_watched(int fd)
{
	return fdinfo_number(fd, "flowfd-ring-watches", 10);
}

/* The number of watches that have a line of their own. */
static inline int ring_shown(int fd)
{
	char path[64], line[256];
	int count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		count += !strncmp(line, "tfd:", 4);
	fclose(f);
	return count;
}

#endif /* RING_USER_H */
