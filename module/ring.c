// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring: memory that is shared with a consumer in user space, into which
 * events are published and from which the kernel believes nothing. watch.c says
 * what is published; device.c creates rings.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "flowfd.h"

static_assert(sizeof(struct flowfd_ring_header) == 128);
static_assert(offsetof(struct flowfd_ring_header, head) == 64);
static_assert(sizeof(struct flowfd_ring_item) == 16);
static_assert(sizeof(struct flowfd_ring_entry) == 24);
static_assert(sizeof(struct flowfd_ring_control) ==
	      FLOWFD_RING_CONTROL_SIZE_VER0);
static_assert(sizeof(struct flowfd_ring_wait) == FLOWFD_RING_WAIT_SIZE_VER0);

/*
 * How many pollers a publisher wakes itself, with interrupts off. A file can be in
 * a ring many times, and each of its wakeups then comes here as often. What one
 * poller then wakes, as an epoll does, is for its own kind to bound.
 */
#define RING_POLLERS_AT_ONCE	4

/* How many pollers the work item wakes before it lets interrupts in. */
#define RING_POLLERS_BATCH	64

static struct kmem_cache *ring_cache;
static struct workqueue_struct *ring_workqueue;
static atomic64_t ring_ids = ATOMIC64_INIT(0);

/*
 * A task in FLOWFD_IOC_RING_WAIT. It is woken only when there are as many entries
 * as it wants, and once. The tree gives the one that wants least, so that no
 * publisher looks at sleepers that it does not wake.
 */
struct ring_sleeper {
	struct rb_node node;
	struct wait_queue_entry entry;	/* what default_wake_function() takes */
	u32 wanted;
	bool queued;
};

/*
 * How many entries wait in the index, 0 while the first is not there yet. The
 * consumer says where the first is: if it lies, this is wrong, within bounds.
 */
static u32 ring_pending(const struct ring *ring)
{
	u32 head = READ_ONCE(ring->header->head);
	u32 tail;

	if (!READ_ONCE(ring->index[head & ring->mask]))
		return 0;
	tail = atomic_read(&ring->tail);
	return clamp(tail - head, 1U, ring->mask + 1);
}

/**
 * ring_queue_work - queue a work item that outlives a ring's descriptor
 * @ring: ring; not the last reference
 * @queue: where to
 * @work: in the ring's memory; its function ends with ring_end_work()
 */
void ring_queue_work(struct ring *ring, struct workqueue_struct *queue,
		     struct work_struct *work)
{
	ring_get(ring);
	/* The code, too, must be there until then: no descriptor keeps it. */
	__module_get(THIS_MODULE);
	if (queue_work(queue, work))
		return;
	module_put(THIS_MODULE);
	refcount_dec(&ring->refs);
}

/** ring_end_work - the last that a work item does with @ring */
void ring_end_work(struct ring *ring)
{
	ring_put(ring);
	module_put(THIS_MODULE);
}

static void ring_wake_sleepers(struct ring *ring, int sync)
{
	u32 pending = ring_pending(ring);
	struct ring_sleeper *s;
	struct rb_node *node;

	while ((node = rb_first_cached(&ring->sleepers))) {
		s = rb_entry(node, struct ring_sleeper, node);
		if (pending < s->wanted)
			return;
		rb_erase_cached(node, &ring->sleepers);
		default_wake_function(&s->entry, TASK_NORMAL, sync, NULL);
		/* The last use of it. Pairs with ring_sleeper_leave(). */
		smp_store_release(&s->queued, false);
	}
	atomic_andnot(RING_SLEEPERS, &ring->listening);
}

/*
 * A poller must not signal an eventfd from here, as a ring can watch that: the
 * mark makes it defer this, as in a wakeup of eventfd's own. This can be inside
 * such a wakeup already. Interrupts are off, and find the mark as it was.
 */
static void ring_call_poller(wait_queue_entry_t *entry, int sync, void *key)
{
	bool outer = current->in_eventfd;

	current->in_eventfd = 1;
	entry->func(entry, TASK_NORMAL, sync, key);
	current->in_eventfd = outer;
}

/* All of them: an exclusive poller may end before it looks at the ring. */
static void ring_wake_pollers(struct ring *ring, int sync, void *key)
{
	wait_queue_entry_t *entry, *next;
	unsigned int count = 0;

	list_for_each_entry_safe(entry, next, &ring->wqh.head, entry) {
		if (count++ == RING_POLLERS_AT_ONCE) {
			ring_queue_work(ring, ring_workqueue, &ring->wake_work);
			return;
		}
		ring_call_poller(entry, sync, key);
	}
}

/**
 * ring_wake - wake the tasks that sleep on a ring, and its pollers
 * @ring: ring
 * @flags: EPOLL_URING_WAKE or 0
 * @sync: whether the waker is about to sleep, a hint for the scheduler
 *
 * A sleeper is woken once. Pollers are woken once until one of them looks at the
 * ring: all others have still to look, and will see what came meanwhile.
 */
void ring_wake(struct ring *ring, __poll_t flags, int sync)
{
	unsigned long irq;
	int listening;

	spin_lock_irqsave(&ring->wqh.lock, irq);
	listening = atomic_read(&ring->listening);
	if (listening & RING_SLEEPERS)
		ring_wake_sleepers(ring, sync);
	if (listening & RING_POLLERS) {
		/* First: a poller that looks from now on is woken again. */
		atomic_andnot(RING_POLLERS, &ring->listening);
		/* Before what the pollers do. Pairs with e. */
		smp_mb__after_atomic();
		ring_wake_pollers(ring, sync, poll_to_key(EPOLLIN | EPOLLRDNORM |
							  flags));
	}
	spin_unlock_irqrestore(&ring->wqh.lock, irq);
}

static int bookmark_wake(wait_queue_entry_t *entry, unsigned int mode, int sync,
			 void *key)
{
	return 0;
}

/* Wakes some of the pollers behind the bookmark; false: there are no more. */
static bool ring_wake_behind(struct ring *ring, wait_queue_entry_t *bookmark)
{
	wait_queue_entry_t *entry;
	unsigned int i;

	for (i = 0; i < RING_POLLERS_BATCH; i++) {
		if (list_is_last(&bookmark->entry, &ring->wqh.head))
			return false;
		entry = list_next_entry(bookmark, entry);
		list_move(&bookmark->entry, &entry->entry);
		ring_call_poller(entry, 0, poll_to_key(EPOLLIN | EPOLLRDNORM));
	}
	return true;
}

/* Wakes all pollers of a ring that has more than a publisher wakes itself. */
static void ring_wake_work(struct work_struct *work)
{
	struct ring *ring = container_of(work, struct ring, wake_work);
	wait_queue_entry_t bookmark;

	init_waitqueue_func_entry(&bookmark, bookmark_wake);
	add_wait_queue(&ring->wqh, &bookmark);
	spin_lock_irq(&ring->wqh.lock);
	while (ring_wake_behind(ring, &bookmark)) {
		spin_unlock_irq(&ring->wqh.lock);
		cond_resched();
		spin_lock_irq(&ring->wqh.lock);
	}
	__remove_wait_queue(&ring->wqh, &bookmark);
	spin_unlock_irq(&ring->wqh.lock);
	ring_end_work(ring);
}

/**
 * ring_clear_item - drop the events of an item
 * @item: nobody publishes it any more
 *
 * An entry in the index stays: it is the one of the next file there, or it is
 * found to be empty.
 */
void ring_clear_item(struct flowfd_ring_item *item)
{
	xchg(&item->ready, 0);
}

/**
 * ring_set_item - begin with an item
 * @item: nobody publishes it yet
 * @data: goes with its events
 */
void ring_set_item(struct flowfd_ring_item *item, u64 data)
{
	ring_clear_item(item);
	/* Publishing has a barrier between this and the flag. */
	WRITE_ONCE(item->data, data);
}

static bool sleeper_wants_less(struct rb_node *node, const struct rb_node *other)
{
	return rb_entry(node, struct ring_sleeper, node)->wanted <
	       rb_entry(other, struct ring_sleeper, node)->wanted;
}

static void ring_sleeper_join(struct ring *ring, struct ring_sleeper *s)
{
	spin_lock_irq(&ring->wqh.lock);
	if (!s->queued) {
		s->queued = true;
		rb_add_cached(&s->node, &ring->sleepers, sleeper_wants_less);
	}
	atomic_or(RING_SLEEPERS, &ring->listening);
	/* e: a full barrier. Pairs with d, in ring_publish(). */
	set_current_state(TASK_INTERRUPTIBLE);
	spin_unlock_irq(&ring->wqh.lock);
}

static void ring_sleeper_leave(struct ring *ring, struct ring_sleeper *s)
{
	__set_current_state(TASK_RUNNING);
	/* Pairs with ring_wake_sleepers(). */
	if (!smp_load_acquire(&s->queued))
		return;
	spin_lock_irq(&ring->wqh.lock);
	if (s->queued)
		rb_erase_cached(&s->node, &ring->sleepers);
	spin_unlock_irq(&ring->wqh.lock);
}

/* Kernels before 6.3 give the slack to real-time tasks as well. */
static u64 timer_slack(void)
{
	return rt_task(current) ? 0 : current->timer_slack_ns;
}

static ktime_t deadline(u64 timeout)
{
	if (timeout >= KTIME_MAX)
		return KTIME_MAX;
	return ktime_add_safe(ktime_get(), timeout);
}

/* Sleeps until there are as many entries as wanted, @end or a signal. */
static int ring_sleep(struct ring *ring, u32 wanted, ktime_t end)
{
	struct ring_sleeper s = { .entry.private = current, .wanted = wanted };
	bool expired = false;
	int result;

	do {
		ring_sleeper_join(ring, &s);
		result = ring_pending(ring);
		if (result >= wanted)
			break;
		if (signal_pending(current)) {
			result = -EINTR;
			break;
		}
		expired = !schedule_hrtimeout_range(end == KTIME_MAX ? NULL : &end,
						    timer_slack(),
						    HRTIMER_MODE_ABS);
		result = ring_pending(ring);
	} while (result < wanted && !expired);
	ring_sleeper_leave(ring, &s);
	return result;
}

static int ring_wait(struct ring *ring, const struct flowfd_ring_wait *args)
{
	u32 wanted = args->min_events ?: 1;
	int result = ring_pending(ring);
	ktime_t end, gathered;

	if (result >= wanted || !args->timeout)
		return result;
	end = deadline(args->timeout);
	gathered = args->min_wait ? deadline(args->min_wait) : end;
	result = ring_sleep(ring, wanted, min(gathered, end));
	if (!result && gathered < end)
		result = ring_sleep(ring, 1, end);
	return result;
}

/* What ppoll(2) does; the kernel's function for it is not for modules. */
static int set_sigmask(const struct flowfd_ring_wait *args)
{
	sigset_t mask;

	if (!args->sigmask)
		return args->sigmask_size ? -EINVAL : 0;
	if (args->sigmask_size != sizeof(mask))
		return -EINVAL;
	if (copy_from_user(&mask, u64_to_user_ptr(args->sigmask), sizeof(mask)))
		return -EFAULT;
	sigdelsetmask(&mask, sigmask(SIGKILL) | sigmask(SIGSTOP));
	sigprocmask(SIG_SETMASK, &mask, &current->saved_sigmask);
	set_restore_sigmask();
	return 0;
}

/*
 * After -EINTR it is the delivery of the signal that goes back to the old mask:
 * the handler must still run with the new one.
 */
static void restore_sigmask(int result)
{
	if (result != -EINTR && test_and_clear_restore_sigmask())
		sigprocmask(SIG_SETMASK, &current->saved_sigmask, NULL);
}

static long ring_ioctl_wait(struct ring *ring, const void __user *argp,
			    size_t size)
{
	struct flowfd_ring_wait args;
	int err, result;

	if (size < FLOWFD_RING_WAIT_SIZE_VER0)
		return -EINVAL;
	err = copy_struct_from_user(&args, sizeof(args), argp, size);
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
 * The plainest wait, for one entry and without end. Security modules look at every
 * ioctl by its number and path, which takes longer than all else on the way here.
 */
static ssize_t ring_read(struct file *file, char __user *buf, size_t size,
			 loff_t *pos)
{
	struct ring *ring = file->private_data;
	int result;

	if (size < sizeof(u64))
		return -EINVAL;
	result = ring_pending(ring);
	if (!result && file->f_flags & O_NONBLOCK)
		return -EAGAIN;
	if (!result)
		result = ring_sleep(ring, 1, KTIME_MAX);
	if (result < 0)
		return result;
	if (put_user((u64)result, (u64 __user *)buf))
		return -EFAULT;
	return sizeof(u64);
}

/*
 * Tries out whether the result can be stored before anything is done, as what
 * was done could not be undone.
 */
static int ring_control_entry(struct ring *ring,
			      struct flowfd_ring_entry __user *user)
{
	struct flowfd_ring_entry entry;
	int result;

	if (copy_from_user(&entry, user, sizeof(entry)) ||
	    put_user(-ECANCELED, &user->result))
		return -EFAULT;
	result = watch_control(ring, &entry);
	if (put_user(result, &user->result))
		return -EFAULT;
	return result < 0;
}

static long ring_ioctl_control(struct ring *ring, const void __user *argp,
			       size_t size)
{
	struct flowfd_ring_entry __user *entries;
	struct flowfd_ring_control args;
	int err, failed = 0;
	u32 i;

	if (size < FLOWFD_RING_CONTROL_SIZE_VER0)
		return -EINVAL;
	err = copy_struct_from_user(&args, sizeof(args), argp, size);
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

static long ring_ioctl_info(const struct ring *ring, void __user *argp,
			    size_t size)
{
	struct flowfd_create_ring info = { .max_items = ring->max_items };

	if (size < FLOWFD_CREATE_RING_SIZE_VER0)
		return -EINVAL;
	ring_describe(ring, &info);
	return device_answer(argp, size, &info, sizeof(info));
}

static long ring_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct ring *ring = file->private_data;
	void __user *argp = (void __user *)arg;
	size_t size = _IOC_SIZE(cmd);

	switch (cmd & ~IOCSIZE_MASK) {
	case FLOWFD_IOC_RING_CONTROL & ~IOCSIZE_MASK:
		return ring_ioctl_control(ring, argp, size);
	case FLOWFD_IOC_RING_WAIT & ~IOCSIZE_MASK:
		return ring_ioctl_wait(ring, argp, size);
	case FLOWFD_IOC_RING_INFO & ~IOCSIZE_MASK:
		return ring_ioctl_info(ring, argp, size);
	default:
		return device_ioctl(cmd, argp);
	}
}

/*
 * Looks at the tail, not at the slot at the head: a consumer that is taking events
 * has emptied slots and not stored the head yet, and a multishot poll looks again
 * just then. If that were told that there is nothing, and the consumer went to
 * sleep on it, all that came meanwhile would be lost.
 */
static __poll_t ring_poll(struct file *file, poll_table *wait)
{
	struct ring *ring = file->private_data;

	poll_wait(file, &ring->wqh, wait);
	/* The caller is in the queue by now, if it is to be woken at all. */
	if (waitqueue_active(&ring->wqh)) {
		atomic_or(RING_POLLERS, &ring->listening);
		/* e: a full barrier. Pairs with d, in ring_publish(). */
		smp_mb__after_atomic();
	}
	return READ_ONCE(ring->header->head) != atomic_read(&ring->tail) ?
	       EPOLLIN | EPOLLRDNORM : 0;
}

/*
 * The mapping holds the file, and the file holds the memory. A private mapping
 * would be a copy that no event ever reaches. Nothing in it is code.
 */
static int ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ring *ring = file->private_data;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYEXEC);
	return remap_vmalloc_range(vma, ring->header, vma->vm_pgoff);
}

#ifdef CONFIG_PROC_FS
static void ring_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct ring *ring = file->private_data;

	seq_printf(m,
		   "flowfd-ring-id: %llu\n"
		   "flowfd-ring-max-items: %u\n"
		   "flowfd-ring-head: %u\n"
		   "flowfd-ring-tail: %u\n",
		   ring->id, ring->max_items, READ_ONCE(ring->header->head),
		   (u32)atomic_read(&ring->tail));
	watch_show_all(ring, m);
}
#endif

static int ring_release(struct inode *inode, struct file *file)
{
	struct ring *ring = file->private_data;

	watch_remove_all(ring);
	ring_put(ring);
	return 0;
}

const struct file_operations ring_fops = {
	.owner		= THIS_MODULE,
	.read		= ring_read,
	.release	= ring_release,
	.poll		= ring_poll,
	.unlocked_ioctl	= ring_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= ring_mmap,
	.llseek		= noop_llseek,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= ring_show_fdinfo,
#endif
};

/*
 * CAP_IPC_LOCK exempts from RLIMIT_MEMLOCK; asking for it is no offence to audit.
 * The credentials hold the user: free_uid() is not exported by Debian's 6.1 before
 * 6.1.0-56.
 */
static int ring_charge(struct ring *ring, unsigned long pages)
{
	struct user_struct *user = current_user();

	ring->owner = NULL;
	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return 0;
	if (atomic_long_add_return(pages, &user->locked_vm) >
	    rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT) {
		atomic_long_sub(pages, &user->locked_vm);
		return -ENOMEM;
	}
	ring->owner = get_current_cred();
	ring->pages = pages;
	return 0;
}

static void ring_uncharge(struct ring *ring)
{
	if (!ring->owner)
		return;
	atomic_long_sub(ring->pages, &ring->owner->user->locked_vm);
	put_cred(ring->owner);
}

static struct flowfd_ring_header ring_layout(u32 max_items)
{
	struct flowfd_ring_header layout = {
		.magic		= FLOWFD_RING_MAGIC,
		.version	= FLOWFD_RING_VERSION,
		.header_size	= sizeof(layout),
		.max_items	= max_items,
		.items_offset	= sizeof(layout),
		.index_slots	= roundup_pow_of_two(max_items),
	};

	layout.index_offset = ALIGN(layout.items_offset + max_items *
				    sizeof(struct flowfd_ring_item), 64);
	layout.map_size = PAGE_ALIGN(layout.index_offset +
				     (layout.index_slots + 1) * sizeof(u32));
	return layout;
}

/**
 * ring_describe - where things are in the memory of a ring
 * @ring: ring
 * @info: output fields are filled in
 *
 * Not from the header, which user space can write.
 */
void ring_describe(const struct ring *ring, struct flowfd_create_ring *info)
{
	struct flowfd_ring_header layout = ring_layout(ring->max_items);

	info->map_size = layout.map_size;
	info->items_offset = layout.items_offset;
	info->index_offset = layout.index_offset;
	info->index_slots = layout.index_slots;
}

/*
 * As vmalloc_user(), whose pages no memory cgroup is charged for. The area owns
 * the pages and their array: vfree() frees all.
 */
static void *alloc_user_pages(unsigned long count)
{
	struct page **pages;
	unsigned long n = 0;
	void *memory;

	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;
	for (; n < count; n++) {
		pages[n] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[n])
			goto free_pages;
	}
	memory = vmap(pages, count, VM_MAP | VM_USERMAP | VM_MAP_PUT_PAGES,
		      PAGE_KERNEL);
	if (memory)
		return memory;

free_pages:
	while (n)
		__free_page(pages[--n]);
	kvfree(pages);
	return NULL;
}

static int ring_alloc_shared(struct ring *ring)
{
	struct flowfd_ring_header layout = ring_layout(ring->max_items);
	void *memory;
	int err;

	err = ring_charge(ring, layout.map_size >> PAGE_SHIFT);
	if (err)
		return err;
	memory = alloc_user_pages(layout.map_size >> PAGE_SHIFT);
	if (!memory) {
		ring_uncharge(ring);
		return -ENOMEM;
	}
	ring->header = memory;
	*ring->header = layout;
	ring->items = memory + layout.items_offset;
	ring->index = memory + layout.index_offset;
	ring->mask = layout.index_slots - 1;
	return 0;
}

static int ring_alloc_private(struct ring *ring)
{
	u32 i;

	ring->hash_bits = max(order_base_2(ring->max_items), 1);
	ring->watches = kvcalloc(1UL << ring->hash_bits,
				 sizeof(*ring->watches), GFP_KERNEL_ACCOUNT);
	ring->free = kvmalloc_array(ring->max_items, sizeof(*ring->free),
				    GFP_KERNEL_ACCOUNT);
	if (!ring->watches || !ring->free) {
		kvfree(ring->watches);
		kvfree(ring->free);
		return -ENOMEM;
	}
	for (i = 0; i < ring->max_items; i++)
		ring->free[i] = i;
	ring->free_first = 0;
	ring->free_count = ring->max_items;
	return 0;
}

/**
 * ring_alloc - make a ring
 * @max_items: 1 to FLOWFD_RING_ITEMS_MAX
 *
 * Return: the ring with one reference, or an ERR_PTR.
 */
struct ring *ring_alloc(u32 max_items)
{
	struct ring *ring;
	int err;

	ring = kmem_cache_alloc(ring_cache, GFP_KERNEL_ACCOUNT);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->max_items = max_items;
	ring->id = atomic64_inc_return(&ring_ids);
	atomic_set(&ring->tail, 0);
	atomic_set(&ring->listening, 0);
	refcount_set(&ring->refs, 1);
	INIT_WORK(&ring->wake_work, ring_wake_work);
	repoll_init_ring(ring);
	err = ring_alloc_private(ring);
	if (err)
		goto free_ring;
	err = ring_alloc_shared(ring);
	if (err)
		goto free_private;
	return ring;

free_private:
	kvfree(ring->watches);
	kvfree(ring->free);
free_ring:
	kmem_cache_free(ring_cache, ring);
	return ERR_PTR(err);
}

/** ring_get - take another reference to @ring */
void ring_get(struct ring *ring)
{
	refcount_inc(&ring->refs);
}

/** ring_put - give a reference to @ring back; may sleep */
void ring_put(struct ring *ring)
{
	if (!refcount_dec_and_test(&ring->refs))
		return;
	vfree(ring->header);
	ring_uncharge(ring);
	kvfree(ring->watches);
	kvfree(ring->free);
	kmem_cache_free(ring_cache, ring);
}

static void ring_construct(void *object)
{
	struct ring *ring = object;

	init_waitqueue_head(&ring->wqh);
	ring->sleepers = RB_ROOT_CACHED;
	spin_lock_init(&ring->repoll_lock);
	mutex_init(&ring->lock);
	init_llist_head(&ring->closed);
}

/** ring_cache_init - make the slab cache of rings, and who wakes their pollers */
int ring_cache_init(void)
{
	ring_cache = kmem_cache_create("flowfd_ring", sizeof(struct ring),
				       __alignof__(struct ring), SLAB_ACCOUNT,
				       ring_construct);
	if (!ring_cache)
		return -ENOMEM;
	ring_workqueue = alloc_workqueue("flowfd", WQ_UNBOUND, 0);
	if (!ring_workqueue) {
		kmem_cache_destroy(ring_cache);
		return -ENOMEM;
	}
	return 0;
}

/** ring_cache_exit - the last ring is gone */
void ring_cache_exit(void)
{
	destroy_workqueue(ring_workqueue);
	kmem_cache_destroy(ring_cache);
}
