// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a signal costs: two threads or processes that wake each other, eight threads that
 * signal without rest, and one that wakes an event loop.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"

/* Signals between looks at the clock. */
#define BURST 16

static const struct channel *const channels[] = {
	&channel_eventfd, &channel_flowfd, &channel_memory, &channel_post, &channel_futex,
};

#define CHANNELS (sizeof(channels) / sizeof(*channels))

/* How often the calling thread has slept. */
static unsigned long sleeps(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		err(EXIT_FAILURE, "getrusage");
	return (unsigned long)usage.ru_nvcsw;
}

/* ---- two threads or processes, which both sleep before each signal ---- */

struct pingpong {
	const struct channel *channel;
	struct end *there;
	struct end *back;
	atomic_bool stop;
	uint64_t rounds;
	uint64_t time;
	unsigned long sleeps[2];
};

static void wait_for(const struct pingpong *pingpong, struct end *self)
{
	while (!pingpong->channel->take(self))
		;
}

static void *answer(void *arg)
{
	struct pingpong *pingpong = arg;
	unsigned long before = sleeps();
	bool stop;

	do {
		wait_for(pingpong, pingpong->there);
		stop = pingpong->stop;
		pingpong->channel->signal(pingpong->back, 1);
	} while (!stop);
	pingpong->sleeps[0] = sleeps() - before;
	return NULL;
}

static void turn(struct pingpong *pingpong)
{
	pingpong->channel->signal(pingpong->there, 1);
	wait_for(pingpong, pingpong->back);
	pingpong->rounds++;
}

static void *begin(void *arg)
{
	struct pingpong *pingpong = arg;
	uint64_t start = clock_now(), end = start + settings.ms * 1000000ULL;
	unsigned long before = sleeps();

	do {
		for (int i = 0; i < BURST; i++)
			turn(pingpong);
	} while (clock_now() < end);
	pingpong->time = clock_now() - start;
	pingpong->sleeps[1] = sleeps() - before;
	pingpong->stop = true;
	turn(pingpong);
	return NULL;
}

static void run_threads(struct pingpong *pingpong)
{
	pair_run(answer, begin, pingpong);
}

static void measure_turns(struct table *table, const struct channel *channel,
			  void (*run)(struct pingpong *pingpong))
{
	struct pingpong pingpong = {
		.channel = channel,
		.there = channel_open(channel, false),
		.back = channel_open(channel, false),
	};
	double rounds;

	run(&pingpong);
	channel_close(channel, pingpong.there);
	channel_close(channel, pingpong.back);
	rounds = (double)(pingpong.rounds - 1);
	table_add(table, 0, (double)pingpong.time / rounds, channel->name);
	/* Not a column of processes: each keeps its own. */
	table_add(table, 2, (double)(pingpong.sleeps[0] + pingpong.sleeps[1]) / rounds,
		  channel->name);
}

static void measure_pingpong(struct table *table, unsigned int number)
{
	measure_turns(table, channels[number], run_threads);
}

const struct bench bench_pingpong = {
	.name = "pingpong",
	.title = "two threads signal each other in turn, and sleep between",
	.labels = { "channel" },
	.columns = { { "cost", "round", 0, 0 },
		     { "ratio", "ratio", 3, 1 },
		     { "sleeps", "sleeps/round", 2, 0 } },
	.control = { "eventfd" },
	.cases = CHANNELS,
	.two_threads = true,
	.channels = channels,
	.count = CHANNELS,
	.measure = measure_pingpong,
};

/* ---- two processes on one processor, which share nothing but a socket ---- */

static const struct channel *const ways[] = {
	&channel_eventfd, &channel_by_default,	 &channel_one_consumer, &channel_no_poll,
	&channel_shared_futex, &channel_pipe, &channel_datagram,
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static void run_processes(struct pingpong *pingpong)
{
	const struct channel *channel = pingpong->channel;
	cpu_set_t usable;
	pid_t child;

	pair_cpus(&usable);
	pair_bind(&usable, false);
	child = fork();
	if (child < 0)
		err(EXIT_FAILURE, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pingpong->there = channel_import(channel, pingpong->there);
		pingpong->back = channel_import(channel, pingpong->back);
		/* Until it is killed: it does not see that this one stops. */
		answer(pingpong);
	}
	/* Waits for the child to come so far. */
	turn(pingpong);
	pingpong->rounds = 0;
	begin(pingpong);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sched_setaffinity(0, sizeof(usable), &usable);
}

static void measure_processes(struct table *table, unsigned int number)
{
	measure_turns(table, ways[number], run_processes);
}

const struct bench bench_processes = {
	.name = "processes",
	.title = "two processes signal each other in turn on one processor, and sleep between",
	.labels = { "channel" },
	.columns = { { "cost", "round", 0, 0 }, { "ratio", "ratio", 3, 1 } },
	.control = { "eventfd" },
	.cases = WAYS,
	.channels = ways,
	.count = WAYS,
	.measure = measure_processes,
};

/* ---- eight threads that signal without rest, and one that takes and sleeps ---- */

#define SENDERS 8

struct fanin {
	const struct channel *channel;
	struct end *self;
	pthread_barrier_t begin;
	atomic_bool stop;
	atomic_bool done;
	atomic_ulong signals;
	atomic_ulong calls;
};

static void *send_all(void *arg)
{
	struct fanin *fanin = arg;
	unsigned long n = 0;

	pthread_barrier_wait(&fanin->begin);
	for (; !fanin->stop; n += BURST)
		fanin->channel->signal(fanin->self, BURST);
	fanin->signals += n;
	fanin->calls += calls_made;
	return NULL;
}

/* One more signal comes after @done. */
static void *receive_all(void *arg)
{
	struct fanin *fanin = arg;

	while (!fanin->done)
		fanin->channel->take(fanin->self);
	fanin->calls += calls_made;
	return NULL;
}

/* Nanoseconds in which all threads have signalled. */
static uint64_t run_fanin(struct fanin *fanin)
{
	pthread_t senders[SENDERS], taker;
	unsigned int i;
	uint64_t time;

	pthread_barrier_init(&fanin->begin, NULL, SENDERS + 1);
	thread_start(&taker, receive_all, fanin);
	for (i = 0; i < SENDERS; i++)
		thread_start(&senders[i], send_all, fanin);
	pthread_barrier_wait(&fanin->begin);
	time = clock_now();
	/* Long enough for all of them on one CPU, with turns of 4 ms. */
	clock_sleep_until(time + 10 * settings.ms * 1000000ULL);
	fanin->stop = true;
	for (i = 0; i < SENDERS; i++)
		pthread_join(senders[i], NULL);
	time = clock_now() - time;
	fanin->done = true;
	fanin->channel->signal(fanin->self, 1);
	pthread_join(taker, NULL);
	pthread_barrier_destroy(&fanin->begin);
	return time;
}

static void measure_fanin(struct table *table, unsigned int number)
{
	struct fanin fanin = { .channel = channels[number] };
	double signals, time;

	fanin.self = channel_open(fanin.channel, false);
	time = (double)run_fanin(&fanin);
	channel_close(fanin.channel, fanin.self);
	signals = (double)fanin.signals;
	table_add(table, 0, time / signals, fanin.channel->name);
	table_add(table, 2, (double)fanin.calls / signals, fanin.channel->name);
}

const struct bench bench_fanin = {
	.name = "fanin",
	.title = "8 threads signal without rest, one takes",
	.labels = { "channel" },
	.columns = { { "cost", "signal", 1, 0 },
		     { "ratio", "ratio", 3, 1 },
		     { "calls", "calls/signal", 5, 0 } },
	.control = { "eventfd" },
	.cases = CHANNELS,
	.channels = channels,
	.count = CHANNELS,
	.measure = measure_fanin,
};

/*
 * ---- a thread that wakes an event loop: one that sleeps, and a busy one, which looks
 * for events between its other work and never sleeps in the call that waits for them ----
 */

#define SIGNALS	     500
/* An idle loop can sleep again; a busy one has looked several times. */
#define IDLE_PACE_NS 1000000
#define BUSY_PACE_NS 100000
#define WORK_NS	     20000

static const struct channel *const loops[] = {
	&channel_epoll_eventfd,
	&channel_epoll_flowfd,
	&channel_epoll_memory,
	&channel_ring_eventfd,
	&channel_post,
};

#define LOOPS (sizeof(loops) / sizeof(*loops))

/**
 * struct loop - the loop, and times of its signals
 * @taken: signals that the loop has
 * @looks: calls of @channel's take()
 * @look: how long the last of them took
 * @signal: how long each signal took the thread
 * @begun: when it was begun
 * @us: from then until the loop had it
 */
struct loop {
	const struct channel *channel;
	struct end *self;
	bool busy;
	atomic_uint taken;
	unsigned long looks;
	double look[SIGNALS];
	double signal[SIGNALS];
	uint64_t begun[SIGNALS];
	double us[SIGNALS];
};

static void look(struct loop *loop)
{
	uint64_t start = clock_now(), end;
	bool found = loop->channel->take(loop->self) > 0;

	end = clock_now();
	loop->look[loop->looks++ % SIGNALS] = (double)(end - start);
	if (!found)
		return;
	loop->us[loop->taken] = (double)(end - loop->begun[loop->taken]) / 1e3;
	loop->taken++;
}

static void *run_loop(void *arg)
{
	struct loop *loop = arg;

	while (loop->taken < SIGNALS) {
		look(loop);
		if (loop->busy)
			pair_work_until(clock_now() + WORK_NS);
	}
	return NULL;
}

/* Waits for a late loop: two signals would be one. */
static void *signal_at_pace(void *arg)
{
	struct loop *loop = arg;
	unsigned int i;

	for (i = 0; i < SIGNALS; i++) {
		do {
			clock_sleep_until(clock_now() +
					  (loop->busy ? BUSY_PACE_NS : IDLE_PACE_NS));
		} while (loop->taken < i);
		loop->begun[i] = clock_now();
		loop->channel->signal(loop->self, 1);
		loop->signal[i] = (double)(clock_now() - loop->begun[i]);
	}
	return NULL;
}

static void measure_loop(struct table *table, unsigned int number)
{
	static struct loop loop;
	double clock = clock_cost();
	struct row *row;

	memset(&loop, 0, sizeof(loop));
	loop.channel = loops[number % LOOPS];
	loop.busy = number >= LOOPS;
	loop.self = channel_open(loop.channel, loop.busy);
	pair_run(run_loop, signal_at_pace, &loop);
	channel_close(loop.channel, loop.self);
	row = table_row(table, (const char *[]){ loop.busy ? "busy" : "idle",
						 loop.channel->name });
	series_add(&row->series[0], samples_quantile(loop.signal, SIGNALS, 500) - clock);
	series_add(&row->series[4], samples_quantile(loop.us, SIGNALS, 500) * 1e3);
	if (loop.busy)
		series_add(&row->series[2],
			   samples_quantile(loop.look, SIGNALS, 500) - clock);
}

const struct bench bench_loop = {
	.name = "loop",
	.title = "a thread wakes an event loop, which sleeps or is busy",
	.labels = { "loop", "channel" },
	.columns = { { "signal", "signal", 0, 0 },
		     { "signal_ratio", "ratio", 3, 1 },
		     { "look", "look", 0, 0 },
		     { "look_ratio", "ratio", 3, 3 },
		     { "taken", "until taken", 0, 0 },
		     { "taken_ratio", "ratio", 3, 5 } },
	.control = { NULL, "eventfd, epoll" },
	.cases = 2 * LOOPS,
	.two_threads = true,
	.channels = loops,
	.count = LOOPS,
	.measure = measure_loop,
};
