// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work items run in kernel threads, which are charged to nobody. So the work items of a
 * user wait for one another: users are divided into classes, and the workqueues of a
 * class run one item at a time. A user can make busy one kernel thread on each processor,
 * and one more.
 */
#include <linux/hash.h>
#include <linux/user_namespace.h>

#include "compat.h"
#include "work.h"

static struct work_class classes[1 << USER_CLASS_BITS];

/*
 * The number of the class of a user. A task that makes a user namespace can be very many
 * users in it, so this is that of the effective user who made the outermost one. Outside,
 * a program that was given to a subordinate id there, and runs with it, cannot be told from
 * another user's.
 */
u8 flowfd_user_class(const struct cred *cred)
{
	const struct user_namespace *ns;
	kuid_t user = cred->uid;

	for (ns = cred->user_ns; ns != &init_user_ns; ns = ns->parent)
		user = ns->owner;
	return hash_32(__kuid_val(user), USER_CLASS_BITS);
}

/* It stays until flowfd_work_class_exit(). */
const struct work_class *flowfd_work_class_of_caller(void)
{
	return &classes[flowfd_user_class(current_cred())];
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
