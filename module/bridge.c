// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bridges of a counter: FLOWFD_IOC_COUNTER_BRIDGE, fdinfo, and their end with that of
 * the counter.
 */
#include <linux/file.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "abi.h"
#include "bridge.h"

static struct flowfd_bridge_state *bridge_alloc(struct flowfd_counter *c)
{
	struct flowfd_bridge_state *b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT);

	if (!b)
		return NULL;
	b->counter = c;
	/* Ids of counters come again, and others remember grants: these are others. */
	b->grants = get_random_u32();
	flowfd_source_init(b);
	flowfd_sink_init(b);
	return b;
}

static struct flowfd_bridge_state *bridge_of(struct flowfd_counter *c)
{
	/* Pairs with bridge_state(): it is initialized. */
	return smp_load_acquire(&c->bridge);
}

/* Made at the first use, and kept for as long as the counter. */
static struct flowfd_bridge_state *bridge_state(struct flowfd_counter *c)
{
	struct flowfd_bridge_state *b = bridge_of(c), *other;

	if (b)
		return b;
	b = bridge_alloc(c);
	if (!b)
		return NULL;
	/* A full barrier. Pairs with bridge_of(). */
	other = cmpxchg(&c->bridge, NULL, b);
	if (!other)
		return b;
	kfree(b);
	return other;
}

/* The work item that ends one whose eventfd was closed may not have run yet. */
static long bridge_add_source(struct flowfd_bridge_state *b, struct file *file)
{
	int err;

	flowfd_source_reap(b);
	err = flowfd_bridge_attach(b, &b->source, file);
	if (!err)
		flowfd_source_start(b);
	return err;
}

static long bridge_add_sink(struct flowfd_bridge_state *b, struct file *file)
{
	int err;

	if (b->sink.eventfd && flowfd_bridge_is_hung_up(&b->sink))
		flowfd_bridge_detach(b, &b->sink);
	err = flowfd_bridge_attach(b, &b->sink, file);
	if (!err)
		flowfd_sink_start(b);
	return err;
}

static struct bridge_end *bridge_end_of(struct flowfd_bridge_state *b, u32 flags)
{
	return flags & FLOWFD_BRIDGE_SOURCE ? &b->source : &b->sink;
}

static long bridge_add(struct flowfd_counter *c, const struct flowfd_bridge *args)
{
	struct file *file = eventfd_fget(args->eventfd);
	struct flowfd_bridge_state *b;
	struct bridge_end *end;
	long err = -ENOMEM;

	if (IS_ERR(file))
		return PTR_ERR(file);
	b = bridge_state(c);
	if (!b)
		goto put;
	end = bridge_end_of(b, args->flags);
	err = mutex_lock_killable(&end->lock);
	if (err)
		goto put;
	err = end == &b->source ? bridge_add_source(b, file) : bridge_add_sink(b, file);
	flowfd_bridge_unlock(end);
put:
	fput(file);
	return err;
}

static long bridge_remove(struct flowfd_counter *c, u32 flags)
{
	struct flowfd_bridge_state *b = bridge_of(c);
	struct bridge_end *end;
	long err;

	if (!b)
		return -ENOENT;
	end = bridge_end_of(b, flags);
	err = mutex_lock_killable(&end->lock);
	if (err)
		return err;
	if (end->eventfd)
		flowfd_bridge_detach(b, end);
	else
		err = -ENOENT;
	flowfd_bridge_unlock(end);
	return err;
}

/**
 * flowfd_bridge_control - FLOWFD_IOC_COUNTER_BRIDGE
 * @file: of the counter
 * @argp: struct flowfd_bridge in user memory
 * @size: the caller's size of it
 *
 * Return: 0 or a negative errno.
 */
long flowfd_bridge_control(struct file *file, const void __user *argp, size_t size)
{
	struct flowfd_counter *c = file->private_data;
	struct flowfd_bridge args;
	int err = flowfd_copy_args(&args, sizeof(args), FLOWFD_BRIDGE_SIZE_VER0, argp,
				   size);

	if (err)
		return err;
	switch (args.flags & ~FLOWFD_BRIDGE_REMOVE) {
	case FLOWFD_BRIDGE_SOURCE:
		if (!(file->f_mode & FMODE_WRITE))
			return -EBADF;
		break;
	case FLOWFD_BRIDGE_SINK:
		if (!(file->f_mode & FMODE_READ))
			return -EBADF;
		break;
	default:
		return -EINVAL;
	}
	if (args.flags & FLOWFD_BRIDGE_REMOVE)
		return bridge_remove(c, args.flags);
	return bridge_add(c, &args);
}

static void bridge_show_end(struct seq_file *m, const char *name, int id)
{
	if (id == BRIDGE_NO_ID)
		seq_printf(m, "%s: none\n", name);
	else
		seq_printf(m, "%s: %d\n", name, id);
}

/**
 * flowfd_bridge_show - the lines of a counter's fdinfo about its bridges
 * @m: file to print into
 * @c: counter, which the caller keeps
 */
void flowfd_bridge_show(struct seq_file *m, struct flowfd_counter *c)
{
	struct flowfd_bridge_state *b = bridge_of(c);
	u64 waiting = 0;

	if (b) {
		spin_lock_irq(&c->wqh.lock);
		waiting = b->waiting;
		spin_unlock_irq(&c->wqh.lock);
	}
	bridge_show_end(m, "flowfd-source", b ? READ_ONCE(b->source.id) : BRIDGE_NO_ID);
	bridge_show_end(m, "flowfd-sink", b ? READ_ONCE(b->sink.id) : BRIDGE_NO_ID);
	seq_printf(m, "flowfd-source-waiting: %llu\n", waiting);
}

static void bridge_disconnect(struct flowfd_bridge_state *b, struct bridge_end *end)
{
	mutex_lock(&end->lock);
	flowfd_bridge_detach(b, end);
	flowfd_bridge_unlock(end);
}

/**
 * flowfd_bridge_free - end the bridges of a counter
 * @c: counter whose file is released
 *
 * Waits for their work items, which wait for no user space.
 */
void flowfd_bridge_free(struct flowfd_counter *c)
{
	struct flowfd_bridge_state *b = c->bridge;

	if (!b)
		return;
	bridge_disconnect(b, &b->source);
	bridge_disconnect(b, &b->sink);
	spin_lock_irq(&c->wqh.lock);
	/* The timer still runs. */
	c->bridge = NULL;
	b->waiting = 0;
	bridge_leave(&b->for_room);
	spin_unlock_irq(&c->wqh.lock);
	flowfd_work_end(&b->source.work);
	flowfd_work_end(&b->sink.work);
	flowfd_budget_wake(b);
	kfree(b);
}
