/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private types of the flowfd module, and what its files call of each other.
 *
 * Locks: there is one, the lock of a counter's wait queue. It is taken with
 * interrupts off, from system calls and from the bucket's timer. What a wakeup
 * takes (epoll's and io_uring's locks, a run queue's) nests inside it. Nothing
 * sleeps or touches user memory under it.
 */
#ifndef FLOWFD_PRIVATE_H
#define FLOWFD_PRIVATE_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/miscdevice.h>
#include <linux/poll.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "../uapi/linux/flowfd.h"
#include "bucket.h"

/**
 * struct counter - the state behind a descriptor
 * @wqh: readers, writers and pollers; its lock protects what follows
 * @count: what a read returns, never above @maximum
 * @maximum: writes stay below it
 * @events: what poll answers, read without the lock
 * @semaphore: a read takes 1; fixed
 * @wakeup_deferred: readers are owed a wakeup, and @timer is armed for it
 * @id: number shown in fdinfo; fixed
 * @bucket: limits the wakeups of readers
 * @qos: what @bucket was made of
 * @timer: expires when @bucket has its next token
 *
 * A counter lives as long as its file. Nobody else points to it, and release
 * waits for @timer.
 */
struct counter {
	wait_queue_head_t wqh;
	u64 count;
	u64 maximum;
	__poll_t events;
	bool semaphore;
	bool wakeup_deferred;
	int id;
	struct bucket bucket;
	struct eventfd_qos qos;
	struct hrtimer timer;
};

/* counter.c */
extern const struct file_operations counter_fops;
int counter_cache_init(void);
void counter_cache_exit(void);
struct counter *counter_alloc(const struct flowfd_create_counter *args);
void counter_free(struct counter *c);
void counter_wake(struct counter *c, __poll_t events);

/* bucket.c */
bool qos_is_valid(const struct eventfd_qos *qos);
void counter_init_bucket(struct counter *c, const struct eventfd_qos *qos);
void counter_exit_bucket(struct counter *c);
void counter_replace_bucket(struct counter *c, const struct eventfd_qos *qos);
void counter_wake_readers_limited(struct counter *c);

/* device.c */
extern struct miscdevice flowfd_device;
int device_open(struct inode *inode, struct file *file);
long device_ioctl(unsigned int cmd, void __user *argp);

#endif /* FLOWFD_PRIVATE_H */
