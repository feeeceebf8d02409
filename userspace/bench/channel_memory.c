// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels of flowfd in memory: a mapped counter, and a post of a ring.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "channel.h"

static const struct subject mapped_subject = {
	.flowfd = true,
	.mapped = true,
	.maximum = NO_MAXIMUM,
};

static const struct subject ring_subject = { .flowfd = true, .maximum = NO_MAXIMUM };

struct mapped {
	struct flowfd_counter counter;
	bool awake;
};

static void *mapped_open(const struct channel *channel, unsigned int senders, bool awake)
{
	struct mapped *mapped = channel_new(sizeof(*mapped));
	int error;

	(void)senders;
	error = flowfd_counter_map(&mapped->counter, subject_open(channel->subject, 0, 0),
				   FLOWFD_PRODUCER | FLOWFD_CONSUMER);
	if (error)
		errx(EXIT_FAILURE, "signal: map: %s", flowfd_strerror(error));
	mapped->awake = awake;
	return mapped;
}

static void mapped_signal(void *self, unsigned int sender, unsigned long count)
{
	const struct mapped *mapped = self;

	(void)sender;
	while (count--)
		if (flowfd_add(&mapped->counter, 1))
			errx(EXIT_FAILURE, "signal: add");
}

static bool mapped_take(void *self)
{
	const struct mapped *mapped = self;
	uint64_t value;

	if (mapped->awake)
		return !flowfd_try_take(&mapped->counter, &value);
	if (flowfd_take(&mapped->counter, &value))
		errx(EXIT_FAILURE, "signal: take");
	return true;
}

static void mapped_turns(void *self, unsigned long count)
{
	const struct mapped *mapped = self;
	uint64_t value;

	while (count--)
		if (flowfd_add(&mapped->counter, 1) ||
		    flowfd_take(&mapped->counter, &value))
			errx(EXIT_FAILURE, "signal: add and take");
}

static void mapped_close(void *self)
{
	struct mapped *mapped = self;

	flowfd_counter_close(&mapped->counter);
	free(mapped);
}

struct posts {
	struct flowfd_ring ring;
	uint32_t item;
	bool awake;
};

static void *posts_open(const struct channel *channel, unsigned int senders, bool awake)
{
	struct posts *posts = channel_new(sizeof(*posts));
	int item;

	(void)channel;
	(void)senders;
	if (flowfd_ring_create(&posts->ring, 64, 0))
		errx(EXIT_FAILURE, "signal: no ring");
	item = flowfd_ring_add_post(&posts->ring, 1);
	if (item < 0)
		errx(EXIT_FAILURE, "signal: %s", flowfd_ring_strerror(item));
	posts->item = (uint32_t)item;
	posts->awake = awake;
	return posts;
}

static void posts_signal(void *self, unsigned int sender, unsigned long count)
{
	const struct posts *posts = self;

	(void)sender;
	while (count--)
		if (flowfd_ring_post(&posts->ring, posts->item, 1))
			errx(EXIT_FAILURE, "signal: post");
}

static bool posts_take(void *self)
{
	struct posts *posts = self;
	struct flowfd_event event;
	int result;

	while (!flowfd_ring_next(&posts->ring, &event)) {
		if (posts->awake)
			return false;
		result = flowfd_ring_wait(&posts->ring, FLOWFD_RING_FOREVER);
		if (result < 0 && result != -EINTR)
			errx(EXIT_FAILURE, "signal: %s", flowfd_strerror(result));
	}
	return true;
}

static void posts_turns(void *self, unsigned long count)
{
	struct posts *posts = self;
	struct flowfd_event event;

	while (count--)
		if (flowfd_ring_post(&posts->ring, posts->item, 1) ||
		    !flowfd_ring_next(&posts->ring, &event))
			errx(EXIT_FAILURE, "signal: post and harvest");
}

static void posts_close(void *self)
{
	struct posts *posts = self;

	flowfd_ring_destroy(&posts->ring);
	free(posts);
}

const struct channel channel_mapped = {
	.name = "mapped",
	.subject = &mapped_subject,
	.open = mapped_open,
	.signal = mapped_signal,
	.take = mapped_take,
	.turns = mapped_turns,
	.close = mapped_close,
};

const struct channel channel_post = {
	.name = "post",
	.subject = &ring_subject,
	.open = posts_open,
	.signal = posts_signal,
	.take = posts_take,
	.turns = posts_turns,
	.close = posts_close,
};
