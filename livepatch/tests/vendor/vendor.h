/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A livepatch in the role of a vendor's. REPLACE says whether it replaces all others,
 * FUNCTION is what it patches, and NEW what it puts in its place.
 */
#include <linux/fs.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/seq_file.h>

/* For version_proc_show(). */
static int __maybe_unused vendor_version(struct seq_file *file, void *unused)
{
	seq_puts(file, "vendor\n");
	return 0;
}

/* For userfaultfd_read(). */
static ssize_t __maybe_unused vendor_read(struct file *file, char __user *buf,
					  size_t count, loff_t *pos)
{
	return -ESTALE;
}

/* For userfaultfd_read_iter(), which later kernels have in its place. */
static ssize_t __maybe_unused vendor_read_iter(struct kiocb *iocb, struct iov_iter *to)
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
