// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a mapped counter: how it is made and mapped, and what follows when a
 * mapping or a descriptor goes.
 *
 * A process can have many mappings and descriptors of one counter, and wakeups take time
 * in proportion to the queue. So a work item makes up for processes that ended, once for
 * all that ended until it runs.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "counter.h"

static_assert(sizeof(struct flowfd_counter_header) == 40);
static_assert(sizeof(atomic64_t) == 8);
static_assert(sizeof(struct flowfd_counter_producer) == 8);
static_assert(sizeof(struct flowfd_counter_consumer) == 16);

#define MAPPED_PAGES 3

/*
 * Only where something waits: a task that joins later looks at the count itself. The
 * exchange of a word by the task that ended is a barrier before this look.
 */
static void mapped_queue_heal(struct flowfd_mapped *m)
{
	/* See above for the barrier. */
	if (counter_has_waiters(m->counter))
		queue_work(m->work_class->per_cpu, &m->heal);
}

/*
 * A descriptor is closed, perhaps because its process was killed. Its number is free
 * already, and may be another file's: programs that add in memory until this counts take
 * the number for this counter. A process that goes on has left nothing undone.
 */
void flowfd_mapped_closed(struct flowfd_mapped *m)
{
	atomic64_inc(m->closes);
	if (current->flags & PF_EXITING)
		mapped_queue_heal(m);
}

/*
 * Makes the memory of a mapped counter, by checked settings. Returns what
 * flowfd_mapped_free() frees, or an ERR_PTR.
 */
struct flowfd_mapped *flowfd_mapped_alloc(const struct flowfd_create_counter *args)
{
	struct flowfd_mapped *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	struct flowfd_counter_consumer *consumer;
	int err;

	if (!m)
		return ERR_PTR(-ENOMEM);
	err = flowfd_memory_alloc(&m->memory, MAPPED_PAGES);
	if (err) {
		kfree(m);
		return ERR_PTR(err);
	}
	INIT_WORK(&m->heal, flowfd_counter_heal);
	m->work_class = flowfd_work_class_of_caller();
	consumer = m->memory.start + 2 * PAGE_SIZE;
	m->header = m->memory.start;
	m->produced = m->memory.start + PAGE_SIZE;
	m->consumed = (atomic64_t *)&consumer->consumed;
	m->closes = (atomic64_t *)&m->header->closes;
	m->armed = (atomic_t *)&consumer->armed;
	m->maximum = args->maximum ?: U64_MAX;
	*m->header = (struct flowfd_counter_header){
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = PAGE_SIZE,
		.flags = FLOWFD_MAPPED,
		.maximum = m->maximum,
	};
	atomic64_set(m->produced, args->initial);
	return m;
}

/* Frees memory that was not used, or has ended. @m may be NULL. */
void flowfd_mapped_free(struct flowfd_mapped *m)
{
	if (!m)
		return;
	flowfd_memory_free(&m->memory);
	kfree(m);
}

/* A process that goes on has left nothing undone. */
static void mapped_close(struct vm_area_struct *vma)
{
	struct flowfd_mapped *m = vma->vm_private_data;

	if (!atomic_read(&vma->vm_mm->mm_users))
		mapped_queue_heal(m);
}

static const struct vm_operations_struct mapped_vm_ops = {
	.close = mapped_close,
};

/* Maps the memory for a program. Returns 0 or a negative errno. */
int flowfd_mapped_map(struct flowfd_mapped *m, struct vm_area_struct *vma)
{
	int err;

	/* The first page is the kernel's. */
	if (!vma->vm_pgoff) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	err = flowfd_memory_map(&m->memory, vma);
	if (err)
		return err;
	vma->vm_private_data = m;
	vma->vm_ops = &mapped_vm_ops;
	return 0;
}
