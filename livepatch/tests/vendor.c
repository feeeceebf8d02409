// SPDX-License-Identifier: GPL-2.0-only
/*
 * A livepatch in the role of a vendor's. REPLACE says whether it replaces all others,
 * FUNCTION is what it patches, and NEW what it puts in its place.
 */
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/seq_file.h>

/* For version_proc_show(). */
static int __maybe_unused vendor_version(struct seq_file *file, void *unused)
{
	seq_puts(file, "vendor\n");
	return 0;
}

/* For userfaultfd_read(), and userfaultfd_read_iter() of later kernels. */
static ssize_t __maybe_unused vendor_read(void)
{
	return -ESTALE;
}

static struct klp_func functions[] = {
	{ .old_name = FUNCTION, .new_func = NEW },
	{}
};

static struct klp_object objects[] = {
	{ .funcs = functions },
	{}
};

static struct klp_patch livepatch = {
	.mod = THIS_MODULE,
	.objs = objects,
	.replace = REPLACE,
};

static int __init vendor_init(void)
{
	return klp_enable_patch(&livepatch);
}

static void __exit vendor_exit(void)
{
}

module_init(vendor_init);
module_exit(vendor_exit);
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
