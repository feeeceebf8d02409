/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Users are divided into classes. An object stores the class of its user when it is made, and
 * queues its work items there, so that the work of one user takes one turn beside that of
 * others.
 */
#ifndef FLOWFD_WORK_H
#define FLOWFD_WORK_H

#include <linux/cred.h>
#include <linux/workqueue.h>

/* Users with the same hash share a class, and wait for one another. */
#define USER_CLASS_BITS 3

/**
 * struct work_class - the workqueues of all users with the same hash
 * @per_cpu: for items of a few steps; one at a time on each processor
 * @unbound: for items whose duration depends on user space; one at a time in all
 */
struct work_class {
	struct workqueue_struct *per_cpu;
	struct workqueue_struct *unbound;
};

int flowfd_work_class_init(void);
void flowfd_work_class_exit(void);
u8 flowfd_user_class(const struct cred *cred);
const struct work_class *flowfd_work_class_of_caller(void);

#endif /* FLOWFD_WORK_H */
