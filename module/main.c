// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd - event file descriptors with flow control: module init and exit.
 */
#include <linux/module.h>

#include "balance.h"
#include "closing.h"
#include "counter.h"
#include "device.h"
#include "objects.h"
#include "repoll.h"
#include "ring.h"
#include "share.h"
#include "watch.h"
#include "work.h"

/* In the order of their beginning. Work items may end after the last descriptor of a ring. */
static const struct {
	int (*init)(void);
	void (*exit)(void);
} parts[] = {
	{ flowfd_counter_init, flowfd_counter_exit },
	{ flowfd_watch_init, flowfd_watch_exit },
	{ flowfd_closing_init, flowfd_closing_exit },
	{ flowfd_work_class_init, flowfd_work_class_exit },
	{ flowfd_repoll_init, flowfd_repoll_exit },
	{ flowfd_device_init, flowfd_device_exit },
};

static void end_parts(unsigned int count)
{
	while (count--)
		parts[count].exit();
}

static int __init flowfd_init(void)
{
	unsigned int i;
	int err;

	flowfd_balance_init();
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		err = parts[i].init();
		if (err) {
			end_parts(i);
			return err;
		}
	}
	flowfd_objects_init(&flowfd_counter_object_ops, &flowfd_ring_object_ops);
	return 0;
}

static void __exit flowfd_exit(void)
{
	flowfd_objects_exit();
	flowfd_share_exit();
	end_parts(ARRAY_SIZE(parts));
}

module_init(flowfd_init);
module_exit(flowfd_exit);

MODULE_DESCRIPTION("event file descriptors with flow control");
MODULE_AUTHOR("The flowfd authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(FLOWFD_VERSION);
