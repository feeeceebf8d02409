// SPDX-License-Identifier: MIT
/* Creating a counter and mapping it in one call, with the module or without it. */
#include <errno.h>

#include "backend.h"
#include "fallback.h"
#include "mapped.h"

#define OPTIONS \
	(FLOWFD_FALLBACK | FLOWFD_OPTIONAL_BUCKET | FLOWFD_ONE_CONSUMER | FLOWFD_NO_POLL)

/* What cannot be mapped, a semaphore, is created as it is. */
static int create(union flowfd__settings *settings)
{
	uint32_t flags = settings->counter.flags;
	int fd;

	settings->counter.flags = flags | FLOWFD_MAPPED;
	fd = flowfd_counter_create_from(&settings->counter, sizeof(*settings));
	if (fd != -EINVAL)
		return fd;
	settings->counter.flags = flags & ~FLOWFD_MAPPED;
	return flowfd_counter_create_from(&settings->counter, sizeof(*settings));
}

static int open_with_module(struct flowfd_counter *c,
			    const union flowfd__settings *settings)
{
	union flowfd__settings copy = *settings;
	int fd = create(&copy), ret;

	if (fd < 0)
		return fd;
	ret = flowfd__map_own(c, fd);
	if (ret)
		flowfd__close(fd);
	return ret;
}

int flowfd_counter_open(struct flowfd_counter *c,
			const struct flowfd_create_counter *settings, size_t size,
			unsigned int options)
{
	union flowfd__settings copy = { .bytes = { 0 } };
	int backend = flowfd__backend(options & FLOWFD_FALLBACK);
	int ret;

	if (options & ~OPTIONS)
		return -EINVAL;
	if (backend < 0)
		return backend;
	ret = flowfd__settings_copy(&copy, settings, size);
	if (ret)
		return ret;
	if (backend != FLOWFD__FALLBACK)
		ret = open_with_module(c, &copy);
	if (flowfd__falls_back(backend, ret))
		ret = flowfd__fallback_open(c, &copy, options);
	return ret;
}
