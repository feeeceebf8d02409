// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that programs map: its pages, whom they are charged to, and which mappings are
 * allowed. There is no lock: an object has its memory from its creation to its end.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "memory.h"

/*
 * Charges pages, which are not allocated here, to RLIMIT_MEMLOCK of the caller. Returns 0
 * or -ENOMEM.
 *
 * CAP_IPC_LOCK exempts from RLIMIT_MEMLOCK; to lack it is nothing to audit. The
 * credentials hold the user: Debian's 6.1 does not export free_uid() before 6.1.0-56.
 */
int flowfd_memory_charge(struct flowfd_memory *m, unsigned long pages)
{
	struct user_struct *user = current_user();
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	m->pages = pages;
	m->owner = NULL;
	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return 0;
	if (atomic_long_add_return(m->pages, &user->locked_vm) > limit) {
		atomic_long_sub(m->pages, &user->locked_vm);
		return -ENOMEM;
	}
	m->owner = get_current_cred();
	return 0;
}

void flowfd_memory_uncharge(struct flowfd_memory *m)
{
	if (!m->owner)
		return;
	atomic_long_sub(m->pages, &m->owner->user->locked_vm);
	put_cred(m->owner);
}

/*
 * Like vmalloc_user(), but charged to the memory cgroup. The area owns the pages and
 * their array, so vfree() frees all.
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
	memory = vmap(pages, count, VM_MAP | VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (memory)
		return memory;

free_pages:
	while (n)
		__free_page(pages[--n]);
	kvfree(pages);
	return NULL;
}

/* Allocates zeroed pages, charged to the caller. Returns 0 or -ENOMEM. */
int flowfd_memory_alloc(struct flowfd_memory *m, unsigned long pages)
{
	int err = flowfd_memory_charge(m, pages);

	if (err)
		return err;
	m->start = alloc_user_pages(pages);
	if (!m->start) {
		flowfd_memory_uncharge(m);
		return -ENOMEM;
	}
	return 0;
}

/* Nothing maps the pages any more. May sleep. */
void flowfd_memory_free(struct flowfd_memory *m)
{
	vfree(m->start);
	flowfd_memory_uncharge(m);
}

/*
 * Maps the pages for a program. The mapping holds the file, and the file holds the
 * memory. A private mapping would be a copy that no event ever reaches. Nothing in the
 * memory is code.
 */
int flowfd_memory_map(const struct flowfd_memory *m, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYEXEC);
	return remap_vmalloc_range(vma, m->start, vma->vm_pgoff);
}
