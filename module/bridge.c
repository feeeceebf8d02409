// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bridges of a counter: FLOWFD_IOC_COUNTER_BRIDGE, fdinfo, and their end with that of
 * the counter.
 */
#include <linux/file.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "abi.h"
#include "bridge.h"

static void bridge_work(struct work_struct *work)
{
	struct flowfd_bridge_state *b =
		container_of(work, struct flowfd_bridge_state, work);

	/* Without the lock: what sets it queues the work item again. */
	if (READ_ONCE(b->move_due))
		flowfd_source_move(b);
	flowfd_sink_signal(b);
}

static struct flowfd_bridge_state *bridge_alloc(struct flowfd_counter *c)
{
	struct flowfd_bridge_state *b = kzalloc(sizeof(*b), GFP_KERNEL_ACCOUNT);

	if (!b)
		return NULL;
	if (flowfd_memory_charge(&b->charge, 1)) {
		kfree(b);
		return NULL;
	}
	b->counter = c;
	b->class = flowfd_work_class_of_caller();
	mutex_init(&b->lock);
	INIT_WORK(&b->work, bridge_work);
	flowfd_source_init(b);
	flowfd_sink_init(b);
	return b;
}

static void bridge_free(struct flowfd_bridge_state *b)
{
	flowfd_memory_uncharge(&b->charge);
	kfree(b);
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
	bridge_free(b);
	return other;
}

/* Puts what is left of an end that has nothing more to do: its eventfd was closed. */
static struct bridge_end *bridge_lock_end(struct flowfd_bridge_state *b, u32 flags)
{
	struct bridge_end *end = flags & FLOWFD_BRIDGE_SOURCE ? &b->source : &b->sink;

	if (mutex_lock_killable(&b->lock))
		return NULL;
	if (!(READ_ONCE(b->counter->bridges) & end->bit))
		flowfd_bridge_detach(b, end);
	return end;
}

/* What a source has already is moved here: no signal comes for it. */
static int bridge_connect(struct flowfd_bridge_state *b, u32 flags, struct file *file)
{
	struct bridge_end *end = bridge_lock_end(b, flags);
	int err;

	if (!end)
		return -EINTR;
	err = flowfd_bridge_attach(b, end, file);
	if (!err && end == &b->source)
		flowfd_source_move(b);
	mutex_unlock(&b->lock);
	return err;
}

static long bridge_add(struct flowfd_counter *c, const struct flowfd_bridge *args)
{
	struct file *file = eventfd_fget(args->eventfd);
	struct flowfd_bridge_state *b;
	long err;

	if (IS_ERR(file))
		return PTR_ERR(file);
	b = bridge_state(c);
	err = b ? bridge_connect(b, args->flags, file) : -ENOMEM;
	fput(file);
	return err;
}

static long bridge_remove(struct flowfd_counter *c, u32 flags)
{
	struct flowfd_bridge_state *b = bridge_of(c);
	struct bridge_end *end;
	long err = 0;

	if (!b)
		return -ENOENT;
	end = bridge_lock_end(b, flags);
	if (!end)
		return -EINTR;
	if (end->eventfd)
		flowfd_bridge_detach(b, end);
	else
		err = -ENOENT;
	mutex_unlock(&b->lock);
	return err;
}

/* FLOWFD_IOC_COUNTER_BRIDGE. */
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

/* The lines of a counter's fdinfo about its bridges. */
void flowfd_bridge_show(struct seq_file *m, struct flowfd_counter *c)
{
	int source = BRIDGE_NO_ID, sink = BRIDGE_NO_ID;
	struct flowfd_bridge_state *b;
	u64 waiting = 0;

	/* The end of the counter's file clears it under the lock, before it frees it. */
	spin_lock_irq(&c->wqh.lock);
	b = bridge_of(c);
	if (b) {
		waiting = b->waiting;
		source = b->source.id;
		sink = b->sink.id;
	}
	spin_unlock_irq(&c->wqh.lock);
	bridge_show_end(m, "flowfd-source", source);
	bridge_show_end(m, "flowfd-sink", sink);
	seq_printf(m, "flowfd-source-waiting: %llu\n", waiting);
}

/*
 * Ends the bridges of a counter that is released. Waits for their work item, which waits
 * for no user space.
 */
void flowfd_bridge_free(struct flowfd_counter *c)
{
	struct flowfd_bridge_state *b = c->bridge;

	if (!b)
		return;
	flowfd_bridge_detach(b, &b->source);
	flowfd_bridge_detach(b, &b->sink);
	spin_lock_irq(&c->wqh.lock);
	/* The timer still runs, and must not find the entry. */
	bridge_leave(&b->for_room);
	b->waiting = 0;
	/* The list of all counters looks at it under the lock. */
	c->bridge = NULL;
	spin_unlock_irq(&c->wqh.lock);
	cancel_work_sync(&b->work);
	bridge_free(b);
}
