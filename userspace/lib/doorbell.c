// SPDX-License-Identifier: MIT
/*
 * A counter in memory without the module. docs/mapped.md has the protocol, and why no
 * wakeup is lost; docs/model/doorbell.pml is its model, for one consumer.
 *
 * The bits of the memory say what is in the eventfd, so that most adds and takes need no
 * system call: READERS, nothing, so the next add must ring; WRITERS, something, so the
 * next take must drain it.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "deadline.h"
#include "doorbell.h"
#include "doze.h"
#include "eventfd.h"
#include "mapped.h"
#include "unpolled.h"
#include "words.h"

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
	/* Empty, and the one consumer sleeps on @armed, which has a number in the rest. */
	ASLEEP = FLOWFD_ARMED_READERS | 32,
};

#define STATES 0xff /* the bits of all of them */

#define TURN (STATES + 1U)

/*
 * How often to look whether the thread that moves the doorbell has ended. It may be one that
 * the caller has interrupted, so this is short; and no sched_yield(2), which would let all
 * others of the processor run first.
 */
#define PATIENCE 16

/* After so many takes that found nothing, the doorbell is made sure to be empty. */
#define MISSES 64

/* The value at which an eventfd is not writable. */
#define FILLED (UINT64_MAX - 1)

enum {
	MISSED = 1, /* the caller has found no count, and may poll now */
	TOOK = 2,   /* the caller has taken: what is added from now on is an edge */
	AGAIN = 4,  /* the state may not be true: make system calls in any case */
	CHANGED =
		8, /* the settings have changed: what was refused or waits looks again */
};

/* How often to try what kind an eventfd has, if others use it meanwhile. */
#define PROBES 16

/* How often to settle, if others change the state each time: see FAILED. */
#define ROUNDS 1024

static bool is_asleep(uint32_t state)
{
	return (state & STATES) == ASLEEP;
}

/* ASLEEP with a number that the word has not had for long. */
static uint32_t new_sleep(const struct flowfd_counter *c)
{
	uint32_t *sleeps = &flowfd__consumer_page(c)->sleeps;

	return ASLEEP + TURN * __atomic_add_fetch(sleeps, 1, __ATOMIC_RELAXED);
}

/*
 * The state that fits the count. @value: the caller wants to add it, and found no room.
 * Only the one consumer makes the doorbell quiet, and only after a take: a thread that
 * comes late must not disarm it when it sleeps. So one that repeats never keeps QUIET.
 */
static uint32_t state_wanted(const struct flowfd_counter *c, uint32_t state,
			     uint64_t value, unsigned int how)
{
	uint64_t count = flowfd__count(c);

	if (!count && state == QUIET)
		return how & (MISSED | AGAIN) ? EMPTY : QUIET;
	if (!count && (state == RUNG || state == FULL) && how == TOOK)
		return c->doorbell & DOORBELL_ONE_CONSUMER ? QUIET : EMPTY;
	if (!count)
		return is_asleep(state) && !(how & (MISSED | AGAIN)) ? state : EMPTY;
	if (value && !flowfd__has_room(c, count, value) && !flowfd__never_waits(c))
		return FULL;
	if (state == FULL && !flowfd__has_room(c, count, 1) && !(how & CHANGED))
		return FULL;
	if (state == QUIET || is_asleep(state))
		return how & AGAIN ? RUNG : QUIET;
	return RUNG;
}

static int move(int fd, uint32_t from, uint32_t to)
{
	uint64_t value;
	int ret = 0;

	/* An eventfd that is not empty cannot be filled. */
	if (from == FULL || from == MOVING || to == FULL || (from == RUNG && to != RUNG))
		ret = flowfd__eventfd_drain(fd, &value);
	if (!ret && to == RUNG)
		ret = flowfd__eventfd_write(fd, 1);
	else if (!ret && to == FULL)
		ret = flowfd__eventfd_write(fd, FILLED);
	return ret;
}

static bool exchange(const struct flowfd_counter *c, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(flowfd__armed(c), &from, to, 0,
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

static void fail(const struct flowfd_counter *c)
{
	__atomic_store_n(flowfd__armed(c), FAILED, __ATOMIC_SEQ_CST);
}

/*
 * Changes the word, so that the consumer does not go to sleep if it looked before, and
 * wakes it. False: another was faster.
 */
static bool wake_consumer(const struct flowfd_counter *c, uint32_t *state)
{
	uint32_t told = new_sleep(c);

	if (!exchange(c, *state, told))
		return false;
	*state = told;
	flowfd__rouse(flowfd__armed(c), FLOWFD_ARMED_READERS);
	return true;
}

/* An eventfd that is empty, and stays so. */
static bool needs_no_calls(uint32_t from, uint32_t to, unsigned int how)
{
	return (from == QUIET || is_asleep(from)) && (to == QUIET || to == EMPTY) &&
	       !(how & AGAIN);
}

/*
 * Announces that it makes system calls, makes them, and announces the new state. If
 * another announced one meanwhile, the order of their system calls is not known, and it
 * makes them again. Ends when the count is as it was when the state was announced (b).
 * If the descriptor was closed here, it leaves FAILED: a thread that moves the doorbell
 * repeats, or the next add or take of another process settles. The one consumer is woken
 * before the state says so, as the process can be killed in between. Returns 0 or a
 * negative errno.
 */
static int settle(const struct flowfd_counter *c, uint64_t value, unsigned int how)
{
	unsigned int patience = PATIENCE, rounds = ROUNDS;
	uint32_t state, wanted;
	int ret;

	while (rounds--) {
		state = __atomic_load_n(flowfd__armed(c), __ATOMIC_SEQ_CST);
		wanted = state_wanted(c, state, value, how);
		if (state == wanted && !(how & AGAIN) && !needs_edge(c, state, how))
			return 0;
		if (state == MOVING && patience) {
			patience--;
			flowfd__relax();
			continue;
		}
		if (is_asleep(state) && !wake_consumer(c, &state))
			continue;
		/* It may have been stored over the sleep of the one consumer. */
		if (state == FAILED)
			flowfd__rouse(flowfd__armed(c), FLOWFD_ARMED_READERS);
		if (needs_no_calls(state, wanted, how)) {
			exchange(c, state, wanted);
			continue;
		}
		if (!exchange(c, state, MOVING))
			continue;
		if (how & AGAIN || state == FAILED)
			state = MOVING;
		ret = move(c->fd, state, wanted);
		if (ret) {
			fail(c);
			return flowfd__refused(ret);
		}
		how &= ~(AGAIN | TOOK | CHANGED);
		if (!exchange(c, MOVING, wanted))
			how |= AGAIN;
	}
	fail(c);
	return 0;
}

/*
 * What emulates eventfd(2), such as flowfd-run, can have a maximum, and then could not be
 * filled: such a write fails, or its value is lost, all or in part.
 */
int flowfd__doorbell_start(const struct flowfd_counter *c)
{
	uint64_t value = 0;

	if (flowfd__eventfd_write(c->fd, FILLED) ||
	    flowfd__eventfd_drain(c->fd, &value) || value != FILLED)
		return -EOPNOTSUPP;
	__atomic_store_n(flowfd__armed(c), EMPTY, __ATOMIC_SEQ_CST);
	return settle(c, 0, 0);
}

/* What one read gives of 2 that were added, without them; 0 if it does not tell. */
static int probe(int fd, uint64_t *rest)
{
	uint64_t value = 0, second = 0;
	int ret = flowfd__eventfd_write(fd, 2);

	if (!ret)
		ret = flowfd__eventfd_drain(fd, &value);
	if (ret)
		return ret;
	*rest = 0;
	if (value == 1)
		return flowfd__eventfd_drain(fd, &second);
	if (value > 1)
		*rest = value;
	return 0;
}

/*
 * Only one that is no semaphore gives more than 1 at a time, so nobody can make one pass.
 * Others that use it meanwhile can take what was added, or be so late that 1 is theirs. What
 * they may have missed is put back, and then the state is made sure.
 */
int flowfd__doorbell_probe(const struct flowfd_counter *c)
{
	unsigned int tries = PROBES;
	uint64_t rest = 0;
	int ret = 0;

	while (!ret && !rest && tries--)
		ret = probe(c->fd, &rest);
	if (ret)
		return ret;
	if (!rest)
		return -ENOTTY;
	ret = rest > 2 ? flowfd__eventfd_write(c->fd, rest - 2) : 0;
	return ret ? ret : settle(c, 0, AGAIN);
}

int flowfd__doorbell_notify(const struct flowfd_counter *c, unsigned int role)
{
	if (c->doorbell & DOORBELL_NO_POLL) {
		flowfd__unpolled_notify(c);
		return 0;
	}
	return settle(c, 0, role == FLOWFD_CONSUMER ? TOOK : 0);
}

void flowfd__doorbell_changed(const struct flowfd_counter *c)
{
	if (c->doorbell & DOORBELL_NO_POLL)
		flowfd__unpolled_notify(c);
	else
		settle(c, 0, CHANGED);
}

/*
 * Whether to make sure of the state, after so many wakeups without room. Once, another
 * thread may have been faster. Ever rarer, because it wakes all others that wait.
 */
static bool is_doubtful(unsigned int wakeups)
{
	return wakeups > 1 && !(wakeups & (wakeups - 1));
}

/* What is refused must be announced by the next take: then pollers see room. */
static bool is_announced(const struct flowfd_counter *c)
{
	return __atomic_load_n(flowfd__armed(c), __ATOMIC_SEQ_CST) == FULL;
}

/* Settings can change while it waits, so each look without room begins with them. */
static int add_or_wait(const struct flowfd_counter *c, uint64_t value, uint64_t deadline)
{
	unsigned int wakeups = 0, vain = 0;
	int ret, settled, added;

	for (;;) {
		ret = flowfd__overflows(c, value, &deadline);
		if (ret <= 0)
			return ret;
		settled = settle(c, value, is_doubtful(wakeups) ? AGAIN : 0);
		added = flowfd__try_add(c, value);
		if (added != -EAGAIN)
			return added;
		ret = settled ? settled : flowfd__rest(&vain, deadline);
		if (ret)
			break;
		/* Perhaps it has to answer now, and nobody will tell it. */
		if (deadline != FLOWFD__AT_ONCE && !flowfd__may_wait(c, value))
			continue;
		/* It may have looked at an old @consumed. */
		if (flowfd__has_room(c, flowfd__count(c), value) &&
		    !flowfd__is_over(deadline))
			continue;
		if (deadline == FLOWFD__AT_ONCE && !is_announced(c))
			continue;
		ret = flowfd__wait_until(deadline, c->fd, POLLOUT);
		if (ret)
			break;
		wakeups++;
	}
	added = ret == -ETIMEDOUT ? flowfd__try_add(c, value) : -EAGAIN;
	return added == -EAGAIN ? ret : added;
}

static int add(const struct flowfd_counter *c, uint64_t value, uint64_t deadline)
{
	int ret = add_or_wait(c, value, deadline);

	/* Pollers shall not see room for what was refused. */
	if (ret == -EAGAIN)
		return ret;
	/*
	 * What others wait to add may fit: it was FULL for this caller alone, or for one
	 * that was killed.
	 */
	return settle(c, 0, 0) && !ret ? -EPERM : ret;
}

int flowfd__doorbell_add(const struct flowfd_counter *c, uint64_t value,
			 uint64_t deadline)
{
	if (!c->roles)
		return -ENODEV;
	if (c->doorbell & DOORBELL_NONBLOCK)
		deadline = FLOWFD__AT_ONCE;
	if (c->doorbell & DOORBELL_NO_POLL)
		return flowfd__unpolled_add(c, value, deadline);
	return add(c, value, deadline);
}

/* Many threads sleep in poll(2). */
static int take_of_many(const struct flowfd_counter *c, uint64_t *value,
			uint64_t deadline)
{
	unsigned int vain = 0, looks = 0;
	int ret = 0;

	while (!ret) {
		/* Readable twice for nothing: once, another thread may have been faster. */
		ret = settle(c, 0, vain > 1 ? MISSED | AGAIN : MISSED);
		if (flowfd_counter_take(c, value))
			return 0;
		if (!ret)
			ret = flowfd__rest(&looks, deadline);
		if (!ret)
			ret = flowfd__wait_until(deadline, c->fd, POLLIN);
		vain = flowfd__count(c) ? 0 : vain + 1;
	}
	/* The last look needs no wakeup. */
	return ret == -ETIMEDOUT && flowfd_counter_take(c, value) ? 0 : ret;
}

/*
 * If the eventfd is empty, nobody but this thread needs to be told of a count, so it is
 * told without the eventfd. Returns what flowfd__doze() returns.
 */
static int sleep_alone(const struct flowfd_counter *c, uint64_t deadline)
{
	uint32_t state = __atomic_load_n(flowfd__armed(c), __ATOMIC_SEQ_CST);
	uint32_t asleep;

	if (state != QUIET && state != EMPTY && !is_asleep(state))
		return settle(c, 0, MISSED);
	asleep = new_sleep(c);
	if (!exchange(c, state, asleep))
		return 0;
	/* b */
	if (flowfd__count(c))
		return 0;
	return flowfd__doze(flowfd__armed(c), asleep, FLOWFD_ARMED_READERS, deadline);
}

static int take_alone(const struct flowfd_counter *c, uint64_t *value, uint64_t deadline)
{
	unsigned int looks = 0;
	int ret = 0, settled;

	while (!flowfd_counter_take(c, value)) {
		if (ret)
			return ret;
		ret = sleep_alone(c, deadline);
		if (!ret)
			ret = flowfd__rest(&looks, deadline);
		if (!ret && !flowfd__count(c) && flowfd__is_over(deadline))
			ret = -ETIMEDOUT;
		/* The caller may poll now. */
		settled = ret ? settle(c, 0, MISSED) : 0;
		if (settled)
			ret = settled;
	}
	return 0;
}

int flowfd__doorbell_take(const struct flowfd_counter *c, uint64_t *value,
			  uint64_t deadline)
{
	if (!c->roles)
		return -ENODEV;
	if (c->doorbell & DOORBELL_NONBLOCK || deadline == FLOWFD__AT_ONCE)
		return flowfd__doorbell_try_take(c, value);
	if (c->doorbell & DOORBELL_NO_POLL)
		return flowfd__unpolled_take(c, value, deadline);
	if (c->doorbell & DOORBELL_ONE_CONSUMER)
		return take_alone(c, value, deadline);
	return take_of_many(c, value, deadline);
}

int flowfd__doorbell_try_take(const struct flowfd_counter *c, uint64_t *value)
{
	uint32_t misses;
	int ret;

	if (!c->roles)
		return -ENODEV;
	if (c->doorbell & DOORBELL_NO_POLL)
		return flowfd__unpolled_take(c, value, FLOWFD__AT_ONCE);
	misses = __atomic_add_fetch(&flowfd__consumer_page(c)->misses, 1,
				    __ATOMIC_RELAXED);
	ret = settle(c, 0, misses % MISSES ? MISSED : MISSED | AGAIN);
	if (flowfd_counter_take(c, value))
		return 0;
	/* A signal can end a read(2), if a peer made the eventfd block: there is nothing. */
	return ret && ret != -EINTR ? ret : -EAGAIN;
}
