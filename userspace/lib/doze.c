// SPDX-License-Identifier: MIT
/* Sleeping on a word that processes share. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "deadline.h"
#include "device.h"
#include "doze.h"

/* Of the system call, which has no time_t of 64 bits where a long has 32. */
struct time {
	long seconds;
	long nanoseconds;
};

static struct time time_of(uint64_t deadline)
{
	uint64_t seconds = deadline / SECOND_NS;

	return (struct time){ .seconds = seconds > LONG_MAX ? LONG_MAX : (long)seconds,
			      .nanoseconds = (long)(deadline % SECOND_NS) };
}

int flowfd__doze(const uint32_t *word, uint32_t value, uint32_t bits, uint64_t deadline)
{
	const struct time time = time_of(deadline);
	int saved = errno, ret = 0;

	/*
	 * A thread that is cancelled here leaves nothing undone. Not in its sleep: a signal's
	 * handler runs there, too, which may be anywhere.
	 */
	pthread_testcancel();
	/* With a time, if only in centuries: without one, SA_RESTART restarts the call. */
	if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &time, NULL, bits) < 0)
		ret = flowfd__refused(-errno);
	errno = saved;
	/* The time may have been as far as the system call can say. */
	if (ret == -ETIMEDOUT && !flowfd__is_over(deadline))
		ret = 0;
	return ret == -EAGAIN ? 0 : ret;
}

void flowfd__rouse(const uint32_t *word, uint32_t bits)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
	errno = saved;
}
