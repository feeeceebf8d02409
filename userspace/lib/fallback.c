// SPDX-License-Identifier: MIT
/*
 * Counters where the module is not: their settings, which are checked as the module
 * checks them, their memory, and their eventfd.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doorbell.h"
#include "eventfd.h"
#include "fallback.h"
#include "mapped.h"
#include "memory.h"
#include "words.h"

#define FLAGS (FLOWFD_SEMAPHORE | FLOWFD_NONBLOCK | FLOWFD_KEEP_ON_EXEC | FLOWFD_MAPPED)

static uint64_t maximum_of(const struct flowfd_create_counter *settings)
{
	return settings->maximum ? settings->maximum : UINT64_MAX;
}

/* As the module does. */
static int check_settings(const struct flowfd_create_counter *settings)
{
	const struct eventfd_qos *qos = &settings->qos;

	if (settings->flags & ~FLAGS || settings->reserved ||
	    settings->initial >= maximum_of(settings))
		return -EINVAL;
	if (!qos->token_rate)
		return 0;
	if (qos->token_rate > FLOWFD_TOKEN_RATE_MAX || !qos->token_capacity ||
	    settings->flags & FLOWFD_SEMAPHORE)
		return -EINVAL;
	return 0;
}

/* What only the kernel can do, and the program cannot do without. */
static int check_needs(const struct flowfd_create_counter *settings, unsigned int options)
{
	if (settings->qos.token_rate && !(options & FLOWFD_OPTIONAL_BUCKET))
		return -EOPNOTSUPP;
	if (settings->flags & FLOWFD_SEMAPHORE && maximum_of(settings) != UINT64_MAX)
		return -EOPNOTSUPP;
	return 0;
}

static int open_eventfd(const struct flowfd_create_counter *settings, int flags)
{
	return flowfd__eventfd(flags |
			       (settings->flags & FLOWFD_KEEP_ON_EXEC ? 0 : EFD_CLOEXEC));
}

/* It is for calls alone, so the eventfd has the count. */
static int open_semaphore(struct flowfd_counter *c,
			  const struct flowfd_create_counter *settings)
{
	int nonblock = settings->flags & FLOWFD_NONBLOCK ? EFD_NONBLOCK : 0;
	int fd = open_eventfd(settings, EFD_SEMAPHORE | nonblock);
	int ret;

	if (fd < 0)
		return fd;
	ret = flowfd__eventfd_write(fd, settings->initial);
	if (ret) {
		flowfd__close(fd);
		return ret;
	}
	flowfd__mapped_init(c, fd, 0, NULL, 0);
	c->features = FLOWFD_HAS_CALLS | FLOWFD_HAS_POLL;
	return 0;
}

static uint32_t doorbell_of(const struct flowfd_create_counter *settings,
			    unsigned int options)
{
	uint32_t doorbell = DOORBELL_USED;

	if (settings->flags & FLOWFD_NONBLOCK)
		doorbell |= DOORBELL_NONBLOCK;
	if (options & FLOWFD_ONE_CONSUMER)
		doorbell |= DOORBELL_ONE_CONSUMER;
	if (options & FLOWFD_NO_POLL)
		doorbell |= DOORBELL_NO_POLL;
	return doorbell;
}

static void write_settings(struct flowfd__settings_page *at, uint64_t maximum,
			   size_t page, uint32_t doorbell)
{
	*at = (struct flowfd__settings_page){
		.header.magic = FLOWFD_COUNTER_MAGIC,
		.header.version = FLOWFD_COUNTER_VERSION,
		.header.page_size = (uint32_t)page,
		.header.flags = FLOWFD_MAPPED,
		.header.maximum = maximum,
		.magic = FLOWFD__WORDS_MAGIC,
		.version = FLOWFD__WORDS_VERSION,
		.doorbell = doorbell,
	};
}

/*
 * Returns a descriptor. No process keeps the first page mapped for writing: a stray store
 * of a program does not reach it.
 */
static int make_memory(void **map, const struct flowfd_create_counter *settings,
		       uint32_t doorbell, size_t page)
{
	int fd, ret;

	fd = flowfd__memfd(FLOWFD__PAGES * page,
			   settings->flags & FLOWFD_KEEP_ON_EXEC ? 0 : MFD_CLOEXEC);
	if (fd < 0)
		return fd;
	ret = flowfd__map(map, FLOWFD__PAGES * page, PROT_READ | PROT_WRITE, fd, 0);
	if (ret) {
		flowfd__close(fd);
		return ret;
	}
	write_settings(*map, maximum_of(settings), page, doorbell);
	flowfd__protect(*map, page, PROT_READ);
	return fd;
}

void flowfd__fallback_init(struct flowfd_counter *c, int fd, int memory, void *map,
			   uint32_t doorbell)
{
	flowfd__mapped_init(c, fd, FLOWFD__ROLES, map, sysconf(_SC_PAGESIZE));
	c->features = FLOWFD_HAS_MEMORY | FLOWFD_HAS_OVERFLOW;
	if (!(doorbell & DOORBELL_NO_POLL))
		c->features |= FLOWFD_HAS_POLL;
	c->doorbell = doorbell;
	c->memory = memory;
}

/* The eventfd first, so that it has the lowest descriptor that is free. */
static int open_in_memory(struct flowfd_counter *c,
			  const struct flowfd_create_counter *settings,
			  unsigned int options)
{
	uint32_t doorbell = doorbell_of(settings, options);
	size_t page = sysconf(_SC_PAGESIZE);
	struct flowfd_counter made;
	void *map = NULL;
	int ret = 0, fd = -1, memory;

	if (!(doorbell & DOORBELL_NO_POLL)) {
		fd = open_eventfd(settings, EFD_NONBLOCK);
		if (fd < 0)
			return fd;
	}
	memory = make_memory(&map, settings, doorbell, page);
	if (memory < 0) {
		if (fd >= 0)
			flowfd__close(fd);
		return memory;
	}
	flowfd__fallback_init(&made, fd < 0 ? memory : fd, memory, map, doorbell);
	made.add.producer->produced = settings->initial;
	if (fd >= 0)
		ret = flowfd__doorbell_start(&made);
	if (ret)
		flowfd_counter_close(&made);
	else
		*c = made;
	return ret;
}

int flowfd__fallback_open(struct flowfd_counter *c,
			  const union flowfd__settings *settings, unsigned int options)
{
	int ret;

	if (!flowfd__settings_are_known(settings))
		return -EPROTONOSUPPORT;
	ret = check_settings(&settings->counter);
	if (!ret)
		ret = check_needs(&settings->counter, options);
	if (ret)
		return ret;
	if (settings->counter.flags & FLOWFD_SEMAPHORE)
		return open_semaphore(c, &settings->counter);
	return open_in_memory(c, &settings->counter, options);
}
