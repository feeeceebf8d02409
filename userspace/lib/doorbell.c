// SPDX-License-Identifier: MIT
/*
 * A counter in memory without the module. docs/mapped.md has the protocol, and why no
 * wakeup is lost; docs/model/doorbell.pml is its model.
 *
 * The bits of the memory say what is in the eventfd, so that most adds and takes need no
 * system call: READERS, nothing, so the next add must ring; WRITERS, something, so the
 * next take must drain it.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "deadline.h"
#include "doorbell.h"

/* The states of a doorbell, in @armed. */
enum {
	QUIET = 0, /* empty, and no consumer waits */
	EMPTY = FLOWFD_ARMED_READERS,
	RUNG = FLOWFD_ARMED_WRITERS,	 /* readable */
	FULL = FLOWFD_ARMED_WRITERS | 8, /* readable, and not writable */
	/* A thread makes system calls; if it does not end, others do its work. */
	MOVING = FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS,
	/* A system call failed: nobody may announce what was true before. */
	FAILED = FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS | 16,
};

/* How often to let the thread run that is moving the doorbell. */
#define PATIENCE 16

/* After so many takes that found nothing, the doorbell is made sure to be empty. */
#define MISSES 64

/* The value at which an eventfd is not writable. */
#define FILLED (UINT64_MAX - 1)

enum {
	MISSED = 1, /* the caller has found no count, and may poll now */
	TOOK = 2,   /* the caller has taken: what is added from now on is an edge */
	AGAIN = 4,  /* the state may not be true: make system calls in any case */
};

/* How often to look for a count that was there at one moment. */
#define LOOKS 64

/* If others take meanwhile, all the time, it is the count or more. */
static uint64_t count_now(const struct flowfd_counter *c)
{
	const __aligned_u64 *word = &c->take.consumer->consumed;
	uint64_t consumed, produced;
	unsigned int looks = LOOKS;

	do {
		consumed = __atomic_load_n(word, __ATOMIC_SEQ_CST);
		produced = __atomic_load_n(&c->take.producer->produced, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(word, __ATOMIC_SEQ_CST) != consumed && --looks);
	return produced - consumed;
}

static bool has_room(const struct flowfd_counter *c, uint64_t count, uint64_t value)
{
	uint64_t maximum = c->add.header->maximum;

	return count < maximum && maximum - count > value;
}

/*
 * The state that fits the count. @value: the caller wants to add it, and found no room.
 * Only the one consumer makes the doorbell quiet, and only after a take: a thread that
 * comes late must not disarm it when it sleeps. So one that repeats never keeps QUIET.
 */
static uint32_t state_wanted(const struct flowfd_counter *c, uint32_t state,
			     uint64_t value, unsigned int how)
{
	uint64_t count = count_now(c);

	if (!count && state == QUIET)
		return how & (MISSED | AGAIN) ? EMPTY : QUIET;
	if (!count && (state == RUNG || state == FULL) && how == TOOK)
		return c->doorbell & DOORBELL_ONE_CONSUMER ? QUIET : EMPTY;
	if (!count)
		return EMPTY;
	if (value && !has_room(c, count, value))
		return FULL;
	if (state == FULL && !has_room(c, count, 1))
		return FULL;
	return state == QUIET && !(how & AGAIN) ? QUIET : RUNG;
}

/* The eventfd does not block: -EAGAIN says that it was empty, or rung already. */
static int transfer_result(long bytes, int saved)
{
	int ret = bytes < 0 && errno != EAGAIN ? -errno : 0;

	errno = saved;
	return ret;
}

/* Neither is a cancellation point. @value stays if it is empty. */
static int drain(int fd, uint64_t *value)
{
	int saved = errno;

	return transfer_result(syscall(SYS_read, fd, value, sizeof(*value)), saved);
}

int flowfd__eventfd_write(int fd, uint64_t value)
{
	int saved = errno;

	return transfer_result(syscall(SYS_write, fd, &value, sizeof(value)), saved);
}

static int move(int fd, uint32_t from, uint32_t to)
{
	uint64_t value;
	int ret = 0;

	/* An eventfd that is not empty cannot be filled. */
	if (from == FULL || from == MOVING || to == FULL || (from == RUNG && to != RUNG))
		ret = drain(fd, &value);
	if (!ret && to == RUNG)
		ret = flowfd__eventfd_write(fd, 1);
	else if (!ret && to == FULL)
		ret = flowfd__eventfd_write(fd, FILLED);
	return ret;
}

static bool exchange(const struct flowfd_counter *c, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&c->take.consumer->armed, &from, to, 0,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Edge-triggered pollers get an edge for what was added after a take, even if the state
 * is right. The one consumer has promised to take until there is nothing.
 */
static bool needs_edge(const struct flowfd_counter *c, uint32_t state, unsigned int how)
{
	return how & TOOK && state & RUNG && !(c->doorbell & DOORBELL_ONE_CONSUMER);
}

/*
 * Announces that it makes system calls, makes them, and announces the new state. If
 * another announced one meanwhile, the order of their system calls is not known, and it
 * makes them again. Ends when the count is as it was when the state was announced (b).
 * If the descriptor was closed here, it leaves FAILED: a thread that moves the doorbell
 * repeats, or the next add or take of another process settles. Returns 0 or a negative
 * errno.
 */
static int settle(const struct flowfd_counter *c, uint64_t value, unsigned int how)
{
	unsigned int patience = PATIENCE;
	uint32_t state, wanted;
	int ret;

	for (;;) {
		state = __atomic_load_n(&c->take.consumer->armed, __ATOMIC_SEQ_CST);
		wanted = state_wanted(c, state, value, how);
		if (state == wanted && !(how & AGAIN) && !needs_edge(c, state, how))
			return 0;
		if (state == MOVING && patience) {
			patience--;
			sched_yield();
			continue;
		}
		if (!exchange(c, state, MOVING))
			continue;
		if (how & AGAIN || state == FAILED)
			state = MOVING;
		ret = move(c->fd, state, wanted);
		if (ret) {
			__atomic_store_n(&c->take.consumer->armed, FAILED,
					 __ATOMIC_SEQ_CST);
			return ret;
		}
		how &= ~(AGAIN | TOOK);
		if (!exchange(c, MOVING, wanted))
			how |= AGAIN;
	}
}

/*
 * What emulates eventfd(2), such as flowfd-run, can have a maximum, and then could not be
 * filled: such a write fails, or its value is lost, all or in part.
 */
int flowfd__doorbell_start(const struct flowfd_counter *c)
{
	uint64_t value = 0;

	if (flowfd__eventfd_write(c->fd, FILLED) || drain(c->fd, &value) ||
	    value != FILLED)
		return -EOPNOTSUPP;
	__atomic_store_n(&c->take.consumer->armed, EMPTY, __ATOMIC_SEQ_CST);
	return settle(c, 0, 0);
}

int flowfd__doorbell_notify(const struct flowfd_counter *c, unsigned int role)
{
	if (!c->roles)
		return -ENODEV;
	return settle(c, 0, role == FLOWFD_CONSUMER ? TOOK : 0);
}

/*
 * Whether to make sure of the state, after so many wakeups without room. Once, another
 * thread may have been faster. Ever rarer, because it wakes all others that wait.
 */
static bool is_doubtful(unsigned int wakeups)
{
	return wakeups > 1 && !(wakeups & (wakeups - 1));
}

int flowfd__doorbell_add(const struct flowfd_counter *c, uint64_t value,
			 uint64_t deadline)
{
	unsigned int wakeups = 0;
	int ret = 0;

	if (!c->roles)
		return -ENODEV;
	if (value >= c->add.header->maximum)
		return -EINVAL;
	if (c->doorbell & DOORBELL_NONBLOCK)
		deadline = FLOWFD__AT_ONCE;
	while (!ret) {
		ret = settle(c, value, is_doubtful(wakeups) ? AGAIN : 0);
		if (flowfd_counter_add(c, value))
			return 0;
		if (ret)
			break;
		/* It may have looked at an old @consumed. */
		if (has_room(c, count_now(c), value) && !flowfd__is_over(deadline))
			continue;
		ret = flowfd__wait_until(deadline, c->fd, POLLOUT);
		wakeups++;
	}
	return ret == -ETIMEDOUT && flowfd_counter_add(c, value) ? 0 : ret;
}

int flowfd__doorbell_take(const struct flowfd_counter *c, uint64_t *value,
			  uint64_t deadline)
{
	unsigned int vain = 0;
	int ret = 0;

	if (!c->roles)
		return -ENODEV;
	if (c->doorbell & DOORBELL_NONBLOCK || deadline == FLOWFD__AT_ONCE)
		return flowfd__doorbell_try_take(c, value);
	while (!ret) {
		/* Readable twice for nothing: once, another thread may have been faster. */
		ret = settle(c, 0, vain > 1 ? MISSED | AGAIN : MISSED);
		if (flowfd_counter_take(c, value))
			return 0;
		if (!ret)
			ret = flowfd__wait_until(deadline, c->fd, POLLIN);
		vain = count_now(c) ? 0 : vain + 1;
	}
	/* The last look needs no wakeup. */
	return ret == -ETIMEDOUT && flowfd_counter_take(c, value) ? 0 : ret;
}

int flowfd__doorbell_try_take(const struct flowfd_counter *c, uint64_t *value)
{
	struct flowfd_counter_consumer *consumer = c->take.consumer;
	uint32_t misses;
	int ret;

	if (!c->roles)
		return -ENODEV;
	misses = __atomic_load_n(&consumer->reserved, __ATOMIC_RELAXED) + 1;
	__atomic_store_n(&consumer->reserved, misses, __ATOMIC_RELAXED);
	ret = settle(c, 0, misses % MISSES ? MISSED : MISSED | AGAIN);
	if (flowfd_counter_take(c, value))
		return 0;
	return ret ? ret : -EAGAIN;
}
