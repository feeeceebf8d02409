// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work items run in kernel threads, which are charged to nobody. So the work items of a
 * user wait for one another: users are divided into classes, and the workqueues of a
 * class run one item at a time. A user can make busy one kernel thread on each processor,
 * and one more.
 */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "work.h"

/* Users with the same hash share a class, and wait for the work of one another. */
#define WORK_CLASS_BITS 3

static struct work_class classes[1 << WORK_CLASS_BITS];

/*
 * The user of the calling task. A task that makes a user namespace can be very many users
 * in it, so this is the user of the task that made the outermost one. Outside, a
 * program that was given to a subordinate id there, and runs with it, cannot be told from
 * another user's.
 */
static kuid_t outer_user(void)
{
	const struct user_namespace *ns;
	kuid_t user = current_uid();

	for (ns = current_user_ns(); ns != &init_user_ns; ns = ns->parent)
		user = ns->owner;
	return user;
}

/* It stays until flowfd_work_class_exit(). */
const struct work_class *flowfd_work_class_of_caller(void)
{
	return &classes[hash_32(__kuid_val(outer_user()), WORK_CLASS_BITS)];
}

static int class_init(struct work_class *class, unsigned int number)
{
	unsigned int flags = WQ_PERCPU;

	/* There, locks of wait queues sleep, and an item of another class runs meanwhile. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		flags |= WQ_CPU_INTENSIVE;
	class->per_cpu = alloc_workqueue("flowfd_short_%u", flags, 1, number);
	class->unbound = alloc_ordered_workqueue("flowfd_long_%u", 0, number);
	return class->per_cpu && class->unbound ? 0 : -ENOMEM;
}

/*
 * Without WQ_MEM_RECLAIM: reclaim of memory waits for none of this work, and the rescuer
 * of a workqueue has the highest priority. Without WQ_HIGHPRI for the same reason: a
 * program with a low priority could have its work done before that of all others. Without
 * WQ_FREEZABLE: the release of a counter waits for its work. Returns 0 or -ENOMEM.
 */
int flowfd_work_class_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		if (class_init(&classes[i], i)) {
			flowfd_work_class_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/* The last object is gone; waits for work that still runs. */
void flowfd_work_class_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		if (classes[i].per_cpu)
			destroy_workqueue(classes[i].per_cpu);
		if (classes[i].unbound)
			destroy_workqueue(classes[i].unbound);
	}
}
