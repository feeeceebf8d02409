// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files whose wakeups do not say what happened, or say more than is true, are polled by a
 * worker, or by a task that waits for the ring: "Wakeups without a key" of docs/ring.md.
 */
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/net.h>
#include <linux/sched.h>

#include "compat.h"
#include "repoll.h"
#include "ring.h"

/* Not in a header. */
#define MQUEUE_MAGIC 0x19800202

/* A workqueue runs a limited number of items at a time, so FUSE has its own. */
static struct workqueue_struct *device_workqueue, *fuse_workqueue;

void (*flowfd_repoll_poll)(struct flowfd_repoll_entry *entry) __ro_after_init;

/* Others, such as AF_VSOCK, lock the socket, which a sender holds while it copies. */
static bool socket_polls_without_lock(const struct file *file)
{
	switch (READ_ONCE(sock_from_file((struct file *)file)->ops)->family) {
	case PF_UNIX:
	case PF_INET:
	case PF_INET6:
	case PF_NETLINK:
	case PF_PACKET:
		return true;
	default:
		return false;
	}
}

/*
 * Those of drivers may lock what a read holds as it copies. That of perf locks what mmap(2)
 * holds as it allocates memory, for which it may wait for long.
 */
static bool anon_file_polls_without_lock(const struct file *file)
{
	return !file->f_op->owner &&
	       strcmp(file->f_path.dentry->d_name.name, "[perf_event]");
}

/*
 * How long the poll method of a file may take. The file is no counter: a counter's class
 * is known.
 */
enum flowfd_repoll_class flowfd_repoll_class(const struct file *file)
{
	/* In whatever file system, but rpc_pipefs has files of that type that are none. */
	if (S_ISFIFO(file_inode(file)->i_mode) && file_inode(file)->i_pipe)
		return REPOLL_KERNEL;

	switch (file_inode(file)->i_sb->s_magic) {
	case FUSE_SUPER_MAGIC:
		return REPOLL_FUSE;
	case SOCKFS_MAGIC:
		return socket_polls_without_lock(file) ? REPOLL_KERNEL : REPOLL_DEVICE;
	case MQUEUE_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case PID_FS_MAGIC:
		return REPOLL_KERNEL;
	case PROC_SUPER_MAGIC:
		return REPOLL_PROC;
	case ANON_INODE_FS_MAGIC:
		return anon_file_polls_without_lock(file) ? REPOLL_KERNEL : REPOLL_DEVICE;
	default:
		return REPOLL_DEVICE;
	}
}

/* Polls the files in the list, in the order of their wakeups. */
static void repoll_all(struct flowfd_repoll *r)
{
	struct flowfd_repoll_entry *entry, *next;
	struct llist_node *list;

	lockdep_assert_held(&r->lock);

	/* One that has waited for the lock perhaps finds nothing, and no other waits for it. */
	if (llist_empty(&r->entries))
		return;
	WRITE_ONCE(r->polling, true);
	/* A full barrier. Pairs with repoll_is_idle(). */
	list = llist_reverse_order(llist_del_all(&r->entries));
	llist_for_each_entry_safe(entry, next, list, node) {
		/* A full barrier: a wakeup from here on queues the entry again. */
		xchg(&entry->queued, false);
		flowfd_repoll_poll(entry);
		cond_resched();
	}
	/* Pairs with repoll_is_idle(), too. */
	smp_store_release(&r->polling, false);
}

static void repoll_work(struct work_struct *work)
{
	struct flowfd_repoll *r = container_of(work, struct flowfd_repoll, work);
	struct flowfd_ring *ring = r->ring;

	/*
	 * Else a task has it, or is about to. It has the work queued again; its priority
	 * must not delay the work of others in this class.
	 */
	if (mutex_trylock(&r->lock)) {
		repoll_all(r);
		mutex_unlock(&r->lock);
	}
	flowfd_ring_end_work(ring);
}

/*
 * Whether all that was queued before is polled. The lock would not tell: who has waited for
 * it has it for nothing, and with PREEMPT_RT it seems taken until then.
 */
static bool repoll_is_idle(struct flowfd_repoll *r)
{
	if (!llist_empty(&r->entries))
		return false;
	smp_rmb(); /* the list before the word that is set before the list is emptied */
	if (READ_ONCE(r->polling))
		return false;
	smp_rmb(); /* and then the caller looks for what that found */
	return true;
}

/* Whether there are files that the caller can poll, or that others poll now. */
bool flowfd_repoll_is_due(struct flowfd_ring *ring)
{
	return !repoll_is_idle(&ring->repoll[REPOLL_KERNEL]) ||
	       !repoll_is_idle(&ring->repoll[REPOLL_PROC]);
}

/* Files that do not wait are polled in the turn of the ring's user. */
static void repoll_queue_work(struct flowfd_repoll *r)
{
	struct flowfd_ring *ring = r->ring;
	struct workqueue_struct *workqueue = device_workqueue;

	if (r == &ring->repoll[REPOLL_KERNEL])
		workqueue = ring->work_class->unbound;
	else if (r == &ring->repoll[REPOLL_FUSE])
		workqueue = fuse_workqueue;
	flowfd_ring_queue_work(ring, workqueue, &r->work);
}

static void repoll_now(struct flowfd_repoll *r)
{
	if (repoll_is_idle(r))
		return;
	if (!mutex_lock_killable(&r->lock)) {
		repoll_all(r);
		mutex_unlock(&r->lock);
	}
	/*
	 * The worker may have found the lock taken. Orders the unlock before the look at the
	 * list. Pairs with queue_work(), between an addition to the list and the worker.
	 */
	smp_mb();
	if (!llist_empty(&r->entries))
		repoll_queue_work(r);
}

/*
 * Polls the kernel's own files and those of procfs, in place of the worker: all that were
 * queued before the call, also those that the worker polls now. The caller holds no lock.
 */
void flowfd_repoll_now(struct flowfd_ring *ring)
{
	repoll_now(&ring->repoll[REPOLL_KERNEL]);
	repoll_now(&ring->repoll[REPOLL_PROC]);
}

/* Has a worker poll the file of an entry, after the caller set @queued. In any context. */
void flowfd_repoll_queue(struct flowfd_ring *ring, struct flowfd_repoll_entry *entry)
{
	struct flowfd_repoll *r = &ring->repoll[entry->class];

	/* If the list has others, the task that added the first queues the work. */
	if (llist_add(&entry->node, &r->entries))
		repoll_queue_work(r);
}

/* A new ring has nothing to poll yet. */
void flowfd_repoll_init_ring(struct flowfd_ring *ring)
{
	struct flowfd_repoll *r;

	for (r = ring->repoll; r < ring->repoll + REPOLL_CLASSES; r++) {
		mutex_init(&r->lock);
		INIT_WORK(&r->work, repoll_work);
		r->ring = ring;
	}
}

/* Returns 0 or -ENOMEM. */
int flowfd_repoll_init(void)
{
	device_workqueue = alloc_workqueue("flowfd_device", WQ_UNBOUND, 0);
	fuse_workqueue = alloc_workqueue("flowfd_fuse", WQ_UNBOUND, 0);
	if (device_workqueue && fuse_workqueue)
		return 0;
	flowfd_repoll_exit();
	return -ENOMEM;
}

/* The last ring is gone; waits for its worker to end. */
void flowfd_repoll_exit(void)
{
	if (device_workqueue)
		destroy_workqueue(device_workqueue);
	if (fuse_workqueue)
		destroy_workqueue(fuse_workqueue);
}
