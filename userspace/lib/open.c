// SPDX-License-Identifier: MIT
/* Creating a counter and mapping it in one call, with the module or without it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fallback.h"
#include "mapped.h"

#define OPTIONS (FLOWFD_FALLBACK | FLOWFD_OPTIONAL_BUCKET | FLOWFD_ONE_CONSUMER)

enum backend { ANY, MODULE, FALLBACK };

/* Returns a backend or -EINVAL. The program's option comes first, then the environment. */
static int choose_backend(unsigned int options)
{
	const char *name;

	if (!(options & FLOWFD_FALLBACK))
		return MODULE;
	name = secure_getenv("FLOWFD_BACKEND");
	if (!name || !*name)
		return ANY;
	if (!strcmp(name, "module"))
		return MODULE;
	if (!strcmp(name, "fallback"))
		return FALLBACK;
	return -EINVAL;
}

/* What cannot be mapped, a semaphore, is created as it is. */
static int create(union flowfd__settings *settings)
{
	uint32_t flags = settings->counter.flags;
	int fd;

	settings->counter.flags = flags | FLOWFD_MAPPED;
	fd = flowfd_counter_create_from(&settings->counter, sizeof(*settings));
	if (fd != -EINVAL)
		return fd;
	settings->counter.flags = flags & ~(FLOWFD_MAPPED | FLOWFD_EDGE_PER_TAKE);
	return flowfd_counter_create_from(&settings->counter, sizeof(*settings));
}

static int open_with_module(struct flowfd_counter *c,
			    const union flowfd__settings *settings)
{
	union flowfd__settings copy = *settings;
	int fd = create(&copy), ret;

	if (fd < 0)
		return fd;
	ret = flowfd_counter_map(c, fd, FLOWFD__ROLES);
	if (ret)
		flowfd__close(fd);
	return ret;
}

int flowfd_counter_open(struct flowfd_counter *c,
			const struct flowfd_create_counter *settings, size_t size,
			unsigned int options)
{
	union flowfd__settings copy = { .bytes = { 0 } };
	int backend = choose_backend(options);
	int ret;

	if (options & ~OPTIONS)
		return -EINVAL;
	if (backend < 0)
		return backend;
	ret = flowfd__settings_copy(&copy, settings, size);
	if (ret)
		return ret;
	if (backend != FALLBACK)
		ret = open_with_module(c, &copy);
	if (backend == FALLBACK || (backend == ANY && (ret == -ENODEV || ret == -EACCES)))
		ret = flowfd__fallback_open(c, &copy, options);
	return ret;
}
