// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every pair of operations on a counter with a source and a sink, and on their eventfds,
 * at the same time, as in races.c. The kernel must not report anything, nothing may stay
 * in use, and while all files are open no count may be lost.
 */
#include "bridge_user.h"
#include "racers.h"

#include <sys/prctl.h>
#include <sys/wait.h>

struct scene {
	int fd;		/* a counter */
	int in;		/* its source, or not */
	int out;	/* its sink, or not */
	int other;	/* a counter that takes them over */
	int ep;		/* watches all of them */
	__u64 sum;	/* of all that was added */
};

static void add_counted(struct scene *s, int fd, __u64 value)
{
	if (add(fd, value) == 8)
		__atomic_add_fetch(&s->sum, value, __ATOMIC_RELAXED);
}

static void do_write(struct scene *s)
{
	add_counted(s, s->fd, 1);
}

static void do_read(struct scene *s)
{
	__u64 value;

	take(s->fd, &value);
}

static void do_write_source(struct scene *s)
{
	add_counted(s, s->in, 1);
	add_counted(s, s->in, 2);
}

static void do_read_source(struct scene *s)
{
	__u64 value;

	take(s->in, &value);
}

static void do_read_sink(struct scene *s)
{
	__u64 value;

	take(s->out, &value);
}

static void do_maximum(struct scene *s)
{
	set_maximum(s->fd, 2);
	set_maximum(s->fd, 1000);
}

static void do_bucket(struct scene *s)
{
	set_qos(s->fd, 1, 50000);
	set_qos(s->fd, 0, 0);
}

static void do_fdinfo(struct scene *s)
{
	bridged_id(s->fd, "flowfd-source");
}

static void do_source(struct scene *s)
{
	source(s->fd, s->in);
}

static void do_sink(struct scene *s)
{
	sink(s->fd, s->out);
}

static void do_remove_source(struct scene *s)
{
	remove_source(s->fd);
}

static void do_remove_sink(struct scene *s)
{
	remove_sink(s->fd);
}

/* Takes the eventfds for the other ends, if they are free. */
static void do_other(struct scene *s)
{
	source(s->other, s->out);
	sink(s->other, s->in);
	remove_source(s->other);
	remove_sink(s->other);
}

static void do_close_counter(struct scene *s)
{
	close(s->fd);
}

static void do_close_source(struct scene *s)
{
	close(s->in);
}

static void do_close_sink(struct scene *s)
{
	close(s->out);
}

static void do_close_epoll(struct scene *s)
{
	close(s->ep);
}

static const struct operation {
	const char *name;
	operation_run *run;
	bool ends;		/* counts may go, or a file */
} operations[] = {
	{ "write", do_write },
	{ "read", do_read, true },
	{ "write_source", do_write_source },
	{ "read_source", do_read_source, true },
	{ "read_sink", do_read_sink, true },
	{ "maximum", do_maximum },
	{ "bucket", do_bucket },
	{ "fdinfo", do_fdinfo },
	{ "source", do_source },
	{ "sink", do_sink },
	{ "remove_source", do_remove_source },
	{ "remove_sink", do_remove_sink },
	{ "other", do_other, true },
	{ "close_counter", do_close_counter, true },
	{ "close_source", do_close_source, true },
	{ "close_sink", do_close_sink, true },
	{ "close_epoll", do_close_epoll },
};

#define OPERATIONS ((int)(sizeof(operations) / sizeof(*operations)))

static void watch(struct scene *s, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	epoll_ctl(s->ep, EPOLL_CTL_ADD, fd, &event);
}

/* Counts of 7 in all; @full: there is no sink, and most of it does not fit, and waits. */
static bool scene_open(struct scene *s, enum origin origin, bool full)
{
	s->fd = open_counter(origin, 0, EFD_NONBLOCK);
	s->other = open_counter(CREATED, 0, EFD_NONBLOCK);
	s->in = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->out = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->ep = epoll_create1(EPOLL_CLOEXEC);
	if (s->fd < 0 || s->other < 0 || s->in < 0 || s->out < 0 || s->ep < 0)
		return false;
	watch(s, s->fd);
	watch(s, s->in);
	watch(s, s->out);
	if (full && set_maximum(s->fd, 3))
		return false;
	s->sum = 7;
	return !source(s->fd, s->in) && add(s->in, 4) == 8 && add(s->in, 3) == 8 &&
	       (full || !sink(s->fd, s->out));
}

/* A race may have closed some of these: closing them again does nothing. */
static void scene_close(struct scene *s)
{
	close(s->fd);
	close(s->other);
	close(s->in);
	close(s->out);
	close(s->ep);
}

/* Whether nothing is missing when all has come to rest. */
static bool sum_becomes(struct scene *s)
{
	__u64 until = ms_from_now(PATIENCE_MS), there;

	do {
		there = count_of(s->fd) + count_of(s->in) + count_of(s->out);
		if (there == s->sum && !waiting_of(s->fd))
			return true;
		sched_yield();
	} while (now_ns() < until);
	printf("# counter %llu, source %llu, sink %llu, waiting %llu, not %llu\n",
	       (unsigned long long)count_of(s->fd), (unsigned long long)count_of(s->in),
	       (unsigned long long)count_of(s->out),
	       (unsigned long long)waiting_of(s->fd), (unsigned long long)s->sum);
	return false;
}

FIXTURE(bridge_races)
{
	struct scene scene;
	struct racers racers;
	int device;
	long users;
};

FIXTURE_VARIANT(bridge_races)
{
	enum origin origin;
	bool full;
};

FIXTURE_VARIANT_ADD(bridge_races, plain) { .origin = CREATED };
FIXTURE_VARIANT_ADD(bridge_races, full) { .origin = CREATED, .full = true };
FIXTURE_VARIANT_ADD(bridge_races, mapped) { .origin = MAPPED };
FIXTURE_VARIANT_ADD(bridge_races, mapped_full) { .origin = MAPPED, .full = true };

FIXTURE_SETUP(bridge_races)
{
	self->device = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->device);
	self->users = module_users();
	ASSERT_TRUE(racers_start(&self->racers, &self->scene));
}

FIXTURE_TEARDOWN(bridge_races)
{
	racers_end(&self->racers);
	close(self->device);
}

TEST_F(bridge_races, each_against_each)
{
	unsigned long rounds = parameter("FLOWFD_RACES", 5), i;
	const struct operation *a, *b;

	for (a = operations; a < operations + OPERATIONS; a++) {
		for (b = a; b < operations + OPERATIONS; b++) {
			struct scene *s = &self->scene;

			for (i = 0; i < rounds; i++) {
				ASSERT_TRUE(scene_open(s, variant->origin,
						       variant->full));
				racers_race(&self->racers, i, a->run, b->run);
				if (!a->ends && !b->ends && signals_have_values()) {
					set_maximum(s->fd, 1000);
					EXPECT_TRUE(sum_becomes(s))
						TH_LOG("%s, %s", a->name, b->name);
				}
				scene_close(s);
			}
		}
		EXPECT_EQ(self->users, settled_module_users(self->users))
			TH_LOG("%s: in use", a->name);
	}
}

TEST_HARNESS_MAIN
