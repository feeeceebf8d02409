// SPDX-License-Identifier: GPL-2.0-only
/*
 * The doorbell of counters that flowfd_counter_open() makes without the module: what is
 * in the eventfd, and that at no point an add or a take can be interrupted by another so
 * that the eventfd is wrong in the end.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/steps.h"
#include "tests/tap.h"

#define NONE UINT64_MAX
#define MAXIMUM 5
/* A function has more. */
#define POINTS 3
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static struct flowfd_counter open_with(uint32_t flags, unsigned int options)
{
	const struct flowfd_create_counter settings = { .maximum = MAXIMUM, .flags = flags };
	struct flowfd_counter c;

	if (flowfd_counter_open(&c, &settings, sizeof(settings),
				FLOWFD_FALLBACK | options))
		abort();
	return c;
}

static struct flowfd_counter open_counter(unsigned int options)
{
	return open_with(FLOWFD_NONBLOCK, options);
}

static struct flowfd_counter open_blocking(unsigned int options)
{
	return open_with(0, options);
}

/* What poll(2) says of the descriptor now. */
static int ready(const struct flowfd_counter *c)
{
	struct pollfd poller = { .fd = c->fd, .events = POLLIN | POLLOUT };

	return poll(&poller, 1, 0) < 0 ? -1 : poller.revents;
}

/* The count of the eventfd: how often system calls were made. */
static unsigned long long doorbell(const struct flowfd_counter *c)
{
	unsigned long long count = NONE;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", c->fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "eventfd-count: %llx", &count);
	if (file)
		fclose(file);
	return count;
}

/* What a process leaves that is killed between its system call and the next step. */
static void ring_for_nothing(const struct flowfd_counter *c)
{
	const uint64_t one = 1;

	if (write(c->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void test_values(void)
{
	struct flowfd_counter c = open_counter(0);
	uint64_t value;

	flowfd_add(&c, 1);
	flowfd_add(&c, 1);
	flowfd_add(&c, 1);
	tap_is(doorbell(&c), 1, "three adds ring once");
	flowfd_take(&c, &value);
	tap_is(doorbell(&c), 0, "a take drains");
	flowfd_add(&c, 4);
	flowfd_add(&c, 1);
	tap_is(doorbell(&c), NONE - 1, "full");
	flowfd_add(&c, 1);
	tap_is(doorbell(&c), NONE - 1, "it stays full");
	flowfd_take(&c, &value);
	tap_is(doorbell(&c), 0, "a take drains");

	ring_for_nothing(&c);
	for (int i = 0; i < 100; i++)
		flowfd_try_take(&c, &value);
	tap_is(doorbell(&c), 0, "takes that find nothing drain in the end");
	flowfd_counter_close(&c);

	c = open_blocking(0);
	ring_for_nothing(&c);
	tap_is(flowfd_take_with(&c, &value, 1, 0), -ETIMEDOUT,
	       "readable for nothing, and the time has passed");
	tap_is(doorbell(&c), 1, "which the first look knows");
	tap_is(flowfd_take_with(&c, &value, 20000000, 0), -ETIMEDOUT,
	       "readable for nothing until the time has passed");
	tap_is(doorbell(&c), 0, "which drains it");
	flowfd_counter_close(&c);

	c = open_counter(FLOWFD_ONE_CONSUMER);
	flowfd_add(&c, 1);
	tap_is(doorbell(&c), 1, "one consumer: the first add rings");
	flowfd_take(&c, &value);
	tap_is(doorbell(&c), 0, "a take drains");
	flowfd_add(&c, 1);
	tap_is(doorbell(&c), 0, "nobody waits for the next add");
	flowfd_take(&c, &value);
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "until a take finds nothing");
	flowfd_add(&c, 1);
	tap_is(doorbell(&c), 1, "then an add rings");
	flowfd_add(&c, 3);
	tap_is(flowfd_add(&c, 1), -EAGAIN, "no room");
	tap_is(ready(&c), POLLIN, "as poll says");
	flowfd_take(&c, &value);
	tap_is(ready(&c), POLLOUT, "empty");

	ring_for_nothing(&c);
	flowfd_add(&c, 4);
	tap_is(flowfd_add(&c, 1), -EAGAIN, "no room, and it was not empty");
	tap_is(ready(&c), POLLIN, "as poll says");
	flowfd_counter_close(&c);
}

static struct flowfd_counter counter;
static int edges;

/* The pages of adds and takes; nobody changes the settings here. */
static void watch_counter(void)
{
	size_t page = counter.map_size / 3;

	steps_watch(0, counter.add.producer, 2 * page);
}

static void add_one(void)
{
	flowfd_add(&counter, 1);
}

static void add_four(void)
{
	flowfd_add(&counter, 4);
}

/* What the last take returned. */
static int taken;

static void take(void)
{
	uint64_t value;

	taken = flowfd_try_take(&counter, &value);
}

static void add_and_take(void)
{
	add_one();
	take();
}

static void take_and_add(void)
{
	take();
	add_one();
}

static void take_and_fill(void)
{
	take();
	add_four();
	add_one();
}

/* What the one consumer does before it sleeps, and each handler that interrupts it. */
static void take_until_nothing(void)
{
	do {
		take();
	} while (!taken);
}

static void add_and_take_all(void)
{
	add_one();
	take_until_nothing();
}

static void fill_and_take_all(void)
{
	add_four();
	add_one();
	take_until_nothing();
}

struct situation {
	const char *what;
	void (*run)(void);
	void (*happen)(void);
	unsigned int before; /* the count */
	bool asleep;	     /* the one consumer, before */
};

static const struct situation situations[] = {
	{ "an add during an add", add_one, add_one, 0, false },
	{ "a take during an add", add_one, take, 0, false },
	{ "an add and a take during an add", add_one, add_and_take, 0, false },
	{ "a take and an add during an add", add_one, take_and_add, 0, false },
	{ "the same, not the first", add_one, take_and_add, 1, false },
	{ "an add during a take", take, add_one, 1, false },
	{ "a take during a take", take, take, 1, false },
	{ "an add and a take during a take", take, add_and_take, 1, false },
	{ "a handler that takes all, during a take", take, add_and_take_all, 1, false },
	{ "the same in one that finds nothing", take, add_and_take_all, 0, false },
	{ "the same, and it was full", take, fill_and_take_all, 0, false },
	{ "a take and an add during a take", take, take_and_add, 1, false },
	{ "an add during a take that finds nothing", take, add_one, 0, false },
	{ "an add and a take during one that finds nothing", take, add_and_take, 0, false },
	{ "an add without room during a take", take, add_one, 4, false },
	{ "a take and a full counter during a take", take, take_and_fill, 4, false },
	{ "a take during an add without room", add_one, take, 4, false },
	{ "a take and an add during an add without room", add_one, take_and_add, 4, false },
	{ "an add during an add without room", add_one, add_one, 4, false },
	{ "a full counter during an add without room", add_four, take_and_fill, 4, false },
};

/* The one consumer sleeps before, or goes to sleep. */
static const struct situation asleep[] = {
	{ "an add during an add", add_one, add_one, 0, true },
	{ "the consumer goes to sleep during an add", add_one, take_until_nothing, 0,
	  false },
	{ "the same, not the first", add_one, take_until_nothing, 1, false },
	{ "the same, without room", add_one, take_until_nothing, 4, false },
	{ "it is woken during an add", add_one, take_until_nothing, 0, true },
	{ "a handler that takes all, during its last take", take, add_and_take_all, 0,
	  true },
	{ "the same, and it was full", take, fill_and_take_all, 0, true },
	{ "the same, before it sleeps", take_until_nothing, add_and_take_all, 0, false },
	{ "the same, in its first take", take_until_nothing, add_and_take_all, 1, false },
};

static uint64_t count(void)
{
	return counter.take.producer->produced - counter.take.consumer->consumed;
}

static bool is_consistent(void)
{
	int bits = ready(&counter);

	if (!(bits & POLLIN) != !count())
		return false;
	/* Full after an add without room, but not if there is room for any. */
	return count() + 1 < MAXIMUM ? bits & POLLOUT : true;
}

/* How often a take of the one consumer found nothing, so that it sleeps. */
static int found_nothing;

/* Whether the last take of the one consumer found nothing, also that of a handler. */
static bool sleeps(const struct situation *situation)
{
	if (situation >= asleep && situation < asleep + ARRAY_SIZE(asleep))
		return true;
	if (situation->run != take || !taken ||
	    (situation->happen != add_one && situation->happen != add_and_take_all &&
	     situation->happen != fill_and_take_all))
		return false;
	found_nothing++;
	return true;
}

static bool is_right(const struct situation *situation, unsigned int options)
{
	struct epoll_event event;

	if (options & FLOWFD_ONE_CONSUMER && sleeps(situation)) {
		if (!is_consistent())
			return false;
		add_one();
		return is_consistent();
	}
	if (options & FLOWFD_ONE_CONSUMER)
		take_until_nothing();
	else if (count() && epoll_wait(edges, &event, 1, 0) != 1)
		return false;
	if (!is_consistent())
		return false;
	take_until_nothing();
	if (!is_consistent())
		return false;
	add_one();
	return is_consistent();
}

/* Edges of what was there before are forgotten. */
static void prepare(const struct situation *situation, unsigned int options)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	counter = open_counter(options);
	watch_counter();
	/* If it is awake, the one consumer has not found that there is nothing. */
	if (options & FLOWFD_ONE_CONSUMER && !situation->asleep)
		add_and_take();
	for (unsigned int i = 0; i < situation->before; i++)
		add_one();
	edges = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(edges, EPOLL_CTL_ADD, counter.fd, &event);
	epoll_wait(edges, &event, 1, 0);
}

static void test_steps(const struct situation *situation, unsigned int options)
{
	int point = 0, wrong = 0;
	bool happened;

	do {
		prepare(situation, options);
		happened = steps_run(situation->run, situation->happen, point++);
		wrong += happened && !is_right(situation, options);
		close(edges);
		flowfd_counter_close(&counter);
	} while (happened);
	printf("# before each of %d points\n", point - 1);
	tap_ok(point > POINTS, "point by point");
	tap_is(wrong, 0, situation->what);
}

static int added;

static void add_nothing(void)
{
	added = flowfd_add(&counter, 0);
}

static void take_and_add_three(void)
{
	take();
	flowfd_add(&counter, 3);
}

/*
 * The count is never above 3. Loads of @consumed and @produced with a take and an add
 * between them, also twice in one call, must not make it seem so.
 */
static void test_never_full(void)
{
	int refused = 0, calls = 0, first = 0, second;
	bool happened;

	do {
		second = first + 1;
		do {
			counter = open_counter(0);
			watch_counter();
			flowfd_add(&counter, 3);
			added = 0;
			happened = steps_run_twice(add_nothing, take_and_add_three, first,
						   second++);
			refused += added != 0;
			calls++;
			flowfd_counter_close(&counter);
		} while (happened);
	} while (second > ++first + 1);
	printf("# %d calls\n", calls);
	tap_ok(calls > 10, "point by point, twice");
	tap_is(refused, 0, "what fits is not refused");
}

/* A peer that stores all the time; there is always a count, and room. */
static void other_stores(void)
{
	__atomic_fetch_add(&counter.add.producer->produced, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&counter.take.consumer->consumed, 1, __ATOMIC_SEQ_CST);
}

static void other_arms(void)
{
	__atomic_fetch_add(&counter.take.consumer->armed, 8, __ATOMIC_SEQ_CST);
}

static void take_briefly(void)
{
	uint64_t value;

	added = flowfd_take_with(&counter, &value, 1000000, 0);
}

/* A peer that changes a word at each instruction keeps no call from its end. */
static void test_hostile(const char *what, void (*run)(void), void (*happen)(void),
			 unsigned int options, int result)
{
	counter = run == take_briefly ? open_blocking(options) : open_counter(options);
	steps_watch(0, NULL, 0);
	added = 0;
	tap_ok(steps_run_each(run, happen, 0) < STEPS_MANY, what);
	tap_is(added, result, "ends");
	flowfd_counter_close(&counter);
}

static void test_all_hostile(void)
{
	/* The loops are the same, and the time is long. */
	if (sizeof(long) == 4)
		return;
	test_hostile("an add that sees room all the time", add_nothing, other_stores, 0,
		     -EAGAIN);
	test_hostile("the same, and nobody polls", add_nothing, other_stores, FLOWFD_NO_POLL,
		     -EAGAIN);
	test_hostile("a take whose word changes", take_briefly, other_arms, FLOWFD_NO_POLL,
		     -ETIMEDOUT);
}

/* A thread ends at each point: the next add and the next take heal. */
static void test_killed(const char *what, void (*run)(void), unsigned int before,
			unsigned int options)
{
	const struct situation situation = { .before = before };
	int point = 0, wrong = 0;
	bool happened;

	do {
		prepare(&situation, options);
		happened = steps_kill(run, point++);
		/* The one consumer starts anew. */
		if (options & FLOWFD_ONE_CONSUMER)
			take_until_nothing();
		add_one();
		wrong += !(ready(&counter) & POLLIN);
		take();
		take_until_nothing();
		wrong += ready(&counter) != POLLOUT;
		add_one();
		wrong += ready(&counter) != (POLLIN | POLLOUT);
		close(edges);
		flowfd_counter_close(&counter);
	} while (happened);
	tap_ok(point > POINTS, "killed at each point");
	tap_is(wrong, 0, what);
}

static void test_all_killed(unsigned int options)
{
	test_killed("killed in an add", add_one, 0, options);
	test_killed("killed in a second add", add_one, 1, options);
	test_killed("killed in an add without room", add_one, 4, options);
	test_killed("killed in a take", take, 1, options);
	test_killed("killed in a take from a full counter", take, 4, options);
	test_killed("killed in a take that finds nothing", take, 0, options);
}

/* ---- threads that sleep on the word of the state ---- */

#define TEN_SECONDS 10000000000ULL

/* One that nobody wakes finds the value in the end, so the time tells. */
static void *take_asleep(void *result)
{
	time_t start = time(NULL);
	uint64_t value;

	*(int *)result = flowfd_take_with(&counter, &value, TEN_SECONDS, 0);
	if (time(NULL) - start > 5)
		*(int *)result = -ETIMEDOUT;
	return NULL;
}

static bool has_sleeper(unsigned int bit)
{
	return __atomic_load_n(&counter.take.consumer->armed, __ATOMIC_SEQ_CST) & bit;
}

/* Returns when it has said that it sleeps, or is about to. */
static void begin_sleeper(pthread_t *thread, void *(*sleeper)(void *result), unsigned int bit,
			  int *result)
{
	/* Of the one consumer this is a state that has the bit already. */
	counter.take.consumer->armed = 0;
	pthread_create(thread, NULL, sleeper, result);
	while (!has_sleeper(bit))
		sched_yield();
}

/*
 * A process is killed at each instruction of an add that wakes the one consumer. At some it
 * leaves that asleep; the same by another wakes it. (Nobody polls: the simulator.)
 */
static void test_sleeper(void)
{
	int instruction = 0, wrong = 0, left = 0, result;
	pthread_t thread;
	bool happened;

	/* Its memory is that of the sleeping thread. */
	steps_watch(0, NULL, 0);
	do {
		counter = open_blocking(FLOWFD_ONE_CONSUMER);
		begin_sleeper(&thread, take_asleep, FLOWFD_ARMED_READERS, &result);
		happened = steps_kill(add_one, instruction++);
		left += happened && has_sleeper(FLOWFD_ARMED_READERS) && count() == 1;
		add_one();
		pthread_join(thread, NULL);
		wrong += result != 0;
		flowfd_counter_close(&counter);
	} while (happened);
	printf("# at each of %d instructions, %d leave it asleep\n", instruction - 1, left);
	tap_ok(left > 0, "one that is killed leaves a sleeper");
	tap_is(wrong, 0, "the next add wakes it");
}

static void *take_cancelled(void *result)
{
	pthread_cancel(pthread_self());
	return take_asleep(result);
}

/* A thread that is cancelled before it sleeps takes nothing with it. */
static void test_cancelled(unsigned int options)
{
	pthread_t thread;
	uint64_t value;
	void *end;
	int result;

	counter = open_blocking(options);
	pthread_create(&thread, NULL, take_cancelled, &result);
	pthread_join(thread, &end);
	tap_ok(end == PTHREAD_CANCELED, "a thread is cancelled instead of going to sleep");
	tap_is(flowfd_add(&counter, 1), 0, "add");
	tap_is(flowfd_take(&counter, &value), 0, "take");
	flowfd_counter_close(&counter);
}

static void *take_without_end(void *result)
{
	uint64_t value;

	*(int *)result = flowfd_take(&counter, &value);
	return NULL;
}

static volatile int handled_type;

static void look_at_type(int number)
{
	int type;

	(void)number;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	pthread_setcanceltype(type, NULL);
	handled_type = type;
}

/* A handler that interrupts a sleep must not be cancelled just anywhere. */
static void test_handler(unsigned int options, int flags)
{
	const struct sigaction action = { .sa_handler = look_at_type, .sa_flags = flags };
	pthread_t thread;
	int result;

	sigaction(SIGUSR1, &action, NULL);
	handled_type = -1;
	counter = open_blocking(options);
	begin_sleeper(&thread, take_without_end, FLOWFD_ARMED_READERS, &result);
	usleep(20000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	tap_is(result, -EINTR, "a signal interrupts a sleep");
	tap_is(handled_type, PTHREAD_CANCEL_DEFERRED, "whose handler runs as elsewhere");
	flowfd_counter_close(&counter);
}

/* One whose call fails does not know that the consumer sleeps by then. */
static void test_failed_asleep(void)
{
	pthread_t thread;
	int result;

	counter = open_blocking(FLOWFD_ONE_CONSUMER);
	begin_sleeper(&thread, take_asleep, FLOWFD_ARMED_READERS, &result);
	usleep(20000);
	/* FAILED */
	__atomic_store_n(&counter.take.consumer->armed,
			 FLOWFD_ARMED_READERS | FLOWFD_ARMED_WRITERS | 16, __ATOMIC_SEQ_CST);
	tap_is(flowfd_add(&counter, 1), 0, "an add after a call that failed");
	pthread_join(thread, NULL);
	tap_is(result, 0, "wakes the consumer that sleeps");
	flowfd_counter_close(&counter);
}

static void test_sleepers(void)
{
	static const unsigned int options[] = { FLOWFD_NO_POLL, FLOWFD_ONE_CONSUMER };

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		test_cancelled(options[i]);
		test_handler(options[i], 0);
		test_handler(options[i], SA_RESTART);
	}
	test_failed_asleep();
}

static void test_all_steps(void)
{
	size_t i;

#ifdef STEPS_UNAVAILABLE
	tap_skip("point by point", STEPS_UNAVAILABLE);
	return;
#endif
	printf("# any number of consumers\n");
	for (i = 0; i < ARRAY_SIZE(situations); i++)
		test_steps(&situations[i], 0);
	printf("# one consumer\n");
	for (i = 0; i < ARRAY_SIZE(situations); i++)
		test_steps(&situations[i], FLOWFD_ONE_CONSUMER);
	tap_ok(found_nothing > 0, "a take that finds nothing lets it sleep");
	printf("# one consumer that sleeps\n");
	for (i = 0; i < ARRAY_SIZE(asleep); i++)
		test_steps(&asleep[i], FLOWFD_ONE_CONSUMER);
	test_never_full();
	test_all_hostile();
	printf("# killed\n");
	test_all_killed(0);
	test_all_killed(FLOWFD_ONE_CONSUMER);
	test_sleeper();
}

int main(void)
{
	setenv("FLOWFD_BACKEND", "fallback", 1);
	test_values();
	test_all_steps();
	test_sleepers();
	return tap_done();
}
