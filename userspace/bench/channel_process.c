// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels that cannot be polled, and are of one process: a semaphore on a futex, and a
 * condition variable.
 */
#include <err.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"
#include "channel.h"

#define WAITER 1U
#define ONE    2U

/**
 * struct semaphore - count and flag in one word
 * @word: ONE for each signal, and WAITER if somebody sleeps
 */
struct semaphore {
	atomic_uint word;
	bool awake;
};

static void *semaphore_open(const struct channel *channel, unsigned int senders,
			    bool awake)
{
	struct semaphore *semaphore = channel_new(sizeof(*semaphore));

	(void)channel;
	(void)senders;
	semaphore->awake = awake;
	return semaphore;
}

static void futex(struct semaphore *semaphore, int operation, unsigned int value)
{
	calls_made++;
	if (syscall(SYS_futex, &semaphore->word, operation | FUTEX_PRIVATE_FLAG, value,
		    NULL) < 0 &&
	    errno != EAGAIN && errno != EINTR)
		err(EXIT_FAILURE, "futex");
}

/* Who clears the flag wakes, so that others do not as well. */
static inline void semaphore_up(struct semaphore *semaphore)
{
	unsigned int word = semaphore->word;

	while (!atomic_compare_exchange_weak(&semaphore->word, &word,
					     (word + ONE) & ~WAITER))
		;
	if (word & WAITER)
		futex(semaphore, FUTEX_WAKE, 1);
}

static inline bool semaphore_down(struct semaphore *semaphore)
{
	unsigned int nothing;

	while (atomic_exchange(&semaphore->word, 0) < ONE) {
		if (semaphore->awake)
			return false;
		nothing = 0;
		if (atomic_compare_exchange_strong(&semaphore->word, &nothing, WAITER))
			futex(semaphore, FUTEX_WAIT, WAITER);
	}
	return true;
}

static void semaphore_signal(void *self, unsigned int sender, unsigned long count)
{
	(void)sender;
	while (count--)
		semaphore_up(self);
}

static bool semaphore_take(void *self)
{
	return semaphore_down(self);
}

static void semaphore_turns(void *self, unsigned long count)
{
	while (count--) {
		semaphore_up(self);
		semaphore_down(self);
	}
}

struct condition {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	uint64_t count;
	bool awake;
};

static void *condition_open(const struct channel *channel, unsigned int senders,
			    bool awake)
{
	struct condition *condition = channel_new(sizeof(*condition));

	(void)channel;
	(void)senders;
	errno = pthread_mutex_init(&condition->mutex, NULL);
	if (!errno)
		errno = pthread_cond_init(&condition->changed, NULL);
	if (errno)
		err(EXIT_FAILURE, "condition variable");
	condition->awake = awake;
	return condition;
}

static inline void condition_up(struct condition *condition)
{
	pthread_mutex_lock(&condition->mutex);
	condition->count++;
	pthread_cond_signal(&condition->changed);
	pthread_mutex_unlock(&condition->mutex);
}

static inline bool condition_down(struct condition *condition)
{
	bool found;

	pthread_mutex_lock(&condition->mutex);
	while (!condition->count && !condition->awake)
		pthread_cond_wait(&condition->changed, &condition->mutex);
	found = condition->count;
	condition->count = 0;
	pthread_mutex_unlock(&condition->mutex);
	return found;
}

static void condition_signal(void *self, unsigned int sender, unsigned long count)
{
	(void)sender;
	while (count--)
		condition_up(self);
}

static bool condition_take(void *self)
{
	return condition_down(self);
}

static void condition_turns(void *self, unsigned long count)
{
	while (count--) {
		condition_up(self);
		condition_down(self);
	}
}

static void condition_close(void *self)
{
	struct condition *condition = self;

	pthread_cond_destroy(&condition->changed);
	pthread_mutex_destroy(&condition->mutex);
	free(condition);
}

const struct channel channel_futex = {
	.name = "futex",
	.open = semaphore_open,
	.signal = semaphore_signal,
	.take = semaphore_take,
	.turns = semaphore_turns,
	.close = free,
};

const struct channel channel_condition = {
	.name = "condition",
	.uncounted = true,
	.open = condition_open,
	.signal = condition_signal,
	.take = condition_take,
	.turns = condition_turns,
	.close = condition_close,
};
