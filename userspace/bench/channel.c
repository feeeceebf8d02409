// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of channels, and what benchmarks of them share.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "channel.h"

const struct channel *const channels[CHANNELS] = {
	&channel_eventfd, &channel_flowfd, &channel_mapped,    &channel_post,
	&channel_pipe,	  &channel_futex,  &channel_condition, &channel_msg,
};

/* Memory that shares no cache line with other data. */
void *channel_new(size_t size)
{
	size_t lines = (size + 63) / 64 * 64;
	char *memory = aligned_alloc(64, lines);

	if (!memory)
		err(EXIT_FAILURE, "channel");
	while (lines--)
		memory[lines] = 0;
	return memory;
}

bool channel_is_here(const struct channel *channel)
{
	return !channel->missing || !channel->missing();
}

/* The note of a table: @what, and why channels are left out. */
const char *channel_note(const struct channel *const *of, unsigned int count,
			 const char *what)
{
	static char text[256];
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (channel_is_here(of[i]))
			continue;
		snprintf(text, sizeof(text), "%s; no %s: %s", what, of[i]->name,
			 of[i]->missing());
		return text;
	}
	return what;
}

struct row *channel_row(struct table *table, const struct channel *channel)
{
	return table_row(table, (const char *[]){ channel->name });
}

const struct row *channel_find(const struct table *table, const struct channel *channel)
{
	return table_find(table, (const char *[]){ channel->name });
}

/* How often the calling thread has slept. */
unsigned long channel_sleeps(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		err(EXIT_FAILURE, "getrusage");
	return (unsigned long)usage.ru_nvcsw;
}
