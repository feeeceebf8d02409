// SPDX-License-Identifier: GPL-2.0-only
/*
 * Three parties at the doorbell of a counter without the module: threads and processes
 * are stopped, or killed, at a system call of the doorbell, while others go on.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flowfd.h>

#include "lib/doorbell.h"
#include "tests/tap.h"

/* Who stops: each at its own gate, before each of its system calls. */
enum { NOBODY, FIRST, SECOND, PARTIES };

/* Shared with children. */
struct gate {
	_Atomic int at;	  /* how often it came */
	_Atomic int open; /* how often it may go on */
};

#define ENDED 1000 /* of @at */
#define ALWAYS 1000 /* of @open */

static struct gate *gates;
static __thread int party;
/* Called after each system call of this thread, if it is set. */
static __thread void (*after)(long number);

/* Whether the eventfd has a maximum. */
static bool small;

static void wait_for(_Atomic int *word, int value)
{
	while (*word < value)
		usleep(100);
}

/* Instead of that of the C library: the system calls of the doorbell. */
long syscall(long number, ...)
{
	struct gate *gate = &gates[party];
	va_list arguments;
	const char *name;
	uint64_t *value;
	long ret;
	int fd;

	va_start(arguments, number);
	if (number == SYS_memfd_create) {
		name = va_arg(arguments, const char *);
		ret = memfd_create(name, va_arg(arguments, unsigned int));
		va_end(arguments);
		return ret;
	}
	fd = va_arg(arguments, int);
	if (number != SYS_preadv2 && number != SYS_write) {
		va_end(arguments);
		return number == SYS_close ? close(fd) : -1;
	}
	if (number == SYS_preadv2)
		value = va_arg(arguments, struct iovec *)->iov_base;
	else
		value = va_arg(arguments, uint64_t *);
	va_end(arguments);
	if (party)
		wait_for(&gate->open, ++gate->at);
	if (number == SYS_write && small && *value > 1000) {
		errno = EINVAL;
		return -1;
	}
	if (number == SYS_preadv2)
		ret = read(fd, value, sizeof(*value));
	else
		ret = write(fd, value, sizeof(*value));
	if (after)
		after(number);
	return ret;
}

static struct flowfd_counter counter;

static void open_counter(uint64_t maximum, unsigned int flags, unsigned int options)
{
	const struct flowfd_create_counter settings = { .maximum = maximum,
							.flags = flags };

	if (flowfd_counter_open(&counter, &settings, sizeof(settings),
				FLOWFD_FALLBACK | options))
		abort();
	for (int i = 0; i < PARTIES; i++)
		gates[i].at = gates[i].open = 0;
}

/* What poll(2) says of the descriptor within that time. */
static int ready(int milliseconds)
{
	struct pollfd poller = { .fd = counter.fd, .events = POLLIN };

	return poll(&poller, 1, milliseconds) < 0 ? -1 : poller.revents;
}

static void *add_one(void *argument)
{
	party = (intptr_t)argument;
	flowfd_add(&counter, 1);
	gates[party].at = ENDED;
	return NULL;
}

static pthread_t start_adding(intptr_t as)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, add_one, (void *)as))
		abort();
	return thread;
}

static void let_end(intptr_t as, pthread_t thread)
{
	gates[as].open = ALWAYS;
	pthread_join(thread, NULL);
}

/*
 * A producer comes late twice: it would have the doorbell quiet, as it was when it
 * looked, but the one consumer has gone to sleep since, and another producer is about to
 * ring.
 */
static void test_late_producer(void)
{
	pthread_t late, other;
	uint64_t value;

	open_counter(0, 0, FLOWFD_ONE_CONSUMER);
	late = start_adding(FIRST);
	wait_for(&gates[FIRST].at, 1);
	tap_is(flowfd_try_take(&counter, &value), 0, "taken before it rings");
	flowfd_add(&counter, 1);
	flowfd_try_take(&counter, &value);
	flowfd_add(&counter, 1);
	/* It rings, and begins to repeat. */
	gates[FIRST].open = 1;
	wait_for(&gates[FIRST].at, 2);
	tap_is(flowfd_try_take(&counter, &value), 0, "taken before it repeats");
	tap_is(flowfd_try_take(&counter, &value), -EAGAIN, "the consumer may sleep");
	other = start_adding(SECOND);
	wait_for(&gates[SECOND].at, 1);
	let_end(FIRST, late);
	let_end(SECOND, other);
	tap_is(ready(1000), POLLIN, "it is woken");
	flowfd_counter_close(&counter);
}

/* The other party: goes on when this thread has rung, and is dead before it goes on. */
static void let_die(long number)
{
	if (number != SYS_write)
		return;
	after = NULL;
	gates[FIRST].open = ALWAYS;
	wait(NULL);
}

static void die(long number)
{
	(void)number;
	raise(SIGKILL);
}

/* A child takes; it stops before it drains, and is killed right after. */
static void start_taking(void)
{
	uint64_t value;

	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		party = FIRST;
		after = die;
		flowfd_take(&counter, &value);
		_exit(0);
	}
	wait_for(&gates[FIRST].at, 1);
}

/*
 * A consumer is killed after it drained what another had rung: RUNG, but the eventfd is
 * empty. The next take heals.
 */
static void test_killed_taker(void)
{
	uint64_t value;

	open_counter(0, FLOWFD_NONBLOCK, 0);
	flowfd_add(&counter, 1);
	start_taking();
	after = let_die;
	flowfd_add(&counter, 1);
	tap_is(flowfd_try_take(&counter, &value), 0, "a taker was killed: take");
	flowfd_add(&counter, 1);
	tap_is(ready(0), POLLIN, "the next add rings");
	flowfd_counter_close(&counter);
}

/* The same where the other found no room: it waits, and must not wait in vain. */
static void test_killed_taker_when_full(void)
{
	pthread_t thread;
	uint64_t value;

	open_counter(3, 0, 0);
	flowfd_add(&counter, 1);
	start_taking();
	/* Two adds which have not come to A3. */
	atomic_fetch_add((_Atomic uint64_t *)&counter.add.producer->produced, 2);
	counter.doorbell |= DOORBELL_NONBLOCK;
	after = let_die;
	tap_is(flowfd_add(&counter, 1), -EAGAIN, "a taker was killed: no room");
	counter.doorbell &= ~DOORBELL_NONBLOCK;
	thread = start_adding(SECOND);
	gates[SECOND].open = ALWAYS;
	if (tap_is(ready(1000), POLLIN, "a writer that waits lets the consumer know"))
		flowfd_take(&counter, &value);
	else
		exit(EXIT_FAILURE); /* it would wait for ever */
	let_end(SECOND, thread);
	flowfd_counter_close(&counter);
}

/* Stops behind a system call, until its gate is opened once more. */
static void stay(long number)
{
	(void)number;
	after = NULL;
	wait_for(&gates[party].open, ++gates[party].at);
}

static void *add_one_and_stay(void *argument)
{
	after = stay;
	return add_one(argument);
}

/*
 * A producer has rung, and a take drained that, when a process that closed the descriptor
 * adds: it cannot ring. The first must not announce what it rang.
 */
static void test_closed(void)
{
	int status = -1;
	uint64_t value;
	pthread_t late;

	open_counter(0, FLOWFD_NONBLOCK, 0);
	gates[FIRST].open = 1;
	if (pthread_create(&late, NULL, add_one_and_stay, (void *)(intptr_t)FIRST))
		abort();
	wait_for(&gates[FIRST].at, 2);
	tap_is(flowfd_try_take(&counter, &value), 0, "taken after it rang");
	if (!fork()) {
		close(counter.fd);
		_exit(flowfd_add(&counter, 1) != -EPERM);
	}
	wait(&status);
	tap_is(status, 0, "a child that closed the descriptor adds, and is told");
	let_end(FIRST, late);
	flowfd_add(&counter, 1);
	tap_is(ready(0), POLLIN, "the next add of another rings");
	tap_is(flowfd_try_take(&counter, &value), 0, "and all is taken");
	tap_is(value, 2, "that of the child too");
	flowfd_counter_close(&counter);
}

/* As under flowfd-run with a maximum. */
static void test_small_eventfd(void)
{
	const struct flowfd_create_counter settings = { .maximum = 3 };
	struct flowfd_counter c = { .fd = 42 };
	int before = dup(STDOUT_FILENO), fd;

	close(before);
	small = true;
	tap_is(flowfd_counter_open(&c, &settings, sizeof(settings), FLOWFD_FALLBACK),
	       -EOPNOTSUPP, "an eventfd that cannot be filled");
	small = false;
	tap_is(c.fd, 42, "the counter is as it was");
	fd = dup(STDOUT_FILENO);
	tap_is(fd, before, "no descriptor is left");
	close(fd);
}

int main(void)
{
	setenv("FLOWFD_BACKEND", "fallback", 1);
	gates = mmap(NULL, PARTIES * sizeof(*gates), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (gates == MAP_FAILED)
		abort();
	test_late_producer();
	test_killed_taker();
	test_killed_taker_when_full();
	test_closed();
	test_small_eventfd();
	return tap_done();
}
