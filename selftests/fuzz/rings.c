// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on rings: create, control entries, wait. Also any request of any descriptor,
 * with a damaged structure or a wrong size.
 */
#include "calls.h"

#include <sys/epoll.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include <linux/flowfd.h>

/* A few items, so that rings are full at times. */
void call_create_ring(const __u32 *a)
{
	struct flowfd_create_ring args = {
		.max_items = a[1] % 8 ? 1 + a[1] % 7 : any_value(a[1] / 8),
		.flags = a[2] % 8 ? 0 : a[2] / 8,
	};
	int creator = open_creator(a[3] + 1);

	/* Limits memory: at most one large ring for each number. */
	if (args.max_items > 1 << 16)
		args.max_items |= 1 << 30;
	place_fd(ioctl(creator, FLOWFD_IOC_CREATE_RING,
		       any_address(a[2] / 16, &args, sizeof(args))),
		 any_ring(a[0]));
	close(creator);
}

static void control(int ring, struct flowfd_ring_entry *entries, __u32 count,
		    __u32 where)
{
	struct flowfd_ring_control args = {
		.entries = (uintptr_t)any_address(where, entries,
						  count * sizeof(*entries)),
		.count = count,
	};

	ioctl(ring, FLOWFD_IOC_RING_CONTROL, &args);
}

/* What most operations take; some take no file, or no events. */
static struct flowfd_ring_entry any_entry(__u32 op, __u32 a, __u32 data)
{
	struct flowfd_ring_entry entry = { .op = op, .fd = any_fd(a), .data = data };

	switch (op) {
	case FLOWFD_RING_DEL:
		entry.data = 0;
		break;
	case FLOWFD_RING_DEL_POST:
		entry.fd = a % 8;
		entry.data = 0;
		break;
	case FLOWFD_RING_DEL_DATA:
	case FLOWFD_RING_ADD_POST:
		entry.fd = -1;
		break;
	default:
		entry.events = any_events(a / 8) | EPOLLET;
	}
	return entry;
}

void call_control(const __u32 *a)
{
	static const __u32 ops[] = {
		FLOWFD_RING_ADD, FLOWFD_RING_DEL, FLOWFD_RING_MOD,
		FLOWFD_RING_ADD, FLOWFD_RING_ADD_POST, FLOWFD_RING_ADD,
		FLOWFD_RING_DEL, FLOWFD_RING_DEL_POST, FLOWFD_RING_MOD,
		FLOWFD_RING_ADD, FLOWFD_RING_DEL_DATA, FLOWFD_RING_ADD_PINNED,
	};
	struct flowfd_ring_entry entry =
		any_entry(ops[a[2] % (sizeof(ops) / sizeof(*ops))], a[1], a[3] % 4);

	if (entry.events)
		entry.events = any_events(a[3]) | EPOLLET;
	control(any_ring(a[0]), &entry, 1, 0);
}

void call_batch(const __u32 *a)
{
	struct flowfd_ring_entry entries[4];
	__u32 bits = a[1];

	for (int i = 0; i < 4; i++, bits /= 8)
		entries[i] = any_entry(bits % 8, bits / 8 + i * a[2], i);
	control(any_ring(a[0]), entries, 1 + a[2] % 4, a[3]);
}

void call_wait(const __u32 *a)
{
	static const __u64 times[] = {
		0, 1, 1000, 100000, 1000000, 20000000, ~0ULL,
	};
	__u64 mask = a[2];
	struct flowfd_ring_wait args = {
		.min_events = a[1] % 4 ? a[1] % 4 : any_value(a[1]),
		.timeout = times[a[2] % 7],
		.min_wait = a[3] % 3 ? 0 : times[a[3] % 7],
		.sigmask = a[3] % 5 ? 0 : (uintptr_t)any_address(a[3] / 5,
								&mask, 8),
		.sigmask_size = a[3] % 5 ? 0 : 8,
	};

	ioctl(any_ring(a[0]), FLOWFD_IOC_RING_WAIT, &args);
}

/* What a request needs to succeed, beside zeros. */
static void make_good(unsigned int request, void *at)
{
	switch (request) {
	case FLOWFD_IOC_CREATE_RING:
		*(struct flowfd_create_ring *)at =
			(struct flowfd_create_ring){ .max_items = 4 };
		break;
	case FLOWFD_IOC_RING_WAIT:
		*(struct flowfd_ring_wait *)at =
			(struct flowfd_ring_wait){ .timeout = 1000 };
		break;
	case FLOWFD_IOC_COUNTER_WRITE:
	case FLOWFD_IOC_COUNTER_READ:
		*(struct flowfd_transfer *)at =
			(struct flowfd_transfer){ .value = 1, .timeout = 1000 };
		break;
	case FLOWFD_IOC_COUNTER_BRIDGE:
		*(struct flowfd_bridge *)at =
			(struct flowfd_bridge){ .flags = FLOWFD_BRIDGE_SOURCE };
	}
}

/*
 * Any request, now and then of another size, direction or type; up to two words of its
 * structure are damaged. The first of the list have no call of their own.
 */
void call_any_ioctl(const __u32 *a)
{
	static const unsigned int requests[] = {
		FLOWFD_IOC_COUNTER_NOTIFY,
		FLOWFD_IOC_RING_NOTIFY,
		FLOWFD_IOC_SHARE,
		FLOWFD_IOC_OPEN,
		FLOWFD_IOC_BALANCE,
		FLOWFD_IOC_COUNTER_STATS,
		FLOWFD_IOC_RING_STATS,
		FLOWFD_IOC_GET_FLOW,
		FLOWFD_IOC_RING_INFO,
		FLOWFD_IOC_QUERY,
		FLOWFD_IOC_COUNTER_ID,
		EFD_IOC_GET_MAXIMUM,
		EFD_IOC_GET_QOS,
		EFD_IOC_SET_MAXIMUM,
		EFD_IOC_SET_QOS,
		FLOWFD_IOC_CREATE_COUNTER,
		FLOWFD_IOC_CREATE_RING,
		FLOWFD_IOC_RING_CONTROL,
		FLOWFD_IOC_RING_WAIT,
		FLOWFD_IOC_SETUP_COUNTER,
		FLOWFD_IOC_SET_FLOW,
		FLOWFD_IOC_COUNTER_WRITE,
		FLOWFD_IOC_COUNTER_READ,
		FLOWFD_IOC_COUNTER_BRIDGE,
		0,
	};
	/* The kernel writes as much as the largest size that a request can have. */
	__u64 space[1 << _IOC_SIZEBITS >> 3] = { 0 };
	unsigned int request = requests[a[1] % (sizeof(requests) / sizeof(*requests))];
	unsigned int type = _IOC_TYPE(request) ^ (a[1] / 32 % 4 == 3 ? 'J' ^ 'E' : 0);
	unsigned int direction = a[2] % 8 ? _IOC_DIR(request) : a[2] / 8 % 4;
	size_t size = a[2] % 4 == 3 ? any_size(a[2] / 4) : _IOC_SIZE(request);
	int fd;

	make_good(request, space);
	if (request == FLOWFD_IOC_BALANCE)
		memcpy(space, &(__s32){ any_file(a[3] / 96) }, sizeof(__s32));
	if (request == FLOWFD_IOC_OPEN)
		ioctl(a[3] / 96 % 2 ? any_ring(a[3] / 192) : any_fd(a[3] / 192),
		      FLOWFD_IOC_SHARE, space);
	if (a[3] % 4)
		space[a[3] / 4 % 6] = any_value(a[3] / 24);
	if (a[3] % 4 > 2)
		((__u32 *)space)[a[3] / 8 % 12] = any_value(a[3] / 96);
	/* Limits the size of rings, to leave memory for others. */
	if (request == FLOWFD_IOC_CREATE_RING && (__u32)space[0] > 1 << 16)
		space[0] |= 1 << 30;
	fd = ioctl(a[0] % 2 ? any_ring(a[0] / 2) : any_fd(a[0] / 2),
		   _IOC(direction, type, _IOC_NR(request), size),
		   any_address(a[2] / 64, space, size));
	if (fd > 2 && fd < FILE_BASE && (request == FLOWFD_IOC_CREATE_COUNTER ||
					   request == FLOWFD_IOC_BALANCE ||
					   request == FLOWFD_IOC_OPEN ||
					   request == FLOWFD_IOC_CREATE_RING))
		place_fd(fd, any_file(a[0]));
}
