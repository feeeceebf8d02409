// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a maximum and a token bucket do: the latency of a queue, the CPU time of a writer
 * that never rests and of a consumer that is woken for each event.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "channel.h"

/* A case takes several times as long as a loop: its threads sleep. */
static uint64_t end_of_case(void)
{
	return clock_now() + 16 * settings.ms * 1000000ULL;
}

/* ---- latency: events that come every 100 us, and take 125 us to handle ---- */

#define EVENTS	  5000
#define WRITER_NS 100000
#define READER_NS 125000

static const struct {
	const char *labels[2];
	struct subject subject;
} maxima[] = {
	{ { "eventfd", "unlimited" }, { false, NO_MAXIMUM, 0, 0 } },
	{ { "flowfd", "unlimited" }, { true, NO_MAXIMUM, 0, 0 } },
	{ { "flowfd", "100" }, { true, 100, 0, 0 } },
	{ { "flowfd", "10" }, { true, 10, 0, 0 } },
};

struct latency {
	int fd;
	uint64_t written[EVENTS];
	double us[EVENTS];
};

static void *write_at_pace(void *arg)
{
	struct latency *latency = arg;
	uint64_t one = 1, next = clock_now();
	unsigned int i;

	for (i = 0; i < EVENTS; i++, next += WRITER_NS) {
		pair_work_until(next);
		latency->written[i] = clock_now();
		if (write(latency->fd, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "latency: write");
	}
	return NULL;
}

static void *read_one_by_one(void *arg)
{
	struct latency *latency = arg;
	uint64_t value, taken;
	unsigned int i;

	for (i = 0; i < EVENTS; i++) {
		if (read(latency->fd, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "latency: read");
		taken = clock_now();
		latency->us[i] = (double)(taken - latency->written[i]) / 1e3;
		pair_work_until(taken + READER_NS);
	}
	return NULL;
}

static void measure_latency(struct table *table, unsigned int number)
{
	static struct latency latency;

	latency.fd = subject_open(&maxima[number].subject, 0, FLOWFD_SEMAPHORE);
	pair_run(read_one_by_one, write_at_pace, &latency);
	close(latency.fd);
	series_add(&table_row(table, maxima[number].labels)->series[0],
		   samples_quantile(latency.us, EVENTS, 999));
}

const struct bench bench_latency = {
	.name = "latency",
	.title = "5000 events, one in 100 us, each handled in 125 us (semaphore)",
	.labels = { "subject", "maximum" },
	.columns = { { "p999_us", "p99.9", 0, 0 }, { "ratio", "ratio", 4, 1 } },
	.control = { "eventfd", "unlimited" },
	.unit = "microseconds",
	.cases = sizeof(maxima) / sizeof(*maxima),
	.two_threads = true,
	.measure = measure_latency,
};

/* ---- burst: a writer that never rests, a reader that sleeps 1 ms for each event ---- */

enum mode { BLOCKING, SPIN, POLL };

static const struct burst_case {
	const char *labels[3];
	enum mode mode;
	struct subject subject;
} bursts[] = {
	{ { "eventfd", "blocking", "unlimited" }, BLOCKING, { false, NO_MAXIMUM, 0, 0 } },
	{ { "flowfd", "blocking", "10" }, BLOCKING, { true, 10, 0, 0 } },
	{ { "flowfd", "O_NONBLOCK+spin", "10" }, SPIN, { true, 10, 0, 0 } },
	{ { "flowfd", "O_NONBLOCK+poll", "10" }, POLL, { true, 10, 0, 0 } },
};

struct burst {
	int fd;
	enum mode mode;
	uint64_t end;
	atomic_bool stop;
	double writer_ms;
};

static bool readable(int fd, int timeout)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, timeout) > 0 && pollfd.revents & POLLIN;
}

/* Continues after the end until the counter is empty: the writer may be blocked. */
static void *read_slowly(void *arg)
{
	struct burst *burst = arg;
	uint64_t value;

	while (!burst->stop || readable(burst->fd, 0)) {
		if (!readable(burst->fd, 5))
			continue;
		if (read(burst->fd, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "burst: read");
		usleep(1000);
	}
	return NULL;
}

static void *write_flat_out(void *arg)
{
	struct burst *burst = arg;
	struct pollfd pollfd = { .fd = burst->fd, .events = POLLOUT };
	double start = clock_thread_ms();
	uint64_t one = 1;

	while (clock_now() < burst->end) {
		if (burst->mode == POLL && poll(&pollfd, 1, 20) <= 0)
			continue;
		if (write(burst->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			err(EXIT_FAILURE, "burst: write");
	}
	burst->writer_ms = clock_thread_ms() - start;
	burst->stop = true;
	return NULL;
}

static void measure_burst(struct table *table, unsigned int number)
{
	const struct burst_case *c = &bursts[number];
	struct burst burst = { .mode = c->mode, .end = end_of_case() };

	burst.fd = subject_open(&c->subject, 0, c->mode == BLOCKING ? 0 : FLOWFD_NONBLOCK);
	pair_run(read_slowly, write_flat_out, &burst);
	close(burst.fd);
	series_add(&table_row(table, c->labels)->series[0], burst.writer_ms);
}

const struct bench bench_burst = {
	.name = "burst",
	.title = "CPU of a writer that never rests; reader sleeps 1 ms per read",
	.labels = { "subject", "writer", "maximum" },
	.columns = { { "cpu_ms", "writer's CPU ms", 1, 0 }, { "ratio", "ratio", 3, 1 } },
	.control = { "eventfd", "blocking", "unlimited" },
	.unit = "milliseconds",
	.cases = sizeof(bursts) / sizeof(*bursts),
	.two_threads = true,
	.measure = measure_burst,
};

/*
 * ---- bucket: the CPU time of a consumer, and that no event is lost. The bucket limits
 * wakeups, never data: a consumer that calls poll(2) while events keep coming finds the
 * count and does not sleep. With a counter in memory it limits the system calls of the
 * publisher as well. ----
 */

#define PACE_NS	    50000
/* Thousands of token intervals: a consumer that is not woken by then never will be. */
#define PATIENCE_MS 5000

static const struct channel *const streams[] = {
	&channel_eventfd, &channel_flowfd, &channel_bucket, &channel_memory_bucket,
};

#define STREAMS (sizeof(streams) / sizeof(*streams))

struct stream {
	const struct channel *channel;
	struct end *self;
	int epoll;
	bool paced;
	uint64_t end;
	uint64_t written;
	_Atomic uint64_t read;
	uint64_t calls;
	atomic_bool done;
	double consumer_ms;
};

static void take(struct stream *stream)
{
	stream->read += stream->channel->take(stream->self);
}

static void *consume_by_poll(void *arg)
{
	struct stream *stream = arg;
	struct pollfd pollfd = { .fd = stream->self->in, .events = POLLIN };

	while (!stream->done) {
		poll(&pollfd, 1, -1);
		if (pollfd.revents & POLLIN)
			take(stream);
	}
	stream->consumer_ms = clock_thread_ms();
	return NULL;
}

static void *consume_by_epoll(void *arg)
{
	struct stream *stream = arg;
	struct epoll_event event;

	while (!stream->done)
		if (epoll_wait(stream->epoll, &event, 1, -1) == 1)
			take(stream);
	stream->consumer_ms = clock_thread_ms();
	return NULL;
}

static void wait_until_all_is_read(const struct stream *stream)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (stream->read == stream->written)
			return;
		usleep(1000);
	}
	errx(EXIT_FAILURE, "bucket: %lld of %llu events are lost",
	     (long long)(stream->written - stream->read),
	     (unsigned long long)stream->written);
}

/* One more signal comes after @done: the consumer may sleep. */
static void *publish_all(void *arg)
{
	struct stream *stream = arg;
	uint64_t next = clock_now();

	while (clock_now() < stream->end) {
		stream->channel->signal(stream->self, 1);
		stream->written++;
		next += PACE_NS;
		if (stream->paced)
			clock_sleep_until(next);
	}
	stream->calls = calls_made;
	wait_until_all_is_read(stream);
	stream->done = true;
	stream->channel->signal(stream->self, 1);
	return NULL;
}

/* A case is a consumer, a publisher and a subject. */
static void measure_bucket(struct table *table, unsigned int number)
{
	const struct channel *channel = streams[number % STREAMS];
	bool epoll = number / STREAMS / 2, paced = number / STREAMS % 2;
	uint64_t begun = clock_now();
	struct stream stream = {
		.channel = channel,
		.self = channel_open(channel, true),
		.paced = paced,
		.end = end_of_case(),
	};
	double seconds = (double)(stream.end - begun) / 1e9;
	struct row *row;

	stream.epoll = epoll ? epoll_open(stream.self->in) : -1;
	pair_run(epoll ? consume_by_epoll : consume_by_poll, publish_all, &stream);
	row = table_row(table, (const char *[]){ epoll ? "epoll ET" : "poll",
						 paced ? "one in 50 us" : "flat out",
						 channel->name,
						 channel->subject.rate ? "1000/s, 2" :
									 "none" });
	series_add(&row->series[0], stream.consumer_ms);
	close(stream.epoll);
	channel_close(channel, stream.self);
	series_add(&row->series[2], (double)stream.written / seconds);
	series_add(&row->series[3], (double)stream.calls / seconds);
	series_add(&row->series[4], (double)stream.calls / seconds / RATE);
}

const struct bench bench_bucket = {
	.name = "bucket",
	.title = "CPU of a consumer, with and without limited wakeups",
	.labels = { "consumer", "publisher", "subject", "bucket" },
	.columns = { { "cpu_ms", "consumer's CPU ms", 1, 0 },
		     { "ratio", "ratio", 3, 1 },
		     { "writes_per_s", "writes/s", 0, 0 },
		     { "calls_per_s", "publisher's calls/s", 0, 0 },
		     { "per_token", "per token", 2, 0 } },
	.control = { NULL, NULL, "eventfd", "none" },
	.unit = "milliseconds, rates",
	.cases = 4 * STREAMS,
	.two_threads = true,
	.measure = measure_bucket,
};
