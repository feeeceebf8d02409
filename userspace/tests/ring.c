// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking events from a ring, without the module: the ring is ordinary memory, and the
 * publisher is written like that of module/publish.h. build.mk builds it several
 * times: for 32 bits, which is the code of all architectures except x86-64, with
 * FLOWFD_DEBUG, and for ThreadSanitizer, with the code of x86-64.
 */
#include <flowfd.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/steps.h"
#include "tests/tap.h"

#define ITEMS 4
#define PRODUCERS 3
#ifdef __SANITIZE_THREAD__
#define ROUNDS 500
#else
#define ROUNDS 4000
#endif
/* How many events a producer publishes in a round at most. */
#define BURST 3
#define HANDOVERS 2000

/* The shared memory, and behind it the module's own data. */
struct memory {
	struct flowfd_ring_header header;
	struct flowfd_ring_item items[ITEMS];
	uint32_t index[ITEMS + 1];	/* the last one stays empty */
	uint32_t tail;
	uint32_t overwritten;
} __attribute__((aligned(4096)));

/* @slots: number of slots and of items, a power of two */
static void ring_open_small(struct flowfd_ring *ring, struct memory *memory,
			    uint32_t start, uint32_t slots)
{
	memset(memory, 0, sizeof(*memory));
	memory->header.index_slots = slots;
	memory->header.head = start;
	memory->tail = start;
	*ring = (struct flowfd_ring){
		.fd = -1,
		.mask = slots - 1,
		.head = start,
		.header = &memory->header,
		.items = memory->items,
		.index = memory->index,
	};
	for (uint32_t i = 0; i < ITEMS; i++)
		memory->items[i].data = 100 + i;
}

static void ring_open(struct flowfd_ring *ring, struct memory *memory,
		      uint32_t start)
{
	ring_open_small(ring, memory, start, ITEMS);
}

/* Counts slots that are overwritten, for which the module has a plain store. */
static void publish(struct memory *memory, uint32_t number, uint32_t bits)
{
	struct flowfd_ring_item *item = &memory->items[number];
	uint32_t mask = memory->header.index_slots - 1;
	uint32_t position;

	__atomic_fetch_or(&item->ready, bits, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&item->queued, 1, __ATOMIC_SEQ_CST))
		return;
	position = __atomic_fetch_add(&memory->tail, 1, __ATOMIC_SEQ_CST);
	if (__atomic_exchange_n(&memory->index[position & mask], number + 1,
				__ATOMIC_RELEASE))
		__atomic_fetch_add(&memory->overwritten, 1, __ATOMIC_RELAXED);
}

/* flowfd_ring_clear_item() and flowfd_ring_set_item() of the module. */
static void remove_item(struct memory *memory, uint32_t number)
{
	__atomic_exchange_n(&memory->items[number].ready, 0, __ATOMIC_SEQ_CST);
}

static void reuse_item(struct memory *memory, uint32_t number, uint64_t data)
{
	remove_item(memory, number);
	__atomic_store_n(&memory->items[number].data, data, __ATOMIC_RELAXED);
}

static bool at_rest(const struct memory *memory)
{
	for (int i = 0; i < ITEMS; i++) {
		if (memory->index[i] || memory->items[i].ready ||
		    memory->items[i].queued)
			return false;
	}
	return !memory->index[ITEMS] && memory->header.head == memory->tail && !memory->overwritten;
}

static void test_empty(void)
{
	struct flowfd_event event = {.events = 42, .data = 43};
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	tap_is(flowfd_ring_harvest(&ring, &event, 1), 0, "nothing to harvest");
	tap_is(flowfd_ring_next(&ring, &event), 0, "nothing is next");
	tap_ok(event.events == 42 && event.data == 43, "nothing is stored");
	tap_ok(at_rest(&memory) && memory.header.head == 0, "head as it was");
}

static void test_one(void)
{
	struct flowfd_event event = {.reserved = 42};
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	publish(&memory, 2, EPOLLIN);
	publish(&memory, 2, EPOLLOUT);
	tap_is(flowfd_ring_harvest(&ring, &event, 0), 0, "no room, no event");
	tap_is(flowfd_ring_harvest(&ring, &event, 1), 1, "one event");
	tap_is(event.events, EPOLLIN | EPOLLOUT, "with all bits");
	tap_is(event.data, 102, "and its data");
	tap_is(event.reserved, 0, "the reserved field is 0");
	tap_ok(at_rest(&memory) && memory.header.head == 1, "it is taken");
	publish(&memory, 3, UINT32_MAX);
	tap_is(flowfd_ring_next(&ring, &event), 1, "next takes one");
	tap_is(event.events, UINT32_MAX, "with all 32 bits");
	tap_is(event.data, 103, "and its data");
	tap_is(flowfd_ring_next(&ring, &event), 0, "and no more");
	tap_ok(at_rest(&memory), "both are taken");
}

/* A ring may be moved: nothing in it points into itself. */
static void test_move(void)
{
	struct flowfd_ring ring, moved;
	struct flowfd_event event;
	struct memory memory;
	int taken = 0;

	ring_open(&ring, &memory, 3);
	for (uint32_t i = 0; i < 2 * ITEMS; i++) {
		publish(&memory, i % ITEMS, 1);
		publish(&memory, (i + 1) % ITEMS, 1);
		taken += flowfd_ring_next(&ring, &event);
		moved = ring;
		memset(&ring, 0xff, sizeof(ring));
		taken += flowfd_ring_next(&moved, &event);
		ring = moved;
		memset(&moved, 0xff, sizeof(moved));
	}
	tap_is(taken, 4 * ITEMS, "a ring that is moved loses nothing");
	tap_ok(at_rest(&memory), "and takes each once");
}

static void test_room(void)
{
	struct flowfd_event events[ITEMS];
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	for (uint32_t i = 0; i < ITEMS; i++)
		publish(&memory, ITEMS - 1 - i, 1U << i);
	tap_is(flowfd_ring_harvest(&ring, events, 3), 3, "three of four");
	tap_is(events[0].data, 103, "the first first");
	tap_is(events[1].data, 102, "then the second");
	tap_is(events[2].data, 101, "then the third");
	tap_is(events[2].events, 1 << 2, "with its bits");
	tap_is(memory.header.head, 3, "and the kernel knows");
	publish(&memory, 1, 1);
	tap_is(flowfd_ring_harvest(&ring, events, ITEMS), 2, "the rest");
	tap_is(events[0].data, 100, "in order");
	tap_is(events[1].data, 101, "with what came meanwhile");
	tap_ok(at_rest(&memory), "all are taken");
}

/* Several times round the index, and once past the wrap of the positions. */
static void test_wrap(uint32_t start, const char *what)
{
	struct flowfd_event events[ITEMS];
	struct flowfd_ring ring;
	struct memory memory;
	unsigned int wrong = 0;

	ring_open(&ring, &memory, start);
	for (uint32_t i = 0; i < 5 * ITEMS; i++) {
		publish(&memory, i % ITEMS, EPOLLIN);
		publish(&memory, (i + 1) % ITEMS, EPOLLOUT);
		if (flowfd_ring_harvest(&ring, events, ITEMS) != 2 ||
		    events[0].data != 100 + i % ITEMS ||
		    events[1].data != 100 + (i + 1) % ITEMS)
			wrong++;
	}
	tap_is(wrong, 0, what);
	tap_is(memory.header.head, (uint32_t)(start + 10 * ITEMS),
	       "the head is where it should be");
	tap_ok(at_rest(&memory), "all are taken");
}

static void test_removed(void)
{
	struct flowfd_event events[ITEMS];
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	publish(&memory, 0, EPOLLIN);
	remove_item(&memory, 0);
	tap_is(flowfd_ring_next(&ring, events), 0, "no bits, no event");
	tap_ok(at_rest(&memory), "but the entry is taken");

	for (uint32_t i = 0; i < ITEMS; i++)
		publish(&memory, i, EPOLLIN);
	remove_item(&memory, 0);
	remove_item(&memory, 2);
	tap_is(flowfd_ring_harvest(&ring, events, 2), 2,
	       "what is empty takes no room");
	tap_is(events[0].data, 101, "the first that is not");
	tap_is(events[1].data, 103, "and the second");
	tap_ok(at_rest(&memory), "all are taken");

	publish(&memory, 0, EPOLLIN);
	publish(&memory, 1, EPOLLIN);
	tap_is(flowfd_ring_next(&ring, events), 1, "an event");
	remove_item(&memory, 1);
	tap_is(flowfd_ring_next(&ring, events), 0,
	       "removes the file of the next one");
	tap_ok(at_rest(&memory), "all are taken");
}

/* The new file uses the old entry: there is never a second one. */
static void test_reused(void)
{
	struct flowfd_event events[ITEMS];
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	publish(&memory, 1, EPOLLIN);
	reuse_item(&memory, 1, 7);
	publish(&memory, 1, EPOLLOUT);
	tap_is(memory.tail, 1, "one entry for an item that is used again");
	tap_is(flowfd_ring_harvest(&ring, events, ITEMS), 1, "one event");
	tap_is(events[0].events, EPOLLOUT, "with the new bits alone");
	tap_is(events[0].data, 7, "and the new data");
	tap_ok(at_rest(&memory), "it is taken");
}

/*
 * Something else happens before another point of a harvest in each run. This covers every
 * order of the two on one processor, with the code that the compiler made of the header;
 * the model covers reordering by processors (docs/ring.md).
 *
 * @wanted: bits that must be seen, with the data 100 and with 101
 * @optional: bits that may be seen
 */
static struct {
	struct memory memory;
	struct flowfd_ring ring;
	struct flowfd_event events[3];
	uint32_t room;
	unsigned int taken;
	uint32_t wanted[2];
	uint32_t optional[2];
	uint32_t published;
} step;

static void harvest(void)
{
	step.taken = flowfd_ring_harvest(&step.ring, step.events, step.room);
}

/* The item that is being taken is published once more. */
static void publish_more(void)
{
	publish(&step.memory, 0, 2);
	step.wanted[0] |= 2;
}

static void publish_other(void)
{
	publish(&step.memory, 1, 2);
	step.wanted[1] |= 2;
}

/* Publishes another bit at each point, as long as there are bits. */
static void publish_again_and_again(void)
{
	if (step.published == 1U << 31)
		return;
	step.published = step.published ? step.published * 2 : 2;
	publish(&step.memory, 0, step.published);
	step.wanted[0] |= step.published;
}

static void remove_file(void)
{
	remove_item(&step.memory, 0);
	step.optional[0] |= 1;
}

/*
 * Gives item 0 to another file. The old event may come with the new data; the new
 * event must not come with the old data.
 */
static void reuse(void)
{
	reuse_item(&step.memory, 0, 101);
	publish(&step.memory, 0, 2);
	step.optional[0] |= 1;
	step.optional[1] |= 1;
	step.wanted[1] |= 2;
}

struct situation {
	void (*happen)(void);
	const char *what;
	uint32_t slots;
	uint32_t room;
};

static const struct situation situations[] = {
	{publish_more, "published once more", 1, 1},
	{publish_more, "published once more, with room", 1, 3},
	{publish_more, "published once more, of two", 2, 1},
	{publish_other, "another one published", 2, 1},
	{publish_other, "another one published, with room", 2, 3},
	{publish_again_and_again, "published again and again", 1, 1},
	{publish_again_and_again, "the same, of two", 2, 3},
	{remove_file, "removed", 1, 1},
	{reuse, "used again", 1, 1},
	{reuse, "used again, of two", 2, 3},
};

struct seen {
	uint32_t bits[2];
	uint32_t twice;
};

static void see(struct seen *seen, const struct flowfd_event *event)
{
	uint32_t *bits = &seen->bits[event->data - 100];

	seen->twice |= *bits & event->events;
	*bits |= event->events;
}

/* Whether the result is right if it happens before the given point, and perhaps later. */
static bool try_at(const struct situation *situation, int point, bool *happened)
{
	struct flowfd_event event;
	struct seen seen = {.twice = 0};

	memset(&step, 0, sizeof(step));
	ring_open_small(&step.ring, &step.memory, 0, situation->slots);
	publish(&step.memory, 0, 1);
	step.wanted[0] = 1;
	step.room = situation->room;
	if (situation->happen == publish_again_and_again)
		*happened = steps_run_each(harvest, situation->happen, point) > 0;
	else
		*happened = steps_run(harvest, situation->happen, point);
	for (unsigned int i = 0; i < step.taken; i++)
		see(&seen, &step.events[i]);
	while (flowfd_ring_next(&step.ring, &event)) {
		/* The call must not return events of files that were removed before it. */
		if (step.optional[0] && !step.wanted[1])
			return false;
		see(&seen, &event);
	}
	for (int i = 0; i < 2; i++) {
		if ((seen.bits[i] ^ step.wanted[i]) & ~step.optional[i])
			return false;
	}
	return at_rest(&step.memory) && !seen.twice;
}

static void test_steps(void)
{
#ifdef STEPS_UNAVAILABLE
	tap_skip("point by point", STEPS_UNAVAILABLE);
	return;
#endif
	steps_watch(0, &step.memory, sizeof(step.memory));
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		int point = 0, wrong = 0;
		bool happened;

		do
			wrong += !try_at(&situations[i], point++, &happened);
		while (happened);
		printf("# before each of %d points\n", point - 1);
		tap_ok(point > 3, "point by point");
		tap_is(wrong, 0, situations[i].what);
	}
}

/*
 * Each producer has its own bit and counts its events for each item, as a file does. The
 * consumer takes the counts of the items and bits in its events. A loss shows only if no
 * later event makes up for it: so all producers stop after a few events, and then
 * nothing may be left. Many rounds, as the windows for a loss are short.
 */
struct crowd {
	struct memory memory;
	uint32_t items;
	uint32_t round;
	uint32_t finished;
	uint32_t sent;
	uint32_t unread[ITEMS][PRODUCERS];
};

struct producer {
	pthread_t thread;
	struct crowd *crowd;
	unsigned int number;
};

static void *produce(void *argument)
{
	struct producer *p = argument;
	struct crowd *c = p->crowd;
	unsigned int random = p->number;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&c->round, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		for (int i = rand_r(&random) % BURST; i >= 0; i--) {
			uint32_t item = rand_r(&random) % c->items;

			__atomic_fetch_add(&c->sent, 1, __ATOMIC_SEQ_CST);
			__atomic_fetch_add(&c->unread[item][p->number], 1,
					   __ATOMIC_SEQ_CST);
			publish(&c->memory, item, 1U << p->number);
		}
		__atomic_fetch_add(&c->finished, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static uint32_t read_item(struct crowd *c, const struct flowfd_event *event)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < PRODUCERS; i++) {
		if (event->events & 1U << i)
			sum += __atomic_exchange_n(
				&c->unread[event->data - 100][i], 0,
				__ATOMIC_SEQ_CST);
	}
	return sum;
}

/* Takes several and single events in turns; returns the sum that was read. */
static uint32_t take_all(struct crowd *c, struct flowfd_ring *ring)
{
	struct flowfd_event events[3];
	uint32_t sum = 0;
	unsigned int taken;

	do {
		taken = flowfd_ring_harvest(ring, events, 3);
		for (unsigned int i = 0; i < taken; i++)
			sum += read_item(c, &events[i]);
		if (flowfd_ring_next(ring, events)) {
			sum += read_item(c, events);
			taken++;
		}
	} while (taken);
	return sum;
}

/* Takes events during the bursts of the producers, and the rest behind them. */
static uint32_t consume_round(struct crowd *c, struct flowfd_ring *ring)
{
	uint32_t sum = 0, turns = 0;
	bool ended;

	__atomic_store_n(&c->finished, 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->round, 1, __ATOMIC_RELEASE);
	do {
		ended = __atomic_load_n(&c->finished, __ATOMIC_SEQ_CST) ==
			PRODUCERS;
		sum += take_all(c, ring);
		/* For machines with fewer processors than threads. */
		if (++turns % 128 == 0)
			sched_yield();
	} while (!ended);
	return sum;
}

static void test_crowd(uint32_t items, uint32_t start)
{
	static struct crowd c;
	struct producer producers[PRODUCERS];
	struct flowfd_ring ring;
	uint32_t sum = 0, lost = 0;

	memset(&c, 0, sizeof(c));
	ring_open_small(&ring, &c.memory, start, items);
	c.items = items;
	for (unsigned int i = 0; i < PRODUCERS; i++) {
		producers[i] = (struct producer){.crowd = &c, .number = i};
		if (pthread_create(&producers[i].thread, NULL, produce,
				   &producers[i]))
			abort();
	}
	for (int i = 0; i < ROUNDS; i++) {
		sum += consume_round(&c, &ring);
		lost += sum != c.sent;
	}
	for (unsigned int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	printf("# %u events of %u items\n", c.sent, items);
	tap_is(lost, 0, "three producers: nothing is lost in any round");
	tap_is(sum, c.sent, "nor at the end");
	tap_is(c.memory.overwritten, 0, "no entry is wiped out");
	tap_ok(at_rest(&c.memory), "all are taken");
}

/*
 * Plain stores before publishing must be visible to the consumer of the event: for
 * ThreadSanitizer only the ring orders them.
 */
struct handover {
	struct memory memory;
	uint32_t taken[PRODUCERS];
	uint32_t message[PRODUCERS];
};

struct sender {
	pthread_t thread;
	struct handover *handover;
	unsigned int number;
};

static void *send_messages(void *argument)
{
	struct sender *s = argument;
	struct handover *h = s->handover;

	for (uint32_t i = 1; i <= HANDOVERS; i++) {
		h->message[s->number] = i;
		publish(&h->memory, s->number, EPOLLIN);
		while (__atomic_load_n(&h->taken[s->number],
				       __ATOMIC_ACQUIRE) != i)
			sched_yield();
	}
	return NULL;
}

static void test_handover(void)
{
	static struct handover h;
	struct sender senders[PRODUCERS];
	struct flowfd_event event;
	struct flowfd_ring ring;
	uint32_t wrong = 0, received = 0, number;

	ring_open(&ring, &h.memory, 0);
	for (unsigned int i = 0; i < PRODUCERS; i++) {
		senders[i] = (struct sender){.handover = &h, .number = i};
		if (pthread_create(&senders[i].thread, NULL, send_messages,
				   &senders[i]))
			abort();
	}
	while (received < PRODUCERS * HANDOVERS) {
		if (!flowfd_ring_next(&ring, &event)) {
			sched_yield();
			continue;
		}
		number = event.data - 100;
		received++;
		wrong += h.message[number] != h.taken[number] + 1;
		__atomic_store_n(&h.taken[number], h.taken[number] + 1,
				 __ATOMIC_RELEASE);
	}
	for (unsigned int i = 0; i < PRODUCERS; i++)
		pthread_join(senders[i].thread, NULL);
	tap_is(wrong, 0, "what came before the event is there");
	tap_ok(at_rest(&h.memory), "all are taken");
}

#ifdef FLOWFD_DEBUG
static struct flowfd_ring *interrupted;

static void consume_too(int signal)
{
	struct flowfd_event event;

	(void)signal;
	flowfd_ring_next(interrupted, &event);
	_exit(0);
}

/* A signal handler that takes events while it interrupts a consumer. */
static void consume_twice(void)
{
	struct flowfd_event *no_memory =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct flowfd_ring ring;
	struct memory memory;

	ring_open(&ring, &memory, 0);
	publish(&memory, 0, EPOLLIN);
	interrupted = &ring;
	signal(SIGSEGV, consume_too);
	flowfd_ring_next(&ring, no_memory);
	_exit(0);
}

static void test_two_consumers(void)
{
	static const char wanted[] =
		"flowfd: two consumers harvest one ring at the same time\n";
	char message[1000] = "";
	int ends[2], status = 0;
	size_t length = 0;
	ssize_t bytes;
	pid_t child;

	if (pipe(ends) < 0)
		abort();
	child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		consume_twice();
	}
	close(ends[1]);
	while ((bytes = read(ends[0], message + length,
			     sizeof(message) - 1 - length)) > 0)
		length += bytes;
	close(ends[0]);
	waitpid(child, &status, 0);
	tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
	       "two consumers: aborts");
	tap_is(strcmp(message, wanted), 0, "and says why");
}
#endif

int main(void)
{
	test_empty();
	test_one();
	test_move();
	test_room();
	test_wrap(0, "round the index");
	test_wrap(UINT32_MAX - 17, "past 2^32");
	test_removed();
	test_reused();
	test_steps();
	test_crowd(ITEMS, UINT32_MAX - ROUNDS / 2);
	test_crowd(1, 0);
	test_handover();
#ifdef FLOWFD_DEBUG
	test_two_consumers();
#endif
	return tap_done();
}
