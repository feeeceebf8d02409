// SPDX-License-Identifier: MIT
/* Sleeping until a descriptor is ready or a time has come. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "deadline.h"
#include "device.h"

#define NAP_NS 1000000

/*
 * From how many looks for nothing on a thread naps, or gives up if it may not wait; and
 * after how many more it naps again.
 */
#define PATIENT_LOOKS 64
#define LOOKS_A_NAP   8

/* Returns 0 if a filter of seccomp(2) refuses it: there is no vDSO, or it has no clock. */
uint64_t flowfd__now(void)
{
	struct timespec time = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND_NS + time.tv_nsec;
}

uint64_t flowfd__deadline(uint64_t timeout)
{
	uint64_t deadline;

	if (!timeout || __builtin_add_overflow(flowfd__now(), timeout, &deadline))
		return FLOWFD__NEVER;
	return deadline;
}

/* Without a clock each time is over at the next look: no call is endless. */
bool flowfd__is_over(uint64_t deadline)
{
	uint64_t now;

	if (deadline == FLOWFD__AT_ONCE || deadline == FLOWFD__NEVER)
		return false;
	now = flowfd__now();
	return !now || now >= deadline;
}

static struct timespec time_left(uint64_t deadline)
{
	uint64_t time = flowfd__now();
	uint64_t left = deadline > time ? deadline - time : 0;

	/* A time_t may have 32 bits; whoever calls looks again and sleeps on. */
	if (left / SECOND_NS > INT32_MAX)
		left = INT32_MAX * SECOND_NS;
	return (struct timespec){ .tv_sec = left / SECOND_NS,
				  .tv_nsec = left % SECOND_NS };
}

/* Without a descriptor none is counted: RLIMIT_NOFILE, which limits their number, may be 0. */
static int poll_until(uint64_t deadline, struct pollfd *poller)
{
	nfds_t number = poller->fd >= 0;
	struct timespec left;

	if (deadline == FLOWFD__NEVER)
		return poll(poller, number, -1);
	left = time_left(deadline);
	return ppoll(poller, number, &left, NULL);
}

int flowfd__wait_until(uint64_t deadline, int fd, short events)
{
	struct pollfd poller = { .fd = fd, .events = events };
	int saved = errno, ret = 0;

	if (deadline == FLOWFD__AT_ONCE)
		return -EAGAIN;
	/* A descriptor that is ready may have nothing for this thread, time after time. */
	if (poll_until(deadline, &poller) < 0)
		ret = flowfd__refused(-errno);
	else if (flowfd__is_over(deadline))
		ret = -ETIMEDOUT;
	errno = saved;
	return poller.revents & POLLNVAL ? -EBADF : ret;
}

/* Sleeps, whatever descriptors and memory say. */
static int nap(uint64_t deadline)
{
	uint64_t end = flowfd__now() + NAP_NS;
	/* -1: for none */
	int ret = flowfd__wait_until(end < deadline ? end : deadline, -1, 0);

	return ret == -ETIMEDOUT && !flowfd__is_over(deadline) ? 0 : ret;
}

int flowfd__rest(unsigned int *vain, uint64_t deadline)
{
	if (++*vain < PATIENT_LOOKS)
		return 0;
	if (deadline == FLOWFD__AT_ONCE)
		return -EAGAIN;
	return *vain % LOOKS_A_NAP ? 0 : nap(deadline);
}
