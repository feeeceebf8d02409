// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to tell an event loop something: one thread says it and takes it, so that
 * nothing sleeps. An eventfd that an epoll watches, as most event loops do it, against a
 * post of a ring.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

enum { COST, RATIO };

static const struct column columns[] = {
	{ "cost", "say + take", 1, true },
	{ "ratio", "ratio", 3, true },
	{ 0 },
};

static const char *const labels[] = { "by", NULL };

static const struct subject eventfd_subject = { .maximum = NO_MAXIMUM };
static const struct subject flowfd_subject = { .flowfd = true, .maximum = NO_MAXIMUM };

/**
 * struct loop - what is being measured
 * @event: eventfd
 * @ep: epoll that watches it, edge-triggered
 * @ring: with one post
 * @item: of the post
 */
struct loop {
	int event;
	int ep;
	struct flowfd_ring ring;
	uint32_t item;
};

static void failed(const char *what)
{
	err(EXIT_FAILURE, "post: %s", what);
}

static void epoll_take(struct loop *loop)
{
	struct epoll_event event;

	if (epoll_wait(loop->ep, &event, 1, 0) != 1)
		failed("epoll_wait");
}

static void loop_epoll(struct loop *loop, unsigned long n)
{
	uint64_t one = 1;

	while (n--) {
		if (write(loop->event, &one, sizeof(one)) != sizeof(one))
			failed("write");
		epoll_take(loop);
	}
}

static void loop_epoll_read(struct loop *loop, unsigned long n)
{
	uint64_t value = 1;

	while (n--) {
		if (write(loop->event, &value, sizeof(value)) != sizeof(value))
			failed("write");
		epoll_take(loop);
		if (read(loop->event, &value, sizeof(value)) != sizeof(value))
			failed("read");
	}
}

static void loop_post(struct loop *loop, unsigned long n)
{
	struct flowfd_event event;

	while (n--)
		if (flowfd_ring_post(&loop->ring, loop->item, 1) ||
		    !flowfd_ring_next(&loop->ring, &event))
			failed("post");
}

static const struct way {
	const char *name;
	const struct subject *subject;
	void (*run)(struct loop *loop, unsigned long n);
} ways[] = {
	{ "eventfd, epoll ET", &eventfd_subject, loop_epoll },
	{ "eventfd, epoll ET, read", &eventfd_subject, loop_epoll_read },
	{ "post", &flowfd_subject, loop_post },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static const struct subject *subject(unsigned int number)
{
	return ways[number].subject;
}

static void loop_open(struct loop *loop, const struct way *way)
{
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int item;

	if (way->subject->flowfd) {
		if (flowfd_ring_create(&loop->ring, 64, 0))
			errx(EXIT_FAILURE, "post: no ring");
		item = flowfd_ring_add_post(&loop->ring, 1);
		if (item < 0)
			errx(EXIT_FAILURE, "post: %s", flowfd_ring_strerror(item));
		loop->item = (uint32_t)item;
		return;
	}
	loop->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	loop->ep = epoll_create1(EPOLL_CLOEXEC);
	if (loop->event < 0 || loop->ep < 0 ||
	    epoll_ctl(loop->ep, EPOLL_CTL_ADD, loop->event, &watched))
		failed("epoll");
}

static void loop_close(struct loop *loop, const struct way *way)
{
	if (way->subject->flowfd) {
		flowfd_ring_destroy(&loop->ring);
		return;
	}
	close(loop->ep);
	close(loop->event);
}

static void measure(const struct settings *settings, struct table *table,
		    unsigned int number)
{
	const struct way *way = &ways[number];
	unsigned long n = settings->iterations;
	struct loop loop;
	uint64_t start;

	loop_open(&loop, way);
	way->run(&loop, n / 20 + 1); /* warms the caches */
	start = clock_now();
	way->run(&loop, n);
	start = clock_now() - start;
	loop_close(&loop, way);
	series_add(&table_row(table, (const char *[]){ way->name })->series[COST],
		   (double)start / (double)n);
}

/* Ratios to the first way. */
static void conclude(const struct settings *settings, struct table *table)
{
	const char *unit = settings->instructions ? "instructions" : "ns";
	const struct row *control = table_find(table, (const char *[]){ ways[0].name });
	const struct row *row = table_find(table, (const char *[]){ ways[WAYS - 1].name });

	table->note = settings->instructions ? "instructions per event"
					     : "nanoseconds per event";
	table_ratios(table, control, COST, RATIO);
	if (!row || !control)
		return;
	table_verdict(table, series_median(&row->series[RATIO]), "<=", 0.05,
		      "a post and its harvest: %.3f of an eventfd and epoll_wait(2) "
		      "(%.0f %s, %.0f)",
		      series_median(&row->series[RATIO]), series_median(&row->series[COST]),
		      unit, series_median(&control->series[COST]));
}

const struct bench bench_post = {
	.name = "post",
	.title = "telling an event loop something, nobody sleeping",
	.labels = labels,
	.columns = columns,
	.cases = WAYS,
	.subject = subject,
	.measure = measure,
	.conclude = conclude,
};
