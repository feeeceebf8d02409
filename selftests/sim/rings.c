// SPDX-License-Identifier: GPL-2.0-only
/*
 * A ring as a program uses it: by ioctls, poll and the memory that it maps. Its files
 * announce events by watch_announce(), as the wakeup of a file does.
 */
#include <stdio.h>

#include "kernel.h"

#include <linux/flowfd.h>
#include "publish.h"
#include "harvest.h"
#include "poller.h"
#include "rings.h"

#define ITEMS 4 /* the last is a post */
#define WAITERS 4

static struct file *file;
static struct vm_area_struct vma;
static struct flowfd_watch watches[ITEMS];
static u64 published[ITEMS], taken[ITEMS]; /* steps of the last one */
/* A mutex of the program: one task at a time takes events, or waits for them. */
static struct sim_lock turn;
static unsigned int actors;
static bool over;

static struct ring_waiter {
	const struct ring_kind *kind;
	struct task_struct *task;
	struct poller *poller;
	u32 wanted;
	bool waits;
} waiters[WAITERS];
static unsigned int waiter_count;

static __poll_t poll_ring(poll_table *wait)
{
	return file->f_op->poll(file, wait);
}

/* In a turn. */
static bool take_event(void)
{
	u64 data;

	if (!harvest_next(&data))
		return false;
	taken[data] = sim_steps;
	return true;
}

static void take_all_events(void)
{
	while (take_event())
		;
}

static void take_all(struct ring_waiter *w)
{
	sim_mutex_lock(&turn);
	take_all_events();
	sim_mutex_unlock(&turn);
}

static void take_one(struct ring_waiter *w)
{
	sim_mutex_lock(&turn);
	take_event();
	sim_mutex_unlock(&turn);
}

static void rest(struct ring_waiter *w)
{
	sim_pause(sim_random(50000));
}

static void wait_for(struct ring_waiter *w)
{
	struct flowfd_ring_wait args = {
		.timeout = sim_chance(3) ? 1 + sim_random(5000000) : UINT64_MAX,
		.min_events = 1 + sim_random(ITEMS - 1),
	};

	sim_mutex_lock(&turn);
	w->wanted = args.min_events;
	w->waits = true;
	file->f_op->unlocked_ioctl(file, FLOWFD_IOC_RING_WAIT, (unsigned long)&args);
	w->waits = false;
	if (sim_random(3))
		take_all_events();
	sim_mutex_unlock(&turn);
	if (sim_chance(3))
		rest(w);
}

static const struct ring_kind {
	const char *name;
	__poll_t poll, epoll;
	void (*act)(struct ring_waiter *w);
} kinds[] = {
	{ "wait", .act = wait_for },
	{ "poll", EPOLLIN, .act = rest },
	{ "poll-take", EPOLLIN, .act = take_one },
	{ "lt", .epoll = EPOLLIN, .act = rest },
	{ "lt-take", .epoll = EPOLLIN, .act = take_one },
	{ "et-take", .epoll = EPOLLIN | EPOLLET, .act = take_all },
};

static void run_waiter(void *arg)
{
	struct ring_waiter *w = arg;
	const struct ring_kind *k = w->kind;
	int events = 1;

	if (k->epoll)
		w->poller = poller_add(poll_ring, k->epoll, false);
	while (!over && !current->killed) {
		w->waits = k->poll | k->epoll;
		if (k->poll)
			events = poll_events_of(poll_ring, k->poll, UINT64_MAX);
		else if (k->epoll)
			events = poller_wait(w->poller);
		w->waits = false;
		if (events > 0 && !current->killed)
			k->act(w);
		current->signalled = false;
	}
}

static void publish_once(void)
{
	unsigned int n = sim_random(ITEMS);

	published[n] = sim_steps;
	sim_note("publishes %u", n);
	if (n == ITEMS - 1)
		harvest_post(n);
	else
		watch_announce(&watches[n], EPOLLIN, 0);
}

static void run_actor(void *arg)
{
	unsigned int n = 10 + sim_random(60);

	while (n--) {
		switch (sim_random(8)) {
		case 0:
			sim_pause(sim_random(sim_chance(4) ? 6000000 : 3000));
			break;
		case 1:
			if (!sim_chance(3) || !sim_trylock(&turn))
				break;
			take_event();
			sim_mutex_unlock(&turn);
			break;
		case 2:
			waiters[sim_random(waiter_count)].task->signalled |= sim_chance(3);
			break;
		default:
			publish_once();
		}
	}
	if (!--actors)
		over = true;
}

int harvest_notify(void)
{
	return file->f_op->unlocked_ioctl(file, FLOWFD_IOC_RING_NOTIFY, 0);
}

static void make_ring(void)
{
	struct flowfd_create_ring args = { .max_items = ITEMS };
	long fd = flowfd_ring_create(&args, sizeof(args));
	struct flowfd_ring *ring;
	unsigned int i;

	file = fget(fd);
	ring = file->private_data;
	vma = (struct vm_area_struct){ .vm_flags = VM_SHARED, .vm_file = file };
	file->f_op->mmap(file, &vma);
	harvest_map(vma.address, args.items_offset, args.index_offset, args.index_slots);
	for (i = 0; i < ITEMS; i++) {
		mutex_lock(&ring->lock);
		int n = flowfd_ring_take_item(ring, 0);

		mutex_unlock(&ring->lock);
		watches[n] = (struct flowfd_watch){ .ring = ring, .item = &ring->items[n],
						    .index_entry = n + 1,
						    .direct = EPOLLIN };
		flowfd_ring_set_item(watches[n].item, n);
		published[i] = taken[i] = 0;
	}
}

static void judge(void)
{
	bool readable = poll_ring(NULL) & EPOLLIN;
	struct flowfd_ring *ring = file->private_data;
	u32 pending = flowfd_ring_pending(ring);
	bool posts = flowfd_ring_has_posts(ring);
	u64 before[ITEMS];
	unsigned int i;

	for (i = 0; i < waiter_count; i++) {
		const struct ring_waiter *w = &waiters[i];

		if (!w->waits || w->task->done)
			continue;
		if (w->kind->act == wait_for ? posts || pending >= w->wanted : readable)
			sim_fail("%s sleeps, and there are events", w->task->comm);
	}
	memcpy(before, taken, sizeof(before));
	take_all_events();
	for (i = 0; i < ITEMS; i++)
		if (published[i] > before[i] && taken[i] == before[i])
			sim_fail("the last event of item %u is lost", i);
}

static void end(void)
{
	unsigned int i;

	for (i = 0; i < waiter_count; i++)
		waiters[i].task->killed = true;
	if (!sim_run(1000000))
		return;
	for (i = 0; i < waiter_count; i++) {
		if (!waiters[i].task->done)
			sim_fail("a task cannot be killed");
		if (waiters[i].poller)
			poller_remove(waiters[i].poller);
	}
	file->f_op->release(NULL, file);
}

void rings_live(void)
{
	struct ring_waiter *w;
	unsigned int i, n;
	char name[16];

	sim_kernel_begin();
	turn = (struct sim_lock){ };
	over = false;
	waiter_count = 1 + sim_random(WAITERS);
	make_ring();
	for (i = 0; i < waiter_count; i++) {
		w = &waiters[i];
		*w = (struct ring_waiter){ .kind = &kinds[sim_random(ARRAY_SIZE(kinds))] };
		snprintf(name, sizeof(name), "%u:%.11s", i % 10, w->kind->name);
		w->task = sim_spawn(name, run_waiter, w);
	}
	actors = n = 1 + sim_random(3);
	while (n--)
		sim_spawn("actor", run_actor, NULL);
	if (!sim_run(1000000))
		return;
	judge();
	if (!sim_failed)
		end();
}
