// SPDX-License-Identifier: MIT
/*
 * Adding to and taking from counters in memory by calls: what flowfd_add() and
 * flowfd_take() do if memory is not enough, and the same with a timeout.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "deadline.h"
#include "doorbell.h"
#include "mapped.h"
#include "sanitizer.h"
#include "words.h"

int flowfd_counter_write(const struct flowfd_counter *c, uint64_t value)
{
	if (c->doorbell)
		return flowfd__doorbell_add(c, value, FLOWFD__NEVER);
	return flowfd_write(c->fd, value);
}

int flowfd_counter_read(const struct flowfd_counter *c, uint64_t *value)
{
	if (c->doorbell)
		return flowfd__doorbell_take(c, value, FLOWFD__NEVER);
	return flowfd_read(c->fd, value);
}

/* A read that does not wait on a blocking descriptor, and is no cancellation point. */
static int read_at_once(int fd, uint64_t *value)
{
	int saved = errno, error;
	uint64_t count;
	struct iovec buffer = { .iov_base = &count, .iov_len = sizeof(count) };
	long bytes = syscall(SYS_preadv2, fd, &buffer, 1, -1L, -1L, RWF_NOWAIT);

	if (bytes < 0) {
		error = flowfd__refused(-errno);
		errno = saved;
		return error;
	}
	if (bytes != sizeof(count))
		return -EIO;
	flowfd__stored(&count, bytes);
	*value = count;
	return 0;
}

int flowfd_counter_try_read(const struct flowfd_counter *c, uint64_t *value)
{
	uint64_t consumed;

	if (c->doorbell)
		return flowfd__doorbell_try_take(c, value);
	if (!(c->roles & FLOWFD_CONSUMER))
		return read_at_once(c->fd, value);
	if (flowfd_counter_take(c, value))
		return 0;
	/* This may follow a wakeup, so it arms (rule 4). What was taken is no count. */
	consumed = __atomic_load_n(&c->take.consumer->consumed, __ATOMIC_ACQUIRE);
	flowfd_counter_arm(c, consumed);
	return -EAGAIN;
}

static bool is_nonblocking(int fd)
{
	int saved = errno, flags = fcntl(fd, F_GETFL);

	errno = saved;
	return flags >= 0 && flags & O_NONBLOCK;
}

/* Which write(2) to a blocking eventfd sleeps is not known before. */
static int write_eventfd(int fd, uint64_t value, uint64_t timeout, unsigned int flags)
{
	if ((timeout || flags & FLOWFD_NONBLOCK) && !is_nonblocking(fd))
		return -EOPNOTSUPP;
	return flowfd_write(fd, value);
}

static int read_eventfd(int fd, uint64_t *value, uint64_t deadline)
{
	int ret;

	if (is_nonblocking(fd))
		deadline = FLOWFD__AT_ONCE;
	do {
		ret = read_at_once(fd, value);
		if (ret != -EAGAIN)
			return ret;
		ret = flowfd__wait_until(deadline, fd, POLLIN);
	} while (!ret);
	if (ret == -ETIMEDOUT && !read_at_once(fd, value))
		return 0;
	return ret;
}

#define LOOKS	    64		  /* between two looks at the clock */
#define SPIN_NS_MAX 1000000000ULL /* as it ignores signals */

int flowfd_take_spin(const struct flowfd_counter *c, uint64_t *value, uint64_t ns)
{
	uint64_t deadline = FLOWFD__AT_ONCE;
	int looks;

	if (ns && c->roles & FLOWFD_CONSUMER)
		deadline = flowfd__deadline(ns < SPIN_NS_MAX ? ns : SPIN_NS_MAX);
	while (deadline != FLOWFD__AT_ONCE && !flowfd__is_over(deadline)) {
		for (looks = 0; looks < LOOKS; looks++) {
			if (flowfd_counter_take(c, value))
				return 0;
			flowfd__relax();
		}
	}
	return flowfd_take(c, value);
}

static uint64_t deadline_of(uint64_t timeout, unsigned int flags)
{
	return flags & FLOWFD_NONBLOCK ? FLOWFD__AT_ONCE : flowfd__deadline(timeout);
}

/*
 * What is urgent must be a call. Without the module all is: nothing is held back. What
 * neither waits for a time nor has a flag also works with a module that is older.
 */
int flowfd_add_with(const struct flowfd_counter *c, uint64_t value, uint64_t timeout,
		    unsigned int flags)
{
	int ret = -EAGAIN;

	if (flags & ~(FLOWFD_URGENT | FLOWFD_NONBLOCK))
		return -EINVAL;
	if (!(flags & FLOWFD_URGENT) || c->doorbell)
		ret = flowfd__try_add(c, value);
	if (ret != -EAGAIN)
		return ret;
	if (!timeout && !flags)
		return flowfd_counter_write(c, value);
	if (c->doorbell)
		return flowfd__doorbell_add(c, value, deadline_of(timeout, flags));
	if (flowfd__is_eventfd(c))
		return write_eventfd(c->fd, value, timeout, flags);
	return flowfd_write_with(c->fd, value, timeout, flags);
}

int flowfd_take_with(const struct flowfd_counter *c, uint64_t *value, uint64_t timeout,
		     unsigned int flags)
{
	if (flags & ~FLOWFD_NONBLOCK)
		return -EINVAL;
	if (flowfd_counter_take(c, value))
		return 0;
	if (!timeout && !flags)
		return flowfd_counter_read(c, value);
	if (c->doorbell)
		return flowfd__doorbell_take(c, value, deadline_of(timeout, flags));
	if (flowfd__is_eventfd(c))
		return read_eventfd(c->fd, value, deadline_of(timeout, flags));
	return flowfd_read_with(c->fd, value, timeout, flags);
}
