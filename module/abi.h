/* SPDX-License-Identifier: GPL-2.0-only */
/* What the ioctls of all descriptors share. */
#ifndef FLOWFD_ABI_H
#define FLOWFD_ABI_H

#include <linux/types.h>

#include "../uapi/linux/flowfd.h"

struct file;

/*
 * An ioctl's command without the size of the caller's structure: structures can grow,
 * and the size is then the caller's version.
 */
#define without_size(cmd) ((cmd) & ~IOCSIZE_MASK)

int flowfd_copy_args(void *args, size_t known, size_t least, const void __user *argp,
		     size_t size);
long flowfd_copy_answer(void __user *argp, size_t size, const void *answer, size_t known,
			size_t least);
int flowfd_install_file(struct file *file, u32 flags);
long flowfd_common_ioctl(unsigned int cmd, void __user *argp);

#endif /* FLOWFD_ABI_H */
