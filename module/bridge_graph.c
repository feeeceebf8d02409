// SPDX-License-Identifier: GPL-2.0-only
/*
 * The graph of all bridges, without cycles: from each eventfd at most one leads to a
 * counter, and from each counter at most one to an eventfd.
 */
#include "bridge.h"

/* How many counters may follow one another through bridges. */
#define BRIDGE_DEPTH 16

/* All bridges; below the mutex of a state. */
static DEFINE_MUTEX(bridges_lock);

/* States by the eventfd of their source. */
static struct rb_root bridge_sources = RB_ROOT;

static struct flowfd_bridge_state *bridge_find_source(const struct eventfd_ctx *eventfd)
{
	struct rb_node *at = bridge_sources.rb_node;
	struct flowfd_bridge_state *b;

	while (at) {
		b = rb_entry(at, struct flowfd_bridge_state, node);
		if (eventfd == b->source.eventfd)
			return b;
		at = eventfd < b->source.eventfd ? at->rb_left : at->rb_right;
	}
	return NULL;
}

static void bridge_insert_source(struct flowfd_bridge_state *b)
{
	struct rb_node **at = &bridge_sources.rb_node, *parent = NULL;

	while (*at) {
		parent = *at;
		if (b->source.eventfd <
		    rb_entry(parent, struct flowfd_bridge_state, node)->source.eventfd)
			at = &parent->rb_left;
		else
			at = &parent->rb_right;
	}
	rb_link_node(&b->node, parent, at);
	rb_insert_color(&b->node, &bridge_sources);
}

/*
 * A cycle would pass its count on for ever. One that the last new bridge closes leads
 * back to it. A limit on the length keeps others from waiting for the lock.
 */
static bool bridge_loops(const struct flowfd_bridge_state *b)
{
	const struct flowfd_bridge_state *at = b;
	unsigned int depth;

	for (depth = 0; depth < BRIDGE_DEPTH; depth++) {
		if (!at->sink.eventfd)
			return false;
		at = bridge_find_source(at->sink.eventfd);
		if (!at)
			return false;
		if (at == b)
			return true;
	}
	return true;
}

/**
 * flowfd_bridge_unlink - end the bridge of an end
 * @b: state, whose mutex the caller has
 * @end: @source or @sink of it, with an eventfd
 */
void flowfd_bridge_unlink(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	mutex_lock(&bridges_lock);
	if (end == &b->source)
		rb_erase(&b->node, &bridge_sources);
	end->eventfd = NULL;
	mutex_unlock(&bridges_lock);
}

/**
 * flowfd_bridge_link - connect an end with an eventfd
 * @b: state, whose mutex the caller has
 * @end: @source or @sink of it, without an eventfd
 * @eventfd: which the end keeps if this succeeds
 *
 * Return: 0; -EBUSY: the eventfd feeds a counter already; or -ELOOP: it would be a cycle,
 * or a chain that is too long.
 */
int flowfd_bridge_link(struct flowfd_bridge_state *b, struct bridge_end *end,
		       struct eventfd_ctx *eventfd)
{
	int err = 0;

	mutex_lock(&bridges_lock);
	if (end == &b->source && bridge_find_source(eventfd)) {
		err = -EBUSY;
		goto unlock;
	}
	end->eventfd = eventfd;
	if (end == &b->source)
		bridge_insert_source(b);
	if (bridge_loops(b)) {
		if (end == &b->source)
			rb_erase(&b->node, &bridge_sources);
		end->eventfd = NULL;
		err = -ELOOP;
	}
unlock:
	mutex_unlock(&bridges_lock);
	return err;
}
