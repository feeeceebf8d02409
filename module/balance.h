/* SPDX-License-Identifier: GPL-2.0-only */
/* The balance: the workers of a listening socket are woken in turn. */
#ifndef FLOWFD_BALANCE_H
#define FLOWFD_BALANCE_H

#include <linux/types.h>

void flowfd_balance_init(void);
long flowfd_balance_create(const void __user *argp, size_t size);

#endif /* FLOWFD_BALANCE_H */
