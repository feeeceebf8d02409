// SPDX-License-Identifier: GPL-2.0-only
/*
 * A reader and a writer thread, each bound to its own CPU, so that neither the
 * scheduler's choice nor a migration is measured. A single CPU is shared, and the
 * threads sleep instead of working, which would keep the other one from running.
 */
#include <err.h>
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>

#include "bench.h"

static bool shared_cpu;

static void usable_cpus(cpu_set_t *set)
{
	if (sched_getaffinity(0, sizeof(*set), set))
		err(EXIT_FAILURE, "sched_getaffinity");
}

/* Number of CPUs that this process may use. */
unsigned int pair_cpus(void)
{
	cpu_set_t set;

	usable_cpus(&set);
	return (unsigned int)CPU_COUNT(&set);
}

/* The first usable CPU is the reader's, the second the writer's. */
static void choose_cpu(cpu_set_t *set, bool writer)
{
	int skip = writer ? 1 : 0;
	int cpu = 0;

	usable_cpus(set);
	if (CPU_COUNT(set) < 2)
		return;
	for (cpu = 0; !CPU_ISSET(cpu, set) || skip-- > 0; cpu++)
		;
	CPU_ZERO(set);
	CPU_SET(cpu, set);
}

static void start(pthread_t *thread, bool writer, void *(*run)(void *),
		  void *arg)
{
	pthread_attr_t attr;
	cpu_set_t set;

	choose_cpu(&set, writer);
	errno = pthread_attr_init(&attr);
	if (!errno)
		errno = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (!errno)
		errno = pthread_create(thread, &attr, run, arg);
	if (errno)
		err(EXIT_FAILURE, "pthread_create");
	pthread_attr_destroy(&attr);
}

/* The caller joins both. */
void pair_start(struct pair *pair, void *(*reader)(void *),
		void *(*writer)(void *), void *arg)
{
	shared_cpu = pair_cpus() < 2;
	/* Threads inherit it. The default is as long as the shortest sleep here. */
	prctl(PR_SET_TIMERSLACK, 1);
	start(&pair->reader, false, reader, arg);
	start(&pair->writer, true, writer, arg);
}

/* The work of a thread between its calls. */
void pair_work_until(uint64_t when)
{
	if (shared_cpu)
		clock_sleep_until(when);
	while (clock_now() < when)
		;
}
