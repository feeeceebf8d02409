/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's eventfd, for bridges, and for counters without the module. */
#ifndef FLOWFD_SIM_EVENTFD_H
#define FLOWFD_SIM_EVENTFD_H

#include "kernel.h"

struct eventfd_ctx {
	wait_queue_head_t wqh;
	u64 count;
	bool semaphore;
	struct file file;
};

void eventfd_init(struct eventfd_ctx *e, bool semaphore);
/* As write(2) and read(2) of one that does not block. */
int eventfd_add(struct eventfd_ctx *e, u64 value);
int eventfd_take(struct eventfd_ctx *e, u64 *value);
__poll_t eventfd_poll(struct eventfd_ctx *e, poll_table *wait);
/* The last file is closed. */
void eventfd_hang_up(struct eventfd_ctx *e);

#endif /* FLOWFD_SIM_EVENTFD_H */
