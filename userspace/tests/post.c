// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posts without the module: the ring is ordinary memory, in which threads post as in a
 * ring's, and the consumer does not sleep. guest-post.c kills processes as they post.
 * build.mk builds it for 32 bits and for ThreadSanitizer as well.
 */
#include <flowfd.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/steps.h"
#include "tests/tap.h"

#define ITEMS 8
#define SLOTS 8
#define FILE_ITEM 7
#define POSTERS 4
#ifdef __SANITIZE_THREAD__
#define ROUNDS 2000
#else
#define ROUNDS 20000
#endif
#define PATIENCE_SECONDS 20

struct memory {
	struct flowfd_ring_header header;
	struct flowfd_ring_item items[ITEMS];
	uint32_t index[SLOTS + 1]; /* the last one stays empty */
	uint32_t tail;
} __attribute__((aligned(4096)));

static void ring_open(struct flowfd_ring *ring, struct memory *memory, uint32_t start)
{
	memset(memory, 0, sizeof(*memory));
	memory->header.head = start;
	memory->tail = start;
	*ring = (struct flowfd_ring){
		.fd = -1,
		.mask = SLOTS - 1,
		.max_items = ITEMS,
		.head = start,
		.header = &memory->header,
		.items = memory->items,
		.index = memory->index,
	};
	for (uint32_t i = 0; i < ITEMS; i++)
		memory->items[i].data = 100 + i;
}

/* The module's flowfd_publish(). */
static void publish(struct memory *memory, uint32_t number, uint32_t bits)
{
	struct flowfd_ring_item *item = &memory->items[number];
	uint32_t position;

	__atomic_fetch_or(&item->ready, bits, __ATOMIC_SEQ_CST);
	if (__atomic_fetch_or(&item->queued, FLOWFD_RING_IN_INDEX, __ATOMIC_SEQ_CST))
		return;
	position = __atomic_fetch_add(&memory->tail, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->index[position % SLOTS], number + 1, __ATOMIC_RELEASE);
}

/* What a poster does that dies before it puts the item into the stack. */
static void claim(struct memory *memory, uint32_t number, uint32_t bits)
{
	uint32_t top = __atomic_load_n(&memory->header.posted, __ATOMIC_RELAXED), none = 0;

	__atomic_fetch_or(&memory->items[number].ready, bits, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(&memory->items[number].queued, &none,
				    top << 2 | FLOWFD_RING_IN_STACK, 0, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
}

static bool at_rest(const struct memory *memory)
{
	for (int i = 0; i < ITEMS; i++) {
		if (memory->items[i].ready || memory->items[i].queued)
			return false;
	}
	return !(memory->header.posted & FLOWFD_RING_POSTED_ITEM) &&
	       !memory->header.taken && memory->header.head == memory->tail;
}

/* The data of the next event, 0 if there is none, -1 if its bits are others. */
static int next_is(struct flowfd_ring *ring, uint32_t bits)
{
	struct flowfd_event event = { 0, 0, 0 };

	if (!flowfd_ring_next(ring, &event))
		return 0;
	return event.events == bits && !event.reserved ? (int)event.data : -1;
}

static void test_post(void)
{
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	tap_is(flowfd_ring_post(&ring, 3, 5), 0, "post");
	tap_is(memory.items[3].queued, FLOWFD_RING_IN_STACK, "the last of the stack");
	tap_is(memory.header.posted, 4, "and its head");
	tap_is(next_is(&ring, 5), 103, "is delivered");
	tap_is(next_is(&ring, 5), 0, "once");
	tap_ok(at_rest(&memory), "nothing is left");
	flowfd_ring_post(&ring, 3, 1);
	flowfd_ring_post(&ring, 3, 0x80000000);
	tap_is(next_is(&ring, 0x80000001), 103, "two posts are one event with all bits");
	tap_is(flowfd_ring_post(&ring, 3, 0), 0, "no bits");
	tap_ok(at_rest(&memory), "are not posted");
	tap_is(flowfd_ring_post(&ring, ITEMS, 1), -EINVAL, "no such item");
	tap_is(flowfd_ring_post(&ring, UINT32_MAX, 1), -EINVAL, "nor this");
	tap_ok(at_rest(&memory), "are not posted");
	/* There is no descriptor to notify by. */
	flowfd_ring_post(&ring, 3, 1);
	memory.header.armed = 1;
	tap_is(flowfd_ring_post(&ring, 3, 2), -EBADF, "a post of a posted item notifies");
	tap_is(flowfd_ring_post(&ring, 4, 1), -EBADF, "as does that of another");
	tap_is(next_is(&ring, 3), 103, "and both are posted");
	tap_is(next_is(&ring, 1), 104, "in order");
	tap_ok(at_rest(&memory), "nothing is left");
}

static void test_order(void)
{
	static const uint32_t order[] = { 2, 0, 5, 1 };
	struct flowfd_event events[4];
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	for (int i = 0; i < 4; i++)
		flowfd_ring_post(&ring, order[i], 1);
	flowfd_ring_post(&ring, 0, 2);
	tap_is(next_is(&ring, 1), 102, "the oldest first");
	flowfd_ring_post(&ring, 6, 1);
	flowfd_ring_post(&ring, 2, 1);
	tap_is(memory.header.taken, 1, "what is next is in the header");
	tap_is(next_is(&ring, 3), 100, "then the second, with the bits of both posts");
	tap_is(next_is(&ring, 1), 105, "the third");
	tap_is(next_is(&ring, 1), 101, "the fourth");
	tap_is(next_is(&ring, 1), 106, "then what was posted meanwhile");
	tap_is(next_is(&ring, 1), 102, "and what was posted again");
	tap_ok(at_rest(&memory), "nothing is left");
	for (int i = 0; i < 4; i++)
		flowfd_ring_post(&ring, order[i], 1);
	tap_is(flowfd_ring_harvest(&ring, events, 4), 4, "all in one harvest");
	tap_ok(events[0].data == 102 && events[3].data == 101, "in order");
	for (int i = 0; i < 4; i++)
		flowfd_ring_post(&ring, order[i], 1);
	tap_is(flowfd_ring_harvest(&ring, events, 3), 3, "a part of them");
	tap_is(flowfd_ring_harvest(&ring, events, 3), 1, "and the rest");
	tap_ok(at_rest(&memory), "nothing is left");
}

/* An item that was removed, and one that a file had before. */
static void test_reuse(void)
{
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	flowfd_ring_post(&ring, 1, 1);
	flowfd_ring_post(&ring, 2, 1);
	memory.items[1].ready = 0;
	tap_is(next_is(&ring, 1), 102, "a removed post is passed over");
	tap_ok(at_rest(&memory), "nothing is left");
	publish(&memory, 1, EPOLLIN);
	memory.items[1].ready = 0;
	flowfd_ring_post(&ring, 1, 8);
	tap_is(memory.header.posted, 0, "an item that is in the index is not in the stack");
	tap_is(next_is(&ring, 8), 101, "and is delivered from there");
	tap_ok(at_rest(&memory), "nothing is left");
	flowfd_ring_post(&ring, 1, 1);
	flowfd_ring_post(&ring, 2, 1);
	memory.items[2].ready = 0;
	publish(&memory, 2, EPOLLIN);
	tap_is(memory.index[memory.tail % SLOTS], 0, "nor is one twice that is in the stack");
	tap_is(next_is(&ring, 1), 101, "whose link stays");
	tap_is(next_is(&ring, EPOLLIN), 102, "and which is delivered from there");
	tap_ok(at_rest(&memory), "nothing is left");
}

/* How many events until there is one with this data; 0: not among a thousand. */
static int events_until(struct flowfd_ring *ring, struct memory *memory, uint64_t data,
			unsigned int count)
{
	struct flowfd_event events[8];
	unsigned int taken;

	for (int n = 1; n < 1000; n += (int)taken) {
		if (count == 1)
			taken = (unsigned int)flowfd_ring_next(ring, events);
		else
			taken = flowfd_ring_harvest(ring, events, count);
		if (!taken)
			return 0;
		for (unsigned int i = 0; i < taken; i++) {
			if (events[i].data == data)
				return n + (int)i;
			/* Neither files nor posts come to an end. */
			if (events[i].data == 100 + FILE_ITEM || events[i].data == 106)
				publish(memory, (uint32_t)events[i].data - 100, EPOLLIN);
			else
				flowfd_ring_post(ring, (uint32_t)events[i].data - 100, 1);
		}
	}
	return 0;
}

static int cursor_until(struct flowfd_ring *ring, struct memory *memory, uint64_t data)
{
	struct flowfd_cursor cursor = flowfd_cursor_begin(ring);
	struct flowfd_event event;
	int n = 0;

	while (n++ < 1000 && flowfd_cursor_next(&cursor, &event) && event.data != data) {
		if (event.data == 100 + FILE_ITEM || event.data == 106)
			publish(memory, (uint32_t)event.data - 100, EPOLLIN);
		else
			flowfd_ring_post(ring, (uint32_t)event.data - 100, 1);
	}
	flowfd_cursor_end(&cursor);
	return n < 1000 ? n : 0;
}

/* Files that always have events, and posts: how long the others must wait. */
static void test_fairness(uint32_t start)
{
	static const unsigned int counts[] = { 1, 2, 7, 0 };
	struct flowfd_ring ring;
	struct memory memory;
	int n;

	for (int i = 0; i < 4; i++) {
		ring_open(&ring, &memory, start);
		publish(&memory, FILE_ITEM, EPOLLIN);
		publish(&memory, 6, EPOLLIN);
		flowfd_ring_post(&ring, 1, 1);
		n = counts[i] ? events_until(&ring, &memory, 101, counts[i]) :
				cursor_until(&ring, &memory, 101);
		tap_ok(n && n < 70, "a post does not wait for files to end");
		printf("# %d events\n", n);
		ring_open(&ring, &memory, start);
		flowfd_ring_post(&ring, 1, 1);
		flowfd_ring_post(&ring, 2, 1);
		flowfd_ring_post(&ring, 3, 1);
		publish(&memory, FILE_ITEM, EPOLLIN);
		n = counts[i] ? events_until(&ring, &memory, 100 + FILE_ITEM, counts[i]) :
				cursor_until(&ring, &memory, 100 + FILE_ITEM);
		tap_ok(n && n <= 4, "a file does not wait for posts to end");
		printf("# %d events\n", n);
	}
}

/* Lists of a hostile process: each must end, and leave the ring usable. */
static void test_hostile(void)
{
	static const uint32_t links[][5] = {
		/* posted, and what follows items 0 to 3; all as item number plus one */
		{ 1, 1 }, { 1, 2, 1 }, { 1, 2, 3, 2 }, { 1, 2, 3, 4, 1 }, { 4, 1, 1, 1, 1 },
		{ ITEMS + 1 }, { FLOWFD_RING_POSTED_ITEM }, { 1, ITEMS + 1 },
		{ 2, 0, FLOWFD_RING_POSTED_ITEM },
	};
	struct flowfd_event events[ITEMS];
	struct flowfd_ring ring;
	struct memory memory;
	unsigned int taken;
	int turns;

	for (unsigned int i = 0; i < sizeof(links) / sizeof(*links); i++) {
		for (int marked = 0; marked < 3; marked++) {
			ring_open(&ring, &memory, 0);
			for (int n = 0; n < 4; n++) {
				memory.items[n].ready = marked == 1;
				memory.items[n].queued = links[i][n + 1] << 2 | marked;
			}
			if (marked == 2)
				memory.header.taken = links[i][0];
			else
				memory.header.posted = links[i][0];
			flowfd_ring_revive_post(&ring, 1);
			flowfd_ring_revive_post(&ring, 2);
			for (turns = 0; turns < 3; turns++) {
				taken = flowfd_ring_harvest(&ring, events, ITEMS);
				if (!taken)
					break;
			}
			tap_ok(turns < 3, "a hostile list ends");
			flowfd_ring_revive_post(&ring, 1);
			for (int n = 0; n < 4; n++)
				memory.items[n].queued = memory.items[n].ready = 0;
			flowfd_ring_post(&ring, 1, 1);
			tap_is(next_is(&ring, 1), 101, "and posts still work");
		}
	}
}

static void test_revive(void)
{
	struct flowfd_ring ring;
	struct memory memory;
	uint32_t epoch;

	ring_open(&ring, &memory, 0);
	tap_is(flowfd_ring_revive_post(&ring, 0), 0, "an item that was not posted");
	tap_is(flowfd_ring_revive_post(&ring, ITEMS), -EINVAL, "no such item");
	claim(&memory, 0, 1);
	flowfd_ring_post(&ring, 0, 2);
	tap_is(next_is(&ring, 3), 0, "a poster died: its item is silent");
	tap_is(flowfd_ring_revive_post(&ring, 0), 1, "it is revived");
	tap_is(next_is(&ring, 3), 100, "with all its bits");
	tap_ok(at_rest(&memory), "nothing is left");

	flowfd_ring_post(&ring, 1, 1);
	flowfd_ring_post(&ring, 2, 1);
	flowfd_ring_post(&ring, 3, 1);
	tap_is(next_is(&ring, 1), 101, "one of three is taken");
	flowfd_ring_post(&ring, 4, 1);
	flowfd_ring_post(&ring, 5, 1);
	claim(&memory, 0, 1);
	for (uint32_t i = 1; i < ITEMS; i++)
		tap_is(flowfd_ring_revive_post(&ring, i), 0, "nothing to revive");
	tap_is(flowfd_ring_revive_post(&ring, 0), 1, "this one is");
	for (int i = 2; i < 6; i++)
		tap_is(next_is(&ring, 1), 100 + i, "the others keep their order");
	tap_is(next_is(&ring, 1), 100, "and it is behind them");
	tap_ok(at_rest(&memory), "nothing is left");

	memory.header.posted = 0;
	claim(&memory, 0, 0);
	flowfd_ring_post(&ring, 1, 1);
	tap_is(next_is(&ring, 1), 101, "another post");
	memory.header.posted = FLOWFD_RING_POSTED_EPOCH;
	tap_is(flowfd_ring_revive_post(&ring, 0), 0, "the next epoch is that of the mark");
	tap_is(flowfd_ring_revive_post(&ring, 0), 1, "the one after it is not");
	tap_ok(at_rest(&memory), "no bits: nothing is posted");

	epoch = memory.header.posted = 5 * (FLOWFD_RING_POSTED_ITEM + 1);
	flowfd_ring_post(&ring, 1, 1);
	flowfd_ring_post(&ring, 2, 1);
	tap_is(memory.header.posted & FLOWFD_RING_POSTED_EPOCH, epoch, "a post keeps the epoch");
	tap_is(next_is(&ring, 1), 101, "and links the same");
	tap_is(next_is(&ring, 1), 102, "in order");
	tap_is(memory.header.posted, epoch, "as does a harvest");
}

/* One of two at each point of the other. */
#ifndef STEPS_UNAVAILABLE
static struct {
	struct memory memory;
	struct flowfd_ring ring;
	uint32_t posted[ITEMS];
	uint32_t seen[ITEMS];
} step;

static void step_post(uint32_t item, uint32_t bits)
{
	flowfd_ring_post(&step.ring, item, bits);
	step.posted[item] |= bits;
}

static void step_take_one(void)
{
	struct flowfd_event event;

	if (flowfd_ring_next(&step.ring, &event))
		step.seen[event.data - 100] |= event.events;
}

static void step_take_all(void)
{
	struct flowfd_event event;

	while (flowfd_ring_next(&step.ring, &event))
		step.seen[event.data - 100] |= event.events;
}

static void post_the_same(void)
{
	step_post(0, 2);
}

static void post_another(void)
{
	step_post(2, 2);
}

static void post_both(void)
{
	step_post(2, 2);
	step_post(0, 2);
}

static void revive(void)
{
	flowfd_ring_revive_post(&step.ring, 0);
	step_take_all();
}

static void post_and_revive(void)
{
	step_post(2, 2);
	flowfd_ring_revive_post(&step.ring, 0);
}

static void revive_and_post(void)
{
	step_post(2, 2);
	flowfd_ring_revive_post(&step.ring, 0);
	step_post(0, 4);
	step_post(1, 4);
}

static void revive_between_posts(void)
{
	step_post(2, 2);
	step_take_one();
	flowfd_ring_revive_post(&step.ring, 0);
	step_post(0, 4);
	step_take_all();
	step_post(0, 8);
}

/* The consumer is in the middle of what it has taken, and the item is in the rest. */
static void revive_post_and_take_one(void)
{
	step_take_all();
	flowfd_ring_revive_post(&step.ring, 0);
	step_take_all();
	step_post(2, 2);
	step_post(0, 4);
	step_post(1, 4);
	step_post(3, 4);
	step_take_one();
}

static void work_of_a_poster(void)
{
	flowfd_ring_post(&step.ring, 0, 1);
}

static void work_of_the_consumer(void)
{
	step_take_one();
}

static void step_open(void)
{
	ring_open(&step.ring, &step.memory, 0);
	memset(step.posted, 0, sizeof(step.posted));
	memset(step.seen, 0, sizeof(step.seen));
}

/* Whether all bits arrived, and nothing is left. */
static bool step_is_good(void)
{
	step_take_all();
	for (int i = 0; i < ITEMS; i++) {
		if (step.posted[i] & ~step.seen[i])
			return false;
	}
	return at_rest(&step.memory);
}

/* If nothing happens, @work dies. */
static void step_all(void (*work)(void), void (*happen)(void), const char *what)
{
	int point = 0, bad = 0;
	bool more;

	do {
		step_open();
		step_post(1, 1);
		if (work == work_of_the_consumer) {
			step_post(0, 1);
			step_post(3, 1);
		} else if (happen) {
			step.posted[0] = 1;
		}
		if (happen) {
			more = steps_run(work, happen, point++);
		} else {
			more = steps_kill(work, point++);
			/* Whatever it left, the item is as good as new afterwards. */
			step_post(0, 2);
			step_take_one();
			flowfd_ring_revive_post(&step.ring, 0);
			bad += !step_is_good();
			step_post(0, 4);
		}
		bad += !step_is_good();
	} while (more);
	tap_is(bad, 0, what);
	tap_ok(point > 3, "point by point");
	printf("# before each of %d points\n", point - 1);
}

static void test_steps(void)
{
	steps_watch(0, &step.memory, sizeof(step.memory));
	step_all(work_of_the_consumer, post_both, "posted while it is taken");
	step_all(work_of_a_poster, post_the_same, "posted twice");
	step_all(work_of_a_poster, post_another, "another one posted meanwhile");
	step_all(work_of_a_poster, post_both, "both meanwhile");
	step_all(work_of_a_poster, step_take_all, "taken while it is posted");
	step_all(work_of_a_poster, revive, "revived while it is posted");
	step_all(work_of_a_poster, post_and_revive, "and with another post");
	step_all(work_of_a_poster, revive_and_post, "and posted again");
	step_all(work_of_a_poster, revive_between_posts, "and taken");
	step_all(work_of_a_poster, revive_post_and_take_one, "and taken in part");
	step_all(work_of_a_poster, NULL, "a poster that dies");
}
#else
static void test_steps(void)
{
	tap_skip("point by point", STEPS_UNAVAILABLE);
}
#endif

/* Threads that post, and wait now and then until the consumer has seen it. */
struct crowd {
	struct memory memory;
	struct flowfd_ring ring;
	uint64_t sent[ITEMS];
	uint64_t seen[ITEMS];
	uint32_t finished;
	bool give_up;
	bool claims;
};

struct poster {
	pthread_t thread;
	struct crowd *crowd;
	unsigned int number;
	bool lost;
};

static bool wait_until_seen(struct crowd *c, uint32_t item, uint64_t sent)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (__atomic_load_n(&c->seen[item], __ATOMIC_ACQUIRE) < sent) {
		if (time(NULL) > end || __atomic_load_n(&c->give_up, __ATOMIC_RELAXED))
			return false;
		sched_yield();
	}
	return true;
}

static void *post_all(void *argument)
{
	struct poster *p = argument;
	struct crowd *c = p->crowd;
	unsigned int random = p->number + 1;

	for (int i = 0; i < ROUNDS && !p->lost; i++) {
		uint32_t item = (uint32_t)rand_r(&random) % 3 ? p->number : 0;
		uint64_t sent = __atomic_add_fetch(&c->sent[item], 1, __ATOMIC_RELAXED);

		/* Item 0 belongs to all of them. */
		if (c->claims && rand_r(&random) % 8 == 0) {
			claim(&c->memory, item, 1);
			sched_yield();
		} else {
			flowfd_ring_post(&c->ring, item, 1);
		}
		if (rand_r(&random) % 4 == 0)
			p->lost = !wait_until_seen(c, item, sent);
	}
	if (p->lost)
		__atomic_store_n(&c->give_up, true, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->finished, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void test_crowd(bool revives, bool claims)
{
	static struct crowd c;
	struct poster posters[POSTERS];
	struct flowfd_event event;
	uint32_t turn = 0, strange = 0;
	uint64_t sent;
	bool ended;

	memset(&c, 0, sizeof(c));
	ring_open(&c.ring, &c.memory, 0);
	c.claims = claims;
	for (unsigned int i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster){ .crowd = &c, .number = i };
		if (pthread_create(&posters[i].thread, NULL, post_all, &posters[i]))
			abort();
	}
	do {
		ended = __atomic_load_n(&c.finished, __ATOMIC_SEQ_CST) == POSTERS;
		if (revives || ended) {
			for (uint32_t i = 0; i < POSTERS && revives; i++)
				flowfd_ring_revive_post(&c.ring, i);
		}
		while (flowfd_ring_next(&c.ring, &event)) {
			uint64_t item = event.data - 100;

			strange += item >= POSTERS || event.events != 1;
			sent = __atomic_load_n(&c.sent[item % ITEMS], __ATOMIC_RELAXED);
			__atomic_store_n(&c.seen[item % ITEMS], sent, __ATOMIC_RELEASE);
		}
		if (++turn % 64 == 0)
			sched_yield();
	} while (!ended);
	for (unsigned int i = 0; i < POSTERS; i++) {
		pthread_join(posters[i].thread, NULL);
		tap_ok(!posters[i].lost, "no post of this thread was lost");
		tap_is((long long)c.seen[i], (long long)c.sent[i], "nor of this item");
	}
	tap_is(strange, 0, "nothing else was delivered");
	tap_ok(at_rest(&c.memory), "nothing is left");
}

int main(void)
{
	test_post();
	test_order();
	test_reuse();
	test_fairness(0);
	test_fairness(UINT32_MAX - 70);
	test_hostile();
	test_revive();
	test_steps();
	test_crowd(false, false);
	test_crowd(true, false);
	test_crowd(true, true);
	return tap_done();
}
