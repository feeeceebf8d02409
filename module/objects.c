// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of all counters and rings: /sys/kernel/debug/flowfd/objects, for root.
 *
 * An array has the objects by their numbers. The reader holds the array's lock while it
 * takes a reference to the next object, and no lock while it prints. An object leaves the
 * array when its file is released; if the reader looks at it then, its memory stays until
 * the reader is done. So no task waits for a reader, but the close of a ring while the
 * reader has the ring's mutex, and a reader waits for no task.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "objects.h"

/* The lowest free number, as eventfd has it; not 0, with which other drivers answer. */
DEFINE_XARRAY_FLAGS(flowfd_counters, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);

/* A number is not used again, unless it wraps on a 32-bit kernel. */
DEFINE_XARRAY_FLAGS(flowfd_rings, XA_FLAGS_ACCOUNT);
static atomic64_t last_ring = ATOMIC64_INIT(0);

static const struct flowfd_object_ops *counter_ops, *ring_ops;
static struct dentry *directory;

static void object_init(struct flowfd_object *o)
{
	o->uid = current_uid();
	o->pid = task_tgid_nr(current);
	/* Without the lock: a change meanwhile mixes two names, and its last byte stays 0. */
	memcpy(o->comm, current->comm, sizeof(o->comm));
}

/*
 * Shows a complete counter that the calling process made, and stores its number before
 * anybody sees it. The caller has a reference until it erases the number.
 */
int flowfd_object_add_counter(struct flowfd_object *o, u32 *id)
{
	object_init(o);
	return xa_alloc(&flowfd_counters, id, o, XA_LIMIT(1, INT_MAX),
			GFP_KERNEL_ACCOUNT);
}

/* The same for a ring. */
int flowfd_object_add_ring(struct flowfd_object *o, u64 *id)
{
	int err;

	object_init(o);
	do {
		*id = atomic64_inc_return(&last_ring);
		err = xa_insert(&flowfd_rings, *id, o, GFP_KERNEL_ACCOUNT);
	} while (err == -EBUSY);
	return err;
}

static const struct flowfd_object_ops *ops_at(loff_t position)
{
	return position < FLOWFD_FIRST_RING ? counter_ops : ring_ops;
}

/* Takes a reference to the first object with a number from @first to @last. */
static struct flowfd_object *get_next(struct xarray *objects, unsigned long *first,
				      unsigned long last)
{
	struct flowfd_object *o;

	xa_lock(objects);
	o = xa_find(objects, first, last, XA_PRESENT);
	if (o)
		refcount_inc(&o->refs);
	xa_unlock(objects);
	return o;
}

/* @position is left where the next call finds the object again, or the one after it. */
static void *objects_start(struct seq_file *m, loff_t *position)
{
	/* Rings that are made meanwhile would have no end. */
	const u64 *rings_at_open = m->private;
	struct flowfd_object *o;
	unsigned long id;

	if (*position < FLOWFD_FIRST_RING) {
		id = *position;
		o = get_next(&flowfd_counters, &id, INT_MAX);
		*position = o ? id : FLOWFD_FIRST_RING;
		if (o)
			return o;
	}
	id = *position - FLOWFD_FIRST_RING;
	o = get_next(&flowfd_rings, &id, *rings_at_open);
	if (o)
		*position = FLOWFD_FIRST_RING + id;
	return o;
}

static void *objects_next(struct seq_file *m, void *object, loff_t *position)
{
	ops_at(*position)->put(object);
	++*position;
	return objects_start(m, position);
}

static void objects_stop(struct seq_file *m, void *object)
{
	/* Of an object, the position is that where it was found. */
	if (object)
		ops_at(m->index)->put(object);
}

/* A name can have any bytes: one that would end the line or begin an escape is octal. */
static int objects_show(struct seq_file *m, void *object)
{
	struct flowfd_object *o = object;

	seq_printf(m, "flowfd-uid: %u\nflowfd-pid: %d\nflowfd-comm: ",
		   from_kuid_munged(seq_user_ns(m), o->uid), o->pid);
	seq_escape(m, o->comm, "\n\\");
	seq_putc(m, '\n');
	ops_at(m->index)->show(m, o);
	seq_putc(m, '\n');
	return 0;
}

static const struct seq_operations objects_ops = {
	.start = objects_start,
	.next = objects_next,
	.stop = objects_stop,
	.show = objects_show,
};

static int objects_open(struct inode *inode, struct file *file)
{
	u64 *rings_at_open =
		__seq_open_private(file, &objects_ops, sizeof(*rings_at_open));

	if (!rings_at_open)
		return -ENOMEM;
	*rings_at_open = atomic64_read(&last_ring);
	return 0;
}

/* Without write, ioctl and mmap, and only readable: so a locked down kernel allows it. */
static const struct file_operations objects_fops = {
	.owner = THIS_MODULE,
	.open = objects_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = seq_release_private,
};

/* Makes the list, if this kernel has debugfs. */
void flowfd_objects_init(const struct flowfd_object_ops *counters,
			 const struct flowfd_object_ops *rings)
{
	counter_ops = counters;
	ring_ops = rings;
	directory = debugfs_create_dir("flowfd", NULL);
	debugfs_create_file("objects", 0400, directory, NULL, &objects_fops);
}

void flowfd_objects_exit(void)
{
	debugfs_remove(directory);
	/* As in share.c. */
	xa_destroy(&flowfd_counters);
	xa_destroy(&flowfd_rings);
}
