// SPDX-License-Identifier: GPL-2.0-only
/*
 * The graph of all bridges, without cycles: from each eventfd at most one leads to a
 * counter, and from each counter at most one to an eventfd, which has no other. So a
 * signal wakes two ends at most.
 */
#include <linux/spinlock.h>

#include "bridge.h"

/* How many counters may follow one another through bridges. */
#define BRIDGE_DEPTH 16

/*
 * All bridges; below the mutex of an end. It does not sleep on PREEMPT_RT: who has it there
 * may be a task that seldom runs, and what waits for it may be the work items of others.
 */
static DEFINE_RAW_SPINLOCK(bridges_lock);

/* Ends by their eventfd. */
static struct rb_root bridge_sources = RB_ROOT;
static struct rb_root bridge_sinks = RB_ROOT;

static struct rb_root *bridge_root(const struct flowfd_bridge_state *b,
				   const struct bridge_end *end)
{
	return end == &b->source ? &bridge_sources : &bridge_sinks;
}

static struct bridge_end *bridge_find(const struct rb_root *root,
				      const struct eventfd_ctx *eventfd)
{
	struct rb_node *at = root->rb_node;

	while (at) {
		struct bridge_end *end = rb_entry(at, struct bridge_end, node);

		if (eventfd == end->eventfd)
			return end;
		at = eventfd < end->eventfd ? at->rb_left : at->rb_right;
	}
	return NULL;
}

static void bridge_insert(struct rb_root *root, struct bridge_end *end)
{
	struct rb_node **at = &root->rb_node, *parent = NULL;

	while (*at) {
		parent = *at;
		if (end->eventfd < rb_entry(parent, struct bridge_end, node)->eventfd)
			at = &parent->rb_left;
		else
			at = &parent->rb_right;
	}
	rb_link_node(&end->node, parent, at);
	rb_insert_color(&end->node, root);
}

static void bridge_erase(struct rb_root *root, struct bridge_end *end)
{
	rb_erase(&end->node, root);
	end->eventfd = NULL;
}

/* The counter that is fed by what this one signals, or NULL. */
static const struct flowfd_bridge_state *bridge_next(const struct flowfd_bridge_state *b)
{
	struct bridge_end *source = NULL;

	if (b->sink.eventfd)
		source = bridge_find(&bridge_sources, b->sink.eventfd);
	return source ? container_of(source, struct flowfd_bridge_state, source) : NULL;
}

/* The counter that signals what feeds this one, or NULL. */
static const struct flowfd_bridge_state *
bridge_before(const struct flowfd_bridge_state *b)
{
	struct bridge_end *sink = NULL;

	if (b->source.eventfd)
		sink = bridge_find(&bridge_sinks, b->source.eventfd);
	return sink ? container_of(sink, struct flowfd_bridge_state, sink) : NULL;
}

/*
 * A cycle would pass its count on for ever. One that the last new bridge closes leads
 * back to it. An act of a program is worth some rounds of each counter behind it, so the
 * whole chain is limited; that also keeps others from waiting for the lock.
 */
static bool bridge_loops(const struct flowfd_bridge_state *b)
{
	const struct flowfd_bridge_state *at;
	unsigned int length = 1;

	for (at = bridge_next(b); at; at = bridge_next(at)) {
		if (at == b || ++length > BRIDGE_DEPTH)
			return true;
	}
	for (at = bridge_before(b); at; at = bridge_before(at)) {
		if (++length > BRIDGE_DEPTH)
			return true;
	}
	return false;
}

/**
 * flowfd_bridge_unlink - end the bridge of an end
 * @b: state
 * @end: @source or @sink of it, with an eventfd, whose mutex the caller has
 */
void flowfd_bridge_unlink(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	raw_spin_lock(&bridges_lock);
	bridge_erase(bridge_root(b, end), end);
	raw_spin_unlock(&bridges_lock);
}

/**
 * flowfd_bridge_link - connect an end with an eventfd
 * @b: state
 * @end: @source or @sink of it, without an eventfd, whose mutex the caller has
 * @eventfd: which the end keeps if this succeeds
 *
 * Return: 0; -EBUSY: the eventfd is the same end of another bridge; or -ELOOP: it would be
 * a cycle, or a chain that is too long.
 */
int flowfd_bridge_link(struct flowfd_bridge_state *b, struct bridge_end *end,
		       struct eventfd_ctx *eventfd)
{
	struct rb_root *root = bridge_root(b, end);
	int err = -EBUSY;

	raw_spin_lock(&bridges_lock);
	if (bridge_find(root, eventfd))
		goto unlock;
	end->eventfd = eventfd;
	bridge_insert(root, end);
	err = 0;
	if (bridge_loops(b)) {
		bridge_erase(root, end);
		err = -ELOOP;
	}
unlock:
	raw_spin_unlock(&bridges_lock);
	return err;
}
