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
	err = ring_cache_init();
	if (err)
		goto exit_counter;
	err = watch_cache_init();
	if (err)
		goto exit_ring;
	err = repoll_init();
	if (err)
		goto exit_watch;
	err = closing_init();
	if (err)
		goto exit_repoll;
	err = device_init();
	if (err)
		goto exit_closing;
	return 0;

exit_closing:
	closing_exit();
exit_repoll:
	repoll_exit();
exit_watch:
	watch_cache_exit();
exit_ring:
	ring_cache_exit();
exit_counter:
	counter_cache_exit();
	return err;
}

static void __exit flowfd_exit(void)
{
	device_exit();
	repoll_exit();
	closing_exit();
	watch_cache_exit();
	ring_cache_exit();
	counter_cache_exit();
}

module_init(flowfd_init);
module_exit(flowfd_exit);

MODULE_DESCRIPTION("event file descriptors with flow control");
MODULE_AUTHOR("The flowfd authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(FLOWFD_VERSION);
