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
#include "watch.h"
#include "work.h"

static int __init flowfd_init(void)
{
	int err;

	err = flowfd_work_class_init();
	if (err)
		return err;
	err = flowfd_closing_init();
	if (err)
		goto exit_work;
	err = flowfd_counter_init();
	if (err)
		goto exit_closing;
	err = flowfd_ring_init();
	if (err)
		goto exit_counter;
	err = flowfd_repoll_init(flowfd_watch_repoll);
	if (err)
		goto exit_ring;
	err = flowfd_watch_init();
	if (err)
		goto exit_repoll;
	flowfd_watch_control_init();
	flowfd_balance_init();
	err = flowfd_device_init();
	if (err)
		goto exit_watch;
	flowfd_objects_init(&flowfd_counter_object_ops, &flowfd_ring_object_ops);
	return 0;

exit_watch:
	flowfd_watch_exit();
exit_repoll:
	flowfd_repoll_exit();
exit_ring:
	flowfd_ring_exit();
exit_counter:
	flowfd_counter_exit();
exit_closing:
	flowfd_closing_exit();
exit_work:
	flowfd_work_class_exit();
	return err;
}

/* Work items may end after the last descriptor: workqueues go before the caches. */
static void __exit flowfd_exit(void)
{
	flowfd_objects_exit();
	flowfd_device_exit();
	flowfd_repoll_exit();
	flowfd_work_class_exit();
	flowfd_closing_exit();
	flowfd_watch_exit();
	flowfd_ring_exit();
	flowfd_counter_exit();
}

module_init(flowfd_init);
module_exit(flowfd_exit);

MODULE_DESCRIPTION("event file descriptors with flow control");
MODULE_AUTHOR("The flowfd authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(FLOWFD_VERSION);
