// SPDX-License-Identifier: GPL-2.0-only
/*
 * The oracle: at the end of a history nobody sleeps who could go on, what was added was
 * taken or is there, and poll says what is so.
 */
#include "kernel.h"

#include <linux/flowfd.h>
#include "ends.h"
#include "oracle.h"
#include "poller.h"
#include "program.h"
#include "subject.h"
#include "tasks.h"

struct state {
	struct flowfd_flow flow;
	__poll_t polled;
	bool ready;	/* readers must know of the count */
	bool room;	/* for pollers */
};

static bool sleeps(const struct waiter *w, unsigned int reason)
{
	return !w->task->done && w->waits && waiter_waits_for(w) & reason;
}

static bool fits(const struct flowfd_flow *f, u64 value)
{
	return f->count < f->maximum && f->maximum - f->count > value;
}

static struct state see(void)
{
	struct state s;
	bool writer = false;
	unsigned int i;

	subject_get(&s.flow);
	s.polled = subject_poll(NULL);
	for (i = 0; i < waiter_count; i++)
		writer |= sleeps(&waiters[i], FOR_FIT);
	s.room = subject.store == WITHOUT_MODULE ? s.polled & EPOLLOUT :
						   fits(&s.flow, s.flow.write_mark);
	s.ready = s.flow.count && (s.flow.count >= s.flow.read_mark || writer ||
				   s.flow.max_delay || !fits(&s.flow, s.flow.write_mark));
	return s;
}

/*
 * The first in the order of their turn decides for all, and may be any of these. Of a
 * semaphore a value that fits passes larger ones.
 */
static bool writers_could_go_on(const struct state *s)
{
	unsigned int i, n = 0;

	for (i = 0; i < waiter_count; i++) {
		if (!sleeps(&waiters[i], FOR_FIT))
			continue;
		if (fits(&s->flow, waiters[i].value))
			n++;
		else if (!subject.semaphore)
			return false;
	}
	return n;
}

/* Of several exclusive pollers only one is told. */
static bool all_exclusive_sleep(void)
{
	unsigned int i;

	for (i = 0; i < waiter_count; i++)
		if (waiter_waits_for(&waiters[i]) & EXCLUSIVE &&
		    !sleeps(&waiters[i], EXCLUSIVE))
			return false;
	return true;
}

static void judge_waiter(const struct waiter *w, const struct state *s)
{
	bool exclusive = waiter_waits_for(w) & EXCLUSIVE;

	if (s->ready && sleeps(w, FOR_COUNT) && (!exclusive || all_exclusive_sleep()))
		sim_fail("%s sleeps, and there is a count", w->task->comm);
	if (s->room && sleeps(w, FOR_ROOM))
		sim_fail("%s sleeps, and there is room", w->task->comm);
	if (s->room && sleeps(w, FOR_NEWS) && fits(&s->flow, w->value))
		sim_fail("%s was refused and sleeps, and there is room", w->task->comm);
	if (sleeps(w, FOR_FIT) && (w->value >= s->flow.maximum || s->flow.overflow))
		sim_fail("%s sleeps, and its write never can be done", w->task->comm);
	/* Each add is an edge: the last that began, too, or one that came after it. */
	if (s->flow.count && sleeps(w, FOR_EDGE) && subject.store == IN_KERNEL &&
	    !subject.semaphore && !subject.marks &&
	    poller_told(w->poller) < subject.last_add)
		sim_fail("%s has no edge for the last add", w->task->comm);
}

static void judge_poll(const struct state *s)
{
	if (subject.store == WITHOUT_MODULE) {
		if (s->flow.count && !(s->polled & EPOLLIN) && !subject.one_consumer &&
		    !subject.no_poll)
			sim_fail("there is a count, and it is not readable");
		return;
	}
	if (!!(s->polled & EPOLLOUT) != s->room)
		sim_fail("poll is wrong about room");
	if (s->polled & EPOLLIN ? !s->flow.count : s->ready && !s->flow.max_delay)
		sim_fail("poll is wrong about the count");
}

void oracle_judge(void)
{
	const struct state s = see();
	u64 sum = subject.added + program_added + ends_added() - subject.took - program_took;
	u64 rest = ends_count();
	unsigned int i;

	sim_note("count %llu of %llu, marks %llu and %llu, delay %llu, rate %u, overflow %u, poll %#x",
		 s.flow.count, s.flow.maximum, s.flow.read_mark, s.flow.write_mark,
		 s.flow.max_delay, s.flow.qos.token_rate, s.flow.overflow, s.polled);
	if (subject.store == WITHOUT_MODULE && !program_dies &&
	    subject.accepted != program_added + program_lost())
		sim_fail("of adds that succeeded something is neither added nor lost");
	if (sum != s.flow.count + s.flow.lost + rest)
		sim_fail("sums: %llu more was added than taken, count %llu, lost %llu, at the ends %llu",
			 (unsigned long long)sum, s.flow.count, s.flow.lost,
			 (unsigned long long)rest);
	for (i = 0; i < waiter_count; i++)
		judge_waiter(&waiters[i], &s);
	if (writers_could_go_on(&s))
		sim_fail("writers sleep, and what they add fits");
	judge_poll(&s);
	ends_judge(s.ready, s.room);
}
