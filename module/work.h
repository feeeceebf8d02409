/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Work items of users. An object stores the class of its user when it is made, and queues
 * its work items there, so that the work of one user takes one turn beside that of
 * others.
 */
#ifndef FLOWFD_WORK_H
#define FLOWFD_WORK_H

#include <linux/workqueue.h>

/**
 * struct work_class - the workqueues of the users who have the same hash
 * @per_cpu: one item at a time on each processor
 * @unbound: one item at a time in all
 */
struct work_class {
	struct workqueue_struct *per_cpu;
	struct workqueue_struct *unbound;
};

int flowfd_work_class_init(void);
void flowfd_work_class_exit(void);
const struct work_class *flowfd_work_class_of_caller(void);

/**
 * flowfd_work_queue_short - queue a work item that does a few steps
 * @class: of the user to whom the work belongs
 * @work: runs on this processor
 *
 * In any context.
 *
 * Return: false if it was queued already.
 */
static inline bool flowfd_work_queue_short(const struct work_class *class,
					   struct work_struct *work)
{
	return queue_work(class->per_cpu, work);
}

/**
 * flowfd_work_queue_long - queue a work item whose duration depends on user space
 * @class: of the user to whom the work belongs
 * @work: runs on any processor
 *
 * In any context.
 *
 * Return: false if it was queued already.
 */
static inline bool flowfd_work_queue_long(const struct work_class *class,
					  struct work_struct *work)
{
	return queue_work(class->unbound, work);
}

#endif /* FLOWFD_WORK_H */
