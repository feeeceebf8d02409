// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several threads that write without pauses, each to its own files, and one consumer
 * that takes the events of all and sleeps when there are none.
 */
#include <err.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "watcher.h"

#define FILES_EACH 32
#define THREADS_MAX 8

static const unsigned int threads[] = { 1, 2, 4, 8 };
static const struct watcher *const watchers[] = {
	&watcher_epoll,
	&watcher_uring,
	&watcher_ring,
	&watcher_mapped,
};

#define COUNTS (sizeof(threads) / sizeof(*threads))
#define WATCHERS (sizeof(watchers) / sizeof(*watchers))

enum { WRITE, CONSUMER, EVENTS, RATIO };

static const struct column columns[] = {
	{ "ns_per_write", "ns/write", 0, true },
	{ "consumer_ns", "consumer ns/write", 0, true },
	{ "events", "events/write", 3, false },
	{ "ratio", "ratio", 3, true },
	{ 0 },
};

static const char *const labels[] = { "threads", "watcher", NULL };

struct crowd {
	const struct watcher *watcher;
	void *self;
	struct files files;
	unsigned long rounds;
	pthread_barrier_t begin;
	atomic_bool done;
	uint64_t events;
	double consumer_ms;
};

struct producer {
	struct crowd *crowd;
	struct files files;
	pthread_t thread;
};

static void *produce(void *arg)
{
	struct producer *producer = arg;
	unsigned long i;

	pthread_barrier_wait(&producer->crowd->begin);
	for (i = 0; i < producer->crowd->rounds; i++)
		files_write(&producer->files);
	return NULL;
}

/* One more event comes after @done. */
static void *consume(void *arg)
{
	struct crowd *crowd = arg;
	double start = clock_thread_ms();

	while (!crowd->done)
		crowd->events += crowd->watcher->wait(crowd->self);
	crowd->consumer_ms = clock_thread_ms() - start;
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	errno = pthread_create(thread, NULL, run, arg);
	if (errno)
		err(EXIT_FAILURE, "pthread_create");
}

/* Nanoseconds from the first write to the last. */
static uint64_t run(struct crowd *crowd, unsigned int count)
{
	struct producer producers[THREADS_MAX];
	uint64_t begun, one = 1;
	pthread_t consumer;
	unsigned int i;

	pthread_barrier_init(&crowd->begin, NULL, count + 1);
	start(&consumer, consume, crowd);
	for (i = 0; i < count; i++) {
		producers[i].crowd = crowd;
		producers[i].files.count = FILES_EACH;
		producers[i].files.peer = crowd->files.peer + i * FILES_EACH;
		producers[i].files.counter = NULL;
		if (crowd->files.counter)
			producers[i].files.counter =
				crowd->files.counter + i * FILES_EACH;
		start(&producers[i].thread, produce, &producers[i]);
	}
	begun = clock_now();
	pthread_barrier_wait(&crowd->begin);
	for (i = 0; i < count; i++)
		pthread_join(producers[i].thread, NULL);
	begun = clock_now() - begun;
	crowd->done = true;
	if (write(crowd->files.peer[0], &one, sizeof(one)) != sizeof(one))
		err(EXIT_FAILURE, "producers: write");
	pthread_join(consumer, NULL);
	pthread_barrier_destroy(&crowd->begin);
	return begun;
}

static const struct subject *subject(unsigned int number)
{
	return watcher_subject(watchers[number % WATCHERS],
			       watchers[number % WATCHERS]->kind);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	unsigned int count = threads[number / WATCHERS];
	unsigned int files = count * FILES_EACH;
	struct crowd crowd = { .watcher = watchers[number % WATCHERS] };
	struct row *row;
	double writes;
	uint64_t time;
	char text[24];

	crowd.self = crowd.watcher->open(files);
	if (!crowd.self)
		return;
	snprintf(text, sizeof(text), "%u", count);
	row = table_row(table, (const char *[]){ text, crowd.watcher->name });
	files_open(&crowd.files, crowd.watcher->kind, files);
	crowd.watcher->add(crowd.self, &crowd.files);
	crowd.rounds = settings->iterations / files + 1;
	time = run(&crowd, count);
	crowd.watcher->close(crowd.self);
	files_close(&crowd.files);
	writes = (double)crowd.rounds * files;
	series_add(&row->series[WRITE], (double)time / writes);
	series_add(&row->series[CONSUMER], crowd.consumer_ms * 1e6 / writes);
	series_add(&row->series[EVENTS], (double)crowd.events / writes);
}

static void conclude(const struct settings *settings, struct table *table)
{
	const struct row *control;
	struct row *row;
	unsigned int i;

	(void)settings;
	for (i = 0; i < table->rows; i++) {
		row = table->row[i];
		control = table_find(table,
				     (const char *[]){ row->label[0],
						       watcher_epoll.name });
		if (control)
			row_ratios(row, control, WRITE, RATIO);
	}
}

const struct bench bench_producers = {
	.name = "producers",
	.title = "threads that write without rest, one consumer",
	.labels = labels,
	.columns = columns,
	.cases = COUNTS * WATCHERS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
