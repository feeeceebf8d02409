// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is counted of a ring: each number exactly, by request and in fdinfo; and the errors
 * of the request.
 */
#include "ring_fixtures.h"
#include "ring_waiter.h"

struct future_stats {
	struct flowfd_ring_stats known;
	__u64 unknown[2];
};

static struct flowfd_ring_stats stats_of(int fd)
{
	struct flowfd_ring_stats stats;

	if (ioctl(fd, FLOWFD_IOC_RING_STATS, &stats))
		memset(&stats, 0xff, sizeof(stats));
	return stats;
}

/* The keys in fdinfo, in the order of the structure, which has these numbers alone. */
static const char * const keys[] = {
	"flowfd-ring-published", "flowfd-ring-coalesced", "flowfd-ring-waits",
	"flowfd-ring-sleeps",
};

static void expect_stats(struct __test_metadata *_metadata, int line, int fd,
			 const struct flowfd_ring_stats *wanted)
{
	struct flowfd_ring_stats stats = stats_of(fd);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		__u64 expected = ((const __u64 *)wanted)[i];

		EXPECT_EQ(expected, ((const __u64 *)&stats)[i])
			TH_LOG("%s by request in line %d", keys[i], line);
		EXPECT_EQ(expected, fdinfo_number(fd, keys[i], 10))
			TH_LOG("%s in line %d", keys[i], line);
	}
}

#define EXPECT_STATS(fd, ...)                                                    \
	expect_stats(_metadata, __LINE__, fd,                                    \
		     &(struct flowfd_ring_stats){ __VA_ARGS__ })

static unsigned int take_all(struct user_ring *r)
{
	struct ring_event event;
	unsigned int taken = 0;

	while (ring_take(r, &event))
		taken++;
	return taken;
}

TEST_F(wait, published_and_coalesced)
{
	int fd = self->ring.fd;

	for (int i = 0; i < 3; i++)
		add(self->events[i], 1);
	EXPECT_STATS(fd, .published = 3);
	add(self->events[0], 1);
	add(self->events[0], 1);
	add(self->events[2], 1);
	EXPECT_STATS(fd, .published = 3, .coalesced = 3);
	EXPECT_EQ(3, take_all(&self->ring));
	add(self->events[1], 1);
	EXPECT_STATS(fd, .published = 4, .coalesced = 3);
}

/* A counter publishes without its wake function being called. */
TEST_F(ring, counter)
{
	int fd = open_counter(CREATED, 0, EFD_NONBLOCK);

	ASSERT_LE(0, ring_add(&self->ring, fd, EPOLLIN, 0));
	add(fd, 1);
	add(fd, 1);
	EXPECT_STATS(self->ring.fd, .published = 1, .coalesced = 1);
	close(fd);
}

/* What is ready already when a file is added or changed is an event, too. */
TEST_F(ring, ready_at_once)
{
	add(self->event, 1);
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 0));
	EXPECT_STATS(self->ring.fd, .published = 1);
	ASSERT_LE(0, ring_mod(&self->ring, self->event, EPOLLIN, 0));
	EXPECT_STATS(self->ring.fd, .published = 1, .coalesced = 1);
}

/* Such a watch takes the slow path. */
TEST_F(ring, one_shot)
{
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN | EPOLLONESHOT, 0));
	add(self->event, 1);
	add(self->event, 1);
	EXPECT_STATS(self->ring.fd, .published = 1);
}

/* What is counted of a watch stays when it goes. */
TEST_F(ring, watch_that_is_gone)
{
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 0));
	add(self->event, 1);
	add(self->event, 1);
	EXPECT_EQ(0, ring_del(&self->ring, self->event));
	EXPECT_STATS(self->ring.fd, .published = 1, .coalesced = 1);
}

/* A post is put into a stack in memory, and is no entry of the index. */
TEST_F(ring, posts)
{
	int post = ring_change(&self->ring, FLOWFD_RING_ADD_POST, -1, 0, 0);

	ASSERT_LE(0, post);
	self->ring.items[post].ready = 1;
	self->ring.items[post].queued = FLOWFD_RING_IN_STACK;
	__atomic_store_n(&self->ring.header->posted, post + 1, __ATOMIC_SEQ_CST);
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 1, 0));
	EXPECT_STATS(self->ring.fd, .waits = 1);
}

TEST_F(wait, waits_and_sleeps)
{
	int fd = self->ring.fd;
	__u64 pending;

	EXPECT_EQ(0, ring_wait_ms(&self->ring, 1, 0));
	EXPECT_STATS(fd, .waits = 1);
	EXPECT_EQ(0, ring_wait_ms(&self->ring, 1, 10));
	EXPECT_STATS(fd, .waits = 2, .sleeps = 1);
	set_nonblock(fd, true);
	EXPECT_EQ(-EAGAIN, take(fd, &pending));
	EXPECT_STATS(fd, .waits = 3, .sleeps = 1);
	add(self->events[0], 1);
	EXPECT_EQ(8, take(fd, &pending));
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 1, 10));
	EXPECT_STATS(fd, .published = 1, .waits = 5, .sleeps = 1);
	/* For more than there are. */
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 2, 10));
	EXPECT_STATS(fd, .published = 1, .waits = 6, .sleeps = 2);
}

/* One that sleeps first for several entries and then for one is one call. */
TEST_F(wait, sleeps_in_two_parts)
{
	EXPECT_EQ(0, ring_wait_with(&self->ring, (struct flowfd_ring_wait){
		.min_events = 2, .min_wait = 5000000, .timeout = 20000000,
	}));
	EXPECT_STATS(self->ring.fd, .waits = 1, .sleeps = 1);
}

TEST_F(wait, invalid_waits)
{
	__u32 half;

	EXPECT_EQ(-EINVAL, ring_wait_with(&self->ring, (struct flowfd_ring_wait){
		.flags = 1,
	}));
	EXPECT_EQ(-EFAULT, result_of(ioctl(self->ring.fd, FLOWFD_IOC_RING_WAIT, NULL)));
	EXPECT_EQ(-EINVAL, result_of(read(self->ring.fd, &half, sizeof(half))));
	EXPECT_STATS(self->ring.fd, 0);
}

TEST_F(wait, read_that_sleeps)
{
	struct waiter w;

	ASSERT_TRUE(waiter_start(&w, &self->ring, 1, true));
	EXPECT_STATS(self->ring.fd, .waits = 1, .sleeps = 1);
	add(self->events[0], 1);
	ASSERT_TRUE(waiter_ends(&w));
	EXPECT_EQ(1, w.result);
	EXPECT_STATS(self->ring.fd, .published = 1, .waits = 1, .sleeps = 1);
}

#define EVENTS 20000

static void *write_many(void *arg)
{
	for (int i = 0; i < EVENTS; i++)
		add(*(int *)arg, 1);
	return NULL;
}

/* Each event was published or coalesced, on whatever processors they came. */
TEST_F(wait, all_of_several_threads)
{
	struct flowfd_ring_stats stats;
	pthread_t threads[3];
	unsigned int taken = 0;
	__u64 until = ms_from_now(PATIENCE_MS);

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, write_many,
					    &self->events[i]));
	do {
		taken += take_all(&self->ring);
		stats = stats_of(self->ring.fd);
	} while (stats.published + stats.coalesced < 3 * EVENTS && now_ns() < until);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	taken += take_all(&self->ring);
	stats = stats_of(self->ring.fd);
	EXPECT_EQ(3 * EVENTS, stats.published + stats.coalesced);
	/* An entry can find its events taken with an earlier one. */
	EXPECT_GE(stats.published, taken);
	EXPECT_EQ(stats.published, self->ring.header->head);
}

TEST_F(ring, sizes)
{
	unsigned char *bytes;
	struct future_stats future;

	EXPECT_EQ(32, sizeof(struct flowfd_ring_stats));
	EXPECT_EQ(32, FLOWFD_RING_STATS_SIZE_VER0);
	EXPECT_EQ(0x80204a1f, FLOWFD_IOC_RING_STATS);
	add(self->event, 1);
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 0));
	bytes = (unsigned char *)&future;
	for (size_t size = 0; size <= sizeof(future); size++) {
		unsigned long cmd = resized(FLOWFD_IOC_RING_STATS, size);
		bool valid = size >= FLOWFD_RING_STATS_SIZE_VER0;

		memset(&future, 0xff, sizeof(future));
		EXPECT_EQ(valid ? 0 : -EINVAL,
			  result_of(ioctl(self->ring.fd, cmd, &future)));
		EXPECT_EQ(valid ? 1 : ULLONG_MAX, future.known.published);
		for (size_t i = 32; i < sizeof(future); i++)
			EXPECT_EQ(i < size ? 0 : 0xff, bytes[i]);
	}
}

TEST_F(ring, bad_pointer)
{
	char *page = page_before_a_hole();
	int fd = self->ring.fd;

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, FLOWFD_IOC_RING_STATS, NULL)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, FLOWFD_IOC_RING_STATS, (void *)-8L)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, FLOWFD_IOC_RING_STATS, page + PAGE - 24)));
	EXPECT_EQ(0, result_of(ioctl(fd, FLOWFD_IOC_RING_STATS, page + PAGE - 32)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, resized(FLOWFD_IOC_RING_STATS, 40),
					   page + PAGE - 32)));
}

TEST_F(ring, wrong_request)
{
	struct flowfd_ring_stats stats;

	EXPECT_EQ(-ENOTTY, result_of(ioctl(self->ring.fd, FLOWFD_IOC_COUNTER_STATS,
					   &stats)));
	EXPECT_EQ(-ENOTTY, result_of(ioctl(self->ring.fd, _IOWR('J', 0x1f, stats),
					   &stats)));
}

TEST_HARNESS_MAIN
