/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters and rings that are opened by a key. */
#ifndef FLOWFD_SHARE_H
#define FLOWFD_SHARE_H

#include <linux/types.h>

struct file;

long flowfd_share(struct file *file, u64 id, void __user *argp, size_t size);
void flowfd_unshare(u64 id);
void flowfd_share_exit(void);
long flowfd_open_shared(const void __user *argp, size_t size);

#endif /* FLOWFD_SHARE_H */
