/* SPDX-License-Identifier: GPL-2.0-only */
/* The counter: what is behind a descriptor that reads and writes as an eventfd. */
#ifndef FLOWFD_COUNTER_H
#define FLOWFD_COUNTER_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/wait.h>

#include "bucket.h"
#include "flowfd.h"
#include "mapped.h"

/**
 * struct flowfd_counter - the state behind a counter's descriptor
 * @wqh: readers, writers and pollers; its lock protects the members below
 * @count: what a read returns, never above @maximum
 * @maximum: writes keep @count below it
 * @mapped: of a mapped counter, whose @count and @maximum are 0; or NULL. Fixed.
 * @events: what poll returns, but of a mapped counter; read without the lock
 * @semaphore: a read takes 1
 * @write_refused: a write failed with EAGAIN since pollers were last told of room
 * @sealed: has its settings, and may not create others; never cleared
 * @wakeup_deferred: @timer will wake the readers; also read without the lock
 * @bucket: limits the wakeups of readers
 * @qos: settings of @bucket
 * @id: number shown in fdinfo; fixed
 * @last_sleeper: in @wqh, of the tasks that sleep in read or write; or NULL
 * @timer: expires when @bucket has its next token
 * @hooks: into the release of its file, see closing.c
 *
 * A counter lives as long as its file. Nothing else points to it; release waits for
 * @timer and ends @hooks.
 */
struct flowfd_counter {
	wait_queue_head_t wqh;
	u64 count;
	u64 maximum;
	struct flowfd_mapped *mapped;
	__poll_t events;
	bool semaphore;
	bool write_refused;
	bool sealed;
	bool wakeup_deferred;
	struct bucket bucket;
	struct eventfd_qos qos;
	int id;
	struct list_head *last_sleeper;
	struct hrtimer timer;
	struct rb_root hooks;
};

/* Under the lock, or by a caller that is in the queue if it wants to be woken. */
static inline bool counter_has_queue(struct flowfd_counter *c)
{
	/* The queue grows under the lock only, so no barrier is needed. */
	return waitqueue_active(&c->wqh);
}

/*
 * Has the next add in memory notify, if somebody wants to know; under the lock. Not while
 * a wakeup is deferred: the timer does it, and until then producers shall make no calls.
 * The caller looks at the count afterwards.
 */
static inline void counter_arm_readers(struct flowfd_counter *c)
{
	if (counter_has_queue(c) && !c->wakeup_deferred)
		mapped_arm(c->mapped, FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED);
}

/* Likewise for the next take. */
static inline void counter_arm_writers(struct flowfd_counter *c)
{
	if (counter_has_queue(c))
		mapped_arm(c->mapped, FLOWFD_ARMED_WRITERS);
}

/* counter_wake.c */
bool flowfd_counter_wake_one(wait_queue_entry_t *entry, __poll_t events);
void flowfd_counter_wake(struct flowfd_counter *c, __poll_t events);

/* sleeper.c */
void flowfd_sleepers_wake(struct flowfd_counter *c, __poll_t events);
void flowfd_sleepers_wake_exclusive(struct flowfd_counter *c, __poll_t events);
bool flowfd_sleepers_want(const struct flowfd_counter *c, __poll_t event);
int flowfd_sleeper_wait(struct flowfd_counter *c, __poll_t event, u64 value);

/* bucket.c */
bool flowfd_qos_is_valid(const struct eventfd_qos *qos);
void flowfd_bucket_init(struct flowfd_counter *c, const struct eventfd_qos *qos);
void flowfd_bucket_exit(struct flowfd_counter *c);
void flowfd_bucket_replace(struct flowfd_counter *c, const struct eventfd_qos *qos);
bool flowfd_bucket_admits(struct flowfd_counter *c);
void flowfd_bucket_wake(struct flowfd_counter *c);

/* counter.c */
int flowfd_counter_init(void);
void flowfd_counter_exit(void);
struct flowfd_counter *flowfd_counter_alloc(const struct flowfd_create_counter *args);
void flowfd_counter_free(struct flowfd_counter *c);
int flowfd_counter_set_up(struct flowfd_counter *c,
			  const struct flowfd_create_counter *args);
int flowfd_counter_set_maximum(struct flowfd_counter *c, u64 maximum);
ssize_t flowfd_counter_read(struct file *file, char __user *buf, size_t size,
			    loff_t *pos);
ssize_t flowfd_counter_write(struct file *file, const char __user *buf, size_t size,
			     loff_t *pos);
ssize_t flowfd_counter_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t flowfd_counter_write_iter(struct kiocb *iocb, struct iov_iter *from);
__poll_t flowfd_counter_poll(struct file *file, poll_table *wait);

/* counter_file.c */
extern const struct file_operations flowfd_counter_fops;
int flowfd_counter_open(struct file *file);
long flowfd_counter_create(const void __user *argp, size_t size);
long flowfd_counter_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
struct flowfd_counter *flowfd_counter_of(const struct file *file);

#endif /* FLOWFD_COUNTER_H */
