// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps the numbers of a call to descriptors, addresses and values: mostly good ones,
 * and some of each way to be wrong.
 */
#include "calls.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/uio.h>

static struct map maps[MAPS];
static char *edge;		/* the end of a page with no mapping behind it */
static char *read_only;

void place_init(void)
{
	size_t page = sysconf(_SC_PAGESIZE);

	edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	read_only = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	if (edge == MAP_FAILED || read_only == MAP_FAILED)
		_exit(2);
	edge += page;
	munmap(edge, page);
}

/* Closes and unmaps everything before the next program. */
void place_clear(void)
{
	syscall(SYS_close_range, FILE_BASE, ~0U, 0);
	for (int i = 0; i < MAPS; i++) {
		if (maps[i].at)
			munmap(maps[i].at, maps[i].size);
		maps[i].at = NULL;
	}
}

void place_fd(int fd, int at)
{
	if (fd < 0)
		return;
	dup3(fd, at, O_CLOEXEC);
	close(fd);
}

int any_file(__u32 a)
{
	return FILE_BASE + a % FILES;
}

int any_ring(__u32 a)
{
	return RING_BASE + a % RINGS;
}

int any_epoll(__u32 a)
{
	return EPOLL_BASE + a % EPOLLS;
}

/* Mostly a file. */
int any_fd(__u32 a)
{
	switch (a % 32) {
	case 29:
		return any_epoll(a);
	case 30:
		return any_ring(a);
	case 31:
		return -1;
	default:
		return any_file(a);
	}
}

struct map *any_map(__u32 a)
{
	return &maps[a % MAPS];
}

__u64 any_value(__u32 a)
{
	static const __u64 values[] = {
		1, 0, 2, 3, 10, 100, 1000, 5000, 1 << 20, 1000000000,
		1000000001, INT_MAX, UINT_MAX, 1ULL << 32, LLONG_MAX,
		1ULL << 63, ULLONG_MAX - 2, ULLONG_MAX - 1, ULLONG_MAX,
	};

	return values[a % (sizeof(values) / sizeof(*values))];
}

__u32 any_events(__u32 a)
{
	static const __u32 events[] = {
		EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT, EPOLLIN | EPOLLONESHOT,
		EPOLLIN | EPOLLOUT | EPOLLONESHOT, 0, EPOLLRDHUP | EPOLLPRI,
		EPOLLIN | EPOLLEXCLUSIVE, EPOLLIN | EPOLLWAKEUP, ~0U,
		EPOLLRDNORM | EPOLLWRNORM, 1 << 14,
	};

	return events[a % (sizeof(events) / sizeof(*events))];
}

/*
 * An address where the kernel finds @size bytes, or does not. The memory of a ring is
 * among them.
 */
void *any_address(__u32 a, const void *good, size_t size)
{
	const struct map *m = any_map(a / 16);
	char *at;

	switch (a % 16) {
	case 15:
		return NULL;
	case 14:
		return (void *)-4096L;
	case 13:
		at = edge - (size ? 1 + a / 16 % (size < 4096 ? size : 4096) : 0);
		break;
	case 12:
		return read_only;
	case 11:
		at = m->at;
		if (!at || m->size < size)
			return (void *)good;
		at += a / 64 % (m->size - size + 1);
		break;
	default:
		return (void *)good;
	}
	/* By a system call, as the memory may be unmapped by now. */
	process_vm_writev(getpid(), &(struct iovec){ (void *)good, size }, 1,
			  &(struct iovec){ at, size }, 1, 0);
	return at;
}

size_t any_size(__u32 a)
{
	static const size_t sizes[] = {
		8, 0, 1, 4, 7, 9, 12, 15, 16, 17, 20, 23, 24, 31, 32, 33, 39,
		40, 41, 48, 63, 64, 65, 79, 80, 81, 4096, 16383,
	};

	return sizes[a % (sizeof(sizes) / sizeof(*sizes))];
}

/* Mostly a descriptor that may create: those that were created or set up may not. */
int open_creator(__u32 a)
{
	if (a % 4 == 0)
		return dup(any_file(a / 4));
	return open("/dev/flowfd", O_RDWR | O_CLOEXEC);
}
