// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on counters: create, set up, read, write, the maximum, the bucket. Values and
 * buffers are taken from lists of edge cases in place.c.
 */
#include "calls.h"

#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/flowfd.h>

/* Half of the counters are mapped. */
static __u32 some_flags(__u32 a)
{
	static const __u32 some[] = {
		FLOWFD_NONBLOCK,
		FLOWFD_NONBLOCK | FLOWFD_MAPPED,
	};

	return some[a % 2];
}

static struct flowfd_create_counter any_counter(const __u32 *a)
{
	return (struct flowfd_create_counter){
		.initial = any_value(a[1]),
		.maximum = a[2] % 3 ? any_value(a[2]) : 0,
		.flags = a[3] % 8 ? some_flags(a[3] % 8) : a[3] / 8,
		.qos = {
			.token_capacity = a[2] % 5 ? 0 : any_value(a[3]),
			.token_rate = a[2] % 5 ? 0 : any_value(a[3] / 3),
		},
	};
}

void call_create_counter(const __u32 *a)
{
	struct flowfd_create_counter args = any_counter(a);
	int creator = open_creator(a[0] / FILES + 1);

	place_fd(ioctl(creator, FLOWFD_IOC_CREATE_COUNTER, &args),
		 any_file(a[0]));
	close(creator);
}

void call_setup_counter(const __u32 *a)
{
	struct flowfd_create_counter args = any_counter(a);

	if (a[3] % 8)
		args.flags &= ~FLOWFD_NONBLOCK;
	ioctl(any_fd(a[0]), FLOWFD_IOC_SETUP_COUNTER, &args);
}

void call_read(const __u32 *a)
{
	__u64 space[8];
	size_t size = a[2] % 4 ? 8 : any_size(a[2] / 4);

	if (size > sizeof(space))
		size = sizeof(space);
	(void)!read(any_fd(a[0]), any_address(a[1], space, size), size);
}

void call_write(const __u32 *a)
{
	__u64 space[8] = { any_value(a[2]) };
	size_t size = a[3] % 8 ? 8 : any_size(a[3] / 8);

	if (size > sizeof(space))
		size = sizeof(space);
	(void)!write(any_fd(a[0]), any_address(a[1], space, size), size);
}

/* Two segments of any length, at any address. */
static void any_parts(struct iovec parts[2], __u64 space[2][8], const __u32 *a)
{
	for (int i = 0; i < 2; i++) {
		parts[i].iov_len = any_size(a[1 + i]) % sizeof(space[i]);
		parts[i].iov_base = any_address(a[1 + i] / 32, space[i],
						parts[i].iov_len);
	}
}

void call_read_parts(const __u32 *a)
{
	__u64 space[2][8];
	struct iovec parts[2];

	any_parts(parts, space, a);
	preadv2(any_fd(a[0]), parts, 1 + a[3] % 2, -1,
		a[3] % 4 ? 0 : 0x8 /* RWF_NOWAIT */);
}

void call_write_parts(const __u32 *a)
{
	__u64 space[2][8] = { { any_value(a[3]) }, { any_value(a[3] / 8) } };
	struct iovec parts[2];

	any_parts(parts, space, a);
	pwritev2(any_fd(a[0]), parts, 1 + a[3] % 2, -1,
		 a[3] % 4 ? 0 : 0x8 /* RWF_NOWAIT */);
}

void call_set_maximum(const __u32 *a)
{
	__u64 maximum = any_value(a[1]);

	ioctl(any_fd(a[0]), EFD_IOC_SET_MAXIMUM,
	      any_address(a[2], &maximum, sizeof(maximum)));
}

void call_set_qos(const __u32 *a)
{
	struct eventfd_qos qos = { any_value(a[1]), any_value(a[2]) };

	ioctl(any_fd(a[0]), EFD_IOC_SET_QOS,
	      any_address(a[3], &qos, sizeof(qos)));
}

void call_set_flow(const __u32 *a)
{
	static const __u64 delays[] = {
		0, 1, 1000, 1000000, FLOWFD_MAX_DELAY_MAX, FLOWFD_MAX_DELAY_MAX + 1,
	};
	struct flowfd_flow flow = {
		.maximum = a[1] % 3 ? any_value(a[1]) : 0,
		.read_mark = a[1] / 32 % 2 ? any_value(a[1] / 64) : 0,
		.write_mark = a[2] % 2 ? any_value(a[2] / 2) : 0,
		.max_delay = delays[a[2] / 64 % 6],
		.qos = {
			.token_capacity = a[3] % 3 ? 0 : any_value(a[3]),
			.token_rate = a[3] % 3 ? 0 : any_value(a[3] / 8),
		},
		.overflow = a[3] / 64 % 5,
	};

	ioctl(any_fd(a[0]), FLOWFD_IOC_SET_FLOW,
	      any_address(a[3] / 512, &flow, sizeof(flow)));
}

/* A write or a read that sleeps for 20 ms at most, and now and then with any flags. */
void call_transfer(const __u32 *a)
{
	static const __u64 times[] = { 1, 1000, 1000000, 20000000 };
	struct flowfd_transfer args = {
		.value = any_value(a[1]),
		.timeout = times[a[2] % 4],
		.flags = a[2] / 4 % 8 ? a[2] / 32 % 2 * FLOWFD_URGENT : a[2] / 32,
	};

	ioctl(any_fd(a[0]), a[3] % 2 ? FLOWFD_IOC_COUNTER_WRITE : FLOWFD_IOC_COUNTER_READ,
	      any_address(a[3] / 2, &args, sizeof(args)));
}

/* Mostly valid: one of the two, and now and then its end. */
void call_bridge(const __u32 *a)
{
	struct flowfd_bridge args = {
		.eventfd = any_fd(a[1]),
		.flags = a[2] % 8 ? 1 + a[2] % 2 : a[2] / 8,
	};

	if (a[3] % 4 == 0)
		args.flags |= FLOWFD_BRIDGE_REMOVE;
	ioctl(any_fd(a[0]), FLOWFD_IOC_COUNTER_BRIDGE,
	      any_address(a[3] / 4, &args, sizeof(args)));
}

void call_splice(const __u32 *a)
{
	splice(any_file(a[0]), NULL, any_file(a[1]), NULL, any_size(a[2]),
	       SPLICE_F_NONBLOCK);
}
