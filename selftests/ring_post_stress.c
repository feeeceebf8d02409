// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight threads post, first while a file announces events, and the consumer sleeps in each way
 * there is: no post and no wakeup is lost. Each thread waits now and then until the
 * consumer has seen what it posted, so a lost wakeup stops the test. Such a post has a bit
 * of its own, which arrives once for each: so a lost bit stops the test as well.
 */
#include "post_user.h"

#include <liburing.h>

#define POSTERS 8
#define ROUNDS parameter("FLOWFD_ROUNDS", 1000)
/* A post of all threads, the one that ends a test, and the file. */
#define SHARED POSTERS
#define LAST (POSTERS + 1)
#define FILE_DATA 1000

/* The bits of a thread: for posts that nobody waits for, and for the others. */
#define OFTEN(number) (1U << (number))
#define AWAITED(number) (1U << (POSTERS + (number)))

/* @value: the thread stores its number of awaited posts there before each. */
struct load {
	struct user_ring *ring;
	int event;
	unsigned long value[POSTERS];
	unsigned long seen[POSTERS];
	unsigned long calls;
	unsigned long strange;
	bool stuck;
	unsigned int halves;
};

struct poster {
	pthread_t thread;
	struct load *load;
	unsigned int number;
};

/* False: the consumer has not seen it in time, or another thread found that. */
static bool wait_until_seen(struct load *l, unsigned int number, unsigned long sent)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (__atomic_load_n(&l->seen[number], __ATOMIC_ACQUIRE) < sent) {
		if (now_ns() > end || __atomic_load_n(&l->stuck, __ATOMIC_RELAXED)) {
			__atomic_store_n(&l->stuck, true, __ATOMIC_RELAXED);
			return false;
		}
		sched_yield();
	}
	return true;
}

static void *post_all(void *arg)
{
	struct poster *p = arg;
	struct load *l = p->load;
	unsigned int random = p->number + 1, item;
	unsigned long calls = 0, rounds = ROUNDS, sent = 0;

	for (unsigned long i = 0; i < rounds; i++) {
		if (i == rounds / 2)
			__atomic_fetch_add(&l->halves, 1, __ATOMIC_RELAXED);
		item = rand_r(&random) % 4 ? p->number : SHARED;
		if (rand_r(&random) % 2) {
			calls += ring_post(l->ring, item, OFTEN(p->number));
		} else {
			__atomic_store_n(&l->value[p->number], ++sent, __ATOMIC_RELAXED);
			calls += ring_post(l->ring, item, AWAITED(p->number));
			if (!wait_until_seen(l, p->number, sent))
				break;
		}
		/* Let the consumer sleep. */
		if (rand_r(&random) % 64 == 0)
			sleep_until_ns(now_ns() + rand_r(&random) % 200000);
	}
	__atomic_fetch_add(&l->calls, calls, __ATOMIC_RELAXED);
	return NULL;
}

/* In the second half no file wakes the consumer in place of a post. */
static void *announce(void *arg)
{
	struct load *l = arg;
	unsigned int random = 1;

	while (__atomic_load_n(&l->halves, __ATOMIC_RELAXED) < POSTERS &&
	       !__atomic_load_n(&l->stuck, __ATOMIC_RELAXED)) {
		add(l->event, 1);
		sleep_until_ns(now_ns() + rand_r(&random) % 300000);
	}
	return NULL;
}

/* An event of a thread's own item or of the shared one. */
static void see(struct load *l, const struct ring_event *event)
{
	unsigned long seen;

	for (unsigned int i = 0; i < POSTERS; i++) {
		if (!(event->events & (OFTEN(i) | AWAITED(i))))
			continue;
		l->strange += event->data != i && event->data != SHARED;
		if (!(event->events & AWAITED(i)))
			continue;
		seen = l->seen[i] + 1;
		/* What was stored before a post is visible after it was taken. */
		l->strange += __atomic_load_n(&l->value[i], __ATOMIC_RELAXED) != seen;
		__atomic_store_n(&l->seen[i], seen, __ATOMIC_RELEASE);
	}
}

/* Ends the test when all threads have ended. */
static void *end_all(void *arg)
{
	struct poster *p = arg;
	struct load *l = p->load;
	pthread_t announcer;

	pthread_create(&announcer, NULL, announce, l);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(p[i].thread, NULL);
	pthread_join(announcer, NULL);
	ring_post(l->ring, LAST, 1);
	return NULL;
}

enum way { WAIT, WAIT_FOR_MORE, READ, POLL, LEVEL, EDGE, EXCLUSIVE, NESTED, MULTISHOT, SPIN };

FIXTURE(post)
{
	struct load load;
	struct user_ring ring;
	struct poster posters[POSTERS];
	pthread_t ender;
	int ep, outer;
	struct io_uring uring;
};

FIXTURE_VARIANT(post)
{
	enum way way;
};

FIXTURE_VARIANT_ADD(post, wait) { .way = WAIT };
FIXTURE_VARIANT_ADD(post, wait_for_more) { .way = WAIT_FOR_MORE };
FIXTURE_VARIANT_ADD(post, read) { .way = READ };
FIXTURE_VARIANT_ADD(post, poll) { .way = POLL };
FIXTURE_VARIANT_ADD(post, epoll_level) { .way = LEVEL };
FIXTURE_VARIANT_ADD(post, epoll_edge) { .way = EDGE };
FIXTURE_VARIANT_ADD(post, epoll_exclusive) { .way = EXCLUSIVE };
FIXTURE_VARIANT_ADD(post, epoll_nested) { .way = NESTED };
FIXTURE_VARIANT_ADD(post, multishot) { .way = MULTISHOT };
FIXTURE_VARIANT_ADD(post, spin) { .way = SPIN };

FIXTURE_SETUP(post)
{
	struct io_uring_sqe *sqe;
	__u32 events = EPOLLIN;

	ASSERT_EQ(0, ring_open(&self->ring, 16));
	self->load.ring = &self->ring;
	self->ep = self->outer = -1;
	for (int i = 0; i <= LAST; i++)
		ASSERT_EQ(i, ring_add_post(&self->ring, i));
	self->load.event = open_counter(CREATED, 0, EFD_NONBLOCK);
	ASSERT_LE(0, ring_add(&self->ring, self->load.event, EPOLLIN, FILE_DATA));
	if (variant->way == EDGE)
		events |= EPOLLET;
	if (variant->way == EXCLUSIVE)
		events |= EPOLLEXCLUSIVE;
	if (variant->way >= LEVEL && variant->way <= NESTED)
		self->ep = epoll_on(self->ring.fd, events);
	if (variant->way == NESTED)
		self->outer = epoll_on(self->ep, EPOLLIN | EPOLLET);
	if (variant->way != MULTISHOT)
		return;
	if (io_uring_queue_init(64, &self->uring, 0))
		SKIP(return, "no io_uring");
	sqe = io_uring_get_sqe(&self->uring);
	io_uring_prep_poll_multishot(sqe, self->ring.fd, POLLIN);
	ASSERT_EQ(1, io_uring_submit(&self->uring));
}

FIXTURE_TEARDOWN(post)
{
	if (variant->way == MULTISHOT && self->uring.ring_fd > 0)
		io_uring_queue_exit(&self->uring);
	close(self->ep);
	close(self->outer);
	close(self->load.event);
	ring_close(&self->ring);
}

/* False: nothing woke the consumer. */
static bool sleep_on_multishot(struct io_uring *uring, int fd)
{
	struct __kernel_timespec time = { .tv_sec = PATIENCE_MS / 1000 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	bool more = true;

	if (io_uring_wait_cqe_timeout(uring, &cqe, &time))
		return false;
	while (!io_uring_peek_cqe(uring, &cqe)) {
		more = cqe->flags & IORING_CQE_F_MORE;
		io_uring_cqe_seen(uring, cqe);
	}
	if (!more) {
		sqe = io_uring_get_sqe(uring);
		io_uring_prep_poll_multishot(sqe, fd, POLLIN);
		io_uring_submit(uring);
	}
	return true;
}

static bool sleep_by(enum way way, struct user_ring *r, int ep, int outer,
		     struct io_uring *uring)
{
	__u64 value;

	switch (way) {
	case WAIT:
		return ring_wait_ms(r, 1, PATIENCE_MS) > 0;
	case WAIT_FOR_MORE:
		/* More than the one file can have. */
		return ring_wait_ms(r, 9, PATIENCE_MS) > 0;
	case READ:
		return read(r->fd, &value, 8) == 8;
	case POLL:
		return poll_for(r->fd, POLLIN, PATIENCE_MS) == POLLIN;
	case LEVEL:
	case EDGE:
	case EXCLUSIVE:
		return epoll_take(ep, PATIENCE_MS) == EPOLLIN;
	case NESTED:
		if (epoll_take(outer, PATIENCE_MS) != EPOLLIN)
			return false;
		epoll_take(ep, 0);
		return true;
	case MULTISHOT:
		return sleep_on_multishot(uring, r->fd);
	default:
		sched_yield();
		return true;
	}
}

TEST_F_TIMEOUT(post, nothing_is_lost, 24 * 3600)
{
	struct load *l = &self->load;
	unsigned long sleeps = 0, files = 0;
	struct ring_event event;
	bool last = false;
	__u64 value;

	for (unsigned int i = 0; i < POSTERS; i++) {
		self->posters[i] = (struct poster){ .load = l, .number = i };
		ASSERT_EQ(0, pthread_create(&self->posters[i].thread, NULL, post_all,
					    &self->posters[i]));
	}
	ASSERT_EQ(0, pthread_create(&self->ender, NULL, end_all, self->posters));
	while (!last) {
		while (ring_take_any(&self->ring, &event)) {
			if (event.data == FILE_DATA) {
				take(l->event, &value);
				files++;
			} else if (event.data == LAST) {
				last = true;
			} else {
				see(l, &event);
			}
		}
		if (last)
			break;
		sleeps++;
		ASSERT_TRUE(sleep_by(variant->way, &self->ring, self->ep, self->outer,
				     &self->uring))
			TH_LOG("posted %x, taken %u, armed %u",
			       self->ring.header->posted, self->ring.header->taken,
			       self->ring.header->armed);
	}
	pthread_join(self->ender, NULL);
	EXPECT_FALSE(l->stuck);
	EXPECT_EQ(0, l->strange);
	for (int i = 0; i < POSTERS; i++)
		EXPECT_EQ(l->value[i], l->seen[i]);
	if (variant->way == SPIN) {
		EXPECT_EQ(0, l->calls);
	} else {
		EXPECT_LT(0, l->calls);
	}
	EXPECT_LT(0, sleeps);
	TH_LOG("%lu posts of files, %lu sleeps, %lu calls", files, sleeps, l->calls);
}

TEST_HARNESS_MAIN
