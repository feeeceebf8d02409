/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * flowfd - event file descriptors with flow control
 *
 * The ABI of /dev/flowfd, and nothing else. Opening the device gives a working
 * counter: an eventfd(2) with a configurable maximum (backpressure) and a token
 * bucket that limits how often readers are woken. Every ioctl below works on
 * any counter, the one that open() gave included.
 *
 * Structures grow at their end only. The kernel takes the caller's size from
 * the ioctl number: a shorter structure is extended with zeros, a longer one is
 * accepted when its unknown tail is zero (-E2BIG otherwise). Zero means "as
 * eventfd(2)" in every field.
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
 * Sets the overflow level: a write fits while count + value < maximum.
 * Wakes the writers, and the pollers for EPOLLOUT, that may now fit.
 * EINVAL: the maximum is not above the present count.
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
 */
#define EFD_IOC_SET_QOS		_IOW('E', 0, struct eventfd_qos)
/* What was set, both zero before that. */
#define EFD_IOC_GET_QOS		_IOR('E', 0, struct eventfd_qos)
#endif

/* Highest rate that a bucket takes: one token per nanosecond. */
#define FLOWFD_TOKEN_RATE_MAX	1000000000

/* Moves only when an old program would misbehave; additions set feature bits. */
#define FLOWFD_ABI_VERSION	1

#define FLOWFD_FEATURE_MAXIMUM	(1ULL << 0)	/* EFD_IOC_{SET,GET}_MAXIMUM */
#define FLOWFD_FEATURE_QOS	(1ULL << 1)	/* EFD_IOC_{SET,GET}_QOS */

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
 */
#define FLOWFD_IOC_CREATE_COUNTER \
	_IOW('J', 0x11, struct flowfd_create_counter)
#define FLOWFD_CREATE_COUNTER_SIZE_VER0	32

#endif /* _UAPI_LINUX_FLOWFD_H */
