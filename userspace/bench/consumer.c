// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU time of a consumer that is woken for every event, how much of it a token
 * bucket saves, and that no event is lost. The bucket limits wakeups, never data: a
 * consumer that calls poll(2) before sleeping finds the count and does not sleep. With a
 * mapped counter it limits the system calls of the publisher as well.
 */
#include <err.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench.h"
#include "calls.h"

#define PACE_NS		50000
/* Five thousand token intervals: a consumer not woken by then never will be. */
#define PATIENCE_MS	5000

#define RATE		1000
/*
 * Goals: the system calls a second of a publisher that the bucket limits. It makes one for
 * each token, and one in vain if the timer interrupts an add before it looks for sleepers:
 * the consumer that the timer wakes takes that add, and the next one notifies again. A
 * publisher that mostly sleeps is not interrupted there.
 */
#define CALLS_AT_PACE	1100
#define CALLS_FLAT_OUT	1500

enum { EVENTFD, FLOWFD, BUCKET, MAPPED_BUCKET, SUBJECTS };

static const struct subject subjects[SUBJECTS] = {
	[EVENTFD] = { .maximum = NO_MAXIMUM },
	[FLOWFD] = { .flowfd = true, .maximum = NO_MAXIMUM },
	[BUCKET] = { .flowfd = true,
		     .maximum = NO_MAXIMUM,
		     .capacity = 2,
		     .rate = RATE },
	[MAPPED_BUCKET] = { .flowfd = true,
			    .mapped = true,
			    .maximum = NO_MAXIMUM,
			    .capacity = 2,
			    .rate = RATE },
};

struct stream {
	int fd;
	int epoll;
	bool mapped;
	struct flowfd_counter counter;
	atomic_bool stop;
	uint64_t written;
	uint64_t read;
	uint64_t reads;
	uint64_t calls;
	double publisher_ms;
};

static void take(struct stream *stream)
{
	uint64_t value;

	if (stream->mapped ? flowfd_try_take(&stream->counter, &value) :
			     read(stream->fd, &value, sizeof(value)) != sizeof(value))
		return;
	__atomic_store_n(&stream->read, stream->read + value, __ATOMIC_RELAXED);
	stream->reads++;
}

/* Both consumers are cancelled while they sleep. */
static void *consume_by_poll(void *arg)
{
	struct stream *stream = arg;
	struct pollfd pollfd = { .fd = stream->fd, .events = POLLIN };

	for (;;) {
		poll(&pollfd, 1, -1);
		if (pollfd.revents & POLLIN)
			take(stream);
	}
	return NULL;
}

static void *consume_by_epoll(void *arg)
{
	struct stream *stream = arg;
	struct epoll_event event;

	for (;;)
		if (epoll_wait(stream->epoll, &event, 1, -1) == 1)
			take(stream);
	return NULL;
}

static void publish(struct stream *stream)
{
	uint64_t one = 1;

	if (stream->mapped) {
		if (flowfd_add(&stream->counter, 1))
			errx(EXIT_FAILURE, "bucket: add");
	} else {
		calls_made++;
		if (write(stream->fd, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "bucket: write");
	}
	stream->written++;
}

static void *publish_flat_out(void *arg)
{
	struct stream *stream = arg;
	double start = clock_thread_ms();

	while (!stream->stop)
		publish(stream);
	stream->publisher_ms = clock_thread_ms() - start;
	stream->calls = calls_made;
	return NULL;
}

static void *publish_at_pace(void *arg)
{
	struct stream *stream = arg;
	double start = clock_thread_ms();
	uint64_t next = clock_now();

	while (!stream->stop) {
		publish(stream);
		next += PACE_NS;
		clock_sleep_until(next);
	}
	stream->publisher_ms = clock_thread_ms() - start;
	stream->calls = calls_made;
	return NULL;
}

static const struct consumer {
	const char *name;
	void *(*run)(void *);
	bool epoll;
} consumers[] = {
	{ "poll + read", consume_by_poll, false },
	{ "epoll ET + read", consume_by_epoll, true },
};

static const struct publisher {
	const char *name;
	void *(*run)(void *);
} publishers[] = {
	{ "flat out", publish_flat_out },
	{ "one in 50 us", publish_at_pace },
};

#define CONSUMERS (sizeof(consumers) / sizeof(*consumers))
#define PUBLISHERS (sizeof(publishers) / sizeof(*publishers))
#define CASES (CONSUMERS * PUBLISHERS * SUBJECTS)

/* Edge-triggered epoll, a writer without pauses and one with: the cases with goals. */
#define GOAL_CASE (PUBLISHERS * SUBJECTS)
#define GOAL_CASE_AT_PACE (GOAL_CASE + SUBJECTS)

enum { CONSUMER_CPU, PUBLISHER_CPU, READS, WRITES, CALLS, LOST };

static const struct column columns[] = {
	{ "consumer_ms", "consumer_ms", 1, true },
	{ "publisher_ms", "publisher_ms", 1, false },
	{ "reads_per_s", "reads/s", 0, false },
	{ "writes_per_s", "writes/s", 0, false },
	{ "calls_per_s", "calls/s", 0, true },
	{ "lost", "lost", 0, false },
	{ 0 },
};

static const char *const labels[] = { "consumer", "publisher", "subject",
				      "bucket", NULL };

static const struct subject *subject(unsigned int number)
{
	return &subjects[number % SUBJECTS];
}

/* A case is a consumer, a publisher and a subject. */
static const struct consumer *consumer(unsigned int number)
{
	return &consumers[number / SUBJECTS / PUBLISHERS];
}

static const struct publisher *publisher(unsigned int number)
{
	return &publishers[number / SUBJECTS % PUBLISHERS];
}

static struct row *find_row(struct table *table, unsigned int number)
{
	const struct subject *s = subject(number);
	char bucket[24] = "none";

	if (s->rate)
		snprintf(bucket, sizeof(bucket), "%u/s, %u", s->rate,
			 s->capacity);
	return table_row(table, (const char *[]){ consumer(number)->name,
						  publisher(number)->name,
						  subject_name(s), bucket });
}

static void stream_open(struct stream *stream, const struct subject *subject,
			bool epoll)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	memset(stream, 0, sizeof(*stream));
	stream->fd = subject_open(subject, 0, FLOWFD_NONBLOCK);
	stream->mapped = subject->mapped;
	if (stream->mapped && flowfd_counter_map(&stream->counter, stream->fd,
						 FLOWFD_PRODUCER | FLOWFD_CONSUMER))
		errx(EXIT_FAILURE, "bucket: map");
	stream->epoll = -1;
	if (!epoll)
		return;
	stream->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (stream->epoll < 0 ||
	    epoll_ctl(stream->epoll, EPOLL_CTL_ADD, stream->fd, &event))
		err(EXIT_FAILURE, "bucket: epoll");
}

static void wait_until_all_is_read(const struct stream *stream)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (__atomic_load_n(&stream->read, __ATOMIC_RELAXED) ==
		    stream->written)
			return;
		usleep(1000);
	}
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	struct row *row = find_row(table, number);
	double seconds = settings->bucket_ms / 1e3;
	struct stream stream;
	struct pair pair;

	stream_open(&stream, subject(number), consumer(number)->epoll);
	pair_start(&pair, consumer(number)->run, publisher(number)->run,
		   &stream);
	clock_sleep_until(clock_now() + settings->bucket_ms * 1000000ULL);
	stream.stop = true;
	pthread_join(pair.writer, NULL);
	wait_until_all_is_read(&stream);
	series_add(&row->series[CONSUMER_CPU],
		   clock_other_thread_ms(pair.reader));
	pthread_cancel(pair.reader);
	pthread_join(pair.reader, NULL);
	if (stream.epoll >= 0)
		close(stream.epoll);
	if (stream.mapped)
		flowfd_counter_unmap(&stream.counter);
	close(stream.fd);
	series_add(&row->series[PUBLISHER_CPU], stream.publisher_ms);
	series_add(&row->series[READS], (double)stream.reads / seconds);
	series_add(&row->series[WRITES], (double)stream.written / seconds);
	series_add(&row->series[CALLS], (double)stream.calls / seconds);
	series_add(&row->series[LOST],
		   (double)stream.written - (double)stream.read);
}

/* What the bucket saves; @number is the case of the eventfd. */
static void conclude_saving(struct table *table, unsigned int number)
{
	const struct series *before, *after;
	double saved;

	before = &find_row(table, number)->series[CONSUMER_CPU];
	after = &find_row(table, number + BUCKET)->series[CONSUMER_CPU];
	saved = 100 * (1 - series_median(after) / series_median(before));
	table_verdict(table, saved, number == GOAL_CASE ? ">=" : NULL, 80,
		      "consumer CPU saved by the bucket, %s, %s: %.1f %% "
		      "(eventfd %.1f ms, flowfd %.1f ms)",
		      consumer(number)->name, publisher(number)->name, saved,
		      series_median(before), series_median(after));
}

/* An eventfd's publisher makes one for each event. */
static void conclude_calls(struct table *table, unsigned int number)
{
	const struct series *mapped, *control;
	const char *relation = number >= GOAL_CASE ? "<=" : NULL;
	double goal = number == GOAL_CASE_AT_PACE ? CALLS_AT_PACE : CALLS_FLAT_OUT;

	control = &find_row(table, number)->series[CALLS];
	mapped = &find_row(table, number + MAPPED_BUCKET)->series[CALLS];
	table_verdict(table, series_median(mapped), relation, goal,
		      "publisher's calls/s, in memory with the bucket, %s, %s: %.0f "
		      "(eventfd %.0f)",
		      consumer(number)->name, publisher(number)->name,
		      series_median(mapped), series_median(control));
}

static void conclude(const struct settings *settings, struct table *table)
{
	double off = 0;
	unsigned int i;

	for (i = 0; !settings->only && i < CASES; i += SUBJECTS)
		conclude_saving(table, i);
	for (i = 0; !settings->only && i < CASES; i += SUBJECTS)
		conclude_calls(table, i);
	for (i = 0; i < table->rows; i++) {
		const struct series *lost = &table->row[i]->series[LOST];

		off = fmax(off, fmax(series_max(lost), -series_min(lost)));
	}
	table_verdict(table, off, "<=", 0,
		      "most events lost or doubled in a run: %.0f", off);
}

const struct bench bench_bucket = {
	.name = "bucket",
	.title = "CPU of a consumer, with and without limited wakeups",
	.labels = labels,
	.columns = columns,
	.cases = CASES,
	.two_threads = true,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
