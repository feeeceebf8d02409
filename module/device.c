// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/flowfd. To open it gives a counter, whose ioctls can also create counters and
 * rings until it has got its settings.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>

#include "abi.h"
#include "balance.h"
#include "compat.h"
#include "counter.h"
#include "device.h"
#include "ring.h"
#include "share.h"

static dev_t device_number;
static struct cdev *device_cdev;
static struct class *device_class;

/* Those of a counter, but for the two below. */
static struct file_operations device_fops __ro_after_init;

/*
 * All opened files share one inode. They raise no fsnotify events: any user may add a
 * watch to that inode, which would see, and slow down, the reads and writes of all.
 */
static int device_open(struct inode *inode, struct file *file)
{
	int err = flowfd_counter_open(file);

	if (!err)
		file_raise_no_events(file);
	return err;
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct flowfd_counter *c = file->private_data;
	void __user *argp = (void __user *)arg;
	size_t size = _IOC_SIZE(cmd);

	if (READ_ONCE(c->sealed))
		return flowfd_counter_ioctl(file, cmd, arg);
	switch (without_size(cmd)) {
	case without_size(FLOWFD_IOC_CREATE_COUNTER):
		return flowfd_counter_create(argp, size);
	case without_size(FLOWFD_IOC_CREATE_RING):
		return flowfd_ring_create(argp, size);
	case without_size(FLOWFD_IOC_BALANCE):
		return flowfd_balance_create(argp, size);
	case without_size(FLOWFD_IOC_OPEN):
		return flowfd_open_shared(argp, size);
	default:
		return flowfd_counter_ioctl(file, cmd, arg);
	}
}

static char *device_node(DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static void device_remove_node(void)
{
	device_destroy(device_class, device_number);
	class_destroy(device_class);
}

static int device_add_node(void)
{
	struct device *device;

	device_class = device_class_create("flowfd");
	if (IS_ERR(device_class))
		return PTR_ERR(device_class);
	device_class->devnode = device_node;
	device = device_create(device_class, NULL, device_number, NULL, "flowfd");
	if (IS_ERR(device)) {
		class_destroy(device_class);
		return PTR_ERR(device);
	}
	return 0;
}

/*
 * Makes /dev/flowfd. Not by misc_register(): misc devices are opened under a mutex that
 * all of them share, and opening this one allocates memory.
 */
int flowfd_device_init(void)
{
	int err;

	device_fops = flowfd_counter_fops;
	device_fops.open = device_open;
	device_fops.unlocked_ioctl = device_ioctl;

	err = alloc_chrdev_region(&device_number, 0, 1, "flowfd");
	if (err)
		return err;
	device_cdev = cdev_alloc();
	if (!device_cdev) {
		err = -ENOMEM;
		goto unregister;
	}
	device_cdev->owner = THIS_MODULE;
	device_cdev->ops = &device_fops;
	err = device_add_node();
	if (err)
		goto put_cdev;
	/* Last: from here on it can be opened, and then nothing may fail. */
	err = cdev_add(device_cdev, device_number, 1);
	if (!err)
		return 0;
	device_remove_node();
put_cdev:
	kobject_put(&device_cdev->kobj);
unregister:
	unregister_chrdev_region(device_number, 1);
	return err;
}

void flowfd_device_exit(void)
{
	device_remove_node();
	cdev_del(device_cdev);
	unregister_chrdev_region(device_number, 1);
}
