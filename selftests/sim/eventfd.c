// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's eventfd: its count is under the lock of its wait queue. */
#include "eventfd.h"

static __poll_t poll_file(struct file *file, poll_table *wait)
{
	return eventfd_poll(file->private_data, wait);
}

static const struct file_operations eventfd_fops = { .poll = poll_file };

void eventfd_init(struct eventfd_ctx *e, bool semaphore)
{
	*e = (struct eventfd_ctx){ .semaphore = semaphore };
	init_waitqueue_head(&e->wqh);
	e->file = (struct file){ .f_op = &eventfd_fops, .private_data = e,
				 .f_mode = FMODE_READ | FMODE_WRITE };
}

static void wake(struct eventfd_ctx *e, __poll_t events)
{
	bool outer = current->in_eventfd;

	current->in_eventfd = 1;
	__wake_up_locked_key(&e->wqh, TASK_NORMAL, poll_to_key(events));
	current->in_eventfd = outer;
}

int eventfd_add(struct eventfd_ctx *e, u64 value)
{
	int err = -EAGAIN;

	sim_lock(&e->wqh.lock);
	if (value < U64_MAX - e->count) {
		e->count += value;
		wake(e, EPOLLIN);
		err = 0;
	}
	sim_unlock(&e->wqh.lock);
	return err;
}

void eventfd_ctx_do_read(struct eventfd_ctx *e, u64 *value)
{
	lockdep_assert_held(&e->wqh.lock);
	*value = e->semaphore && e->count ? 1 : e->count;
	e->count -= *value;
}

int eventfd_take(struct eventfd_ctx *e, u64 *value)
{
	int err = -EAGAIN;

	sim_lock(&e->wqh.lock);
	if (e->count) {
		eventfd_ctx_do_read(e, value);
		wake(e, EPOLLOUT);
		err = 0;
	}
	sim_unlock(&e->wqh.lock);
	return err;
}

__poll_t eventfd_poll(struct eventfd_ctx *e, poll_table *wait)
{
	u64 count;

	poll_wait(&e->file, &e->wqh, wait);
	count = READ_ONCE(e->count);
	return (count ? EPOLLIN : 0) | (count < U64_MAX - 1 ? EPOLLOUT : 0);
}

u64 eventfd_signal(struct eventfd_ctx *e, u64 count)
{
	if (current->in_eventfd)
		sim_fail("signals an eventfd inside the wakeup of one");
	sim_lock(&e->wqh.lock);
	count = min(count, U64_MAX - e->count);
	e->count += count;
	wake(e, EPOLLIN);
	sim_unlock(&e->wqh.lock);
	return count;
}

void eventfd_hang_up(struct eventfd_ctx *e)
{
	sim_lock(&e->wqh.lock);
	wake(e, EPOLLHUP);
	sim_unlock(&e->wqh.lock);
}

struct eventfd_ctx *eventfd_ctx_fileget(struct file *file)
{
	return file->f_op == &eventfd_fops ? file->private_data : ERR_PTR(-EINVAL);
}

struct file *eventfd_fget(int fd)
{
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	return file->f_op == &eventfd_fops ? file : ERR_PTR(-EINVAL);
}

/* It lives as long as the history. */
void eventfd_ctx_put(struct eventfd_ctx *e)
{
}
