// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfd_counter_open() with each backend that there is: the module's counters in the
 * virtual machine, and those of an eventfd and memory everywhere. Values, errors, what
 * pollers see, and that no wakeup is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/interrupt.h"
#include "tests/refuse.h"
#include "tests/tap.h"

#define NONE UINT64_MAX

static bool fallback;

static const struct flowfd_create_counter plain, nonblock = { .flags = FLOWFD_NONBLOCK };

static int open_counter(struct flowfd_counter *c, struct flowfd_create_counter settings,
			unsigned int options)
{
	return flowfd_counter_open(c, &settings, sizeof(settings),
				   FLOWFD_FALLBACK | options);
}

/* What poll(2) says of the descriptor now. */
static int ready(const struct flowfd_counter *c)
{
	struct pollfd poller = { .fd = c->fd, .events = POLLIN | POLLOUT };

	return poll(&poller, 1, 0) < 0 ? -1 : poller.revents;
}

static void test_values(void)
{
	const struct flowfd_create_counter settings = {
		.initial = 3,
		.maximum = 10,
		.flags = FLOWFD_NONBLOCK,
	};
	struct flowfd_counter c;
	uint64_t value = 0;
	int fd;

	errno = 4711;
	tap_is(open_counter(&c, settings, 0), 0, "open");
	tap_is(flowfd_counter_is_mapped(&c), 1, "it is in memory");
	tap_is(flowfd_features(&c),
	       FLOWFD_HAS_MEMORY | FLOWFD_HAS_OVERFLOW | FLOWFD_HAS_POLL |
		       (fallback ? 0 : FLOWFD_HAS_CALLS | FLOWFD_HAS_MAXIMUM |
					       FLOWFD_HAS_BUCKET | FLOWFD_HAS_FLOW),
	       "what it can do");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 3, "the first count");
	tap_is(flowfd_take(&c, &value), -EAGAIN, "nothing left");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "at once, either");
	tap_is(value, 3, "the value stays");
	tap_is(flowfd_add(&c, 0), 0, "add nothing");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "which is nothing");
	tap_is(flowfd_add(&c, 9), 0, "fill it");
	tap_is(flowfd_add(&c, 1), -EAGAIN, "there is no room");
	tap_is(flowfd_add(&c, 0), 0, "for anything but nothing");
	tap_is(flowfd_add(&c, 10), -EINVAL, "what can never fit");
	tap_is(flowfd_add(&c, NONE), -EINVAL, "ULLONG_MAX");
	tap_is(flowfd_try_take(&c, &value), 0, "take");
	tap_is(value, 9, "all of it");
	tap_is(flowfd_add(&c, 5), 0, "there is room");
	tap_is(errno, 4711, "errno stays");
	tap_is(fcntl(c.fd, F_GETFD), FD_CLOEXEC, "close-on-exec");
	fd = c.fd;
	flowfd_counter_close(&c);
	tap_is(fcntl(fd, F_GETFD), -1, "closed");
	tap_is(c.fd, -1, "and forgotten: another file can get the number");

	tap_is(open_counter(&c, plain, 0), 0, "without a maximum");
	tap_is(flowfd_add(&c, NONE - 1), 0, "all fits");
	tap_is(flowfd_add(&c, NONE), -EINVAL, "but ULLONG_MAX");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_ok(value == NONE - 1, "all of it");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "nothing, without waiting");
	flowfd_counter_close(&c);
}

static void test_errors(void)
{
	struct flowfd_create_counter settings = plain;
	struct {
		struct flowfd_create_counter settings;
		uint64_t more;
	} newer = { .more = 0 };
	struct flowfd_counter c = { .fd = 42 };
	uint64_t value = 0;

	tap_is(flowfd_counter_open(&c, &plain, 8, FLOWFD_FALLBACK), -EINVAL, "a short size");
	tap_is(open_counter(&c, plain, 1U << 31), -EINVAL, "an unknown option");
	settings.flags = 1U << 31;
	tap_is(open_counter(&c, settings, 0), -EINVAL, "an unknown flag");
	settings = (struct flowfd_create_counter){ .reserved = 1 };
	tap_is(open_counter(&c, settings, 0), -EINVAL, "a reserved field");
	settings = (struct flowfd_create_counter){ .initial = 5, .maximum = 5 };
	tap_is(open_counter(&c, settings, 0), -EINVAL, "a count at the maximum");
	settings = (struct flowfd_create_counter){ .qos = { 0, 1 } };
	tap_is(open_counter(&c, settings, FLOWFD_OPTIONAL_BUCKET), -EINVAL,
	       "a bucket without capacity");
	settings.qos = (struct eventfd_qos){ 1, FLOWFD_TOKEN_RATE_MAX + 1 };
	tap_is(open_counter(&c, settings, FLOWFD_OPTIONAL_BUCKET), -EINVAL, "a rate too high");
	settings.qos = (struct eventfd_qos){ 1, 1 };
	settings.flags = FLOWFD_SEMAPHORE;
	tap_is(open_counter(&c, settings, FLOWFD_OPTIONAL_BUCKET), -EINVAL,
	       "a bucket on a semaphore");
	newer.more = 1;
	tap_is(flowfd_counter_open(&c, &newer.settings, sizeof(newer), FLOWFD_FALLBACK),
	       -EPROTONOSUPPORT, "a field that nobody knows");
	tap_is(c.fd, 42, "what could not be opened is as it was");

	newer.more = 0;
	tap_is(flowfd_counter_open(&c, &newer.settings, sizeof(newer), FLOWFD_FALLBACK), 0,
	       "one that asks for nothing");
	flowfd_counter_close(&c);

	settings.flags = 0;
	tap_is(open_counter(&c, settings, 0), fallback ? -EOPNOTSUPP : 0, "a bucket");
	if (!fallback)
		flowfd_counter_close(&c);
	tap_is(open_counter(&c, settings, FLOWFD_OPTIONAL_BUCKET), 0, "an optional bucket");
	flowfd_counter_close(&c);

	settings = (struct flowfd_create_counter){ .initial = 1ULL << 33,
						   .flags = FLOWFD_SEMAPHORE };
	tap_is(open_counter(&c, settings, 0), 0, "a semaphore");
	tap_is(flowfd_counter_is_mapped(&c), 0, "is not in memory");
	tap_is(flowfd_counter_notify(&c, FLOWFD_PRODUCER), -ENODEV, "nothing to notify");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 1, "one");
	tap_is(flowfd_add(&c, 1), 0, "add");
	tap_is(flowfd_try_take(&c, &value), 0, "take");
	tap_is(value, 1, "one");
	flowfd_counter_close(&c);
	settings.maximum = 1ULL << 34;
	tap_is(open_counter(&c, settings, 0), fallback ? -EOPNOTSUPP : 0,
	       "a semaphore with a maximum");
	if (!fallback)
		flowfd_counter_close(&c);
}

static void test_poll(void)
{
	struct flowfd_create_counter settings = { .maximum = 5, .flags = FLOWFD_NONBLOCK };
	struct flowfd_counter c;
	unsigned int wrong = 0;
	uint64_t value;

	open_counter(&c, settings, 0);
	tap_is(ready(&c), POLLOUT, "empty");
	flowfd_add(&c, 1);
	tap_is(ready(&c), POLLIN | POLLOUT, "a count, and room");
	flowfd_add(&c, 3);
	tap_is(flowfd_add(&c, 1), -EAGAIN, "no room");
	tap_is(ready(&c), POLLIN, "as poll says");
	flowfd_take(&c, &value);
	tap_is(ready(&c), POLLOUT, "empty");
	for (int i = 0; i < 1000; i++) {
		flowfd_add(&c, 1);
		wrong += ready(&c) != (POLLIN | POLLOUT);
		flowfd_add(&c, 2);
		wrong += ready(&c) != (POLLIN | POLLOUT);
		if (i % 2)
			flowfd_take(&c, &value);
		else
			flowfd_try_take(&c, &value);
		wrong += value != 3 || ready(&c) != POLLOUT;
	}
	tap_is(wrong, 0, "the same a thousand times");
	flowfd_counter_close(&c);

	settings.initial = 4;
	open_counter(&c, settings, 0);
	tap_ok(ready(&c) & POLLIN, "an initial count is ready");
	flowfd_counter_close(&c);
}

/* An edge for the first add after a take, and for the first take after a full counter. */
static void test_edges(void)
{
	const struct flowfd_create_counter settings = { .maximum = 3,
							.flags = FLOWFD_NONBLOCK };
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct flowfd_counter c;
	unsigned int wrong = 0;
	uint64_t value;

	open_counter(&c, settings, 0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, c.fd, &event);
	epoll_wait(epoll, &event, 1, 0);
	for (int i = 0; i < 1000; i++) {
		flowfd_add(&c, 1);
		wrong += epoll_wait(epoll, &event, 1, 0) != 1 || !(event.events & EPOLLIN);
		flowfd_add(&c, 1);
		flowfd_add(&c, 1);
		while (epoll_wait(epoll, &event, 1, 0) > 0)
			;
		flowfd_take(&c, &value);
		wrong += epoll_wait(epoll, &event, 1, 0) != 1 ||
			 !(event.events & EPOLLOUT);
	}
	tap_is(wrong, 0, "edges");
	close(epoll);
	flowfd_counter_close(&c);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

#define MS 1000000ULL

/* Reads and writes with a timeout; the time is of no use in an emulated machine but as
 * a least one. */
static void test_timeouts(uint32_t flags)
{
	const struct flowfd_create_counter settings = { .maximum = 5, .flags = flags };
	struct flowfd_counter c;
	uint64_t value = 42, start;
	int timeout = flags & FLOWFD_NONBLOCK ? -EAGAIN : -ETIMEDOUT;
	uint64_t least = flags & FLOWFD_NONBLOCK ? 0 : 20 * MS;

	open_counter(&c, settings, 0);
	errno = 4711;
	start = now();
	tap_is(flowfd_take_with(&c, &value, 20 * MS, 0), timeout, "no count");
	tap_ok(now() - start >= least, "not before the time has passed");
	tap_is(flowfd_take_with(&c, &value, 0, FLOWFD_NONBLOCK), -EAGAIN,
	       "nor without waiting");
	tap_is(value, 42, "the value stays");
	tap_is(flowfd_add_with(&c, 4, 20 * MS, 0), 0, "fill it");
	start = now();
	tap_is(flowfd_add_with(&c, 1, 20 * MS, 0), timeout, "no room");
	tap_ok(now() - start >= least, "not before the time has passed");
	tap_is(flowfd_add_with(&c, 1, 20 * MS, FLOWFD_URGENT | FLOWFD_NONBLOCK),
	       -EAGAIN, "for what is urgent, either");
	tap_is(flowfd_add_with(&c, 5, 0, 0), -EINVAL, "what can never fit");
	tap_is(flowfd_add_with(&c, NONE, 0, FLOWFD_URGENT), -EINVAL,
	       "ULLONG_MAX");
	tap_is(flowfd_add_with(&c, 1, 0, 1U << 30), -EINVAL, "unknown flag");
	tap_is(flowfd_take_with(&c, &value, 0, FLOWFD_URGENT), -EINVAL,
	       "a flag of writes");
	tap_is(flowfd_take_with(&c, &value, 1, 0), 0, "take at once");
	tap_is(value, 4, "all of it");
	tap_is(flowfd_add_with(&c, 2, 0, FLOWFD_URGENT), 0, "add urgently");
	tap_is(ready(&c), POLLIN | POLLOUT, "as poll says");
	tap_is(flowfd_take_with(&c, &value, NONE, 0), 0, "take with all the time");
	tap_is(value, 2, "which it does not need");
	tap_is(errno, 4711, "errno stays");
	flowfd_counter_close(&c);
}

static atomic_bool filled;

static void *transfer_late(void *argument)
{
	const struct flowfd_counter *c = argument;
	uint64_t value = 0;

	usleep(20000);
	flowfd_add(c, 3);
	/* Else it could take the 3 itself. */
	while (!filled)
		usleep(1000);
	usleep(20000);
	flowfd_take(c, &value);
	return (void *)(uintptr_t)value;
}

/* A call with a timeout ends when it can, not when the time has passed. */
static void test_in_time(void)
{
	const struct flowfd_create_counter settings = { .maximum = 5 };
	struct flowfd_counter c;
	uint64_t value = 0;
	pthread_t thread;
	void *taken;

	open_counter(&c, settings, 0);
	filled = false;
	pthread_create(&thread, NULL, transfer_late, &c);
	tap_is(flowfd_take_with(&c, &value, 60000 * MS, 0), 0, "read in time");
	tap_is(value, 3, "what was added");
	tap_is(flowfd_add_with(&c, 4, 0, 0), 0, "fill it");
	filled = true;
	tap_is(flowfd_add_with(&c, 2, 60000 * MS, 0), 0, "write in time");
	pthread_join(thread, &taken);
	tap_is((uintptr_t)taken, 4, "after all was taken");
	tap_is(flowfd_try_take(&c, &value), 0, "take");
	tap_is(value, 2, "what was written then");
	flowfd_counter_unmap(&c);
	tap_is(flowfd_add_with(&c, 1, 1, 0), fallback ? -ENODEV : 0, "unmapped");
	tap_is(flowfd_take_with(&c, &value, 1, 0), fallback ? -ENODEV : 0,
	       "for reads, too");
	flowfd_counter_close(&c);
	tap_is(flowfd_take_with(&c, &value, 1, 0), fallback ? -ENODEV : -EBADF,
	       "closed");
}

/* Without the module it is an eventfd, of which not each write is known to wait. */
static void test_semaphore_timeouts(uint32_t flags)
{
	const struct flowfd_create_counter settings = { .flags = FLOWFD_SEMAPHORE | flags };
	bool blocking = !(flags & FLOWFD_NONBLOCK);
	int unknown = fallback && blocking ? -EOPNOTSUPP : 0;
	struct flowfd_counter c;
	uint64_t value = 0;

	open_counter(&c, settings, 0);
	tap_is(flowfd_take_with(&c, &value, 20 * MS, 0),
	       blocking ? -ETIMEDOUT : -EAGAIN, "semaphore: none in time");
	tap_is(flowfd_add_with(&c, 1, 1, 0), unknown, "timed write");
	tap_is(flowfd_add_with(&c, 1, 0, FLOWFD_NONBLOCK), unknown,
	       "write without waiting");
	tap_is(flowfd_add_with(&c, 1, 0, FLOWFD_URGENT), 0, "urgent write");
	tap_is(flowfd_take_with(&c, &value, 20 * MS, 0), 0, "read");
	tap_is(value, 1, "one");
	flowfd_counter_close(&c);
}

static void test_signal(void)
{
	const struct flowfd_create_counter settings = { .maximum = 5 };
	struct interrupt interrupt;
	struct flowfd_counter c;
	uint64_t value;

	open_counter(&c, settings, 0);
	interrupt_begin(&interrupt);
	tap_is(flowfd_take(&c, &value), -EINTR, "a take interrupted");
	tap_is(flowfd_add(&c, 4), 0, "fill it");
	tap_is(flowfd_add(&c, 1), -EINTR, "an add interrupted");
	tap_is(flowfd_add_with(&c, 1, 600000 * MS, 0), -EINTR,
	       "a timed add interrupted");
	interrupt_end(&interrupt);
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 4, "nothing was added");
	flowfd_counter_close(&c);
}

/*
 * Bursts: a lost wakeup shows only if nothing follows that makes up for it. So producers
 * add a few times and stop, and all of that must be taken, by threads that sleep.
 */
#define PRODUCERS 2
#define CONSUMERS_MAX 2
#define ROUNDS 3000
#define BURST 4
#define DEADLINE_S 10
/* In an emulated processor there are fewer rounds. */
#define BURSTS_NS 1000000000ULL

/* How a consumer sleeps. */
enum { TAKE, POLL, EPOLL, EPOLLET_DRY, SPIN };

struct bursts {
	struct flowfd_counter c;
	int how;
	bool once; /* takes once after each wakeup */
	_Atomic unsigned int round;
	_Atomic unsigned int ended;
	_Atomic uint64_t added;
	_Atomic uint64_t taken;
	_Atomic bool quit;
};

struct burst_thread {
	struct bursts *bursts;
	pthread_t thread;
	unsigned int random;
};

static void work(unsigned int *random)
{
	for (volatile int i = rand_r(random) % 300; i > 0; i--)
		;
}

static void *burst(void *argument)
{
	struct burst_thread *self = argument;
	struct bursts *b = self->bursts;

	for (unsigned int round = 1; round <= ROUNDS && !b->quit; round++) {
		while (b->round < round && !b->quit)
			sched_yield();
		if (b->quit)
			break;
		for (int i = rand_r(&self->random) % BURST; i >= 0; i--) {
			uint64_t value = 1 + rand_r(&self->random) % 3;

			work(&self->random);
			b->added += value;
			while (flowfd_add(&b->c, value) == -EAGAIN)
				sched_yield();
		}
		b->ended++;
	}
	return NULL;
}

static void sleep_for_count(struct bursts *b, int epoll)
{
	struct pollfd poller = { .fd = b->c.fd, .events = POLLIN };
	struct epoll_event event;

	if (b->how == POLL)
		poll(&poller, 1, -1);
	else if (b->how == SPIN)
		sched_yield();
	else
		epoll_wait(epoll, &event, 1, -1);
}

static void *consume(void *argument)
{
	struct burst_thread *self = argument;
	struct bursts *b = self->bursts;
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint64_t value;

	if (b->how == EPOLLET_DRY)
		event.events |= EPOLLET;
	epoll_ctl(epoll, EPOLL_CTL_ADD, b->c.fd, &event);
	while (!b->quit) {
		if (b->how == TAKE) {
			if (!flowfd_take(&b->c, &value))
				b->taken += value;
		} else {
			sleep_for_count(b, epoll);
			while (!flowfd_try_take(&b->c, &value)) {
				b->taken += value;
				if (b->once)
					break;
			}
		}
		work(&self->random);
	}
	/* For the next consumer. */
	flowfd_add(&b->c, 1);
	close(epoll);
	return NULL;
}

/* False: something was added, and who sleeps was not told. */
static bool is_all_taken(struct bursts *b)
{
	time_t deadline = time(NULL) + DEADLINE_S;

	while (b->ended < PRODUCERS * b->round || b->taken != b->added) {
		if (time(NULL) > deadline)
			return false;
		sched_yield();
	}
	return true;
}

static void test_bursts(const char *what, int how, bool once, unsigned int consumers,
			uint64_t maximum, unsigned int options)
{
	const struct flowfd_create_counter settings = { .maximum = maximum };
	struct burst_thread threads[PRODUCERS + CONSUMERS_MAX];
	struct bursts b = { .how = how, .once = once };
	uint64_t end = now() + BURSTS_NS;
	bool passed = true;

	if (open_counter(&b.c, settings, options))
		abort();
	for (unsigned int i = 0; i < PRODUCERS + consumers; i++) {
		threads[i] = (struct burst_thread){ .bursts = &b, .random = i };
		if (pthread_create(&threads[i].thread, NULL,
				   i < PRODUCERS ? burst : consume, &threads[i]))
			abort();
	}
	while (passed && b.round < ROUNDS && now() < end) {
		b.round++;
		passed = is_all_taken(&b);
	}
	if (!passed)
		printf("# round %u: %llu added, %llu taken, armed %#x\n", b.round,
		       (unsigned long long)b.added, (unsigned long long)b.taken,
		       b.c.take.consumer->armed);
	printf("# %u rounds\n", b.round);
	tap_ok(passed, what);
	if (!passed)
		exit(EXIT_FAILURE); /* without the threads that sleep for ever */
	b.quit = true;
	flowfd_add(&b.c, 1);
	for (unsigned int i = 0; i < PRODUCERS + consumers; i++)
		pthread_join(threads[i].thread, NULL);
	flowfd_counter_close(&b.c);
}

static void test_all_bursts(void)
{
	test_bursts("bursts, a consumer in take", TAKE, false, 1, 0, 0);
	test_bursts("bursts, two consumers in take", TAKE, false, 2, 0, 0);
	test_bursts("bursts, poll", POLL, true, 1, 0, 0);
	test_bursts("bursts, two in poll", POLL, true, 2, 0, 0);
	test_bursts("bursts, level-triggered epoll", EPOLL, true, 1, 0, 0);
	test_bursts("bursts, two level-triggered epolls", EPOLL, true, 2, 0, 0);
	test_bursts("bursts, edge-triggered epoll, one take", EPOLLET_DRY, true, 1, 0, 0);
	test_bursts("bursts, two edge-triggered epolls", EPOLLET_DRY, true, 2, 0, 0);
	test_bursts("bursts, a maximum", TAKE, false, 1, 4, 0);
	test_bursts("bursts, a maximum and poll", POLL, true, 1, 4, 0);
	test_bursts("bursts, a maximum and two consumers", TAKE, false, 2, 4, 0);
	test_bursts("bursts, spinning", SPIN, false, 1, 5, 0);
	test_bursts("one consumer, take", TAKE, false, 1, 0, FLOWFD_ONE_CONSUMER);
	test_bursts("one consumer, poll", POLL, false, 1, 0, FLOWFD_ONE_CONSUMER);
	test_bursts("one consumer, epoll", EPOLL, false, 1, 0, FLOWFD_ONE_CONSUMER);
	test_bursts("one consumer, edge-triggered epoll", EPOLLET_DRY, false, 1, 0,
		    FLOWFD_ONE_CONSUMER);
	test_bursts("one consumer, a maximum", TAKE, false, 1, 4, FLOWFD_ONE_CONSUMER);
}

/* A child that closed its descriptor: what it adds is not lost to those who have it. */
static void test_closed(void)
{
	/* The module's counter has nobody to tell, and its memory knows. */
	int untold = fallback ? -EPERM : 0;
	struct flowfd_counter c;
	int status = 0;
	uint64_t value;
	pid_t child;

	open_counter(&c, nonblock, 0);
	child = fork();
	if (!child) {
		close(c.fd);
		_exit(flowfd_add(&c, 1) != untold ||
		      flowfd_add_with(&c, 1, 0, FLOWFD_NONBLOCK) != untold ||
		      flowfd_counter_notify(&c, FLOWFD_PRODUCER) != -EPERM ||
		      dup2(epoll_create1(EPOLL_CLOEXEC), c.fd) != c.fd ||
		      flowfd_add(&c, 1) != untold);
	}
	waitpid(child, &status, 0);
	tap_is(status, 0, "a child without the descriptor adds, and notices");
	flowfd_add(&c, 1);
	tap_is(ready(&c), POLLIN | POLLOUT, "the next add of another is announced");
	tap_ok(!flowfd_try_take(&c, &value) && value == 4, "and all is there");
	tap_is(ready(&c), POLLOUT, "and drained");
	flowfd_counter_close(&c);
}

/* A child that unmapped the counter: by system calls, or not at all. */
static void test_unmapped(void)
{
	struct flowfd_counter c, copy;
	uint64_t value = 0;
	int status = 0;
	pid_t child;

	open_counter(&c, nonblock, 0);
	copy = c;
	child = fork();
	if (!child) {
		int missing = fallback ? -ENODEV : 0;

		flowfd_counter_unmap(&copy);
		_exit(flowfd_add(&copy, 7) != missing ||
		      flowfd_take(&copy, &value) != missing ||
		      value != (fallback ? 0 : 7) ||
		      flowfd_try_take(&copy, &value) != (missing ? missing : -EAGAIN) ||
		      flowfd_counter_notify(&copy, FLOWFD_CONSUMER) != -ENODEV ||
		      flowfd_features(&copy) & FLOWFD_HAS_MEMORY);
	}
	waitpid(child, &status, 0);
	tap_is(status, 0, "a child adds and takes after it unmapped");
	tap_is(ready(&c), POLLOUT, "nothing is left");
	flowfd_add(&c, 1);
	tap_is(ready(&c), POLLIN | POLLOUT, "the next add is announced");
	flowfd_counter_close(&c);
}

/* What another process gets, by whatever backend. */
static void test_export(unsigned int options)
{
	struct flowfd_flow flow = { .overflow = FLOWFD_OVERFLOW_DROP, .maximum = 5 };
	int fds[FLOWFD_EXPORT_MAX], count, i;
	struct flowfd_counter c, twin;
	uint64_t value = 0;

	if (open_counter(&c, nonblock, options))
		abort();
	count = flowfd_counter_export(&c, fds);
	tap_is(count, fallback && !(options & FLOWFD_NO_POLL) ? 2 : 1, "export");
	for (i = 0; i < count; i++)
		fds[i] = dup(fds[i]);
	tap_is(flowfd_counter_import(&twin, fds, count), 0, "import");
	tap_is(twin.fd, fds[0], "with the same descriptor for polling");
	tap_is(flowfd_features(&twin), flowfd_features(&c), "and the same features");
	tap_is(flowfd_counter_set_flow(&c, &flow, sizeof(flow)), 0, "a policy");
	tap_is(flowfd_add(&twin, 4), 0, "add there");
	tap_is(flowfd_add(&twin, 3), 0, "without room");
	tap_is(flowfd_counter_get_flow(&c, &flow, sizeof(flow)), 0, "see that here");
	tap_is(flow.count, 4, "the count");
	tap_is(flow.lost, 3, "and what was dropped");
	tap_is(flow.overflow, FLOWFD_OVERFLOW_DROP, "by this policy");
	tap_is(flowfd_take_spin(&c, &value, 1000), 0, "take here");
	tap_is(value, 4, "all of it");
	tap_is(flowfd_take_spin(&twin, &value, 1000), -EAGAIN, "and nothing there");
	flowfd_counter_close(&c);
	flowfd_counter_close(&twin);
}

/* The error of opening in a child that cannot do all, which keeps no descriptor. */
static int open_refused(const struct flowfd_key *key, long number, unsigned int request)
{
	int before = dup(STDERR_FILENO), after, ret, status;
	pid_t pid = fork();

	close(before);
	if (!pid) {
		close(before);
		if (request ? refuse_request(number, request, ENOTTY) :
			      refuse(number, EPERM))
			_exit(errno);
		ret = flowfd_open_shared(key, 0);
		after = dup(STDERR_FILENO);
		_exit(ret < 0 && after == before ? -ret : 0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 0;
	return -WEXITSTATUS(status);
}

/* What another process opens, if there is the module. */
static void test_share(unsigned int options)
{
	struct flowfd_key key = { .id = 0 }, again;
	struct flowfd_counter c, twin;
	uint64_t value = 0;
	int fd;

	if (open_counter(&c, nonblock, options))
		abort();
	tap_is(flowfd_share(c.fd, &key), fallback ? -ENOTTY : 0, "share");
	if (fallback) {
		flowfd_counter_close(&c);
		return;
	}
	fd = flowfd_open_shared(&key, 0);
	tap_ok(fd >= 0 && fd != c.fd, "open by the key");
	tap_is(fcntl(fd, F_GETFD), FD_CLOEXEC, "close-on-exec");
	tap_is(flowfd_counter_map(&twin, fd, FLOWFD_PRODUCER | FLOWFD_CONSUMER), 0, "map");
	tap_is(flowfd_add(&twin, 4), 0, "add there");
	tap_ok(!flowfd_take(&c, &value) && value == 4, "take here");
	tap_is(flowfd_share(twin.fd, &again), 0, "share there");
	tap_is(memcmp(&key, &again, sizeof(key)), 0, "by the same key");
	flowfd_counter_close(&c);
	fd = flowfd_open_shared(&key, FLOWFD_KEEP_ON_EXEC);
	tap_is(fcntl(fd, F_GETFD), 0, "kept on exec");
	close(fd);
	tap_is(flowfd_open_shared(&key, 1U << 31), -EINVAL, "an unknown flag");
	tap_is(open_refused(&key, SYS_dup3, 0), -EPERM, "no dup3(2)");
	tap_is(open_refused(&key, SYS_ioctl, FLOWFD_IOC_OPEN), -EPROTONOSUPPORT,
	       "no such request");
	flowfd_counter_close(&twin);
	tap_is(flowfd_open_shared(&key, 0), -ENOENT, "when it is closed");
	again.secret[0] ^= 1;
	tap_is(flowfd_open_shared(&again, 0), -ENOENT, "with a wrong key");
}

/* Likewise. Without the module it is an epoll. */
static void test_share_ring(void)
{
	struct flowfd_ring ring, twin;
	struct flowfd_event event;
	struct flowfd_key key;
	int post;

	if (flowfd_ring_create(&ring, 4, FLOWFD_FALLBACK))
		abort();
	tap_is(flowfd_share(ring.fd, &key), fallback ? -ENOTTY : 0, "share a ring");
	if (fallback) {
		flowfd_ring_destroy(&ring);
		return;
	}
	tap_is(flowfd_ring_attach(&twin, flowfd_open_shared(&key, 0)), 0, "open it");
	post = flowfd_ring_add_post(&ring, 42);
	flowfd_ring_post(&twin, post, 1);
	tap_is(flowfd_ring_harvest(&ring, &event, 1), 1, "what was posted there");
	tap_is(event.data, 42, "is here");
	flowfd_ring_destroy(&ring);
	flowfd_ring_destroy(&twin);
	tap_is(flowfd_open_shared(&key, 0), -ENOENT, "until it ends");
}

/* Opening is no cancellation point: the descriptor would be lost. */
static void *open_cancelled(void *argument)
{
	struct flowfd_create_counter settings = { .initial = 1,
						  .flags = FLOWFD_SEMAPHORE };
	struct flowfd_counter c;

	pthread_cancel(pthread_self());
	if (!open_counter(&c, settings, 0))
		flowfd_counter_close(&c);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return argument;
}

static void test_cancelled(void)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, open_cancelled, &fallback))
		abort();
	pthread_join(thread, &result);
	tap_ok(result == &fallback, "a thread is not cancelled while it opens");
}

static void run_backend(const char *name)
{
	struct flowfd_counter c;
	int ret;

	setenv("FLOWFD_BACKEND", name, 1);
	fallback = !strcmp(name, "fallback");
	printf("# %s\n", name);
	ret = open_counter(&c, plain, 0);
	if (ret == -ENODEV) {
		tap_skip(name, "the module is not loaded");
		return;
	}
	if (!tap_is(ret, 0, name))
		return;
	flowfd_counter_close(&c);
	test_values();
	test_errors();
	test_poll();
	test_edges();
	test_timeouts(0);
	test_timeouts(FLOWFD_NONBLOCK);
	test_in_time();
	test_semaphore_timeouts(0);
	test_semaphore_timeouts(FLOWFD_NONBLOCK);
	test_signal();
	test_closed();
	test_unmapped();
	test_export(0);
	test_export(FLOWFD_ONE_CONSUMER);
	test_export(FLOWFD_NO_POLL);
	test_share(0);
	test_share(FLOWFD_NO_POLL);
	test_share_ring();
	test_cancelled();
	test_all_bursts();
}

/* In a child: as a user who may lock no more than @limit bytes. */
static void become_limited(rlim_t limit)
{
	const struct rlimit memory = { limit, limit };

	if (setrlimit(RLIMIT_MEMLOCK, &memory))
		_exit(100);
	if (!getuid() && (setgid(65534) || setuid(65534)))
		_exit(100);
}

/* Returns what a child exits with: the negative of an error of @attempt, or 0. */
static int as_limited(rlim_t limit, int (*attempt)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		become_limited(limit);
		_exit(-attempt());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : 1;
}

static int open_many(void)
{
	struct flowfd_counter c;
	int ret = 0;

	for (int i = 0; i < 64 && !ret; i++)
		ret = open_counter(&c, plain, 0);
	return ret;
}

static int create_ring(void)
{
	struct flowfd_ring ring;

	return flowfd_ring_create(&ring, 1024, FLOWFD_FALLBACK);
}

/* Not mlockall(), which does nothing under AddressSanitizer. */
static int open_many_locked(void)
{
	return syscall(SYS_mlockall, MCL_FUTURE) ? 100 : open_many();
}

static int create_ring_locked(void)
{
	return syscall(SYS_mlockall, MCL_FUTURE) ? 100 : create_ring();
}

/*
 * A container with little memory that may be locked: what runs without the module runs
 * with it, too. A real-time program: EAGAIN of mmap(2) does not mean to try again.
 */
static void test_locked_memory(void)
{
	bool module = access(FLOWFD_DEVICE, F_OK) == 0;

	unsetenv("FLOWFD_BACKEND");
	tap_is(as_limited(0, open_many), 0, "counters of a user who may lock nothing");
	tap_is(as_limited(0, create_ring), 0, "a ring");
	tap_is(as_limited(65536, open_many), 0, "more counters than may be locked");
	tap_is(as_limited(65536, open_many_locked), -ENOMEM,
	       "counters of a program that locks its memory");
	tap_is(as_limited(16384, create_ring_locked), -ENOMEM, "its ring");
	setenv("FLOWFD_BACKEND", "module", 1);
	tap_is(as_limited(0, open_many), module ? -ENOMEM : -ENODEV,
	       "only with the module: says why not");
	tap_is(as_limited(0, create_ring), module ? -ENOMEM : -ENODEV,
	       "and why there is no ring");
	unsetenv("FLOWFD_BACKEND");
}

static void test_choice(void)
{
	bool module = access(FLOWFD_DEVICE, F_OK) == 0;
	struct flowfd_counter c;

	setenv("FLOWFD_BACKEND", "other", 1);
	tap_is(open_counter(&c, plain, 0), -EINVAL, "an unknown backend");
	tap_is(flowfd_counter_open(&c, &plain, sizeof(plain), 0), module ? 0 : -ENODEV,
	       "which a program without a fallback does not see");
	if (module)
		flowfd_counter_close(&c);
	setenv("FLOWFD_BACKEND", "", 1);
	tap_is(open_counter(&c, plain, 0), 0, "no backend given");
	tap_is(!!(flowfd_features(&c) & FLOWFD_HAS_CALLS), module, "the module if it is there");
	flowfd_counter_close(&c);
	unsetenv("FLOWFD_BACKEND");
	tap_is(open_counter(&c, plain, 0), 0, "none in the environment");
	flowfd_counter_close(&c);
}

/* As a filter refuses a call that it does not know. */
static int open_without_device_call(const void *settings)
{
	const struct flowfd_create_counter *any = settings;
	struct flowfd_counter c;

	if (refuse(SYS_openat, ENOSYS))
		return REFUSE_UNABLE;
	return open_counter(&c, *any, 0) || flowfd_features(&c) & FLOWFD_HAS_CALLS;
}

int main(void)
{
	test_choice();
	refuse_in_child(open_without_device_call, &plain, "a device that no call opens");
	test_locked_memory();
	run_backend("fallback");
	run_backend("module");
	return tap_done();
}
