// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/flowfd: opening it gives a counter, and its ioctls say what the module
 * can do and create more. What there is of state belongs to module init and exit.
 */
#include <linux/anon_inodes.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/file.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "flowfd.h"

static_assert(sizeof(struct flowfd_query) == FLOWFD_QUERY_SIZE_VER0);
static_assert(sizeof(struct flowfd_create_counter) ==
	      FLOWFD_CREATE_COUNTER_SIZE_VER0);
static_assert(sizeof(struct flowfd_create_ring) ==
	      FLOWFD_CREATE_RING_SIZE_VER0);

static dev_t device_number;
static struct cdev *device_cdev;
static struct class *device_class;

/*
 * A counter has no file position, and read and write never wait when they are
 * asked not to. F_GETFL says of it what it says of an eventfd.
 */
static void counter_file_init(struct file *file)
{
	file->f_flags &= ~O_LARGEFILE;
	file->f_mode &= ~(FMODE_PREAD | FMODE_PWRITE);
	file->f_mode |= FMODE_STREAM | FMODE_NOWAIT;
}

/**
 * device_open - open /dev/flowfd
 * @inode: of the device node
 * @file: becomes a counter without maximum or bucket
 */
int device_open(struct inode *inode, struct file *file)
{
	static const struct flowfd_create_counter as_eventfd;
	struct counter *c = counter_alloc(&as_eventfd);

	if (IS_ERR(c))
		return PTR_ERR(c);
	c->sealed = false;
	file->private_data = c;
	counter_file_init(file);
	/*
	 * All that is opened shares one inode. A watch that any user may put on it
	 * would see, and slow down, everybody's reads and writes.
	 */
	file_raise_no_events(file);
	return 0;
}

static int counter_create(const struct flowfd_create_counter *args)
{
	struct counter *c;
	struct file *file;
	int fd, err;

	fd = get_unused_fd_flags(args->flags & FLOWFD_KEEP_ON_EXEC ?
				 0 : O_CLOEXEC);
	if (fd < 0)
		return fd;
	c = counter_alloc(args);
	if (IS_ERR(c)) {
		err = PTR_ERR(c);
		goto put_fd;
	}
	file = anon_inode_getfile("[flowfd]", &counter_fops, c,
				  args->flags & FLOWFD_NONBLOCK ?
				  O_RDWR | O_NONBLOCK : O_RDWR);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto free_counter;
	}
	counter_file_init(file);
	fd_install(fd, file);
	return fd;

free_counter:
	counter_free(c);
put_fd:
	put_unused_fd(fd);
	return err;
}

static bool create_counter_is_valid(const struct flowfd_create_counter *args,
				    u32 flags)
{
	if (args->flags & ~flags)
		return false;
	if (args->reserved)
		return false;
	if (args->initial >= (args->maximum ?: U64_MAX))
		return false;
	if (args->flags & FLOWFD_SEMAPHORE &&
	    (args->qos.token_capacity || args->qos.token_rate))
		return false;
	return qos_is_valid(&args->qos);
}

static int get_counter_args(struct flowfd_create_counter *args, u32 flags,
			    const void __user *argp, size_t size)
{
	int err;

	if (size < FLOWFD_CREATE_COUNTER_SIZE_VER0)
		return -EINVAL;
	err = copy_struct_from_user(args, sizeof(*args), argp, size);
	if (err)
		return err;
	return create_counter_is_valid(args, flags) ? 0 : -EINVAL;
}

static long device_create_counter(const void __user *argp, size_t size)
{
	struct flowfd_create_counter args;
	int err;

	err = get_counter_args(&args, FLOWFD_SEMAPHORE | FLOWFD_NONBLOCK |
				      FLOWFD_KEEP_ON_EXEC, argp, size);
	return err ?: counter_create(&args);
}

static long device_setup_counter(struct file *file, const void __user *argp,
				 size_t size)
{
	struct flowfd_create_counter args;
	int err;

	if (~file->f_mode & (FMODE_READ | FMODE_WRITE))
		return -EBADF;
	err = get_counter_args(&args, FLOWFD_SEMAPHORE, argp, size);
	return err ?: counter_setup(file->private_data, &args);
}

/*
 * Makes a descriptor of a ring and tells about it before anybody can use it. The
 * ring is the file's once there is a file.
 */
static int ring_install(struct ring *ring, struct flowfd_create_ring *args,
			void __user *argp)
{
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(args->flags & FLOWFD_KEEP_ON_EXEC ?
				 0 : O_CLOEXEC);
	if (fd < 0) {
		ring_put(ring);
		return fd;
	}
	file = anon_inode_getfile("[flowfd-ring]", &ring_fops, ring, O_RDWR);
	if (IS_ERR(file)) {
		ring_put(ring);
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	ring_describe(ring, args);
	if (copy_to_user(argp, args, sizeof(*args))) {
		fput(file);
		put_unused_fd(fd);
		return -EFAULT;
	}
	fd_install(fd, file);
	return fd;
}

static long device_create_ring(void __user *argp, size_t size)
{
	struct flowfd_create_ring args;
	struct ring *ring;
	int err;

	if (size < FLOWFD_CREATE_RING_SIZE_VER0)
		return -EINVAL;
	err = copy_struct_from_user(&args, sizeof(args), argp, size);
	if (err)
		return err;
	if (args.flags & ~FLOWFD_KEEP_ON_EXEC)
		return -EINVAL;
	if (!args.max_items || args.max_items > FLOWFD_RING_ITEMS_MAX)
		return -EINVAL;
	ring = ring_alloc(args.max_items);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	return ring_install(ring, &args, argp);
}

/**
 * device_answer - store a structure in user memory
 * @argp: where to
 * @size: the caller's size of it; what it holds beyond @known is zeroed
 * @answer: structure
 * @known: the module's size of it
 *
 * Return: 0 or -EFAULT.
 */
long device_answer(void __user *argp, size_t size, const void *answer,
		   size_t known)
{
	known = min(size, known);
	if (copy_to_user(argp, answer, known) ||
	    clear_user(argp + known, size - known))
		return -EFAULT;
	return 0;
}

static long device_query(void __user *argp, size_t size)
{
	static const struct flowfd_query query = {
		.abi_version	= FLOWFD_ABI_VERSION,
		.token_rate_max	= FLOWFD_TOKEN_RATE_MAX,
		.features	= FLOWFD_FEATURE_MAXIMUM | FLOWFD_FEATURE_QOS |
				  FLOWFD_FEATURE_RING | FLOWFD_FEATURE_SETUP,
	};

	if (size < FLOWFD_QUERY_SIZE_VER0)
		return -EINVAL;
	return device_answer(argp, size, &query, sizeof(query));
}

/* The caller's size of the structure is not part of the command. */
#define without_size(cmd) ((cmd) & ~IOCSIZE_MASK)

/**
 * device_ioctl - ioctls of every descriptor
 * @cmd: command, with the caller's size of its structure in it
 * @argp: structure in user memory
 *
 * Creates nothing: whoever was given a counter or a ring was not given that right.
 *
 * Return: 0 or a negative errno.
 */
long device_ioctl(unsigned int cmd, void __user *argp)
{
	switch (without_size(cmd)) {
	case without_size(FLOWFD_IOC_QUERY):
		return device_query(argp, _IOC_SIZE(cmd));
	case without_size(FLOWFD_IOC_CREATE_COUNTER):
	case without_size(FLOWFD_IOC_CREATE_RING):
		return -EPERM;
	default:
		return -ENOTTY;
	}
}

/**
 * device_counter_ioctl - ioctls of a counter that do not concern its count
 * @file: of the counter
 * @cmd: command, with the caller's size of its structure in it
 * @argp: structure in user memory
 *
 * Return: 0, a new descriptor or a negative errno.
 */
long device_counter_ioctl(struct file *file, unsigned int cmd,
			  void __user *argp)
{
	const struct counter *c = file->private_data;
	size_t size = _IOC_SIZE(cmd);

	if (without_size(cmd) == without_size(FLOWFD_IOC_SETUP_COUNTER))
		return device_setup_counter(file, argp, size);
	if (READ_ONCE(c->sealed))
		return device_ioctl(cmd, argp);
	switch (without_size(cmd)) {
	case without_size(FLOWFD_IOC_CREATE_COUNTER):
		return device_create_counter(argp, size);
	case without_size(FLOWFD_IOC_CREATE_RING):
		return device_create_ring(argp, size);
	default:
		return device_ioctl(cmd, argp);
	}
}

static char *device_node(DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static int device_add_node(void)
{
	struct device *device;

	device_class = device_class_create("flowfd");
	if (IS_ERR(device_class))
		return PTR_ERR(device_class);
	device_class->devnode = device_node;
	device = device_create(device_class, NULL, device_number, NULL,
			       "flowfd");
	if (IS_ERR(device)) {
		class_destroy(device_class);
		return PTR_ERR(device);
	}
	return 0;
}

/**
 * device_init - make /dev/flowfd
 *
 * Not by misc_register(): misc devices are opened under a mutex that all of them
 * share, and opening this one allocates memory.
 *
 * Return: 0 or a negative errno. Then it can be opened at once.
 */
int device_init(void)
{
	int err;

	err = alloc_chrdev_region(&device_number, 0, 1, "flowfd");
	if (err)
		return err;
	device_cdev = cdev_alloc();
	if (!device_cdev) {
		err = -ENOMEM;
		goto unregister;
	}
	device_cdev->owner = THIS_MODULE;
	device_cdev->ops = &counter_fops;
	err = cdev_add(device_cdev, device_number, 1);
	if (err) {
		kobject_put(&device_cdev->kobj);
		goto unregister;
	}
	err = device_add_node();
	if (!err)
		return 0;
	cdev_del(device_cdev);
unregister:
	unregister_chrdev_region(device_number, 1);
	return err;
}

/** device_exit - remove /dev/flowfd */
void device_exit(void)
{
	device_destroy(device_class, device_number);
	class_destroy(device_class);
	cdev_del(device_cdev);
	unregister_chrdev_region(device_number, 1);
}
