// SPDX-License-Identifier: GPL-2.0-only
/* No livepatch: the kernel warns when it is loaded. */
#include <linux/module.h>

static int __init vendor_warning_init(void)
{
	WARN(1, "on purpose\n");
	return 0;
}

static void __exit vendor_warning_exit(void)
{
}

module_init(vendor_warning_init);
module_exit(vendor_warning_exit);
MODULE_DESCRIPTION("Warns when it is loaded");
MODULE_LICENSE("GPL");
