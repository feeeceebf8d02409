// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes that have nothing in common but a socket signal each other in turn, on one
 * processor, and sleep between: counters that were sent, and what else programs use.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

#define BURST 16 /* rounds between looks at the clock */

/* One direction. Of a pipe and a socket the first descriptor is read. */
struct line {
	int fds[FLOWFD_EXPORT_MAX];
	struct flowfd_counter counter;
	atomic_uint *word;
};

struct way {
	const char *name;
	unsigned int options; /* of a counter */
	void (*open)(const struct way *way, struct line *line);
	void (*signal)(struct line *line);
	void (*take)(struct line *line);
};

static void check(bool done, const char *what)
{
	if (!done)
		err(EXIT_FAILURE, "processes: %s", what);
}

/* ---- eventfd, pipe, socket ---- */

static void open_eventfd(const struct way *way, struct line *line)
{
	const struct subject subject = { .maximum = NO_MAXIMUM };

	(void)way;
	line->fds[0] = subject_open(&subject, 0, 0);
	line->fds[1] = dup(line->fds[0]);
}

static void open_pipe(const struct way *way, struct line *line)
{
	(void)way;
	check(!pipe2(line->fds, O_CLOEXEC), "pipe");
}

static void open_datagram(const struct way *way, struct line *line)
{
	(void)way;
	check(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, line->fds), "socketpair");
}

static void write_signal(struct line *line)
{
	uint64_t one = 1;

	check(write(line->fds[1], &one, sizeof(one)) == sizeof(one), "write");
}

static void read_signal(struct line *line)
{
	uint64_t value;

	check(read(line->fds[0], &value, sizeof(value)) == sizeof(value), "read");
}

/* ---- a semaphore on a futex, in shared memory ---- */

static void open_futex(const struct way *way, struct line *line)
{
	(void)way;
	line->word = mmap(NULL, sizeof(*line->word), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(line->word != MAP_FAILED, "mmap");
}

static void futex_signal(struct line *line)
{
	atomic_store(line->word, 1);
	syscall(SYS_futex, line->word, FUTEX_WAKE, 1, NULL);
}

static void futex_take(struct line *line)
{
	while (!atomic_exchange(line->word, 0))
		syscall(SYS_futex, line->word, FUTEX_WAIT, 0, NULL);
}

/* ---- a counter that was sent: each process has its own ---- */

static void open_counter(const struct way *way, struct line *line)
{
	const struct flowfd_create_counter args = { 0 };
	int error = flowfd_counter_open(&line->counter, &args, sizeof(args),
					FLOWFD_FALLBACK | way->options);

	if (error)
		errx(EXIT_FAILURE, "a counter in memory: %s", flowfd_strerror(error));
}

static void import(struct line *line)
{
	int fds[FLOWFD_EXPORT_MAX];
	int count = flowfd_counter_export(&line->counter, fds);

	if (count < 0 || flowfd_counter_import(&line->counter, fds, count))
		errx(EXIT_FAILURE, "a counter of another process");
}

static void add_signal(struct line *line)
{
	if (flowfd_add(&line->counter, 1))
		errx(EXIT_FAILURE, "processes: add");
}

static void take_signal(struct line *line)
{
	uint64_t value;

	if (flowfd_take(&line->counter, &value))
		errx(EXIT_FAILURE, "processes: take");
}

static const struct way ways[] = {
	{ "eventfd", 0, open_eventfd, write_signal, read_signal },
	{ "in memory", 0, open_counter, add_signal, take_signal },
	{ "one consumer", FLOWFD_ONE_CONSUMER, open_counter, add_signal, take_signal },
	{ "nobody polls", FLOWFD_NO_POLL, open_counter, add_signal, take_signal },
	{ "futex", 0, open_futex, futex_signal, futex_take },
	{ "pipe", 0, open_pipe, write_signal, read_signal },
	{ "Unix datagram", 0, open_datagram, write_signal, read_signal },
};

static void close_line(const struct way *way, struct line *line)
{
	if (way->open == open_counter) {
		flowfd_counter_close(&line->counter);
	} else if (way->open == open_futex) {
		munmap(line->word, sizeof(*line->word));
	} else {
		close(line->fds[0]);
		close(line->fds[1]);
	}
}

/* Until it is killed. */
static void answer(const struct way *way, struct line *there, struct line *back)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (way->open == open_counter) {
		import(there);
		import(back);
	}
	for (;;) {
		way->take(there);
		way->signal(back);
	}
}

static double measure_rounds(const struct way *way, struct line *there, struct line *back)
{
	uint64_t start = clock_now(), end = start + settings.ms * 1000000ULL;
	double rounds = 0;

	do {
		for (int i = 0; i < BURST; i++) {
			way->signal(there);
			way->take(back);
		}
		rounds += BURST;
	} while (clock_now() < end);
	return (double)(clock_now() - start) / rounds;
}

static void measure(struct table *table, unsigned int number)
{
	const struct way *way = &ways[number];
	struct row *row = table_row(table, (const char *[]){ way->name });
	struct line there = { .word = NULL }, back = { .word = NULL };
	cpu_set_t all, one;
	pid_t child;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	way->open(way, &there);
	way->open(way, &back);
	child = fork();
	check(child >= 0, "fork");
	if (!child)
		answer(way, &there, &back);
	/* The first round waits for the other to come so far. */
	way->signal(&there);
	way->take(&back);
	series_add(&row->series[0], measure_rounds(way, &there, &back));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close_line(way, &there);
	close_line(way, &back);
	sched_setaffinity(0, sizeof(all), &all);
}

static bool without(unsigned int number)
{
	(void)number;
	return true;
}

const struct bench bench_processes = {
	.name = "processes",
	.title = "two processes signal each other in turn on one processor, and sleep between",
	.labels = (const char *const[]){ "way", NULL },
	.columns = (const struct column[]){ { "cost", "round", 0, 0 },
					    { "ratio", "ratio", 3, 1 },
					    { 0 } },
	.control = { "eventfd" },
	.cases = sizeof(ways) / sizeof(*ways),
	.without = without,
	.measure = measure,
};
