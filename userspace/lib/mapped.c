// SPDX-License-Identifier: MIT
/*
 * Counters in memory: mapping one, and what the inline functions of flowfd-counter.h
 * call when memory is not enough.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "doorbell.h"
#include "mapped.h"
#include "memory.h"

/* Without a role: never room, never a count. The inline functions only read it. */
static const struct {
	struct flowfd_counter_header header;
	struct flowfd_counter_producer producer;
	struct flowfd_counter_consumer consumer;
} nothing;

void flowfd__mapped_init(struct flowfd_counter *c, int fd, unsigned int roles, void *map,
			 size_t page)
{
	*c = (struct flowfd_counter){
		.fd = fd,
		.roles = roles,
		.map = map,
		.map_size = FLOWFD__PAGES * page,
		.memory = -1,
	};
	c->add.header = &nothing.header;
	c->add.producer = (void *)&nothing.producer;
	c->add.consumer = &nothing.consumer;
	c->take.producer = &nothing.producer;
	c->take.consumer = (void *)&nothing.consumer;
	if (roles & FLOWFD_PRODUCER) {
		c->add.header = map;
		c->add.producer = (void *)((char *)map + page);
		c->add.consumer = (void *)((char *)map + 2 * page);
	}
	if (roles & FLOWFD_CONSUMER) {
		c->take.producer = (void *)((char *)map + page);
		c->take.consumer = (void *)((char *)map + 2 * page);
	}
}

static char *page_of(void *map, size_t page, int number)
{
	return (char *)map + number * page;
}

/*
 * Only the page that a role writes can be written. It is mapped elsewhere first: a
 * driver's error must not leave a hole, which another thread may get. Without memory to
 * move it, there can be one, in @lost.
 */
static int map_page(void *map, size_t page, int number, int fd, int *lost)
{
	void *at;
	int ret = flowfd__map(&at, page, PROT_READ | PROT_WRITE, fd, number * page);

	if (ret)
		return ret;
	ret = flowfd__move(at, page, page_of(map, page, number));
	if (ret)
		flowfd__unmap(at, page);
	if (ret == -ENOMEM)
		*lost = number;
	return ret;
}

static void unmap_pages(void *map, size_t page, int lost)
{
	for (int number = 0; number < FLOWFD__PAGES; number++)
		if (number != lost)
			flowfd__unmap(page_of(map, page, number), page);
}

/* The inline functions are compiled into programs and know this layout alone. */
static int check_header(const struct flowfd_counter_header *header, size_t page)
{
	if (header->magic != FLOWFD_COUNTER_MAGIC ||
	    header->version != FLOWFD_COUNTER_VERSION || header->page_size != page)
		return -EPROTONOSUPPORT;
	return 0;
}

static int map_pages(void **map, int fd, unsigned int roles, size_t page)
{
	int ret = flowfd__map(map, FLOWFD__PAGES * page, PROT_READ, fd, 0);
	int lost = -1;

	if (ret)
		return ret;
	ret = check_header(*map, page);
	if (!ret && roles & FLOWFD_PRODUCER)
		ret = map_page(*map, page, 1, fd, &lost);
	if (!ret && roles & FLOWFD_CONSUMER)
		ret = map_page(*map, page, 2, fd, &lost);
	if (ret)
		unmap_pages(*map, page, lost);
	return ret;
}

/* A module of before has no policies. */
static uint32_t features_of(int fd)
{
	uint32_t features = FLOWFD_HAS_CALLS | FLOWFD_HAS_MAXIMUM | FLOWFD_HAS_BUCKET |
			    FLOWFD_HAS_POLL;
	struct flowfd_flow flow;

	if (!flowfd__request(fd, FLOWFD_IOC_GET_FLOW, &flow))
		features |= FLOWFD_HAS_FLOW | FLOWFD_HAS_OVERFLOW;
	return features;
}

/* Whether it is a mapped counter (0), another one (-ENODEV) or none. */
static int ask(int fd)
{
	int ret = flowfd__request(fd, FLOWFD_IOC_COUNTER_NOTIFY, NULL);
	uint64_t maximum;

	/* ENODEV is also what a device answers that was unplugged. */
	if (ret == -ENODEV && flowfd__request(fd, EFD_IOC_GET_MAXIMUM, &maximum))
		return -ENOTTY;
	/* EINVAL is what epolls answer to all requests, since Linux 6.9. */
	return ret == -EINVAL ? -ENOTTY : ret;
}

/*
 * Anybody can make memory that looks like a counter's, and the server of a file in user
 * space can answer as the module does. The file must be in the kernel alone.
 */
static int check_file(int fd)
{
	int saved = errno, refused;
	struct statfs status;

	if (!fstatfs(fd, &status))
		return status.f_type == ANON_INODE_FS_MAGIC ? 0 : -ENOTTY;
	refused = flowfd__is_filtered(-errno) ? EPERM : errno;
	errno = saved;
	return -refused;
}

static int map_asked(struct flowfd_counter *c, int fd, unsigned int roles, int asked)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *map = NULL;
	int ret = asked;

	if (ret == -ENODEV) {
		flowfd__mapped_init(c, fd, 0, NULL, 0);
		c->features = features_of(fd);
		return 0;
	}
	if (!ret)
		ret = map_pages(&map, fd, roles, page);
	if (ret)
		return ret;
	flowfd__mapped_init(c, fd, roles, map, page);
	c->features = FLOWFD_HAS_MEMORY | features_of(fd);
	return 0;
}

int flowfd__map_own(struct flowfd_counter *c, int fd)
{
	return map_asked(c, fd, FLOWFD__ROLES, ask(fd));
}

int flowfd_counter_map(struct flowfd_counter *c, int fd, unsigned int roles)
{
	int asked;

	if (!roles || roles & ~FLOWFD__ROLES)
		return -EINVAL;
	asked = ask(fd);
	if (flowfd__is_filtered(asked))
		return -EPERM;
	if (!asked)
		asked = check_file(fd);
	return map_asked(c, fd, roles, asked);
}

void flowfd_counter_unmap(struct flowfd_counter *c)
{
	uint32_t features = c->features & ~FLOWFD_HAS_MEMORY;
	uint32_t doorbell = c->doorbell;

	if (c->map)
		flowfd__unmap(c->map, c->map_size);
	if (c->memory >= 0 && c->memory != c->fd)
		flowfd__close(c->memory);
	flowfd__mapped_init(c, c->fd, 0, NULL, 0);
	/* The count was in the memory: the eventfd must not be used as a counter. */
	c->features = doorbell ? 0 : features;
	c->doorbell = doorbell;
}

void flowfd_counter_close(struct flowfd_counter *c)
{
	flowfd_counter_unmap(c);
	flowfd__close(c->fd);
	c->fd = -1;
}

/*
 * A write of 0 tells as well, for programs whose filter of seccomp(2) refuses ioctl(2). It
 * must not sleep, which it could only if the count is above the maximum.
 */
static int notify_by_write(int fd)
{
	uint64_t value = 0;
	struct iovec vector = { &value, sizeof(value) };

	int saved = errno;
	bool failed;

	/* Not by pwritev2(), which is a cancellation point. */
	failed = syscall(SYS_pwritev2, fd, &vector, 1, -1L, -1L, RWF_NOWAIT) < 0 &&
		 errno != EAGAIN;
	errno = saved;
	return failed ? -EPERM : 0;
}

int flowfd_counter_notify(const struct flowfd_counter *c, unsigned int role)
{
	int ret;

	if (!c->roles)
		return -ENODEV;
	if (c->doorbell)
		return flowfd__doorbell_notify(c, role) ? -EPERM : 0;
	ret = flowfd__request(c->fd, FLOWFD_IOC_COUNTER_NOTIFY, NULL);
	if (flowfd__is_filtered(ret))
		return notify_by_write(c->fd);
	/* The number of a descriptor that was closed can be that of another file. */
	return ret ? -EPERM : 0;
}
