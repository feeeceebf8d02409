/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of an object that programs map. */
#ifndef FLOWFD_MEMORY_H
#define FLOWFD_MEMORY_H

#include <linux/cred.h>
#include <linux/mm_types.h>
#include <linux/types.h>

/**
 * struct flowfd_memory - pages that the kernel and programs share
 * @start: of the pages, for the kernel
 * @pages: how many there are
 * @owner: credentials of the user whom they are charged to, or NULL
 */
struct flowfd_memory {
	void *start;
	unsigned long pages;
	const struct cred *owner;
};

int flowfd_memory_charge(struct flowfd_memory *m, unsigned long pages);
void flowfd_memory_uncharge(struct flowfd_memory *m);
int flowfd_memory_alloc(struct flowfd_memory *m, unsigned long pages);
void flowfd_memory_free(struct flowfd_memory *m);
int flowfd_memory_map(const struct flowfd_memory *m, struct vm_area_struct *vma);

#endif /* FLOWFD_MEMORY_H */
