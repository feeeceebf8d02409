// SPDX-License-Identifier: GPL-2.0-only
/* A bridge between a source and a sink, as programs make, use and remove it. */
#include <stdio.h>

#include "eventfd.h"

#include <linux/flowfd.h>
#include "ends.h"
#include "poller.h"
#include "subject.h"

static struct end {
	struct eventfd_ctx eventfd;
	u32 flag;
	int fd;
	bool attached;
	unsigned int calls; /* that hold the file */
	bool closed; /* has no descriptor, and is no longer attached */
	bool hung_up;
} source, sink;

bool ends_used;
static bool stopped;
static u64 added, taken;

static void end_init(struct end *end, u32 flag)
{
	eventfd_init(&end->eventfd, flag == FLOWFD_BRIDGE_SOURCE && sim_chance(3));
	end->flag = flag;
	end->attached = end->closed = end->hung_up = false;
	end->calls = 0;
	end->fd = get_unused_fd_flags(0);
	fd_install(end->fd, &end->eventfd.file);
}

static void end_change(struct end *end)
{
	struct flowfd_bridge args = {
		.eventfd = end->fd,
		.flags = end->flag | (end->attached ? FLOWFD_BRIDGE_REMOVE : 0),
	};
	int err;

	end->calls++;
	err = subject_ioctl(FLOWFD_IOC_COUNTER_BRIDGE, &args);
	end->calls--;
	sim_note("%s %s: %d", end->attached ? "removes" : "adds",
		 end == &source ? "source" : "sink", err);
	if (!err)
		end->attached = !end->attached;
}

/* The last descriptor. The sink's reader is one that does not keep it, such as epoll. */
static void end_close(struct end *end)
{
	if (!end->attached || end->closed || end->calls)
		return;
	sim_note("closes the %s", end == &source ? "source" : "sink");
	end->closed = true;
	end->attached = false;
	eventfd_hang_up(&end->eventfd);
	end->hung_up = true;
}

void sim_trace(const char *name)
{
	sim_note("%s", name);
	if (ends_used && sink.hung_up && !strcmp(name, "flowfd_read") &&
	    !strcmp(current->comm, "kworker"))
		sim_fail("the count is taken for a sink that is closed");
}

void ends_begin(bool used)
{
	ends_used = used;
	stopped = false;
	added = taken = 0;
	if (!used)
		return;
	end_init(&source, FLOWFD_BRIDGE_SOURCE);
	end_init(&sink, FLOWFD_BRIDGE_SINK);
	if (sim_random(4))
		end_change(&source);
	if (sim_random(3))
		end_change(&sink);
}

void ends_act(void)
{
	u64 value = 1 + sim_random(3);
	struct end *end = sim_chance(2) ? &source : &sink;

	if (sim_chance(20)) {
		if (sim_chance(3))
			end_close(end);
		else if (!end->closed)
			end_change(end);
		return;
	}
	if (source.closed)
		return;
	sim_note("signals the source, %llu", (unsigned long long)value);
	source.calls++;
	if (!eventfd_add(&source.eventfd, value))
		added += value;
	source.calls--;
}

static __poll_t poll_sink(poll_table *wait)
{
	return eventfd_poll(&sink.eventfd, wait);
}

void ends_stop(void)
{
	stopped = true;
}

void ends_run_reader(void *arg)
{
	u64 value;

	while (!stopped && !current->killed) {
		if (poll_events_of(poll_sink, EPOLLIN, UINT64_MAX) > 0 &&
		    !eventfd_take(&sink.eventfd, &value))
			taken += value;
	}
}

/* As fdinfo shows it. */
static u64 waiting(void)
{
	const char *text = subject_fdinfo();
	const char *line = strstr(text, "flowfd-source-waiting:");
	unsigned long long value = 0;

	if (line)
		sscanf(line, "flowfd-source-waiting: %llu", &value);
	return value;
}

u64 ends_count(void)
{
	return ends_used ? source.eventfd.count + waiting() + sink.eventfd.count : 0;
}

u64 ends_added(void)
{
	return added - taken;
}

void ends_judge(bool ready, bool room)
{
	if (!ends_used)
		return;
	if (source.hung_up && room && waiting())
		sim_fail("what a closed source left waits, and there is room");
	if (source.attached && room && source.eventfd.count + waiting())
		sim_fail("a source waits, and there is room");
	if (sink.attached && ready)
		sim_fail("a sink was not signalled, and there is a count");
	if (sink.eventfd.count && !stopped)
		sim_fail("the sink is readable, and its reader sleeps");
}
