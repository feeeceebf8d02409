// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of a counter: what user space passes is checked here, but for what depends on
 * the count.
 */
#include <linux/uaccess.h>

#include "abi.h"
#include "bridge.h"
#include "counter.h"
#include "share.h"
#include "sleep.h"

static_assert(sizeof(struct flowfd_create_counter) == FLOWFD_CREATE_COUNTER_SIZE_VER0);
static_assert(sizeof(struct flowfd_flow) == FLOWFD_FLOW_SIZE_VER0);
static_assert(sizeof(struct flowfd_transfer) == FLOWFD_TRANSFER_SIZE_VER0);
static_assert(sizeof(struct flowfd_counter_stats) == FLOWFD_COUNTER_STATS_SIZE_VER0);

/*
 * EFD_IOC_* have the names and numbers of the patches that proposed them for eventfd: each
 * sets or gets one setting of struct flowfd_flow.
 */
static long control_set_maximum(struct flowfd_counter *c, const u64 __user *argp)
{
	struct flowfd_flow args = { .set = FLOWFD_SET_MAXIMUM };

	if (get_user(args.maximum, argp))
		return -EFAULT;
	/* Not the default, as in struct flowfd_flow. */
	return args.maximum ? flowfd_counter_set_flow(c, &args) : -EINVAL;
}

static long control_get_maximum(struct flowfd_counter *c, u64 __user *argp)
{
	struct flowfd_flow flow;

	flowfd_counter_get_flow(c, &flow);
	return put_user(flow.maximum, argp);
}

static long control_set_qos(struct flowfd_counter *c, const void __user *argp)
{
	struct flowfd_flow args = { .set = FLOWFD_SET_QOS };

	if (copy_from_user(&args.qos, argp, sizeof(args.qos)))
		return -EFAULT;
	return flowfd_counter_set_flow(c, &args);
}

static long control_get_qos(struct flowfd_counter *c, void __user *argp)
{
	struct flowfd_flow flow;

	flowfd_counter_get_flow(c, &flow);
	return copy_to_user(argp, &flow.qos, sizeof(flow.qos)) ? -EFAULT : 0;
}

static long control_set_flow(struct flowfd_counter *c, const void __user *argp,
			     size_t size)
{
	struct flowfd_flow args;
	int err;

	err = flowfd_copy_args(&args, sizeof(args), FLOWFD_FLOW_SIZE_VER0, argp, size);
	return err ?: flowfd_counter_set_flow(c, &args);
}

static long control_get_flow(struct flowfd_counter *c, void __user *argp, size_t size)
{
	struct flowfd_flow answer;

	flowfd_counter_get_flow(c, &answer);
	return flowfd_copy_answer(argp, size, &answer, sizeof(answer),
				  FLOWFD_FLOW_SIZE_VER0);
}

static long control_stats(struct flowfd_counter *c, void __user *argp, size_t size)
{
	struct flowfd_counter_stats answer;

	flowfd_counter_get_stats(c, &answer);
	return flowfd_copy_answer(argp, size, &answer, sizeof(answer),
				  FLOWFD_COUNTER_STATS_SIZE_VER0);
}

/* FLOWFD_IOC_COUNTER_WRITE or FLOWFD_IOC_COUNTER_READ. */
static long control_transfer(struct file *file, void __user *argp, size_t size,
			     bool writes)
{
	struct flowfd_transfer __user *result = argp;
	u32 flags = writes ? FLOWFD_NONBLOCK | FLOWFD_URGENT : FLOWFD_NONBLOCK;
	struct flowfd_counter *c = file->private_data;
	struct flowfd_options options;
	struct flowfd_transfer args;
	u64 value;
	int err;

	if (!(file->f_mode & (writes ? FMODE_WRITE : FMODE_READ)))
		return -EBADF;
	err = flowfd_copy_args(&args, sizeof(args), FLOWFD_TRANSFER_SIZE_VER0, argp,
			       size);
	if (err)
		return err;
	if (args.flags & ~flags || args.reserved)
		return -EINVAL;
	/* Before the count is taken, which would be lost. */
	if (!writes && put_user(args.value, &result->value))
		return -EFAULT;
	options.nonblock = args.flags & FLOWFD_NONBLOCK || file->f_flags & O_NONBLOCK;
	options.urgent = args.flags & FLOWFD_URGENT;
	options.end = sleep_end(args.timeout);
	value = args.value;
	spin_lock_irq(&c->wqh.lock);
	err = writes ? flowfd_counter_add(c, value, &options) :
		       flowfd_counter_take(c, &value, &options);
	spin_unlock_irq(&c->wqh.lock);
	/* To restart a call after a signal would begin its timeout again. */
	if (err == -ERESTARTSYS && args.timeout)
		return -EINTR;
	return err || writes ? err : put_user(value, &result->value);
}

static bool counter_args_are_valid(const struct flowfd_create_counter *args, u32 flags)
{
	if (args->flags & ~flags || args->reserved)
		return false;
	/* Semaphores would need a take of their own. */
	if (args->flags & FLOWFD_MAPPED &&
	    (!MAPPED_IS_POSSIBLE || args->flags & FLOWFD_SEMAPHORE))
		return false;
	if (args->initial >= (args->maximum ?: U64_MAX))
		return false;
	if (args->flags & FLOWFD_SEMAPHORE &&
	    (args->qos.token_capacity || args->qos.token_rate))
		return false;
	return flowfd_qos_is_valid(&args->qos);
}

/*
 * Gets struct flowfd_create_counter, of the caller's @size, from user memory and checks
 * it. Only @flags are allowed. Returns 0 or a negative errno.
 */
int flowfd_counter_args(struct flowfd_create_counter *args, u32 flags,
			const void __user *argp, size_t size)
{
	int err = flowfd_copy_args(args, sizeof(*args), FLOWFD_CREATE_COUNTER_SIZE_VER0,
				   argp, size);

	if (err)
		return err;
	return counter_args_are_valid(args, flags) ? 0 : -EINVAL;
}

static long control_set_up(struct flowfd_counter *c, const void __user *argp, size_t size)
{
	struct flowfd_create_counter args;
	int err = flowfd_counter_args(&args, FLOWFD_SEMAPHORE, argp, size);

	return err ?: flowfd_counter_set_up(c, &args);
}

static long control_notify(struct flowfd_counter *c)
{
	if (!store_is_mapped(&c->store))
		return -ENODEV;
	spin_lock_irq(&c->wqh.lock);
	flowfd_counter_settle(c, 0, false);
	spin_unlock_irq(&c->wqh.lock);
	return 0;
}

/*
 * The ioctls of a counter; some commands have the caller's size of the structure in them.
 * Returns 0, the result of FLOWFD_IOC_COUNTER_ID, or a negative errno.
 */
long flowfd_counter_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct flowfd_counter *c = file->private_data;
	void __user *argp = (void __user *)arg;
	size_t size = _IOC_SIZE(cmd);

	switch (cmd) {
	case FLOWFD_IOC_COUNTER_NOTIFY:
		return control_notify(c);
	case FLOWFD_IOC_COUNTER_ID:
		return c->id;
	case EFD_IOC_SET_MAXIMUM:
		return control_set_maximum(c, argp);
	case EFD_IOC_GET_MAXIMUM:
		return control_get_maximum(c, argp);
	case EFD_IOC_SET_QOS:
		return control_set_qos(c, argp);
	case EFD_IOC_GET_QOS:
		return control_get_qos(c, argp);
	}
	switch (without_size(cmd)) {
	case without_size(FLOWFD_IOC_SETUP_COUNTER):
		return control_set_up(c, argp, size);
	case without_size(FLOWFD_IOC_SET_FLOW):
		return control_set_flow(c, argp, size);
	case without_size(FLOWFD_IOC_GET_FLOW):
		return control_get_flow(c, argp, size);
	case without_size(FLOWFD_IOC_COUNTER_WRITE):
		return control_transfer(file, argp, size, true);
	case without_size(FLOWFD_IOC_COUNTER_READ):
		return control_transfer(file, argp, size, false);
	case without_size(FLOWFD_IOC_COUNTER_STATS):
		return control_stats(c, argp, size);
	case without_size(FLOWFD_IOC_COUNTER_BRIDGE):
		return flowfd_bridge_control(file, argp, size);
	case without_size(FLOWFD_IOC_SHARE):
		return flowfd_share(file, c->id, argp, size);
	}
	return flowfd_common_ioctl(cmd, argp);
}
