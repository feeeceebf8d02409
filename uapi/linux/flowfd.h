/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * flowfd - event file descriptors with flow control
 *
 * The ABI of /dev/flowfd, and nothing else. Opening the device gives a working
 * counter: an eventfd(2) with a configurable maximum (backpressure) and a token
 * bucket that limits the rate of wakeups of readers. A ring watches any number of
 * files and publishes their events in memory that is shared with its consumer.
 *
 * FLOWFD_IOC_QUERY works on every flowfd descriptor, EFD_IOC_* and FLOWFD_IOC_COUNTER_*
 * on counters, FLOWFD_IOC_RING_* on rings, FLOWFD_IOC_SHARE on both. FLOWFD_IOC_CREATE_*,
 * FLOWFD_IOC_BALANCE and FLOWFD_IOC_OPEN work on a descriptor from open() until
 * FLOWFD_IOC_SETUP_COUNTER or FLOWFD_SEAL. No other descriptor can create, so passing it to
 * another process does not pass on that right.
 *
 * Structures grow at their end only. The kernel takes the caller's size from
 * the ioctl number: it extends a shorter structure with zeros, and accepts a longer
 * one if the tail that it does not know is zero. Where it returns a structure, it zeroes
 * that tail. Zero means "as eventfd(2)" in every field of a counter.
 *
 * All numbers are in native byte order. 32-bit and 64-bit callers use the same
 * requests and layouts.
 *
 * Errors of every request: ENOTTY, the descriptor does not know the request; EFAULT, bad
 * pointer; EINVAL, the structure is shorter than its first version (FLOWFD_*_SIZE_VER0), or
 * has an unknown flag or a @reserved that is not 0; E2BIG, it asks for something that this
 * module does not know. Others are with each request. ioctl(2) returns 0 unless a request
 * says otherwise.
 */
#ifndef _UAPI_LINUX_FLOWFD_H
#define _UAPI_LINUX_FLOWFD_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Flow control, with the names and numbers of the patches that proposed it for
 * eventfd (Wen Yang: the token bucket 2024, the maximum 2026). The guards allow a
 * <linux/eventfd.h> that has them too.
 */
#ifndef EFD_IOC_SET_MAXIMUM
/*
 * Sets the overflow level: a write fits while count + value < maximum. A write of
 * the maximum or more can never fit and fails with EINVAL.
 * Wakes the writers, and the pollers for EPOLLOUT, that may now fit.
 * EINVAL: the maximum is not above the present count, or not above the marks of
 * FLOWFD_IOC_SET_FLOW; or the counter has a source and a sink, and then no maximum but
 * ULLONG_MAX (FLOWFD_IOC_COUNTER_BRIDGE). EPERM: the settings are sealed.
 */
#define EFD_IOC_SET_MAXIMUM _IOW('J', 0, __u64)
/* Default: ULLONG_MAX. */
#define EFD_IOC_GET_MAXIMUM _IOR('J', 1, __u64)
#endif

#ifndef EFD_IOC_SET_QOS
/**
 * struct eventfd_qos - token bucket that limits the wakeups of readers
 * @token_capacity: tokens that the bucket holds: the longest burst of wakeups
 * @token_rate: tokens per second, at most FLOWFD_TOKEN_RATE_MAX; 0: no limit
 *
 * 8 bytes.
 */
struct eventfd_qos {
	__u32 token_capacity;
	__u32 token_rate;
};

/*
 * Replaces the bucket with a full one and delivers a deferred wakeup.
 * EINVAL: the rate is above FLOWFD_TOKEN_RATE_MAX; the rate is not 0 and the
 * capacity is; or the counter is a semaphore (each of its wakeups is for another
 * reader, which would starve while its wakeup is deferred).
 * EPERM: the settings are sealed.
 */
#define EFD_IOC_SET_QOS _IOW('E', 0, struct eventfd_qos)
/* The last setting; both fields are 0 before the first. */
#define EFD_IOC_GET_QOS _IOR('E', 0, struct eventfd_qos)
#endif

/* Highest @token_rate: one token per nanosecond. */
#define FLOWFD_TOKEN_RATE_MAX 1000000000

/*
 * Increases only when an old program would misbehave; additions set feature bits.
 * The requests that change get new numbers at the same time, so that a module which
 * is loaded later refuses a program that queried an earlier one.
 */
#define FLOWFD_ABI_VERSION 1

#define FLOWFD_FEATURE_MAXIMUM (1ULL << 0) /* EFD_IOC_{SET,GET}_MAXIMUM */
#define FLOWFD_FEATURE_QOS     (1ULL << 1) /* EFD_IOC_{SET,GET}_QOS */
#define FLOWFD_FEATURE_RING    (1ULL << 2) /* FLOWFD_IOC_CREATE_RING */
#define FLOWFD_FEATURE_SETUP   (1ULL << 3) /* FLOWFD_IOC_SETUP_COUNTER */
#define FLOWFD_FEATURE_MAPPED  (1ULL << 4) /* FLOWFD_MAPPED; 64-bit kernels have it */
#define FLOWFD_FEATURE_POSTS   (1ULL << 5) /* FLOWFD_RING_ADD_POST */
/* FLOWFD_IOC_{SET,GET}_FLOW, FLOWFD_IOC_COUNTER_{READ,WRITE} */
#define FLOWFD_FEATURE_FLOW (1ULL << 6)
/* FLOWFD_IOC_COUNTER_STATS, FLOWFD_IOC_RING_STATS */
#define FLOWFD_FEATURE_STATS (1ULL << 7)
/* FLOWFD_IOC_COUNTER_BRIDGE */
#define FLOWFD_FEATURE_BRIDGE (1ULL << 8)
/* FLOWFD_IOC_BALANCE */
#define FLOWFD_FEATURE_BALANCE (1ULL << 9)
/* FLOWFD_IOC_SHARE, FLOWFD_IOC_OPEN */
#define FLOWFD_FEATURE_SHARE (1ULL << 10)

/**
 * struct flowfd_query - what the loaded module can do
 * @abi_version: FLOWFD_ABI_VERSION of the module
 * @token_rate_max: FLOWFD_TOKEN_RATE_MAX of the module, tokens per second
 * @features: FLOWFD_FEATURE_* bits
 *
 * 16 bytes.
 */
struct flowfd_query {
	__u32 abi_version;
	__u32 token_rate_max;
	__aligned_u64 features;
};

/* Fills in the structure. */
#define FLOWFD_IOC_QUERY       _IOR('J', 0x10, struct flowfd_query)
#define FLOWFD_QUERY_SIZE_VER0 16

/* Flags of struct flowfd_create_counter. Without any: blocking, close-on-exec. */
#define FLOWFD_SEMAPHORE    (1U << 0) /* as EFD_SEMAPHORE */
#define FLOWFD_NONBLOCK	    (1U << 1) /* as EFD_NONBLOCK */
#define FLOWFD_KEEP_ON_EXEC (1U << 2) /* not close-on-exec */
/* The count is in memory that programs can map: see struct flowfd_counter_header. */
#define FLOWFD_MAPPED (1U << 3)
/* Of FLOWFD_IOC_SET_FLOW: nobody can change the settings, or create by it, any more. */
#define FLOWFD_SEAL (1U << 6)

/**
 * struct flowfd_create_counter - settings of a new counter
 * @initial: initial count; must be below the maximum
 * @maximum: as EFD_IOC_SET_MAXIMUM; 0: ULLONG_MAX
 * @flags: FLOWFD_SEMAPHORE, FLOWFD_NONBLOCK, FLOWFD_KEEP_ON_EXEC, FLOWFD_MAPPED
 * @reserved: must be 0
 * @qos: as EFD_IOC_SET_QOS
 *
 * 32 bytes.
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
 * EINVAL: @initial is not below the maximum; EFD_IOC_SET_QOS would refuse @qos; or
 * FLOWFD_MAPPED with FLOWFD_SEMAPHORE, or without FLOWFD_FEATURE_MAPPED. EMFILE, ENFILE,
 * ENOMEM: as eventfd(2). ENOMEM also: RLIMIT_MEMLOCK would be exceeded by a mapped
 * counter. EPERM: the descriptor is not from open(), or was set up.
 */
#define FLOWFD_IOC_CREATE_COUNTER	_IOW('J', 0x11, struct flowfd_create_counter)
#define FLOWFD_CREATE_COUNTER_SIZE_VER0 32

/*
 * Sets up the counter of a descriptor from open(), and revokes the descriptor's right
 * to create. Must be done before the counter is used, and once. @flags must not have
 * FLOWFD_NONBLOCK and FLOWFD_KEEP_ON_EXEC: for these, open() has flags of its own. Nor
 * FLOWFD_MAPPED: a mapped counter must be created.
 * EINVAL: as FLOWFD_IOC_CREATE_COUNTER, or one of these flags. EBUSY: the counter was
 * created or set up, its count is not 0, or it was given settings or a bridge. EPERM: its
 * settings are sealed.
 */
#define FLOWFD_IOC_SETUP_COUNTER _IOW('J', 0x15, struct flowfd_create_counter)

/* What happens to a write that does not fit now. */
#define FLOWFD_OVERFLOW_WAIT	 0 /* as eventfd(2): it waits; EAGAIN if non-blocking */
#define FLOWFD_OVERFLOW_FAIL	 1 /* it fails with EAGAIN */
#define FLOWFD_OVERFLOW_SATURATE 2 /* what fits is added, the rest is lost */
#define FLOWFD_OVERFLOW_DROP	 3 /* nothing is added, all of it is lost */

/* Highest @max_delay: one hour. */
#define FLOWFD_MAX_DELAY_MAX 3600000000000ULL

/**
 * struct flowfd_flow - all settings of the flow control of a counter, and its count
 * @maximum: as EFD_IOC_SET_MAXIMUM; 0: ULLONG_MAX
 * @read_mark: low-water mark of readers; 0 is as 1
 * @write_mark: low-water mark of writers; 0 is as 1. A write fits or not for itself
 * @max_delay: ns after the count left 0, or was first held back with a delay, at which the
 *	counter is ready below @read_mark, too; at most FLOWFD_MAX_DELAY_MAX; 0: never
 * @qos: as EFD_IOC_SET_QOS
 * @overflow: FLOWFD_OVERFLOW_*
 * @flags: FLOWFD_SEAL; only to be read: FLOWFD_SEMAPHORE, FLOWFD_MAPPED
 * @count: the count; only to be read
 * @lost: sum of the values lost by FLOWFD_OVERFLOW_SATURATE and FLOWFD_OVERFLOW_DROP,
 *	which stops at ULLONG_MAX; only to be read
 * @set: FLOWFD_SET_* bits: which settings to set; 0: all
 * @reserved: must be 0
 *
 * 72 bytes. Zero in each field is as eventfd(2). "Policies" in flowfd(7) says when a
 * counter is *ready*. Then poll(2) reports EPOLLIN, and readers are woken, through the
 * token bucket. Poll reports EPOLLOUT if a write of @write_mark fits.
 *
 * With FLOWFD_OVERFLOW_SATURATE and FLOWFD_OVERFLOW_DROP no write waits, and a value
 * that could never fit is lost like any other; but 2^64 - 1 is EINVAL. Of a mapped counter,
 * policies for overflow act on calls, and an add in memory that fits passes writers that
 * sleep.
 */
struct flowfd_flow {
	__aligned_u64 maximum;
	__aligned_u64 read_mark;
	__aligned_u64 write_mark;
	__aligned_u64 max_delay;
	struct eventfd_qos qos;
	__u32 overflow;
	__u32 flags;
	__aligned_u64 count;
	__aligned_u64 lost;
	__u32 set;
	__u32 reserved;
};

/* Bits of @set. */
#define FLOWFD_SET_MAXIMUM    (1U << 0)
#define FLOWFD_SET_READ_MARK  (1U << 1)
#define FLOWFD_SET_WRITE_MARK (1U << 2)
#define FLOWFD_SET_MAX_DELAY  (1U << 3)
#define FLOWFD_SET_QOS	      (1U << 4)
#define FLOWFD_SET_OVERFLOW   (1U << 5)

/*
 * Replaces the settings that @set names, at once, and delivers what follows from them. A
 * bucket that is set is full. What FLOWFD_IOC_GET_FLOW returned can be set again: @count,
 * @lost, FLOWFD_SEMAPHORE and FLOWFD_MAPPED are ignored. Nothing is changed if it fails. With
 * FLOWFD_SEAL in @flags no request changes them from then on, by whatever descriptor: all
 * descriptors of a counter share one open file description, so their modes separate nobody.
 * EINVAL: an unknown bit in @set; EFD_IOC_SET_MAXIMUM would refuse @maximum;
 * EFD_IOC_SET_QOS would refuse @qos; @max_delay is above FLOWFD_MAX_DELAY_MAX; an unknown
 * @overflow; the counter is a semaphore and would have @read_mark above 1, @max_delay or a
 * bucket; or it is mapped and would have a mark above 1 or @max_delay. EPERM: the settings
 * are sealed.
 */
#define FLOWFD_IOC_SET_FLOW _IOW('J', 0x1a, struct flowfd_flow)
/*
 * Returns settings and count of one moment, of a mark that was not set 1, of a maximum that
 * was not set 2^64 - 1, with @set 0. The count of a mapped counter can be too high while
 * others take in memory.
 */
#define FLOWFD_IOC_GET_FLOW   _IOR('J', 0x1b, struct flowfd_flow)
#define FLOWFD_FLOW_SIZE_VER0 72

/*
 * Flag of FLOWFD_IOC_COUNTER_WRITE: readers are woken at once. If the write has slept, this is
 * so when its task runs again; the value is there before, and others may have taken it.
 */
#define FLOWFD_URGENT (1U << 5)

/**
 * struct flowfd_transfer - a read or write with a timeout
 * @value: what a write adds; a read stores here what it took
 * @timeout: how long the call may sleep, in ns of CLOCK_MONOTONIC; 0: for ever
 * @flags: FLOWFD_NONBLOCK; of a write also FLOWFD_URGENT
 * @reserved: must be 0
 *
 * 24 bytes.
 */
struct flowfd_transfer {
	__aligned_u64 value;
	__aligned_u64 timeout;
	__u32 flags;
	__u32 reserved;
};

/*
 * As write(2) and read(2) of 8 bytes, with a timeout. FLOWFD_URGENT makes the counter
 * ready and wakes readers past mark, delay and bucket, for which it takes no token; a
 * deferred wakeup becomes part of this one. A write that is lost is not urgent.
 * EINVAL: as write(2). EAGAIN: it would sleep, and the descriptor, @flags or
 * FLOWFD_OVERFLOW_FAIL says that it must not.
 * ETIMEDOUT: @timeout passed. EINTR, with a timeout: a signal came, the task was frozen, or
 * it had work of io_uring to do; without a timeout, as write(2) and read(2). EBADF: the
 * descriptor is not open for writing, or reading.
 * EFAULT of a read: nothing was taken, unless the memory went meanwhile.
 */
#define FLOWFD_IOC_COUNTER_WRITE  _IOW('J', 0x1c, struct flowfd_transfer)
#define FLOWFD_IOC_COUNTER_READ	  _IOWR('J', 0x1d, struct flowfd_transfer)
#define FLOWFD_TRANSFER_SIZE_VER0 24

/**
 * struct flowfd_counter_stats - what was counted of a counter since it was created
 * @produced: sum of all values that were added, and the initial count; of a mapped counter
 *	its word, see struct flowfd_counter_producer
 * @writes: writes that succeeded, also if the overflow policy lost what they wrote
 * @reads: reads that took something
 * @wakeups: times that readers were woken, sleeping or polling
 * @held_back: times that read mark, delay or bucket kept them from being woken
 * @again: reads and writes that failed with EAGAIN
 * @waits: writers that slept for room
 * @wait_ns: how long they slept for it in all, in ns, also those that sleep now
 * @highest: highest count
 * @lost: as in struct flowfd_flow
 *
 * 80 bytes. Each number starts again at 0 after 2^64 - 1, except @lost, which stops there.
 *
 * A move of the count by FLOWFD_IOC_COUNTER_BRIDGE counts as a write or read. Of a mapped
 * counter, calls are counted, and the highest count is the highest that a call saw, or
 * FLOWFD_IOC_COUNTER_NOTIFY. What is done in memory is in @produced alone.
 *
 * A wakeup is one for all that are woken at the same time. Pollers are woken whatever
 * events they wait for. @held_back counts each time that something was added, a setting
 * changed or FLOWFD_IOC_COUNTER_NOTIFY found a count, with readers there to be woken, and
 * none was; so does what follows from a take, a write that fails, and the end of a process.
 * A wakeup that was held back and came later is in both.
 */
struct flowfd_counter_stats {
	__aligned_u64 produced;
	__aligned_u64 writes;
	__aligned_u64 reads;
	__aligned_u64 wakeups;
	__aligned_u64 held_back;
	__aligned_u64 again;
	__aligned_u64 waits;
	__aligned_u64 wait_ns;
	__aligned_u64 highest;
	__aligned_u64 lost;
};

/* Returns the numbers of one moment. */
#define FLOWFD_IOC_COUNTER_STATS       _IOR('J', 0x1e, struct flowfd_counter_stats)
#define FLOWFD_COUNTER_STATS_SIZE_VER0 80

#define FLOWFD_COUNTER_MAGIC   0x544e4346 /* "FCNT" */
#define FLOWFD_COUNTER_VERSION 1

/**
 * struct flowfd_counter_header - first page of a mapped counter, written by the kernel
 * @magic: FLOWFD_COUNTER_MAGIC
 * @version: FLOWFD_COUNTER_VERSION; increases when an old program would misbehave
 * @page_size: bytes of each of the three pages
 * @flags: FLOWFD_MAPPED
 * @maximum: as EFD_IOC_GET_MAXIMUM; it can change
 * @closes: descriptors of this counter that were closed, in all processes
 * @id: as FLOWFD_IOC_COUNTER_ID
 * @reserved: 0
 *
 * 40 bytes. A counter that was created with FLOWFD_MAPPED has three pages of memory, to
 * be mapped with MAP_SHARED: this at offset 0, struct flowfd_counter_producer at
 * @page_size, struct flowfd_counter_consumer at twice that. Any part can be mapped.
 * Errors of mmap(2): ENODEV, the counter is not mapped; EACCES, PROT_WRITE for a part
 * with this page; EINVAL, MAP_PRIVATE or a wrong offset; EPERM, PROT_EXEC. The memory is
 * charged as that of a ring, and lives as long as the counter: until its last descriptor
 * is closed and its last mapping is unmapped.
 *
 * The count is @produced - @consumed, modulo 2^64; these two can begin anywhere. Any
 * number of threads and processes may add and take in memory, and also by calls: read(2),
 * write(2) and all others work as on any counter. All accesses in memory are atomic:
 *
 *	add(v), v > 0:
 *		do {
 *			c = load_acquire(&consumed);
 *			p = load(&produced);
 *			if (p - c >= maximum || maximum - (p - c) <= v)
 *				return write(fd, &v, 8);
 *		} while (!compare_exchange(&produced, p, p + v));
 *		full_barrier();
 *		if (load(&armed) & FLOWFD_ARMED_READERS)
 *			ioctl(fd, FLOWFD_IOC_COUNTER_NOTIFY);
 *
 *	take():
 *		do {
 *			c = load_acquire(&consumed);
 *			p = load_acquire(&produced);
 *		} while (p != c && !compare_exchange(&consumed, c, p));
 *		full_barrier();
 *		a = load(&armed);
 *		notify = a & FLOWFD_ARMED_WRITERS;
 *		if (a & FLOWFD_ARMED_WATCHED) {
 *			if (!(a & FLOWFD_ARMED_READERS))
 *				or(&armed, FLOWFD_ARMED_READERS);
 *			full_barrier();
 *			notify |= load(&produced) != p;
 *		}
 *		if (notify)
 *			ioctl(fd, FLOWFD_IOC_COUNTER_NOTIFY);
 *		return p - c;
 *
 * compare_exchange is sequentially consistent, or has at least release order in an add
 * and acquire and release order in a take. Less than 2^64 must be added in all between the
 * loads of an operation and its exchange.
 *
 * Both need a descriptor, so a program must keep one. To sleep, it calls read(2),
 * write(2), poll(2) or whatever else waits for a descriptor. These fail with EINTR also
 * if the descriptor is non-blocking and a signal arrives while others change the count all
 * the time. A thread must not leave an operation between its steps, by siglongjmp(3) or
 * asynchronous cancellation: wakeups could be lost until the next add, take or poll of
 * somebody else. If a process ends there, the kernel makes up for it, and wakes all that
 * wait, as for an add: so the end of a process that has the counter can be an edge.
 *
 * If the maximum is lowered while others add in memory, the count can reach or exceed it:
 * then nothing fits, and a read returns the whole count. EPOLLERR is not reported.
 *
 * A mapping does not notice that the descriptor was closed, and that its number is now
 * another file's. A program that cannot know each close of its own compares @closes with
 * what it was: close(2), dup2(2), close_range(2), execve(2), exit(2) and io_uring's close
 * count, by whichever process. A close counts just after its number is free, and before
 * it returns. If @closes has changed, FLOWFD_IOC_COUNTER_ID tells whether a descriptor
 * still is this counter. close_range(2) with CLOSE_RANGE_UNSHARE does not count: the
 * thread gets a table that does not have these descriptors. Nor does fork(2) count what
 * another thread creates while it copies: the child can have the memory of a counter and
 * not its descriptor.
 *
 * flowfd(7) says what pollers see. An edge-triggered one gets an EPOLLOUT edge only for
 * room after an add that failed.
 *
 * Whoever has the counter can write any value to the pages of producers and consumers.
 * That disturbs those who use this counter, and nobody else: they can lose counts and
 * wakeups, or get wrong ones.
 */
struct flowfd_counter_header {
	__u32 magic;
	__u32 version;
	__u32 page_size;
	__u32 flags;
	__aligned_u64 maximum;
	__aligned_u64 closes;
	__u32 id;
	__u32 reserved;
};

/**
 * struct flowfd_counter_producer - second page of a mapped counter
 * @produced: sum of all that was added
 *
 * 8 bytes.
 */
struct flowfd_counter_producer {
	__aligned_u64 produced;
};

/* Bits of @armed. The kernel sets and clears them, a take sets FLOWFD_ARMED_READERS. */
#define FLOWFD_ARMED_READERS (1U << 0) /* the next add must notify */
#define FLOWFD_ARMED_WRITERS (1U << 1) /* the next take must notify */
#define FLOWFD_ARMED_WATCHED (1U << 2) /* a take sets FLOWFD_ARMED_READERS */

/**
 * struct flowfd_counter_consumer - third page of a mapped counter
 * @consumed: sum of all that was taken
 * @armed: FLOWFD_ARMED_* bits: who must be notified
 * @reserved: not used
 *
 * 16 bytes.
 */
struct flowfd_counter_consumer {
	__aligned_u64 consumed;
	__u32 armed;
	__u32 reserved;
};

/*
 * Tells the kernel that the count of a mapped counter changed in memory. It looks at the
 * count, and wakes those who sleep or poll, readers through the token bucket.
 * ENODEV: the counter is not mapped.
 */
#define FLOWFD_IOC_COUNTER_NOTIFY _IO('J', 0x17)

/*
 * Returns the number of the counter, 1 or more, which no other counter has until this one
 * is gone. It is eventfd-id in fdinfo, and @id in the memory of a mapped counter.
 */
#define FLOWFD_IOC_COUNTER_ID _IO('J', 0x19)

/* @flags of struct flowfd_bridge: one of the first two, perhaps with the third. */
#define FLOWFD_BRIDGE_SOURCE (1U << 0) /* the eventfd feeds the counter */
#define FLOWFD_BRIDGE_SINK   (1U << 1) /* the counter signals the eventfd */
#define FLOWFD_BRIDGE_REMOVE (1U << 2) /* ends that bridge */

/**
 * struct flowfd_bridge - a connection of a counter with an eventfd
 * @eventfd: descriptor of an eventfd(2) that the kernel made; ignored with
 *	FLOWFD_BRIDGE_REMOVE
 * @flags: FLOWFD_BRIDGE_SOURCE or FLOWFD_BRIDGE_SINK, perhaps with FLOWFD_BRIDGE_REMOVE
 *
 * 8 bytes.
 */
struct flowfd_bridge {
	__s32 eventfd;
	__u32 flags;
};

/*
 * Connects a counter with an eventfd, or ends such a connection: flowfd_bridge(3). A
 * counter has one source and one sink at most, and no maximum if it has both, also while
 * something of a source that was removed waits. An eventfd is in one bridge at most. A
 * bridge holds neither file, and ends when the last descriptor of either is closed.
 *
 * EBADF: the counter is not open for writing (source) or reading (sink), or @eventfd is no
 * descriptor. EINVAL: @flags has not one of the first two; @eventfd is no eventfd; the
 * counter is a semaphore (sink); or it would have a source, a sink and a maximum. EBUSY:
 * the counter has a source or a sink already, or the eventfd is in another bridge. EINTR:
 * the caller is killed. ENOENT: there is nothing to remove. ENOMEM: no memory, or
 * RLIMIT_MEMLOCK would be exceeded, to which the bridges of a counter are charged as one
 * page.
 */
#define FLOWFD_IOC_COUNTER_BRIDGE _IOW('J', 0x20, struct flowfd_bridge)
#define FLOWFD_BRIDGE_SIZE_VER0	  8

/* Highest @max_items of a ring. */
#define FLOWFD_RING_ITEMS_MAX (1U << 20)

/**
 * struct flowfd_create_ring - a new ring, and how to map it
 * @max_items: number of watches and posts that it can hold, 1 to FLOWFD_RING_ITEMS_MAX
 * @flags: FLOWFD_KEEP_ON_EXEC
 * @map_size: bytes to map; the kernel fills in this and the fields that follow
 * @items_offset: of the items in the mapping, in bytes
 * @index_offset: of the index in the mapping, in bytes
 * @index_slots: slots of the index, a power of two not below @max_items
 *
 * 24 bytes.
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
 * offset 0. The idea is that of epoll's patches for events in mapped memory (Roman
 * Penyaev, 2019). The ring lives until its last descriptor is closed and its last
 * mapping is unmapped. Its memory is charged to the memory control group and, without
 * CAP_IPC_LOCK, to the user's RLIMIT_MEMLOCK.
 * EINVAL: @max_items is out of range. EPERM: as FLOWFD_IOC_CREATE_COUNTER. ENOMEM: no
 * memory, or RLIMIT_MEMLOCK would be exceeded. EMFILE, ENFILE: no descriptor is left in the
 * process or in the system.
 */
#define FLOWFD_IOC_CREATE_RING	     _IOWR('J', 0x12, struct flowfd_create_ring)
#define FLOWFD_CREATE_RING_SIZE_VER0 24

#define FLOWFD_RING_MAGIC   0x474e5246 /* "FRNG" */
#define FLOWFD_RING_VERSION 1

/**
 * struct flowfd_ring_header - the first bytes of the mapping of a ring
 * @magic: FLOWFD_RING_MAGIC
 * @version: FLOWFD_RING_VERSION; increases when an old consumer would misbehave
 * @header_size: bytes of this structure
 * @max_items: as in struct flowfd_create_ring, like the next four
 * @map_size: see @max_items
 * @items_offset: see @max_items
 * @index_offset: see @max_items
 * @index_slots: see @max_items
 * @flags: 0
 * @reserved: 0
 * @head: number of index slots that the consumer has emptied, modulo 2^32; the
 *	consumer stores it
 * @taken: posts that the consumer has taken from the stack and not delivered yet: the
 *	oldest, as an item number plus one, or 0; the consumer stores it
 * @padding: gives @head and @taken a cache line of their own
 * @posted: stack of posts, see struct flowfd_ring_item
 * @armed: not 0: a post must call FLOWFD_IOC_RING_NOTIFY; the kernel stores it
 * @padding2: gives @posted and @armed a cache line of their own
 *
 * 192 bytes, followed by the items and the index. The kernel writes every field but
 * @head, @taken, @posted and @armed once and does not read it again. By storing in the
 * mapping, user space can lose its own events, return from FLOWFD_IOC_RING_WAIT too early
 * or too late, have FLOWFD_RING_DEL_DATA remove the wrong watches and posts of its ring,
 * keep items of its ring from being used again, and do nothing else.
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
	__u32 taken;
	__u32 padding[14];
	__u32 posted;
	__u32 armed;
	__u32 padding2[14];
};

/* Bits of @posted: an item number plus one, or 0. */
#define FLOWFD_RING_POSTED_ITEM 0x001fffffU
/* Bits of @posted: changed by a consumer that revives a post. The others are 0. */
#define FLOWFD_RING_POSTED_EPOCH 0x3fe00000U

/* @queued of an item in the index. */
#define FLOWFD_RING_IN_INDEX 1U
/* @queued of an item in the stack, above which is the next one as in @posted. */
#define FLOWFD_RING_IN_STACK 3U
/* What tells the two apart. */
#define FLOWFD_RING_BY_POST 2U

/**
 * struct flowfd_ring_item - a watched file in the mapping, or a post
 * @ready: bits that were published or posted and not taken yet; of a file: EPOLL*
 * @queued: not 0: a slot of the index names this item, or will (FLOWFD_RING_IN_INDEX,
 *	set by the kernel); or the stack has it, or will (FLOWFD_RING_IN_STACK, set by
 *	who posts)
 * @data: @data of the control entry that added the item or last changed the watch
 *
 * 16 bytes. The index is an array of __u32 slots. A slot is 0 if it is empty, or the
 * number of an item plus one. One more slot follows the last and stays 0, so that a
 * consumer need not test for the end at every slot. An item is in the index once at
 * most. One consumer at a time may harvest the ring, and wait for it:
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
 * Bits are what the file announced in the wait-queue key of its wakeup. Unlike
 * epoll_wait(2), a harvest does not poll the file again: it may have nothing to read by
 * now. Events are edge-triggered. So the file must be non-blocking, and must be read
 * or written until EAGAIN. No bits: an earlier slot delivered them, or the watch was
 * removed.
 *
 * Posts are items without a file. FLOWFD_RING_ADD_POST adds one. Any thread of any process
 * that has the mapping may post it, in memory, also in a signal handler. Its bits are the
 * program's own. Posted items are in a stack, each once at most: the idea is that of lists
 * without locks, as in <linux/llist.h>. All accesses are atomic:
 *
 *	post(n, bits), bits not 0:
 *		or(&items[n].ready, bits);
 *		full_barrier();
 *	again:	h = load(&header->posted);
 *		link = h << 2 | FLOWFD_RING_IN_STACK;
 *		if (!compare_exchange(&items[n].queued, 0, link))
 *			goto look;
 *		while (!compare_exchange(&header->posted, h, epoch(h) | (n + 1))) {
 *			old = link;
 *			h = load(&header->posted);
 *			link = h << 2 | FLOWFD_RING_IN_STACK;
 *			if (!compare_exchange(&items[n].queued, old, link))
 *				goto again;
 *		}
 *	look:	full_barrier();
 *		if (load(&header->armed))
 *			ioctl(fd, FLOWFD_IOC_RING_NOTIFY);
 *
 * where epoch(h) is h & FLOWFD_RING_POSTED_EPOCH. The look at @armed is also for an item
 * that was marked: the poster that marked it may be stopped before its own look. The
 * consumer looks for posts where it
 * finds the index empty, and before that from time to time:
 *
 *	if (!(v = header->taken)) {
 *		h = load(&header->posted);
 *		h = exchange_acquire(&header->posted, epoch(h));
 *		v = reverse the list that begins with item h & FLOWFD_RING_POSTED_ITEM;
 *	}
 *	while (v) {
 *		header->taken = next(v);
 *		store_release(&items[v - 1].queued, 0);
 *		full_barrier();
 *		bits = exchange(&items[v - 1].ready, 0);
 *		if (bits)
 *			deliver(bits, items[v - 1].data);
 *		v = header->taken;
 *	}
 *
 * where next(v) is items[v - 1].queued >> 2 & FLOWFD_RING_POSTED_ITEM. The links that the
 * consumer stores must have the epoch that @posted has then, as those of posters have:
 * (epoch(h) | next) << 2 | FLOWFD_RING_IN_STACK, with 0 as the next of the last. A
 * consumer must make at most @max_items steps and check each number, as another process
 * can store a cycle or nonsense.
 *
 * If a process dies after it set @queued and before it put the item into the stack, the
 * item is silent: nobody delivers its bits. The consumer can revive it: it changes the
 * epoch in @posted as it takes the stack, so that no earlier compare_exchange() there
 * succeeds; if the item is not among what it has taken, and its link is of an earlier
 * epoch, it replaces the link by 0 with compare_exchange(), and posts the bits. That is
 * safe while others post the same item, unless one of them stops in the middle for so
 * long that all 512 epochs pass: a poster whose link was replaced finds it nowhere again,
 * not in the stack and not in a list that the consumer has taken.
 */
struct flowfd_ring_item {
	__u32 ready;
	__u32 queued;
	__aligned_u64 data;
};

/* @op of a control entry. */
#define FLOWFD_RING_ADD	       1
#define FLOWFD_RING_DEL	       2
#define FLOWFD_RING_MOD	       3
#define FLOWFD_RING_ADD_PINNED 4
#define FLOWFD_RING_DEL_DATA   5
#define FLOWFD_RING_ADD_POST   6
#define FLOWFD_RING_DEL_POST   7

/* @result of FLOWFD_RING_ADD and FLOWFD_RING_ADD_PINNED: the watch pins the file. */
#define FLOWFD_RING_PINNED (1U << 0)

/**
 * struct flowfd_ring_entry - control entry: one change of the items of a ring
 * @op: FLOWFD_RING_ADD, FLOWFD_RING_ADD_PINNED, FLOWFD_RING_DEL,
 *	FLOWFD_RING_DEL_DATA, FLOWFD_RING_MOD, FLOWFD_RING_ADD_POST,
 *	FLOWFD_RING_DEL_POST; the result of any other is EINVAL
 * @fd: file descriptor; as in epoll(7), a watch belongs to the open file description
 *	and this number; -1 with FLOWFD_RING_DEL_DATA and FLOWFD_RING_ADD_POST; the
 *	number of the item with FLOWFD_RING_DEL_POST
 * @events: EPOLL* bits, with EPOLLET, perhaps with EPOLLONESHOT; EPOLLERR and
 *	EPOLLHUP are always added; 0 if @op does not add or change a watch
 * @result: filled in: 0 or more on success, or a negative errno: nothing was done
 * @data: returned with each event; 0 with FLOWFD_RING_DEL and FLOWFD_RING_DEL_POST
 *
 * 24 bytes.
 *
 * FLOWFD_RING_ADD adds a watch, and publishes at once the events that are true now. A
 * file that is not a socket, an unnamed pipe or a counter is pinned: the watch keeps the
 * open file description until it is removed or the ring ends, and the result has
 * FLOWFD_RING_PINNED ("Pinned files" in flowfd(7)).
 * EBADF: @fd is not open. EINVAL: no EPOLLET, or EPOLLEXCLUSIVE, EPOLLWAKEUP or an
 * unknown bit. EOPNOTSUPP: the file has more than two wait queues. EPERM: the file
 * cannot be polled, or the answer of its poll method depends on the calling task
 * (signalfd, binder). ELOOP: the file is a ring, an epoll or an io_uring. EEXIST: it
 * is watched under this number already. ENOSPC: the ring has @max_items watches and
 * posts, counting posts that were removed before the consumer took them. ENOMEM: no
 * memory.
 *
 * FLOWFD_RING_ADD_PINNED does the same, but also pins sockets, pipes and counters. While
 * any ring watches an unpinned socket, every read and write of a socket in the system pays
 * an fsnotify check; the same holds for pipes. A UNIX socket is never pinned, as the ring
 * can be in its queue: the result is 0.
 *
 * FLOWFD_RING_MOD sets @events and @data, re-arms a watch that EPOLLONESHOT disarmed,
 * drops the events that were not taken, and publishes at once the events that are true
 * now.
 * EBADF, EINVAL: as above. ENOENT: there is no such watch.
 *
 * FLOWFD_RING_DEL ends the watch. A harvest that begins afterwards finds no event of
 * it. The item is used again as late as possible. Still, a consumer that is in the
 * middle of taking an event can find the data of another watch in its item when
 * @max_items files are watched.
 * EBADF: as above. EINVAL: @events or @data is not 0. ENOENT: there is no such watch.
 *
 * FLOWFD_RING_DEL_DATA ends every watch and removes every post with this @data, as
 * FLOWFD_RING_DEL and FLOWFD_RING_DEL_POST do. The result is the number of these. This
 * removes a watch whose descriptor is closed. It looks at every item of the ring.
 * EINVAL: @fd is not -1, or @events is not 0. ENOENT: no watch or post has this @data.
 *
 * FLOWFD_RING_ADD_POST adds an item without a file. The result is its number, with which
 * it can be posted: see struct flowfd_ring_item.
 * EINVAL: @fd is not -1, or @events is not 0. ENOSPC: as above, also counting watches
 * that ended before the consumer took their entries.
 *
 * FLOWFD_RING_DEL_POST removes such an item. A harvest that begins afterwards finds no
 * bits that were posted before. Nobody may post it any more: its number will be that of
 * another item. If it is in the stack, it is not used again before the consumer has
 * taken it.
 * EINVAL: @events or @data is not 0. ENOENT: @fd is not the number of a post.
 */
struct flowfd_ring_entry {
	__u32 op;
	__s32 fd;
	__u32 events;
	__s32 result;
	__aligned_u64 data;
};

/**
 * struct flowfd_ring_control - a batch of control entries
 * @entries: address of an array of struct flowfd_ring_entry
 * @count: entries in the array, at most FLOWFD_RING_ITEMS_MAX
 * @flags: must be 0
 *
 * 16 bytes.
 */
struct flowfd_ring_control {
	__aligned_u64 entries;
	__u32 count;
	__u32 flags;
};

/*
 * Carries out the entries in order, each on its own, and returns the number of
 * entries that failed.
 * EINVAL: @count is too large. EFAULT: the entries before the bad address were carried
 * out; so was the one there if only its @result could not be stored.
 * EINTR: the task was killed meanwhile.
 */
#define FLOWFD_IOC_RING_CONTROL	      _IOW('J', 0x13, struct flowfd_ring_control)
#define FLOWFD_RING_CONTROL_SIZE_VER0 16

/* @timeout: never expires. */
#define FLOWFD_RING_FOREVER (~0ULL)

/**
 * struct flowfd_ring_wait - how to wait for events
 * @timeout: nanoseconds of CLOCK_MONOTONIC to sleep at most; 0: do not sleep;
 *	FLOWFD_RING_FOREVER. Files that woke without a key are polled before the answer,
 *	by this task or, as it waits, by another
 * @min_wait: nanoseconds for which to wait for all of @min_events; after that, one
 *	is enough; 0: wait for all of them until the timeout
 * @sigmask: address of the signal mask to wait with, as in epoll_pwait(2); 0: none
 * @sigmask_size: bytes at @sigmask: 8 (16 on MIPS), or 0 without a mask
 * @min_events: number of filled slots to wait for, at most @index_slots; 0: one. Any
 *	post ends the wait, whatever this says
 * @flags: must be 0
 * @reserved: must be 0
 *
 * 40 bytes.
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
 * Waits for filled slots in the index or for a post. Returns the number of filled slots,
 * or 1 if there are none but posts: at once if there are enough, or when the timeout
 * expires; then it may be 0 or less than @min_events. It reads @head and @taken, so the
 * consumer must store these first.
 * EINVAL: @min_events is too large; or @sigmask_size is wrong. EINTR: a signal came before
 * the events, or the task was frozen, or it had work of io_uring to do; never restarted.
 *
 * read(2) of 8 bytes or more waits the same way for one slot, without a timeout, and
 * stores the number of filled slots as a __u64. It takes no event. EAGAIN: none, and
 * O_NONBLOCK. EINTR: as above. EINVAL: less than 8 bytes.
 *
 * "Polling a ring" in flowfd(4) says what pollers see.
 *
 * A task that finds nothing sets @armed, looks again, and then sleeps. A poll sets @armed
 * before it looks if the poller is in the ring's wait queue, as with epoll(7).
 */
#define FLOWFD_IOC_RING_WAIT	   _IOW('J', 0x14, struct flowfd_ring_wait)
#define FLOWFD_RING_WAIT_SIZE_VER0 40

/*
 * Fills in the structure as FLOWFD_IOC_CREATE_RING did, with 0 in @flags, so that a
 * process which received the descriptor can map the ring. Other processes can change
 * the header in the mapping, but not this.
 */
#define FLOWFD_IOC_RING_INFO _IOR('J', 0x16, struct flowfd_create_ring)

/**
 * struct flowfd_ring_stats - what was counted of a ring since it was created
 * @published: entries that were put into the index
 * @coalesced: events that found the entry of their item in the index already
 * @waits: calls that wait, FLOWFD_IOC_RING_WAIT or read(2), that were valid
 * @sleeps: of these, those that slept
 *
 * 32 bytes. 64-bit kernels count to 2^64 - 1, 32-bit kernels to 2^32 - 1, and then start
 * again at 0. What is posted in memory is not counted.
 */
struct flowfd_ring_stats {
	__aligned_u64 published;
	__aligned_u64 coalesced;
	__aligned_u64 waits;
	__aligned_u64 sleeps;
};

/* Returns the numbers, which are not of one moment. */
#define FLOWFD_IOC_RING_STATS	    _IOR('J', 0x1f, struct flowfd_ring_stats)
#define FLOWFD_RING_STATS_SIZE_VER0 32

/*
 * Tells the kernel that an item was posted. If the stack or @taken has posts, it clears
 * @armed and wakes all that sleep on the ring or poll it, except pollers that were woken
 * in the same tick and have not looked at the ring since. Without posts it does nothing.
 * The kernel does so by itself when a process ends that has a mapping or descriptor of the
 * ring, in case that it died after it posted and before it looked at @armed; it then arms
 * the ring for pollers first, in case that it died after it was woken.
 */
#define FLOWFD_IOC_RING_NOTIFY _IO('J', 0x18)

/**
 * struct flowfd_balance - a listening socket whose workers are woken in turn
 * @fd: socket, listening: of TCP, or a UNIX socket with connections; also an O_PATH
 *	descriptor, by open() of /proc/PID/fd/N, which does not keep the socket open
 * @flags: FLOWFD_KEEP_ON_EXEC or 0
 *
 * 8 bytes.
 */
struct flowfd_balance {
	__s32 fd;
	__u32 flags;
};

/*
 * On a descriptor that may create counters: returns a descriptor. As long as it is open,
 * each worker that waits with EPOLLEXCLUSIVE is in turn the first to be woken by a
 * connection; the turn of one that does not sleep goes to the next one that does. Without
 * this it is always the first that sleeps of those that began to wait first. Other waiters
 * are woken as before, but a multishot accept of io_uring has its turn, too, and takes it
 * also when it is busy.
 *
 * The descriptor does not keep the socket open, and cannot be polled.
 *
 * EBADF: @fd is not open, or the socket of an O_PATH descriptor is closed. ENOTSOCK: it is
 * not a socket. EINVAL: it does not listen, or is of another protocol. EBUSY: the socket is
 * balanced already. EOPNOTSUPP: this kernel wakes waiters in another way. EPERM: as
 * FLOWFD_IOC_CREATE_COUNTER. ENOMEM, EMFILE, ENFILE: as eventfd(2).
 */
#define FLOWFD_IOC_BALANCE	 _IOW('J', 0x21, struct flowfd_balance)
#define FLOWFD_BALANCE_SIZE_VER0 8

/**
 * struct flowfd_key - opens a counter or ring
 * @id: which one
 * @secret: 128 random bits
 *
 * 24 bytes, which never become more. It can lie in shared memory or in a file.
 */
struct flowfd_key {
	__aligned_u64 id;
	__u8 secret[16];
};

/**
 * struct flowfd_share - a key, and what to do with it
 * @key: FLOWFD_IOC_SHARE fills it in
 * @flags: of FLOWFD_IOC_OPEN FLOWFD_KEEP_ON_EXEC or 0, of FLOWFD_IOC_SHARE 0
 * @reserved: must be 0
 *
 * 32 bytes.
 */
struct flowfd_share {
	struct flowfd_key key;
	__u32 flags;
	__u32 reserved;
};

/*
 * On a counter or ring: returns its key, the same each time, which is made by the first
 * request. Waits at boot until there are random numbers.
 * ENOMEM: no memory. EINTR: a signal came while it waited.
 */
#define FLOWFD_IOC_SHARE _IOWR('J', 0x22, struct flowfd_share)

/*
 * On a descriptor that may create counters: returns a new descriptor of the counter or ring
 * that has this key, as if it had been sent over a socket: of the same open file
 * description. A process may use a key if it is in the user namespace in which the counter
 * or ring was opened or created. A key keeps nothing open: flowfd_share(3).
 *
 * ENOENT: no counter or ring has this key, or it is of another user namespace: nothing
 * tells whether the number, the secret or the namespace is wrong. EPERM: as
 * FLOWFD_IOC_CREATE_COUNTER. EMFILE, ENOMEM: as dup(2). EACCES: a security module does not
 * allow it, as with recvmsg(2).
 */
#define FLOWFD_IOC_OPEN	       _IOW('J', 0x23, struct flowfd_share)
#define FLOWFD_SHARE_SIZE_VER0 32

#endif /* _UAPI_LINUX_FLOWFD_H */
