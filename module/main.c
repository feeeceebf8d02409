// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd - event file descriptors with flow control: module init and exit.
 */
#include <linux/module.h>

#include "flowfd.h"

static int __init flowfd_init(void)
{
	int err;

	err = counter_cache_init();
	if (err)
		return err;
	err = misc_register(&flowfd_device);
	if (err)
		counter_cache_exit();
	return err;
}

static void __exit flowfd_exit(void)
{
	misc_deregister(&flowfd_device);
	counter_cache_exit();
}

module_init(flowfd_init);
module_exit(flowfd_exit);

MODULE_DESCRIPTION("event file descriptors with flow control");
MODULE_AUTHOR("The flowfd authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(FLOWFD_VERSION);
