// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file of a ring: its methods and ioctls, and how rings are created. What a ring
 * watches is changed under the ring's lock in watch_control.c.
 */
#include <linux/anon_inodes.h>
#include <linux/compat.h>
#include <linux/cpumask.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "abi.h"
#include "ring.h"
#include "share.h"
#include "sleep.h"
#include "trace.h"
#include "watch.h"

static_assert(sizeof(struct flowfd_create_ring) == FLOWFD_CREATE_RING_SIZE_VER0);
static_assert(sizeof(struct flowfd_ring_entry) == 24);
static_assert(sizeof(struct flowfd_ring_control) == FLOWFD_RING_CONTROL_SIZE_VER0);
static_assert(sizeof(struct flowfd_ring_wait) == FLOWFD_RING_WAIT_SIZE_VER0);
static_assert(sizeof(struct flowfd_ring_stats) == FLOWFD_RING_STATS_SIZE_VER0);

/* As flowfd_ring_has_enough(), at the begin of a call. */
static bool ring_begin_wait(struct flowfd_ring *ring, u32 wanted, int *result)
{
	bool enough;

	flowfd_repoll_now(ring);
	enough = flowfd_ring_has_enough(ring, wanted, result);
	this_cpu_inc(ring->stats->waits);
	trace_flowfd_wait_begin(ring, wanted, *result);
	return enough;
}

static int ring_wait(struct flowfd_ring *ring, const struct flowfd_ring_wait *args)
{
	u32 wanted = args->min_events ?: 1;
	ktime_t end, gathered;
	bool slept = false;
	int result;

	if (ring_begin_wait(ring, wanted, &result) || !args->timeout)
		goto done;
	end = sleep_end(args->timeout);
	gathered = args->min_wait ? sleep_end(args->min_wait) : end;
	result = flowfd_ring_sleep(ring, wanted, min(gathered, end), &slept);
	if (!result && gathered < end)
		result = flowfd_ring_sleep(ring, 1, end, &slept);
done:
	trace_flowfd_wait_end(ring, result, slept);
	return result;
}

/* A 32-bit caller's has words of 32 bits, the low one first on big-endian too. */
static int copy_sigset(sigset_t *mask, const void __user *from)
{
#ifdef CONFIG_COMPAT
	if (in_compat_syscall())
		return get_compat_sigset(mask, from);
#endif
	return copy_from_user(mask, from, sizeof(*mask)) ? -EFAULT : 0;
}

/* As epoll_pwait(2) does; the kernel's function for that is not exported. */
static int set_sigmask(const struct flowfd_ring_wait *args)
{
	sigset_t mask;

	if (!args->sigmask)
		return args->sigmask_size ? -EINVAL : 0;
	if (args->sigmask_size != sizeof(mask))
		return -EINVAL;
	if (copy_sigset(&mask, u64_to_user_ptr(args->sigmask)))
		return -EFAULT;
	sigdelsetmask(&mask, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &mask, &current->saved_sigmask);
	set_restore_sigmask();
	return 0;
}

/* But after -EINTR the delivery of the signal does: its handler runs with the new mask. */
static void restore_sigmask(int result)
{
	if (result != -EINTR && test_and_clear_restore_sigmask())
		sigprocmask(SIG_SETMASK, &current->saved_sigmask, NULL);
}

static long ring_ioctl_wait(struct flowfd_ring *ring, const void __user *argp,
			    size_t size)
{
	struct flowfd_ring_wait args;
	int err, result;

	err = flowfd_copy_args(&args, sizeof(args), FLOWFD_RING_WAIT_SIZE_VER0, argp,
			       size);
	if (err)
		return err;
	if (args.flags || args.reserved || args.min_events > ring->mask + 1)
		return -EINVAL;
	err = set_sigmask(&args);
	if (err)
		return err;
	result = ring_wait(ring, &args);
	restore_sigmask(result);
	return result;
}

/*
 * The simplest wait: for one entry, without a timeout. It is cheaper as a read than as
 * an ioctl, because security modules check the number and path of each ioctl.
 */
static ssize_t ring_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	struct flowfd_ring *ring = file->private_data;
	bool slept = false;
	int result;

	if (size < sizeof(u64))
		return -EINVAL;
	if (!ring_begin_wait(ring, 1, &result)) {
		result = -EAGAIN;
		if (!(file->f_flags & O_NONBLOCK))
			result = flowfd_ring_sleep(ring, 1, KTIME_MAX, &slept);
	}
	if (result >= 0 && put_user((u64)result, (u64 __user *)buf))
		result = -EFAULT;
	trace_flowfd_wait_end(ring, result, slept);
	return result < 0 ? result : sizeof(u64);
}

/*
 * Checks that the result can be stored before anything is done, because that could not
 * be undone.
 */
static int ring_control_entry(struct flowfd_ring *ring,
			      struct flowfd_ring_entry __user *user)
{
	struct flowfd_ring_entry entry;
	int result;

	if (copy_from_user(&entry, user, sizeof(entry)) ||
	    put_user(-ECANCELED, &user->result))
		return -EFAULT;
	result = flowfd_watch_control(ring, &entry);
	if (put_user(result, &user->result))
		return -EFAULT;
	return result < 0;
}

static long ring_ioctl_control(struct flowfd_ring *ring, const void __user *argp,
			       size_t size)
{
	struct flowfd_ring_entry __user *entries;
	struct flowfd_ring_control args;
	int err, failed = 0;
	u32 i;

	err = flowfd_copy_args(&args, sizeof(args), FLOWFD_RING_CONTROL_SIZE_VER0, argp,
			       size);
	if (err)
		return err;
	if (args.flags || args.count > FLOWFD_RING_ITEMS_MAX)
		return -EINVAL;
	entries = u64_to_user_ptr(args.entries);
	for (i = 0; i < args.count; i++) {
		err = ring_control_entry(ring, entries + i);
		if (err < 0)
			return err;
		failed += err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return failed;
}

static long ring_ioctl_info(const struct flowfd_ring *ring, void __user *argp,
			    size_t size)
{
	struct flowfd_create_ring info = { .max_items = ring->max_items };

	flowfd_ring_describe(ring, &info);
	return flowfd_copy_answer(argp, size, &info, sizeof(info),
				  FLOWFD_CREATE_RING_SIZE_VER0);
}

/*
 * Takes no lock, so the numbers are not of one moment. Each processor counts modulo 2^64
 * (2^32 with 32-bit kernels), and so do the sums.
 */
static struct flowfd_ring_stats ring_get_stats(const struct flowfd_ring *ring)
{
	unsigned long coalesced = 0, waits = 0, sleeps = 0;
	const struct ring_stats *s;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		s = per_cpu_ptr(ring->stats, cpu);
		coalesced += READ_ONCE(s->coalesced);
		waits += READ_ONCE(s->waits);
		sleeps += READ_ONCE(s->sleeps);
	}
	return (struct flowfd_ring_stats){
		.published = (unsigned long)atomic_long_read(&ring->tail),
		.coalesced = coalesced,
		.waits = waits,
		.sleeps = sleeps,
	};
}

static long ring_ioctl_stats(struct flowfd_ring *ring, void __user *argp, size_t size)
{
	struct flowfd_ring_stats answer = ring_get_stats(ring);

	return flowfd_copy_answer(argp, size, &answer, sizeof(answer),
				  FLOWFD_RING_STATS_SIZE_VER0);
}

static long ring_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct flowfd_ring *ring = file->private_data;
	void __user *argp = (void __user *)arg;
	size_t size = _IOC_SIZE(cmd);

	switch (without_size(cmd)) {
	case without_size(FLOWFD_IOC_RING_CONTROL):
		return ring_ioctl_control(ring, argp, size);
	case without_size(FLOWFD_IOC_RING_WAIT):
		return ring_ioctl_wait(ring, argp, size);
	case without_size(FLOWFD_IOC_RING_INFO):
		return ring_ioctl_info(ring, argp, size);
	case without_size(FLOWFD_IOC_RING_STATS):
		return ring_ioctl_stats(ring, argp, size);
	case without_size(FLOWFD_IOC_RING_NOTIFY):
		if (size)
			return -ENOTTY;
		flowfd_ring_notify(ring);
		return 0;
	case without_size(FLOWFD_IOC_SHARE):
		return flowfd_share(file, FLOWFD_FIRST_RING + ring->id, argp, size);
	default:
		return flowfd_common_ioctl(cmd, argp);
	}
}

/*
 * Compares the tail: a consumer in the middle of a harvest has emptied the slot at the
 * head (docs/ring.md). That cannot happen with posts: a poller that looks while the
 * consumer has taken them is armed, and the consumer looks at the stack again before it
 * sleeps.
 */
static __poll_t ring_poll(struct file *file, poll_table *wait)
{
	struct flowfd_ring *ring = file->private_data;

	poll_wait(file, &ring->wqh, wait);
	/* A caller that wants to be woken is in the queue by now. */
	if (waitqueue_active(&ring->wqh)) {
		flowfd_ring_arm(ring, RING_POLLERS);
		/* e: pairs with d, in flowfd_publish(), and with i of posters. */
		smp_mb();
	}
	if (READ_ONCE(ring->header->head) == ring_tail(ring) &&
	    !flowfd_ring_has_posts(ring))
		return 0;
	return EPOLLIN | EPOLLRDNORM;
}

/* A process that goes on has left nothing undone. */
static void ring_vm_close(struct vm_area_struct *vma)
{
	if (!atomic_read(&vma->vm_mm->mm_users))
		flowfd_ring_heal(vma->vm_file->private_data);
}

static const struct vm_operations_struct ring_vm_ops = {
	.close = ring_vm_close,
};

static int ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct flowfd_ring *ring = file->private_data;
	int err = flowfd_memory_map(&ring->memory, vma);

	if (!err)
		vma->vm_ops = &ring_vm_ops;
	return err;
}

/* Perhaps the process was killed between its wakeup and its look at the ring. */
static int ring_flush(struct file *file, fl_owner_t id)
{
	if (current->flags & PF_EXITING)
		flowfd_ring_heal(file->private_data);
	return 0;
}

/* For fdinfo, and for the list of all, where the file may have gone. */
static void ring_show(struct seq_file *m, struct flowfd_object *o)
{
	struct flowfd_ring *ring = container_of(o, struct flowfd_ring, object);
	struct flowfd_ring_stats stats = ring_get_stats(ring);

	seq_printf(m,
		   "flowfd-ring-id: %llu\n"
		   "flowfd-ring-max-items: %u\n"
		   "flowfd-ring-head: %u\n"
		   "flowfd-ring-tail: %u\n"
		   "flowfd-ring-published: %llu\n"
		   "flowfd-ring-coalesced: %llu\n"
		   "flowfd-ring-waits: %llu\n"
		   "flowfd-ring-sleeps: %llu\n",
		   ring->id, ring->max_items, READ_ONCE(ring->header->head),
		   ring_tail(ring), stats.published, stats.coalesced, stats.waits,
		   stats.sleeps);
	flowfd_watch_show_all(ring, m);
}

const struct flowfd_object_ops flowfd_ring_object_ops = {
	.put = flowfd_ring_put,
	.show = ring_show,
};

static void ring_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct flowfd_ring *ring = file->private_data;

	ring_show(m, &ring->object);
}

static int ring_release(struct inode *inode, struct file *file)
{
	struct flowfd_ring *ring = file->private_data;

	flowfd_unshare(FLOWFD_FIRST_RING + ring->id);
	xa_erase(&flowfd_rings, ring->id);
	flowfd_watch_remove_all(ring);
	trace_flowfd_ring_close(ring);
	flowfd_ring_put(&ring->object);
	return 0;
}

static const struct file_operations ring_fops = {
	.owner = THIS_MODULE,
	.read = ring_read,
	.flush = ring_flush,
	.release = ring_release,
	.poll = ring_poll,
	.unlocked_ioctl = ring_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = ring_mmap,
	.llseek = noop_llseek,
	.show_fdinfo = ring_show_fdinfo,
};

/* The ring is the file's once there is a file. */
static struct file *ring_create_file(u32 max_items)
{
	struct flowfd_ring *ring = flowfd_ring_alloc(max_items);
	struct file *file;
	int err;

	if (IS_ERR(ring))
		return ERR_CAST(ring);
	flowfd_ring_wake_init_ring(ring);
	flowfd_repoll_init_ring(ring);
	/* From here on the list shows it. */
	err = flowfd_object_add_ring(&ring->object, &ring->id);
	if (err) {
		flowfd_ring_put(&ring->object);
		return ERR_PTR(err);
	}
	file = anon_inode_getfile(FLOWFD_RING_NAME, &ring_fops, ring, O_RDWR);
	if (IS_ERR(file)) {
		xa_erase(&flowfd_rings, ring->id);
		flowfd_ring_put(&ring->object);
	}
	return file;
}

/*
 * FLOWFD_IOC_CREATE_RING. The output members are set before the descriptor can be used.
 * Returns a descriptor or a negative errno.
 */
long flowfd_ring_create(void __user *argp, size_t size)
{
	struct flowfd_create_ring args;
	struct file *file;
	int err;

	err = flowfd_copy_args(&args, sizeof(args), FLOWFD_CREATE_RING_SIZE_VER0, argp,
			       size);
	if (err)
		return err;
	if (args.flags & ~FLOWFD_KEEP_ON_EXEC || !args.max_items ||
	    args.max_items > FLOWFD_RING_ITEMS_MAX)
		return -EINVAL;
	file = ring_create_file(args.max_items);
	if (IS_ERR(file))
		return PTR_ERR(file);
	flowfd_ring_describe(file->private_data, &args);
	err = flowfd_copy_answer(argp, size, &args, sizeof(args),
				 FLOWFD_CREATE_RING_SIZE_VER0);
	if (err) {
		fput(file);
		return err;
	}
	return flowfd_install_file(file, args.flags);
}
