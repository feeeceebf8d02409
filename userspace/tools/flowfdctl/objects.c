// SPDX-License-Identifier: GPL-2.0-only
/* A list of counters and rings: its memory, and what is missing in it. */
#include <err.h>
#include <stdlib.h>
#include <time.h>

#include <flowfd.h>

#include "flowfdctl.h"

/* now_ns - returns the time of CLOCK_MONOTONIC */
uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* grow - make room for one more member of an array whose length is @count */
void *grow(void *array, size_t count, size_t size)
{
	/* At 64, and each power of two above. */
	if (count && (count < 64 || count & (count - 1)))
		return array;
	array = reallocarray(array, count ? 2 * count : 64, size);
	if (!array)
		err(EXIT_FAILURE, "list");
	return array;
}

void list_free(struct list *list)
{
	free(list->object);
}

/* list_is_complete - whether it has all that was asked for */
bool list_is_complete(const struct list *list)
{
	return !list->unknown && !list->left_out;
}

static void remark(size_t count, const char *why)
{
	if (count)
		fprintf(stderr, "flowfdctl: %zu counters or rings are not shown: %s\n",
			count, why);
}

/* list_remark - say on standard error what is missing in a list, and why */
void list_remark(const struct list *list)
{
	remark(list->unknown,
	       "flowfdctl " FLOWFD_VERSION " does not match the loaded module");
	remark(list->left_out, "there are too many");
}
