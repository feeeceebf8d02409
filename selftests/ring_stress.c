// SPDX-License-Identifier: GPL-2.0-only
/*
 * Producers, consumers and changes of a ring at the same time: no event is lost,
 * one-shot is one event, DEL is synchronous, and a hostile consumer harms only itself.
 */
#include "ring_user.h"

#define FILES 16
#define PRODUCERS 4

struct load {
	int fds[FILES];
	unsigned long writes[PRODUCERS];
	int stop;
};

struct producer {
	pthread_t thread;
	struct load *load;
	int number;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	unsigned int random = p->number + 1;
	unsigned long n = 0;

	while (!__atomic_load_n(&p->load->stop, __ATOMIC_RELAXED)) {
		add(p->load->fds[rand_r(&random) % FILES], 1);
		n++;
		/* Let the consumer empty the ring, so that it sleeps. */
		if (rand_r(&random) % 64 == 0)
			sleep_until_ns(now_ns() + rand_r(&random) % 300000);
	}
	p->load->writes[p->number] = n;
	return NULL;
}

static bool producers_start(struct producer *p, struct load *load)
{
	for (int i = 0; i < PRODUCERS; i++) {
		p[i] = (struct producer){ .load = load, .number = i };
		if (pthread_create(&p[i].thread, NULL, produce, &p[i]))
			return false;
	}
	return true;
}

static unsigned long producers_stop(struct producer *p, struct load *load)
{
	unsigned long sum = 0;

	load->stop = 1;
	for (int i = 0; i < PRODUCERS; i++) {
		pthread_join(p[i].thread, NULL);
		sum += load->writes[i];
	}
	return sum;
}

FIXTURE(stress)
{
	struct load load;
	struct producer producers[PRODUCERS];
	struct user_ring ring;
};

FIXTURE_VARIANT(stress)
{
	enum origin origin;
};

FIXTURE_VARIANT_ADD(stress, eventfd) { .origin = EVENTFD };
FIXTURE_VARIANT_ADD(stress, counter) { .origin = OPENED };
FIXTURE_VARIANT_ADD(stress, mapped) { .origin = MAPPED };

FIXTURE_SETUP(stress)
{
	ASSERT_EQ(0, ring_open(&self->ring, FILES));
	for (int i = 0; i < FILES; i++) {
		self->load.fds[i] = open_counter(variant->origin, 0,
						 EFD_NONBLOCK);
		ASSERT_LE(0, self->load.fds[i]);
	}
}

FIXTURE_TEARDOWN(stress)
{
	ring_close(&self->ring);
	for (int i = 0; i < FILES; i++)
		close(self->load.fds[i]);
}

/* Adds up what is in the files that the ring names. */
static unsigned long take_all(struct user_ring *r)
{
	struct ring_event event;
	unsigned long sum = 0;
	__u64 value;

	while (ring_take(r, &event)) {
		if (take(event.data, &value) == 8)
			sum += value;
	}
	return sum;
}

/*
 * The consumer reads only the files that the ring names. If an event is lost the sum is
 * too small, if a wakeup is lost it sleeps too long.
 */
TEST_F_TIMEOUT(stress, nothing_is_lost, 24 * 3600)
{
	unsigned long sum = 0, written, sleeps = 0;
	__u64 end = now_ns() + stress_ns();

	for (int i = 0; i < FILES; i++) {
		ASSERT_LE(0, ring_add(&self->ring, self->load.fds[i], EPOLLIN,
				      self->load.fds[i]));
	}
	ASSERT_TRUE(producers_start(self->producers, &self->load));
	while (now_ns() < end) {
		sleeps++;
		ASSERT_LT(0, ring_wait_ms(&self->ring, 1, PATIENCE_MS));
		sum += take_all(&self->ring);
	}
	written = producers_stop(self->producers, &self->load);
	sum += take_all(&self->ring);
	EXPECT_EQ(written, sum);
	EXPECT_LT(0, sleeps);
}

/* Each item is in the index at most once, so the tail stays bounded. */
TEST_F_TIMEOUT(stress, consumer_that_does_not_come, 24 * 3600)
{
	for (int i = 0; i < FILES; i++) {
		ASSERT_LE(0, ring_add(&self->ring, self->load.fds[i], EPOLLIN,
				      i));
	}
	ASSERT_TRUE(producers_start(self->producers, &self->load));
	sleep_until_ns(now_ns() + stress_ns() / 4);
	producers_stop(self->producers, &self->load);
	EXPECT_EQ(FILES, fdinfo_number(self->ring.fd, "flowfd-ring-tail", 10));
	for (int i = 0; i < FILES; i++) {
		struct ring_event event;

		ASSERT_TRUE(ring_take(&self->ring, &event));
	}
	EXPECT_EQ(0, ring_take_only(&self->ring));
}

/* A one-shot watch delivers one event, however many wakeups come at the same time. */
TEST_F_TIMEOUT(stress, one_shot_is_one, 24 * 3600)
{
	__u64 end = now_ns() + stress_ns();
	unsigned long rounds = 0;
	struct ring_event event;

	ASSERT_LE(0, ring_add(&self->ring, self->load.fds[0],
			      EPOLLIN | EPOLLONESHOT, 1));
	ASSERT_TRUE(producers_start(self->producers, &self->load));
	while (now_ns() < end) {
		ASSERT_TRUE(ring_take_wait(&self->ring, &event));
		ASSERT_FALSE(ring_take(&self->ring, &event));
		ASSERT_EQ(0, ring_mod(&self->ring, self->load.fds[0],
				      EPOLLIN | EPOLLONESHOT, 1));
		rounds++;
	}
	producers_stop(self->producers, &self->load);
	EXPECT_LT(0, rounds);
}

/* After DEL there is no event of the file, even while producers write. */
TEST_F_TIMEOUT(stress, del_is_synchronous, 24 * 3600)
{
	__u64 end = now_ns() + stress_ns();
	struct ring_event event;

	ASSERT_TRUE(producers_start(self->producers, &self->load));
	for (__u64 round = 0; now_ns() < end; round++) {
		int fd = self->load.fds[round % FILES];

		ASSERT_LE(0, ring_add(&self->ring, fd, EPOLLIN, round));
		ASSERT_TRUE(ring_take_wait(&self->ring, &event));
		EXPECT_EQ(round, event.data);
		ASSERT_EQ(0, ring_del(&self->ring, fd));
		ASSERT_FALSE(ring_take(&self->ring, &event))
			TH_LOG("round %llu, data %llu", round, event.data);
	}
	producers_stop(self->producers, &self->load);
}

struct vandal {
	pthread_t thread;
	struct user_ring *ring;
	int stop;
};

static void *scribble(void *arg)
{
	struct vandal *v = arg;
	__u32 *words = (__u32 *)v->ring->header;
	unsigned int random = 1;

	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED)) {
		for (__u32 i = 0; i < v->ring->map_size / 4; i++) {
			unsigned int value = rand_r(&random);

			__atomic_store_n(&words[i], value % 3 ? value : 0,
					 __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

/* Another ring with the same files gets all of its own events. */
TEST_F_TIMEOUT(stress, hostile_consumer, 24 * 3600)
{
	__u64 end = now_ns() + stress_ns();
	unsigned long sum = 0, written;
	struct user_ring hostile;
	struct vandal vandal = { .ring = &hostile };
	int ep;

	ASSERT_EQ(0, ring_open(&hostile, FILES));
	ep = epoll_on(hostile.fd, EPOLLIN | EPOLLET);
	for (int i = 0; i < FILES; i++) {
		int fd = self->load.fds[i];

		ASSERT_LE(0, ring_add(&hostile, fd, EPOLLIN, i));
		ASSERT_LE(0, ring_add(&self->ring, fd, EPOLLIN, fd));
	}
	ASSERT_EQ(0, pthread_create(&vandal.thread, NULL, scribble, &vandal));
	ASSERT_TRUE(producers_start(self->producers, &self->load));
	for (int i = 0; now_ns() < end; i++) {
		long n = ring_wait_ms(&hostile, i % FILES, i % 2);

		EXPECT_LE(0, n);
		EXPECT_GE(FILES, n);
		epoll_take(ep, 0);
		ring_watched(hostile.fd);
		ASSERT_EQ(0, ring_mod(&hostile, self->load.fds[i % FILES],
				      EPOLLIN, i));
		sum += take_all(&self->ring);
	}
	written = producers_stop(self->producers, &self->load);
	vandal.stop = 1;
	pthread_join(vandal.thread, NULL);
	sum += take_all(&self->ring);
	EXPECT_EQ(written, sum);
	EXPECT_EQ(FILES, ring_watched(hostile.fd));
	ring_close(&hostile);
	close(ep);
}

/* Rings are created and closed while producers write. */
TEST_F_TIMEOUT(stress, rings_come_and_go, 24 * 3600)
{
	__u64 end = now_ns() + stress_ns();

	ASSERT_TRUE(producers_start(self->producers, &self->load));
	while (now_ns() < end) {
		struct user_ring ring;
		int ep;

		ASSERT_EQ(0, ring_open(&ring, FILES));
		ep = epoll_on(ring.fd, EPOLLIN);
		for (int i = 0; i < FILES; i++) {
			ASSERT_LE(0, ring_add(&ring, self->load.fds[i],
					      EPOLLIN | EPOLLOUT, i));
		}
		ring_wait_ms(&ring, 3, 5);
		ring_close(&ring);
		close(ep);
	}
	producers_stop(self->producers, &self->load);
}

TEST_HARNESS_MAIN
