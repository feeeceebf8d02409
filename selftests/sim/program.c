// SPDX-License-Identifier: GPL-2.0-only
/*
 * libflowfd's adds and takes, compiled with library.h, on the pages of the subject; and
 * what they call.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include <linux/futex.h>

#include "library.h"

#include "deadline.h"
#include "doorbell.h"
#include "futex.h"
#include "poller.h"
#include "program.h"
#include "sched.h"
#include "subject.h"
#include "words.h"

static struct flowfd_counter counter;
static struct flowfd_counter_producer *producer;
static struct flowfd_counter_consumer *consumer;
uint64_t program_added, program_took;
bool program_dies;

void program_map(void *pages)
{
	struct flowfd_counter_header *header = pages;

	producer = (void *)((char *)pages + 4096);
	consumer = (void *)((char *)pages + 8192);
	counter = (struct flowfd_counter){
		.roles = FLOWFD_PRODUCER | FLOWFD_CONSUMER,
		.add = { header, producer, consumer },
		.take = { producer, consumer },
		.features = FLOWFD_HAS_MEMORY | FLOWFD_HAS_MAXIMUM,
	};
}

int program_make(void *pages, uint64_t maximum, bool one_consumer, bool no_poll,
		 unsigned int overflow)
{
	struct flowfd__settings_page *settings = pages;

	program_map(pages);
	settings->header.maximum = maximum;
	settings->overflow = overflow;
	counter.doorbell = DOORBELL_USED | (one_consumer ? DOORBELL_ONE_CONSUMER : 0) |
			   (no_poll ? DOORBELL_NO_POLL : 0);
	return no_poll ? 0 : flowfd__doorbell_start(&counter);
}

uint64_t program_lost(void)
{
	return flowfd__producer_page(&counter)->lost;
}

void program_step(void)
{
	sim_step();
	if (program_dies && sim_current->mortal && sim_chance(60))
		subject_die();
}

void program_exchanged(const void *word, uint64_t old, uint64_t new)
{
	/* A word of a ring, before there was a counter. */
	if (!producer)
		return;
	if (word == &producer->produced || word == &flowfd__producer_page(&counter)->lost)
		sim_current->added += new - old;
	if (word == &producer->produced)
		program_added += new - old;
	else if (word == &consumer->consumed)
		program_took += new - old;
}

int *program_errno(void)
{
	return &sim_current->error;
}

static int call_futex(va_list args)
{
	const uint32_t *word = va_arg(args, const uint32_t *);
	int operation = va_arg(args, int);
	uint32_t value = va_arg(args, uint32_t);
	const long *time = va_arg(args, const long *);
	uint64_t deadline = time ? time[0] * SIM_SECOND + time[1] : UINT64_MAX;
	uint32_t bits;

	(void)va_arg(args, void *);
	bits = va_arg(args, uint32_t);
	if (operation == FUTEX_WAIT_BITSET)
		return futex_wait(word, value, bits, deadline);
	futex_wake(word, bits);
	return 0;
}

/* preadv2(2), write(2) of the eventfd; some processes have closed it. */
static int call_eventfd(long number, va_list args)
{
	int fd = va_arg(args, int);
	void *buffer = va_arg(args, void *);

	(void)fd;
	if (sim_current->closed)
		return -EBADF;
	if (number == SYS_preadv2)
		return subject_eventfd_take(((struct iovec *)buffer)->iov_base);
	return subject_eventfd_add(*(uint64_t *)buffer);
}

long program_call(long number, ...)
{
	va_list args;
	int err;

	va_start(args, number);
	program_step();
	err = number == SYS_futex ? call_futex(args) : call_eventfd(number, args);
	program_step();
	va_end(args);
	if (!err)
		return sizeof(uint64_t);
	sim_current->error = -err;
	return -1;
}

int flowfd_counter_notify(const struct flowfd_counter *c, unsigned int role)
{
	int err = c->doorbell ? flowfd__doorbell_notify(c, role) : subject_notify();

	return err ? -EPERM : 0;
}

int flowfd_write(int fd, uint64_t value)
{
	return subject_write(value, 0, false, false);
}

int flowfd_read(int fd, uint64_t *value)
{
	return subject_read(value, 0, false);
}

int flowfd_write_with(int fd, uint64_t value, uint64_t timeout, unsigned int flags)
{
	return subject_write(value, timeout, flags & FLOWFD_NONBLOCK, flags & FLOWFD_URGENT);
}

int flowfd_read_with(int fd, uint64_t *value, uint64_t timeout, unsigned int flags)
{
	return subject_read(value, timeout, flags & FLOWFD_NONBLOCK);
}

uint64_t flowfd__deadline(uint64_t timeout)
{
	return timeout ? sim_now + timeout : FLOWFD__NEVER;
}

bool flowfd__is_over(uint64_t deadline)
{
	return deadline != FLOWFD__AT_ONCE && sim_now >= deadline;
}

int flowfd__wait_until(uint64_t deadline, int fd, short events)
{
	int ret;

	if (deadline == FLOWFD__AT_ONCE)
		return -EAGAIN;
	ret = poll_until(events, deadline);
	return !ret && flowfd__is_over(deadline) ? -ETIMEDOUT : ret;
}

/* No history has so many looks for nothing. */
int flowfd__rest(unsigned int *vain, uint64_t deadline)
{
	return ++*vain > 64 && flowfd__is_over(deadline) ? -ETIMEDOUT : 0;
}

/* Notifications are system calls of the caller, so it counts what it does there itself. */
int program_add(uint64_t value, uint64_t timeout, bool nonblock)
{
	return flowfd_add_with(&counter, value, timeout,
					 nonblock ? FLOWFD_NONBLOCK : 0);
}

int program_take(uint64_t *value, uint64_t timeout, bool nonblock)
{
	return nonblock ? flowfd_try_take(&counter, value) :
			  flowfd_take_with(&counter, value, timeout, 0);
}

bool program_add_in_memory(uint64_t value)
{
	return flowfd_counter_add(&counter, value);
}

void program_scribble(void)
{
	program_step();
	switch (sim_random(7)) {
	case 0:
		producer->produced = consumer->consumed + sim_random(40);
		break;
	case 1:
		consumer->consumed = producer->produced - sim_random(40);
		break;
	case 2:
		producer->produced = (uint64_t)sim_random(1 << 30) << sim_random(34);
		break;
	case 3:
		consumer->consumed = producer->produced;
		break;
	case 4:
		consumer->armed = sim_random(UINT32_MAX);
		break;
	case 5:
		consumer->armed &= sim_random(8);
		break;
	case 6:
		flowfd_counter_notify(&counter, FLOWFD_CONSUMER);
	}
}

uint64_t program_count(void)
{
	return producer->produced - consumer->consumed;
}
