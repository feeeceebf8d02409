/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's pollers, as far as a polled file sees them. */
#ifndef FLOWFD_SIM_POLLER_H
#define FLOWFD_SIM_POLLER_H

#include <stdbool.h>
#include <stdint.h>

struct poll_table_struct;
struct poller; /* an epoll with the subject, or a multishot poll of io_uring */

/* poll(2): the events, 0 for @deadline, or -EINTR. */
int poll_events(unsigned int events, uint64_t deadline);
/* The same of another file. */
int poll_events_of(unsigned int (*poll)(struct poll_table_struct *wait),
		   unsigned int events, uint64_t deadline);
/* The first; 0 or -EINTR. */
int poll_until(unsigned int events, uint64_t deadline);

struct poller *poller_add(unsigned int (*poll)(struct poll_table_struct *wait),
			  unsigned int events, bool multishot);
/* EPOLL_CTL_MOD */
void poller_modify(struct poller *p, unsigned int events);
/* epoll_wait(2), or a completion: the events, or 0 for a signal. */
unsigned int poller_wait(struct poller *p);
/* When it was told last, as a step. */
uint64_t poller_told(const struct poller *p);
void poller_remove(struct poller *p);

#endif /* FLOWFD_SIM_POLLER_H */
