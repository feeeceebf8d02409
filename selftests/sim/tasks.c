// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tasks of a history. Waiters wait, each in the way of its kind, until all actors have
 * ended; these add, take, change settings, send signals, and may die in between.
 */
#include <stdio.h>

#include "kernel.h"

#include "ends.h"
#include "poller.h"
#include "program.h"
#include "subject.h"
#include "tasks.h"

#define MINUTE (60 * SIM_SECOND) /* beyond the horizon */

struct waiter waiters[WAITERS_MAX];
unsigned int waiter_count;

static unsigned int actors;
static struct task_struct *sink_reader;
static bool actors_ended, uses_settings, uses_signals, some_closed;

static void take_all(struct waiter *w)
{
	while (subject_take())
		;
}

/* The one consumer of a counter without the module has promised to take all. */
static void take(struct waiter *w)
{
	if (subject.one_consumer)
		take_all(w);
	else
		subject_take();
}

static void rest(struct waiter *w)
{
	sim_pause(sim_random(50000));
}

static void add(struct waiter *w)
{
	subject_add(1 + sim_random(3));
	rest(w);
}

/* Edge-triggered: until it is refused, which it must be before it waits for room. */
static void add_until_full(struct waiter *w)
{
	unsigned int n;

	for (n = 0; n < 4; n++) {
		w->value = 1 + sim_random(3);
		if (!subject_add(w->value))
			return;
	}
	poller_modify(w->poller, EPOLLOUT | EPOLLET);
}

static void nothing(struct waiter *w)
{
}

static void read_(struct waiter *w)
{
	subject_take_waiting(0);
}

static void read_timed(struct waiter *w)
{
	subject_take_waiting(MINUTE);
}

static void read_shortly(struct waiter *w)
{
	subject_take_waiting(1 + sim_random(3000000));
}

static void write_(struct waiter *w)
{
	w->value = 1 + sim_random(4);
	subject_add_waiting(w->value, 0);
	sim_pause(sim_random(20000));
}

static void write_timed(struct waiter *w)
{
	w->value = 1 + sim_random(4);
	subject_add_waiting(w->value, sim_chance(2) ? MINUTE : 1 + sim_random(2000000));
	sim_pause(sim_random(20000));
}

static void take_and_modify(struct waiter *w)
{
	if (sim_random(4))
		take_all(w);
	else
		take(w);
	poller_modify(w->poller, EPOLLIN | EPOLLONESHOT);
}

static void take_or_modify(struct waiter *w)
{
	if (sim_chance(3))
		poller_modify(w->poller, EPOLLIN);
	take(w);
}

static void take_or_rest(struct waiter *w)
{
	if (sim_chance(2))
		take(w);
	else
		rest(w);
}

/*
 * @call: waits and acts; or the two parts: @poll with poll(2), @epoll or @multishot with
 * these events, @act afterwards.
 */
static const struct kind {
	const char *name;
	unsigned int waits_for;
	__poll_t poll, epoll, multishot;
	void (*act)(struct waiter *w);
	bool consumes; /* the count */
	bool only_polls; /* and never takes what there is */
} kinds[] = {
	{ "read", FOR_COUNT, .act = read_, .consumes = true },
	{ "read-timed", FOR_COUNT, .act = read_timed, .consumes = true },
	{ "read-shortly", 0, .act = read_shortly, .consumes = true },
	{ "write", FOR_FIT, .act = write_ },
	{ "write-timed", FOR_FIT, .act = write_timed },
	{ "poll-in", FOR_COUNT, .poll = EPOLLIN, .act = rest, .only_polls = true },
	{ "poll-take", FOR_COUNT, .poll = EPOLLIN, .act = take, .consumes = true },
	{ "poll-out", FOR_ROOM, .poll = EPOLLOUT, .act = rest },
	{ "poll-add", FOR_ROOM, .poll = EPOLLOUT, .act = add },
	{ "poll-both", FOR_COUNT | FOR_ROOM, .poll = EPOLLIN | EPOLLOUT,
	  .act = take_or_rest, .only_polls = true },
	{ "lt", FOR_COUNT, .epoll = EPOLLIN, .act = rest, .only_polls = true },
	{ "lt-take", FOR_COUNT, .epoll = EPOLLIN, .act = take, .consumes = true },
	{ "lt-modify", FOR_COUNT, .epoll = EPOLLIN, .act = take_or_modify,
	  .consumes = true },
	{ "lt-exclusive", FOR_COUNT | EXCLUSIVE, .epoll = EPOLLIN | EPOLLEXCLUSIVE,
	  .act = take, .consumes = true },
	{ "lt-out", FOR_ROOM, .epoll = EPOLLOUT, .act = rest },
	{ "oneshot", FOR_COUNT, .epoll = EPOLLIN | EPOLLONESHOT, .act = take_and_modify,
	  .consumes = true },
	{ "et-take", FOR_COUNT, .epoll = EPOLLIN | EPOLLET, .act = take_all,
	  .consumes = true },
	{ "et-both", FOR_COUNT, .epoll = EPOLLIN | EPOLLOUT | EPOLLET, .act = take_all,
	  .consumes = true },
	{ "et-edges", FOR_EDGE, .epoll = EPOLLIN | EPOLLET, .act = nothing,
	  .only_polls = true },
	{ "et-out", FOR_NEWS, .epoll = EPOLLOUT | EPOLLET, .act = add_until_full },
	{ "multi-take", FOR_COUNT, .multishot = EPOLLIN, .act = take_all,
	  .consumes = true },
	{ "multi-edges", FOR_EDGE, .multishot = EPOLLIN, .act = nothing,
	  .only_polls = true },
};

const char *waiter_name(const struct waiter *w)
{
	return w->kind->name;
}

unsigned int waiter_waits_for(const struct waiter *w)
{
	return w->kind->waits_for;
}

static void wait_and_act(struct waiter *w)
{
	const struct kind *k = w->kind;
	__poll_t events = 1;

	w->waits = true;
	if (k->poll)
		events = max(poll_events(k->poll, UINT64_MAX), 0);
	else if (w->poller)
		events = poller_wait(w->poller);
	if (!w->poller && !k->poll) {
		k->act(w);
		w->waits = false;
		return;
	}
	w->waits = false;
	sim_note("polled %#x", events);
	if (events && !current->killed)
		k->act(w);
}

static void run_waiter(void *arg)
{
	struct waiter *w = arg;
	const struct kind *k = w->kind;

	if (subject.one_consumer && k->consumes)
		take_all(w);
	if (k->epoll | k->multishot)
		w->poller = poller_add(subject_poll, k->epoll | k->multishot,
				       k->multishot);
	while (!actors_ended && !current->killed) {
		wait_and_act(w);
		current->signalled = false;
	}
}

void tasks_one_ended(void)
{
	if (--actors)
		return;
	actors_ended = true;
	ends_stop();
}

/* To a waiter, as to others that is none of the kernel's business. */
static void send_signal(void)
{
	struct waiter *w;

	if (!uses_signals || !waiter_count)
		return;
	w = &waiters[sim_random(waiter_count)];
	if (w->task->done || !w->waits)
		return;
	sim_note("signals %s", w->task->comm);
	w->task->signalled = true;
	if (!w->poller && sim_chance(6))
		w->task->killed = true;
}

static void act(void)
{
	switch (sim_random(ends_used ? 16 : 12)) {
	case 0 ... 4:
		subject_add(1 + sim_random(3));
		break;
	case 5 ... 6:
		if (!subject.one_consumer)
			subject_take();
		break;
	case 7 ... 8:
		if (uses_settings)
			subject_set_randomly();
		break;
	case 9:
		send_signal();
		break;
	case 10:
		sim_pause(sim_random(3000));
		break;
	case 11:
		if (sim_chance(4))
			sim_pause(sim_random(3000000));
		break;
	default:
		ends_act();
	}
}

static void run_actor(void *arg)
{
	unsigned int n = 10 + sim_random(80);

	while (n--)
		act();
	tasks_one_ended();
}

static void run_scribbler(void *arg)
{
	unsigned int n = 200 + sim_random(2000);

	while (n--) {
		program_scribble();
		if (sim_chance(8))
			sim_pause(sim_random(100000));
	}
	tasks_one_ended();
}

static const struct kind *some_kind(const struct kind *const few[])
{
	return few ? few[sim_random(3)] : &kinds[sim_random(ARRAY_SIZE(kinds))];
}

/* A counter that nobody polls, or with one consumer, which alone polls for the count. */
static bool is_possible(const struct kind *k)
{
	static bool has_consumer;
	unsigned int i;

	if (subject.no_poll && k->poll | k->epoll | k->multishot)
		return false;
	if (!subject.one_consumer)
		return true;
	for (has_consumer = false, i = 0; i < waiter_count; i++)
		has_consumer |= waiters[i].kind->consumes;
	return !k->only_polls && !(k->consumes && has_consumer);
}

static void add_waiter(const struct kind *const few[])
{
	struct waiter *w = &waiters[waiter_count];
	const struct kind *k = some_kind(few);
	char name[16];

	if (subject.no_poll && !is_possible(k))
		k = &kinds[sim_random(5)];
	if (!is_possible(k))
		return;
	snprintf(name, sizeof(name), "%u:%.12s", waiter_count % 10, k->name);
	*w = (struct waiter){ .kind = k };
	w->task = sim_spawn(name, run_waiter, w);
	w->task->slow = sim_chance(8);
	if (sim_chance(4))
		w->task->prio = w->task->normal_prio = sim_chance(2) ? 49 : 139;
	waiter_count++;
}

/* Some histories have few kinds, as these meet more often. */
void tasks_begin(bool dying, bool hostile)
{
	const struct kind *few[3];
	struct task_struct *t;
	unsigned int i, n;
	bool narrow;

	actors_ended = false;
	waiter_count = 0;
	uses_settings = sim_chance(2);
	uses_signals = sim_chance(3);
	for (i = 0; i < 3; i++)
		few[i] = some_kind(NULL);
	/* Writers, as what others do depends on whether they wait. */
	if (sim_chance(3))
		few[0] = &kinds[3];
	if (sim_chance(4))
		few[1] = &kinds[4];
	narrow = sim_random(3);
	for (i = 0, n = 1 + sim_random(5); i < n; i++)
		add_waiter(narrow ? few : NULL);
	some_closed = subject.store == WITHOUT_MODULE && !subject.no_poll && sim_chance(4);
	actors = 1 + sim_random(3);
	for (i = 0, n = actors; i < n; i++) {
		t = sim_spawn("actor", run_actor, NULL);
		t->mortal = dying;
		t->slow = sim_chance(8);
		t->closed = some_closed && sim_chance(2);
	}
	program_dies = dying;
	if (ends_used)
		sink_reader = sim_spawn("sink-reader", ends_run_reader, NULL);
	if (hostile) {
		actors++;
		sim_spawn("scribbler", run_scribbler, NULL);
	}
}

/* What was closed, or died, is made up for by the next take and add of others. */
static void act_once(void *arg)
{
	if (!some_closed)
		subject_take();
	subject_add(1);
}

bool tasks_act_once(void)
{
	if (!some_closed && !(subject.store == WITHOUT_MODULE && program_dies))
		return true;
	sim_spawn("last", act_once, NULL);
	return sim_run(1000000);
}

bool tasks_end(void)
{
	bool ended = true;
	unsigned int i;

	actors_ended = true;
	for (i = 0; i < waiter_count; i++)
		waiters[i].task->killed = true;
	if (ends_used)
		sink_reader->killed = true;
	if (!sim_run(3000000))
		return false;
	for (i = 0; i < waiter_count; i++) {
		ended &= waiters[i].task->done;
		if (waiters[i].poller)
			poller_remove(waiters[i].poller);
	}
	return ended;
}
