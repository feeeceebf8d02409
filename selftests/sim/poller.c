// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll(2), epoll(7) and multishot polls of io_uring, in the steps of the kernel's: when
 * they join the queue, what their wake functions return, when they poll again.
 */
#include "kernel.h"

#include "poller.h"
#include "subject.h"

#define ALWAYS (EPOLLERR | EPOLLHUP)
#define PRIVATE (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE)

struct poller {
	poll_table table;
	__poll_t (*poll)(poll_table *wait);
	wait_queue_entry_t entry;
	wait_queue_head_t *queue;
	struct task_struct *task; /* that calls poll(2) */
	struct task_struct *sleeper; /* that waits */
	__poll_t events;
	__poll_t result; /* of a multishot poll: it does not look itself */
	bool triggered;
	u64 told;
};

static void join(struct file *file, wait_queue_head_t *q, poll_table *table)
{
	struct poller *p = container_of(table, struct poller, table);

	p->queue = q;
	if (p->events & EPOLLEXCLUSIVE)
		add_wait_queue_exclusive(q, &p->entry);
	else
		add_wait_queue(q, &p->entry);
}

static __poll_t look(struct poller *p, bool joins)
{
	p->table = (poll_table){ joins ? join : NULL, p->events };
	return p->poll(&p->table) & p->events & ~PRIVATE;
}

static int wake_poll(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct poller *p = container_of(entry, struct poller, entry);

	if (key && !(key_to_poll(key) & p->events))
		return 0;
	p->triggered = true;
	return wake_up_process(p->task);
}

static bool sleep_unless(const bool *triggered, u64 deadline)
{
	bool over = false;

	set_current_state(TASK_INTERRUPTIBLE);
	if (!READ_ONCE(*triggered))
		over = sim_sleep(deadline);
	__set_current_state(TASK_RUNNING);
	return over;
}

int poll_events_of(__poll_t (*poll)(poll_table *wait), __poll_t events, u64 deadline)
{
	struct poller p = { .poll = poll, .events = events | ALWAYS, .task = current };
	bool over = false;
	int result;

	init_waitqueue_func_entry(&p.entry, wake_poll);
	result = look(&p, true);
	while (!result && !over) {
		if (signal_pending(current)) {
			result = -EINTR;
			break;
		}
		over = sleep_unless(&p.triggered, deadline);
		WRITE_ONCE(p.triggered, false);
		result = look(&p, false);
	}
	remove_wait_queue(p.queue, &p.entry);
	return result;
}

int poll_events(__poll_t events, u64 deadline)
{
	return poll_events_of(subject_poll, events, deadline);
}

int poll_until(unsigned int events, u64 deadline)
{
	return min(poll_events(events, deadline), 0);
}

static void tell(struct poller *p)
{
	p->told = sim_steps;
	p->triggered = true;
	if (p->sleeper)
		wake_up_process(p->sleeper);
}

/* Whether an exclusive entry is one that the wakeup was for. */
static bool is_served(const struct poller *p, __poll_t events)
{
	switch (events & (EPOLLIN | EPOLLOUT)) {
	case EPOLLIN:
		return p->events & EPOLLIN;
	case EPOLLOUT:
		return p->events & EPOLLOUT;
	case 0:
		return true;
	}
	return false;
}

/* ep_poll_callback() */
static int wake_epoll(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct poller *p = container_of(entry, struct poller, entry);
	__poll_t events = key_to_poll(key);
	bool woken = false;

	sim_step();
	if (p->events & ~PRIVATE && (!events || events & p->events)) {
		woken = p->sleeper && is_served(p, events);
		tell(p);
	}
	return woken || !(p->events & EPOLLEXCLUSIVE);
}

/* io_poll_wake() */
static int wake_multishot(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct poller *p = container_of(entry, struct poller, entry);

	if (key && !(key_to_poll(key) & p->events))
		return 0;
	p->result |= key_to_poll(key) & p->events;
	tell(p);
	return 1;
}

struct poller *poller_add(__poll_t (*poll)(poll_table *wait), __poll_t events,
			  bool multishot)
{
	struct poller *p = calloc(1, sizeof(*p));

	p->poll = poll;
	p->events = events | ALWAYS | (multishot ? EPOLLET : 0);
	init_waitqueue_func_entry(&p->entry, multishot ? wake_multishot : wake_epoll);
	if (look(p, true)) {
		p->told = sim_steps;
		p->triggered = true;
	}
	return p;
}

void poller_modify(struct poller *p, unsigned int events)
{
	WRITE_ONCE(p->events, events | ALWAYS);
	sim_step();
	if (look(p, false))
		tell(p);
}

/* What epoll_wait(2) does with an item of its list; 0: it was told for nothing. */
static __poll_t harvest(struct poller *p)
{
	__poll_t events = p->result;

	p->triggered = false;
	p->result = 0;
	sim_step();
	if (!events)
		events = look(p, false);
	if (!events || p->entry.func == wake_multishot)
		return events;
	if (p->events & EPOLLONESHOT)
		p->events &= PRIVATE;
	else if (!(p->events & EPOLLET))
		p->triggered = true;
	return events;
}

__poll_t poller_wait(struct poller *p)
{
	__poll_t events = 0;

	while (!events) {
		p->sleeper = current;
		while (!READ_ONCE(p->triggered)) {
			if (signal_pending(current)) {
				p->sleeper = NULL;
				return 0;
			}
			sleep_unless(&p->triggered, UINT64_MAX);
		}
		p->sleeper = NULL;
		events = harvest(p);
	}
	return events;
}

u64 poller_told(const struct poller *p)
{
	return p->told;
}

void poller_remove(struct poller *p)
{
	remove_wait_queue(p->queue, &p->entry);
	free(p);
}
