// SPDX-License-Identifier: GPL-2.0-only
/*
 * What benchmarks share: clocks, a reader and a writer thread that are bound to a CPU
 * each, so that no migration is measured, and the descriptors to measure.
 */
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>

#include <flowfd.h>

#include "bench.h"

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	if (clock_gettime(id, &now))
		err(EXIT_FAILURE, "clock_gettime");
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread, in milliseconds. */
double clock_thread_ms(void)
{
	return (double)read_clock(CLOCK_THREAD_CPUTIME_ID) / 1e6;
}

/* Nanoseconds that the clock itself adds to a measurement: a median. */
double clock_cost(void)
{
	double times[501];
	const size_t count = sizeof(times) / sizeof(*times);
	uint64_t start;

	for (size_t i = 0; i < count; i++) {
		start = clock_now();
		times[i] = (double)(clock_now() - start);
	}
	return samples_quantile(times, count, 500);
}

void clock_sleep_until(uint64_t when)
{
	struct timespec until = {
		.tv_sec = (time_t)(when / 1000000000),
		.tv_nsec = (long)(when % 1000000000),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/*
 * Nanoseconds of each of the @n things that @loop does, in which this thread ran. Runs
 * that are too short to be measured warm the caches, and say how many there must be.
 */
double clock_loop(void (*loop)(void *arg, unsigned long n), void *arg)
{
	double wanted = settings.ms * 1e6, time;
	unsigned long n = 1;

	for (;;) {
		time = clock_thread_ms();
		loop(arg, n);
		time = (clock_thread_ms() - time) * 1e6;
		if (time >= wanted)
			return time / (double)n;
		if (time < wanted / 16)
			n *= 8;
		else
			n = (unsigned long)((double)n * 1.1 * wanted / time) + 1;
	}
}

static bool shared_cpu;

/* The CPUs that this process may use; returns their number. */
unsigned int pair_cpus(cpu_set_t *usable)
{
	if (sched_getaffinity(0, sizeof(*usable), usable))
		err(EXIT_FAILURE, "sched_getaffinity");
	return (unsigned int)CPU_COUNT(usable);
}

/* Binds this thread, and those that it starts from now on, to a CPU of @usable. */
void pair_bind(const cpu_set_t *usable, bool second)
{
	int skip = second ? 1 : 0, cpu = 0;
	cpu_set_t one;

	while (!CPU_ISSET(cpu, usable) || skip-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		err(EXIT_FAILURE, "sched_setaffinity");
}

void thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	errno = pthread_create(thread, NULL, run, arg);
	if (errno)
		err(EXIT_FAILURE, "pthread_create");
}

/* The first usable CPU is the reader's, the second the writer's. */
void pair_run(void *(*reader)(void *), void *(*writer)(void *), void *arg)
{
	pthread_t threads[2];
	cpu_set_t usable;

	shared_cpu = pair_cpus(&usable) < 2;
	/* Threads inherit it. The default is as long as the shortest sleep here. */
	prctl(PR_SET_TIMERSLACK, 1);
	pair_bind(&usable, false);
	thread_start(&threads[0], reader, arg);
	pair_bind(&usable, !shared_cpu);
	thread_start(&threads[1], writer, arg);
	sched_setaffinity(0, sizeof(usable), &usable);
	pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
}

/*
 * The work of a thread between its calls. Where both threads share a CPU, they sleep, as
 * work would keep the other one from running.
 */
void pair_work_until(uint64_t when)
{
	if (shared_cpu)
		clock_sleep_until(when);
	while (clock_now() < when)
		;
}

static int open_eventfd(uint64_t initial, unsigned int flags)
{
	int efd_flags = EFD_CLOEXEC;
	int fd;

	if (flags & FLOWFD_SEMAPHORE)
		efd_flags |= EFD_SEMAPHORE;
	if (flags & FLOWFD_NONBLOCK)
		efd_flags |= EFD_NONBLOCK;
	fd = eventfd(0, efd_flags);
	if (fd < 0)
		err(EXIT_FAILURE, "eventfd");
	/* The initial count of eventfd(2) has only 32 bits. */
	if (initial && eventfd_write(fd, initial))
		err(EXIT_FAILURE, "eventfd: write");
	return fd;
}

/* Opens a subject; @flags: FLOWFD_*. */
int subject_open(const struct subject *subject, uint64_t initial, unsigned int flags)
{
	struct flowfd_create_counter counter = {
		.initial = initial,
		.maximum = subject->maximum,
		.flags = flags,
		.qos.token_capacity = subject->capacity,
		.qos.token_rate = subject->rate,
	};
	int fd;

	if (!subject->flowfd)
		return open_eventfd(initial, flags);
	fd = flowfd_counter_create_from(&counter, sizeof(counter));
	if (fd < 0)
		errx(EXIT_FAILURE, "%s: %s", FLOWFD_DEVICE, flowfd_strerror(fd));
	return fd;
}
