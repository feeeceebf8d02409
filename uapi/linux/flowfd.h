/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * flowfd - event file descriptors with flow control
 *
 * The ABI of /dev/flowfd, and nothing else. Opening the device gives a working
 * counter: an eventfd(2) with a configurable maximum (backpressure) and a token
 * bucket that limits how often readers are woken. A ring watches any number of
 * files and leaves their events in memory that is shared with its consumer.
 *
 * FLOWFD_IOC_QUERY works on every flowfd descriptor; EFD_IOC_* on counters,
 * FLOWFD_IOC_RING_* on rings. FLOWFD_IOC_CREATE_* works on what open() gave, until
 * FLOWFD_IOC_SETUP_COUNTER: all other descriptors can be passed on without the right
 * to create more.
 *
 * Structures grow at their end only. The kernel takes the caller's size from
 * the ioctl number: a shorter structure is extended with zeros, a longer one is
 * accepted when its unknown tail is zero (-E2BIG otherwise). Zero means "as
 * eventfd(2)" in every field of a counter.
 *
 * Errors common to all: ENOTTY, unknown ioctl; EFAULT, bad pointer.
 */
#ifndef _UAPI_LINUX_FLOWFD_H
#define _UAPI_LINUX_FLOWFD_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Flow control, with the names and numbers of the eventfd patches that proposed
 * them (Wen Yang, 2024 and 2026). The guards let this header meet a
 * <linux/eventfd.h> that has them too.
 */
#ifndef EFD_IOC_SET_MAXIMUM
/*
 * Sets the overflow level: a write fits while count + value < maximum. A write of
 * the maximum or more, which could never fit, is EINVAL.
 * Wakes the writers, and the pollers for EPOLLOUT, that may now fit.
 * EINVAL: the maximum is not above the present count. EBADF: the descriptor is not
 * open for writing.
 */
#define EFD_IOC_SET_MAXIMUM	_IOW('J', 0, __u64)
/* Default: ULLONG_MAX. */
#define EFD_IOC_GET_MAXIMUM	_IOR('J', 1, __u64)
#endif

#ifndef EFD_IOC_SET_QOS
/**
 * struct eventfd_qos - token bucket for the wakeups of readers
 * @token_capacity: tokens that the bucket holds, the longest burst of wakeups
 * @token_rate: tokens per second, at most FLOWFD_TOKEN_RATE_MAX; 0: no limit
 */
struct eventfd_qos {
	__u32 token_capacity;
	__u32 token_rate;
};

/*
 * Replaces the bucket by a full one and delivers a wakeup that was held back.
 * EINVAL: the rate is too high, or has no capacity, or the counter is a
 * semaphore (its reads are not interchangeable, so holding back would starve).
 * EBADF: the descriptor is not open for reading.
 */
#define EFD_IOC_SET_QOS		_IOW('E', 0, struct eventfd_qos)
/* What was set, both zero before that. */
#define EFD_IOC_GET_QOS		_IOR('E', 0, struct eventfd_qos)
#endif

/* Highest rate that a bucket takes: one token per nanosecond. */
#define FLOWFD_TOKEN_RATE_MAX	1000000000

/*
 * Moves only when an old program would misbehave; additions set feature bits. The
 * numbers of the requests that change move with it, so that a program that asked once
 * is refused by a module that was loaded later.
 */
#define FLOWFD_ABI_VERSION	1

#define FLOWFD_FEATURE_MAXIMUM	(1ULL << 0)	/* EFD_IOC_{SET,GET}_MAXIMUM */
#define FLOWFD_FEATURE_QOS	(1ULL << 1)	/* EFD_IOC_{SET,GET}_QOS */
#define FLOWFD_FEATURE_RING	(1ULL << 2)	/* FLOWFD_IOC_CREATE_RING */
#define FLOWFD_FEATURE_SETUP	(1ULL << 3)	/* FLOWFD_IOC_SETUP_COUNTER */

/**
 * struct flowfd_query - what the loaded module can do
 * @abi_version: FLOWFD_ABI_VERSION of the module
 * @token_rate_max: FLOWFD_TOKEN_RATE_MAX of the module
 * @features: FLOWFD_FEATURE_* bits
 */
struct flowfd_query {
	__u32 abi_version;
	__u32 token_rate_max;
	__aligned_u64 features;
};

/*
 * Fills in the structure; what a longer one holds beyond the module's is zeroed.
 * EINVAL: shorter than FLOWFD_QUERY_SIZE_VER0.
 */
#define FLOWFD_IOC_QUERY	_IOR('J', 0x10, struct flowfd_query)
#define FLOWFD_QUERY_SIZE_VER0	16

/* Flags of struct flowfd_create_counter; without any, close-on-exec. */
#define FLOWFD_SEMAPHORE	(1U << 0)	/* as EFD_SEMAPHORE */
#define FLOWFD_NONBLOCK		(1U << 1)	/* as EFD_NONBLOCK */
#define FLOWFD_KEEP_ON_EXEC	(1U << 2)	/* not close-on-exec */

/**
 * struct flowfd_create_counter - a counter to create
 * @initial: first count, below the maximum
 * @maximum: as EFD_IOC_SET_MAXIMUM; 0: ULLONG_MAX
 * @flags: FLOWFD_SEMAPHORE, FLOWFD_NONBLOCK, FLOWFD_KEEP_ON_EXEC
 * @reserved: zero
 * @qos: as EFD_IOC_SET_QOS
 */
struct flowfd_create_counter {
	__aligned_u64 initial;
	__aligned_u64 maximum;
	__u32 flags;
	__u32 reserved;
	struct eventfd_qos qos;
};

/*
 * Creates a counter and returns its descriptor.
 * EINVAL: shorter than FLOWFD_CREATE_COUNTER_SIZE_VER0, an unknown flag, a
 * reserved field that is not zero, an initial count that is not below the
 * maximum, or what EFD_IOC_SET_QOS refuses. E2BIG: the structure asks for
 * something that this module does not know. EMFILE, ENFILE, ENOMEM: as eventfd(2).
 * EPERM: the descriptor is not one that open() gave, or it was set up.
 */
#define FLOWFD_IOC_CREATE_COUNTER \
	_IOW('J', 0x11, struct flowfd_create_counter)
#define FLOWFD_CREATE_COUNTER_SIZE_VER0	32

/*
 * Gives its settings to the counter that open() gave, and takes from it the right to
 * create others. Once, and before it is used. @flags: FLOWFD_SEMAPHORE; the others
 * are flags of open().
 * EINVAL, E2BIG: as FLOWFD_IOC_CREATE_COUNTER, and FLOWFD_NONBLOCK or
 * FLOWFD_KEEP_ON_EXEC. EBUSY: it was created or set up, has a count, or was given a
 * maximum or a bucket. EBADF: the descriptor is not open for reading and writing.
 */
#define FLOWFD_IOC_SETUP_COUNTER \
	_IOW('J', 0x15, struct flowfd_create_counter)

/* Most files that a ring can be created for. */
#define FLOWFD_RING_ITEMS_MAX	(1U << 20)

/**
 * struct flowfd_create_ring - a ring to create
 * @max_items: most files that it can watch, 1 to FLOWFD_RING_ITEMS_MAX
 * @flags: FLOWFD_KEEP_ON_EXEC
 * @map_size: bytes to map; this and what follows is filled in by the kernel
 * @items_offset: where the items begin in the mapping
 * @index_offset: where the index begins in the mapping
 * @index_slots: length of the index, a power of two not below @max_items
 */
struct flowfd_create_ring {
	__u32 max_items;
	__u32 flags;
	__u32 map_size;
	__u32 items_offset;
	__u32 index_offset;
	__u32 index_slots;
};

/*
 * Creates a ring and returns its descriptor, to be mapped with MAP_SHARED from
 * offset 0. The ring lives until the last descriptor is closed and the last
 * mapping is gone. Its memory is charged to the memory cgroup and, unless
 * CAP_IPC_LOCK, to RLIMIT_MEMLOCK of the user.
 * EINVAL: shorter than FLOWFD_CREATE_RING_SIZE_VER0, an unknown flag, or
 * @max_items out of range. E2BIG: as FLOWFD_IOC_CREATE_COUNTER. ENOMEM: no
 * memory, or RLIMIT_MEMLOCK would be exceeded. EMFILE, ENFILE. EPERM: as
 * FLOWFD_IOC_CREATE_COUNTER.
 */
#define FLOWFD_IOC_CREATE_RING	_IOWR('J', 0x12, struct flowfd_create_ring)
#define FLOWFD_CREATE_RING_SIZE_VER0	24

#define FLOWFD_RING_MAGIC	0x474e5246	/* "FRNG" */
#define FLOWFD_RING_VERSION	1

/**
 * struct flowfd_ring_header - what the mapping of a ring begins with
 * @magic: FLOWFD_RING_MAGIC
 * @version: FLOWFD_RING_VERSION; moves when an old consumer would misbehave
 * @header_size: of this structure
 * @max_items: as created
 * @map_size: as struct flowfd_create_ring, as the next three
 * @items_offset: see @map_size
 * @index_offset: see @map_size
 * @index_slots: see @map_size
 * @flags: zero
 * @reserved: zero
 * @head: index entries taken so far, modulo 2^32; kept by the consumer
 * @padding: gives @head a cache line of its own
 *
 * All but @head is written by the kernel once and not read again. What user
 * space stores in the mapping can make it lose its own events or return from
 * FLOWFD_IOC_RING_WAIT too early or too late, and nothing else.
 */
struct flowfd_ring_header {
	__u32 magic;
	__u32 version;
	__u32 header_size;
	__u32 max_items;
	__u32 map_size;
	__u32 items_offset;
	__u32 index_offset;
	__u32 index_slots;
	__u32 flags;
	__u32 reserved[7];
	__u32 head;
	__u32 padding[15];
};

/**
 * struct flowfd_ring_item - a watched file in the mapping
 * @ready: EPOLL* bits that were announced and not taken yet
 * @queued: not 0: an entry of the index names this item; set by the kernel
 * @data: from the entry that added the file
 *
 * The index is an array of __u32 slots: 0, empty, or the number of an item plus
 * one; after the last comes one more that stays 0, so that a consumer which walks
 * along the slots need not count. An item is in the index once at most. One consumer
 * at a time may take what is there, and wait:
 *
 *	while ((v = load_acquire(&index[head & (index_slots - 1)])) != 0) {
 *		index[head & (index_slots - 1)] = 0;
 *		store_release(&header->head, ++head);
 *		store_release(&items[v - 1].queued, 0);
 *		full_barrier();
 *		bits = exchange(&items[v - 1].ready, 0);
 *		if (bits)
 *			deliver(bits, items[v - 1].data);
 *	}
 *
 * Bits are what the file announced with its wakeup, and the file is not polled
 * again: it may have nothing to read by now. So it must be non-blocking, and must be
 * read or written until EAGAIN, as it is announced once. No bits: they were taken
 * earlier, or the file was deleted.
 */
struct flowfd_ring_item {
	__u32 ready;
	__u32 queued;
	__aligned_u64 data;
};

/* What an entry of FLOWFD_IOC_RING_CONTROL does. */
#define FLOWFD_RING_ADD		1
#define FLOWFD_RING_DEL		2
#define FLOWFD_RING_MOD		3
#define FLOWFD_RING_ADD_PINNED	4
#define FLOWFD_RING_DEL_DATA	5

/* Result of FLOWFD_RING_ADD and FLOWFD_RING_ADD_PINNED: see there. */
#define FLOWFD_RING_PINNED	(1U << 0)

/**
 * struct flowfd_ring_entry - one change of what a ring watches
 * @op: FLOWFD_RING_ADD, FLOWFD_RING_ADD_PINNED, FLOWFD_RING_DEL,
 *	FLOWFD_RING_DEL_DATA, FLOWFD_RING_MOD
 * @fd: the file; a watch belongs to the open file description and this number, as
 *	in epoll; -1 with FLOWFD_RING_DEL_DATA
 * @events: EPOLL* bits, with EPOLLET, perhaps with EPOLLONESHOT; EPOLLERR and
 *	EPOLLHUP are always added; 0 with FLOWFD_RING_DEL and FLOWFD_RING_DEL_DATA
 * @result: filled in: 0 or more, done; a negative errno, not done
 * @data: returned with each event; 0 with FLOWFD_RING_DEL
 *
 * FLOWFD_RING_ADD delivers at once what the file is ready for. A watch ends
 * with the last close of a socket, an unnamed pipe or a counter. Any other file
 * is kept open by its watch until FLOWFD_RING_DEL or the end of the ring: then
 * the result has FLOWFD_RING_PINNED.
 * EBADF; EINVAL: no EPOLLET, or EPOLLEXCLUSIVE, EPOLLWAKEUP or an unknown bit;
 * EOPNOTSUPP: the file has more than two wait queues; EPERM: the file cannot be
 * polled, or (signalfd) is ready for some callers and not for others; ELOOP: a
 * ring, an epoll or an io_uring; EEXIST: watched already; ENOSPC: @max_items
 * are watched; ENOMEM.
 *
 * FLOWFD_RING_ADD_PINNED does the same, but the watch keeps sockets, pipes and
 * counters open, too: remove the file before closing it. While any ring watches
 * an unpinned socket, every socket read and write in the system pays an fsnotify
 * check; pipes likewise. A UNIX socket is never pinned, as it can have the ring
 * in its queue; the result tells.
 *
 * FLOWFD_RING_MOD sets events and data, arms a watch that EPOLLONESHOT ended,
 * drops the events that were not taken, and delivers at once what the file is
 * ready for now.
 * EBADF, EINVAL as above; ENOENT: not watched.
 *
 * FLOWFD_RING_DEL ends the watch. A consumer that begins to take events afterwards
 * finds none of it. The item is used again as late as possible; still, a consumer that
 * is in the middle of taking an event can find the data of the next file in it
 * when @max_items files are watched.
 * EBADF; EINVAL: @events or @data not 0; ENOENT: not watched.
 *
 * FLOWFD_RING_DEL_DATA ends every watch that has this @data, as FLOWFD_RING_DEL
 * does; the result is how many these were. It is the way to remove a watch whose
 * descriptor is gone. It looks at every watch of the ring.
 * EINVAL: @fd not -1, or @events not 0; ENOENT: no watch has this data.
 */
struct flowfd_ring_entry {
	__u32 op;
	__s32 fd;
	__u32 events;
	__s32 result;
	__aligned_u64 data;
};

/**
 * struct flowfd_ring_control - changes of what a ring watches
 * @entries: address of an array of struct flowfd_ring_entry
 * @count: its length, at most FLOWFD_RING_ITEMS_MAX
 * @flags: zero
 */
struct flowfd_ring_control {
	__aligned_u64 entries;
	__u32 count;
	__u32 flags;
};

/*
 * Carries out the entries in order, each on its own, and returns how many of
 * them failed: 0 if all went well.
 * EINVAL: shorter than FLOWFD_RING_CONTROL_SIZE_VER0, an unknown flag, or too
 * many entries. EFAULT: the entries before the bad address were carried out.
 * EINTR: killed on the way.
 */
#define FLOWFD_IOC_RING_CONTROL	_IOW('J', 0x13, struct flowfd_ring_control)
#define FLOWFD_RING_CONTROL_SIZE_VER0	16

/* A timeout that never ends. */
#define FLOWFD_RING_FOREVER	(~0ULL)

/**
 * struct flowfd_ring_wait - how to wait for events
 * @timeout: nanoseconds of CLOCK_MONOTONIC to wait at most; 0: do not wait;
 *	FLOWFD_RING_FOREVER
 * @min_wait: nanoseconds for which to wait for all of @min_events; when they are
 *	over one event is enough; 0: wait for all of them until the timeout
 * @sigmask: address of the signal mask to wait with, as ppoll(2); 0: none
 * @sigmask_size: bytes at @sigmask: 8, or 0 if there is none
 * @min_events: entries of the index to wait for, at most @index_slots; 0: one
 * @flags: zero
 * @reserved: zero
 */
struct flowfd_ring_wait {
	__aligned_u64 timeout;
	__aligned_u64 min_wait;
	__aligned_u64 sigmask;
	__u32 sigmask_size;
	__u32 min_events;
	__u32 flags;
	__u32 reserved;
};

/*
 * Waits for entries in the index, and returns how many there are: 0 or less than
 * @min_events when the time is over. At once when there are enough. It looks at
 * @head, so a consumer stores that first.
 * EINVAL: shorter than FLOWFD_RING_WAIT_SIZE_VER0, an unknown flag, a reserved
 * field that is not zero, too many @min_events, or a wrong @sigmask_size.
 * EINTR: a signal came before the events.
 *
 * read(2) of 8 bytes or more waits likewise, for one entry and without end, and
 * reads how many there are as a __u64; it takes none. EAGAIN: none, and O_NONBLOCK;
 * EINTR; EINVAL: less than 8 bytes.
 * The same can be waited for with poll(2), epoll(7) or io_uring, in one thread while
 * another takes events, too: a ring gives EPOLLIN while @head is not the number of
 * entries that were published. All pollers are woken, exclusive ones as well.
 */
#define FLOWFD_IOC_RING_WAIT	_IOW('J', 0x14, struct flowfd_ring_wait)
#define FLOWFD_RING_WAIT_SIZE_VER0	40

/*
 * Fills in what FLOWFD_IOC_CREATE_RING gave, with 0 in @flags: what a process maps
 * that received the descriptor. Unlike the header, no other process can change it.
 * What a longer structure holds beyond the module's is zeroed.
 * EINVAL: shorter than FLOWFD_CREATE_RING_SIZE_VER0.
 */
#define FLOWFD_IOC_RING_INFO	_IOR('J', 0x16, struct flowfd_create_ring)

#endif /* _UAPI_LINUX_FLOWFD_H */
