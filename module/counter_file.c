// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of a counter: fdinfo, release, and how counters are created; read, write and
 * poll are in counter_io.c, ioctls in counter_control.c. A counter that was opened as
 * /dev/flowfd has the same methods, but for the ioctls that device.c adds.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/seq_file.h>

#include "abi.h"
#include "bridge.h"
#include "closing.h"
#include "counter.h"
#include "share.h"

static const char *const overflow_names[] = {
	[FLOWFD_OVERFLOW_WAIT] = "wait",
	[FLOWFD_OVERFLOW_FAIL] = "fail",
	[FLOWFD_OVERFLOW_SATURATE] = "saturate",
	[FLOWFD_OVERFLOW_DROP] = "drop",
};

/* For fdinfo, and for the list of all, where the file may have gone. */
static void counter_show(struct seq_file *m, struct flowfd_object *o)
{
	struct flowfd_counter *c = container_of(o, struct flowfd_counter, object);
	struct flowfd_flow flow;

	flowfd_counter_get_flow(c, &flow);
	seq_printf(m,
		   "eventfd-count: %16llx\n"
		   "eventfd-id: %u\n"
		   "eventfd-semaphore: %d\n"
		   "eventfd-maximum: %16llx\n"
		   "flowfd-token-capacity: %u\n"
		   "flowfd-token-rate: %u\n"
		   "flowfd-wakeup-deferred: %d\n"
		   "flowfd-mapped: %d\n",
		   flow.count, c->id, !!(flow.flags & FLOWFD_SEMAPHORE), flow.maximum,
		   flow.qos.token_capacity, flow.qos.token_rate,
		   READ_ONCE(c->ready.bucket.deferred), store_is_mapped(&c->store));
	seq_printf(m,
		   "flowfd-read-mark: %llu\n"
		   "flowfd-write-mark: %llu\n"
		   "flowfd-max-delay: %llu\n"
		   "flowfd-overflow: %s\n",
		   flow.read_mark, flow.write_mark, flow.max_delay,
		   overflow_names[flow.overflow]);
	flowfd_counter_show_stats(m, c);
	flowfd_bridge_show(m, c);
}

static void counter_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct flowfd_counter *c = file->private_data;

	counter_show(m, &c->object);
}

const struct flowfd_object_ops flowfd_counter_object_ops = {
	.put = flowfd_counter_put,
	.show = counter_show,
};

static int counter_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct flowfd_counter *c = file->private_data;

	return flowfd_mapped_map(c->store.mapped, vma);
}

static int counter_flush(struct file *file, fl_owner_t id)
{
	const struct flowfd_counter *c = file->private_data;

	flowfd_mapped_closed(c->store.mapped);
	return 0;
}

static __poll_t counter_poll_mapped(struct file *file, poll_table *wait)
{
	struct flowfd_counter *c = file->private_data;

	poll_wait(file, &c->wqh, wait);
	return flowfd_mapped_poll(c, wait);
}

static int counter_release(struct inode *inode, struct file *file)
{
	struct flowfd_counter *c = file->private_data;

	flowfd_unshare(c->id);
	flowfd_closing_end_hooks(&c->hooks, file);
	flowfd_bridge_free(c);
	trace_flowfd_counter_close(c);
	flowfd_counter_free(c);
	return 0;
}

/*
 * Locks belong to the inode, which all opened counters share: each close would search
 * the locks of all users.
 */
static int counter_refuse_lock(struct file *file, int cmd, struct file_lock *lock)
{
	return -EOPNOTSUPP;
}

/* clang-format off */
#define COUNTER_METHODS						\
	.owner = THIS_MODULE,					\
	.release = counter_release,				\
	.read = flowfd_counter_read,				\
	.write = flowfd_counter_write,				\
	.read_iter = flowfd_counter_read_iter,			\
	.write_iter = flowfd_counter_write_iter,		\
	.unlocked_ioctl = flowfd_counter_ioctl,			\
	.compat_ioctl = compat_ptr_ioctl,			\
	.llseek = noop_llseek,					\
	.lock = counter_refuse_lock,				\
	.flock = counter_refuse_lock,				\
	.show_fdinfo = counter_show_fdinfo
/* clang-format on */

const struct file_operations flowfd_counter_fops = {
	COUNTER_METHODS,
	.poll = flowfd_counter_poll,
};

/* Other counters have no flush: io_uring closes a file that has one in a worker. */
static const struct file_operations mapped_fops = {
	COUNTER_METHODS,
	.poll = counter_poll_mapped,
	.mmap = counter_mmap,
	.flush = counter_flush,
};

/* The counter behind any file, or NULL if the file is none. */
struct flowfd_counter *flowfd_counter_of(const struct file *file)
{
	return file->f_op->release == counter_release ? file->private_data : NULL;
}

/*
 * A counter has no file position, and read and write do not block with IOCB_NOWAIT.
 * F_GETFL returns for it what it returns for an eventfd.
 */
static void counter_init_file(struct file *file)
{
	file->f_flags &= ~O_LARGEFILE;
	file->f_mode &= ~(FMODE_PREAD | FMODE_PWRITE);
	file->f_mode |= FMODE_STREAM | FMODE_NOWAIT;
}

/*
 * Makes an opened file, which has methods of a counter, a counter that has no settings
 * yet. Returns 0 or a negative errno.
 */
int flowfd_counter_open(struct file *file)
{
	static const struct flowfd_create_counter as_eventfd;
	struct flowfd_counter *c = flowfd_counter_alloc(&as_eventfd);

	if (IS_ERR(c))
		return PTR_ERR(c);
	c->sealed = 0;
	file->private_data = c;
	counter_init_file(file);
	return 0;
}

/*
 * FLOWFD_IOC_CREATE_COUNTER, with a structure of the caller's @size. Returns a new
 * descriptor or a negative errno.
 */
long flowfd_counter_create(const void __user *argp, size_t size)
{
	const struct file_operations *ops;
	struct flowfd_create_counter args;
	struct flowfd_counter *c;
	struct file *file;
	int flags, err;

	err = flowfd_counter_args(&args,
				  FLOWFD_SEMAPHORE | FLOWFD_NONBLOCK |
					  FLOWFD_KEEP_ON_EXEC | FLOWFD_MAPPED,
				  argp, size);
	if (err)
		return err;
	c = flowfd_counter_alloc(&args);
	if (IS_ERR(c))
		return PTR_ERR(c);
	ops = c->store.mapped ? &mapped_fops : &flowfd_counter_fops;
	flags = args.flags & FLOWFD_NONBLOCK ? O_RDWR | O_NONBLOCK : O_RDWR;
	file = anon_inode_getfile("[flowfd]", ops, c, flags);
	if (IS_ERR(file)) {
		flowfd_counter_free(c);
		return PTR_ERR(file);
	}
	counter_init_file(file);
	return flowfd_install_file(file, args.flags);
}
