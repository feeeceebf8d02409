// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of a counter: ioctls, fdinfo, release, and how counters are created; read,
 * write and poll are in counter.c. A counter that was opened as /dev/flowfd has the same
 * methods, but for the ioctls that device.c adds.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "abi.h"
#include "closing.h"
#include "counter.h"

static_assert(sizeof(struct flowfd_create_counter) == FLOWFD_CREATE_COUNTER_SIZE_VER0);

/* The maximum is for writers, as the bucket is for readers. */
static long counter_set_maximum(struct file *file, const u64 __user *argp)
{
	u64 maximum;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (get_user(maximum, argp))
		return -EFAULT;
	return flowfd_counter_set_maximum(file->private_data, maximum);
}

static long counter_get_maximum(struct flowfd_counter *c, u64 __user *argp)
{
	u64 maximum;

	spin_lock_irq(&c->wqh.lock);
	maximum = c->mapped ? c->mapped->maximum : c->maximum;
	spin_unlock_irq(&c->wqh.lock);
	return put_user(maximum, argp);
}

static long counter_set_qos(struct file *file, const void __user *argp)
{
	struct flowfd_counter *c = file->private_data;
	struct eventfd_qos qos;
	bool semaphore;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (copy_from_user(&qos, argp, sizeof(qos)))
		return -EFAULT;
	if (!flowfd_qos_is_valid(&qos))
		return -EINVAL;

	spin_lock_irq(&c->wqh.lock);
	semaphore = c->semaphore;
	if (!semaphore)
		flowfd_bucket_replace(c, &qos);
	spin_unlock_irq(&c->wqh.lock);
	return semaphore ? -EINVAL : 0;
}

static long counter_get_qos(struct flowfd_counter *c, void __user *argp)
{
	struct eventfd_qos qos;

	spin_lock_irq(&c->wqh.lock);
	qos = c->qos;
	spin_unlock_irq(&c->wqh.lock);
	return copy_to_user(argp, &qos, sizeof(qos)) ? -EFAULT : 0;
}

/* Semaphores would need a take of their own. */
static bool counter_mapping_is_valid(u32 flags)
{
	if (!(flags & FLOWFD_MAPPED))
		return !(flags & FLOWFD_EDGE_PER_TAKE);
	return MAPPED_IS_POSSIBLE && !(flags & FLOWFD_SEMAPHORE);
}

static bool counter_args_are_valid(const struct flowfd_create_counter *args, u32 flags)
{
	if (args->flags & ~flags)
		return false;
	if (args->reserved || !counter_mapping_is_valid(args->flags))
		return false;
	if (args->initial >= (args->maximum ?: U64_MAX))
		return false;
	if (args->flags & FLOWFD_SEMAPHORE &&
	    (args->qos.token_capacity || args->qos.token_rate))
		return false;
	return flowfd_qos_is_valid(&args->qos);
}

static int counter_get_args(struct flowfd_create_counter *args, u32 flags,
			    const void __user *argp, size_t size)
{
	int err = flowfd_copy_args(args, sizeof(*args), FLOWFD_CREATE_COUNTER_SIZE_VER0,
				   argp, size);

	if (err)
		return err;
	return counter_args_are_valid(args, flags) ? 0 : -EINVAL;
}

static long counter_set_up(struct file *file, const void __user *argp, size_t size)
{
	struct flowfd_create_counter args;
	int err;

	if (~file->f_mode & (FMODE_READ | FMODE_WRITE))
		return -EBADF;
	err = counter_get_args(&args, FLOWFD_SEMAPHORE, argp, size);
	return err ?: flowfd_counter_set_up(file->private_data, &args);
}

static long counter_notify(struct flowfd_counter *c)
{
	if (!c->mapped)
		return -ENODEV;
	flowfd_mapped_notify(c);
	return 0;
}

/**
 * flowfd_counter_ioctl - ioctls of a counter
 * @file: of the counter
 * @cmd: command, some with the caller's size of its structure in it
 * @arg: structure in user memory
 *
 * Return: 0, the result of FLOWFD_IOC_COUNTER_ID, or a negative errno.
 */
long flowfd_counter_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct flowfd_counter *c = file->private_data;
	void __user *argp = (void __user *)arg;

	switch (cmd) {
	case FLOWFD_IOC_COUNTER_NOTIFY:
		return counter_notify(c);
	case FLOWFD_IOC_COUNTER_ID:
		return c->id;
	case EFD_IOC_SET_MAXIMUM:
		return counter_set_maximum(file, argp);
	case EFD_IOC_GET_MAXIMUM:
		return counter_get_maximum(c, argp);
	case EFD_IOC_SET_QOS:
		return counter_set_qos(file, argp);
	case EFD_IOC_GET_QOS:
		return counter_get_qos(c, argp);
	}
	if (without_size(cmd) == without_size(FLOWFD_IOC_SETUP_COUNTER))
		return counter_set_up(file, argp, _IOC_SIZE(cmd));
	return flowfd_common_ioctl(cmd, argp);
}

static void counter_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct flowfd_counter *c = file->private_data;
	struct eventfd_qos qos;
	/*
	 * Not counting that of this call. Read before the count: if there are no other
	 * references, the count is that after the last of them was used.
	 */
	long references = file_count(file) - 1;
	u64 count, maximum;
	bool deferred, semaphore, mapped;

	/* Pairs with the release of the last other reference to the file. */
	smp_rmb();
	spin_lock_irq(&c->wqh.lock);
	mapped = c->mapped;
	count = mapped ? flowfd_mapped_count(c->mapped) : c->count;
	semaphore = c->semaphore;
	maximum = mapped ? c->mapped->maximum : c->maximum;
	qos = c->qos;
	deferred = c->wakeup_deferred;
	spin_unlock_irq(&c->wqh.lock);

	seq_printf(m,
		   "eventfd-count: %16llx\n"
		   "eventfd-id: %d\n"
		   "eventfd-semaphore: %d\n"
		   "eventfd-maximum: %16llx\n"
		   "flowfd-token-capacity: %u\n"
		   "flowfd-token-rate: %u\n"
		   "flowfd-wakeup-deferred: %d\n"
		   "flowfd-references: %ld\n"
		   "flowfd-mapped: %d\n",
		   count, c->id, semaphore, maximum, qos.token_capacity, qos.token_rate,
		   deferred, references, mapped);
}

static int counter_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct flowfd_counter *c = file->private_data;

	return flowfd_mapped_map(c->mapped, vma);
}

static int counter_flush(struct file *file, fl_owner_t id)
{
	const struct flowfd_counter *c = file->private_data;

	flowfd_mapped_closed(c->mapped);
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

	flowfd_closing_end_hooks(&c->hooks, file);
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

/**
 * flowfd_counter_of - the counter behind a file
 * @file: any file
 *
 * Return: the counter, or NULL if the file is none.
 */
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

/**
 * flowfd_counter_open - make an opened file a counter that has no settings yet
 * @file: file with methods of a counter
 *
 * Return: 0 or a negative errno.
 */
int flowfd_counter_open(struct file *file)
{
	static const struct flowfd_create_counter as_eventfd;
	struct flowfd_counter *c = flowfd_counter_alloc(&as_eventfd);

	if (IS_ERR(c))
		return PTR_ERR(c);
	c->sealed = false;
	file->private_data = c;
	counter_init_file(file);
	return 0;
}

/**
 * flowfd_counter_create - FLOWFD_IOC_CREATE_COUNTER
 * @argp: struct flowfd_create_counter in user memory
 * @size: the caller's size of it
 *
 * Return: a new descriptor or a negative errno.
 */
long flowfd_counter_create(const void __user *argp, size_t size)
{
	const struct file_operations *ops;
	struct flowfd_create_counter args;
	struct flowfd_counter *c;
	struct file *file;
	int flags, err;

	err = counter_get_args(&args,
			       FLOWFD_SEMAPHORE | FLOWFD_NONBLOCK | FLOWFD_KEEP_ON_EXEC |
				       FLOWFD_MAPPED | FLOWFD_EDGE_PER_TAKE,
			       argp, size);
	if (err)
		return err;
	c = flowfd_counter_alloc(&args);
	if (IS_ERR(c))
		return PTR_ERR(c);
	ops = c->mapped ? &mapped_fops : &flowfd_counter_fops;
	flags = args.flags & FLOWFD_NONBLOCK ? O_RDWR | O_NONBLOCK : O_RDWR;
	file = anon_inode_getfile("[flowfd]", ops, c, flags);
	if (IS_ERR(file)) {
		flowfd_counter_free(c);
		return PTR_ERR(file);
	}
	counter_init_file(file);
	return flowfd_install_file(file, args.flags);
}
