/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counter of a history, by its ABI alone: system calls in, wakeups out. It has its
 * count in the kernel, in memory, or in memory without the module.
 */
#ifndef FLOWFD_SIM_SUBJECT_H
#define FLOWFD_SIM_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

enum store { IN_KERNEL, IN_MEMORY, WITHOUT_MODULE };

struct subject {
	enum store store;
	bool semaphore;
	bool one_consumer;
	bool no_poll;
	unsigned int overflow; /* without the module */
	bool marks; /* a mark or a bucket held readers back at some time */
	uint64_t added, took; /* by calls that succeeded */
	uint64_t accepted; /* by adds of any kind that succeeded */
	uint64_t last_add; /* step at which the last add that succeeded began */
};

extern struct subject subject;

struct flowfd_flow;
struct poll_table_struct;

void subject_init(void);
/* @dying: tasks will die */
void subject_begin(enum store store, bool bridges, bool dying);
/* After all tasks have ended. */
void subject_end(void);

/* By calls of the module. 0 or a negative errno. */
int subject_write(uint64_t value, uint64_t timeout, bool nonblock, bool urgent);
int subject_read(uint64_t *value, uint64_t timeout, bool nonblock);
int subject_notify(void);

/* By any way that there is. */
bool subject_add(uint64_t value);
bool subject_take(void);
int subject_add_waiting(uint64_t value, uint64_t timeout);
int subject_take_waiting(uint64_t timeout);

unsigned int subject_poll(struct poll_table_struct *wait);
void subject_set_randomly(void);
void subject_get(struct flowfd_flow *flow);
/* The process of the caller ends here. */
void subject_die(void) __attribute__((noreturn));

/* Of the eventfd of a counter without the module. */
int subject_eventfd_add(uint64_t value);
int subject_eventfd_take(uint64_t *value);
int subject_ioctl(unsigned int request, void *argument);
/* The text of its fdinfo. */
const char *subject_fdinfo(void);

#endif /* FLOWFD_SIM_SUBJECT_H */
