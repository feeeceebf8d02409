// SPDX-License-Identifier: GPL-2.0-only
/*
 * epoll on a counter: level-triggered, edge-triggered, one-shot, exclusive, nested.
 * Which changes are edges is compared with an eventfd after each step.
 */
#include "fixtures.h"

TEST_F(counter, every_write_is_an_edge)
{
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLET);
	__u64 value;

	EXPECT_EQ(0, epoll_take(ep, 0));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(8, add(self->fd, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
		EXPECT_EQ(0, epoll_take(ep, 0));
	}
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(0, epoll_take(ep, 0));
	ASSERT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

/* An eventfd does not look at the value, nor whether a task sleeps in a read. */
TEST_F(counter, zero_beside_a_reader_is_an_edge)
{
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLOUT | EPOLLET);
	struct call call;

	if (variant->origin == MAPPED)
		SKIP(return, "in memory, a write of 0 is no edge");
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	ASSERT_TRUE(start_read(&call, self->fd));
	ASSERT_EQ(8, add(self->fd, 0));
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	ASSERT_EQ(8, add(self->fd, 1));
	ASSERT_TRUE(call_join(&call));
	close(ep);
}

TEST_F(counter, nested)
{
	int inner = epoll_on(self->fd, EPOLLIN | EPOLLET);
	int outer = epoll_on(inner, EPOLLIN);

	EXPECT_EQ(0, epoll_take(outer, 0));
	ASSERT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(outer, 0));
	EXPECT_EQ(EPOLLIN, epoll_take(inner, 0));
	EXPECT_EQ(0, epoll_take(outer, 0));
	close(outer);
	close(inner);
}

/* Threads that wait, each on its own epoll, and a count of those that were woken. */
struct sleeper {
	pthread_t thread;
	pid_t tid;
	int ep;
	int *woken;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	if (epoll_take(s->ep, PATIENCE_MS) & EPOLLIN)
		__atomic_add_fetch(s->woken, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool sleeper_start(struct sleeper *s)
{
	if (s->ep < 0 || pthread_create(&s->thread, NULL, sleeper_run, s))
		return false;
	return wait_until_asleep(&s->tid, EPOLL_CALL);
}

static int settled(int *woken)
{
	int last = -1, now;

	while ((now = __atomic_load_n(woken, __ATOMIC_SEQ_CST)) != last) {
		last = now;
		sleep_ms(QUIET_MS);
	}
	return now;
}

TEST_F(counter, exclusive)
{
	struct sleeper s[3];
	int woken = 0;

	for (int i = 0; i < 3; i++) {
		s[i].ep = epoll_on(self->fd, EPOLLIN | EPOLLEXCLUSIVE);
		s[i].woken = &woken;
		s[i].tid = 0;
		ASSERT_TRUE(sleeper_start(&s[i]));
	}
	for (int i = 1; i <= 3; i++) {
		ASSERT_EQ(8, add(self->fd, 1));
		EXPECT_EQ(i, settled(&woken));
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(s[i].thread, NULL);
		close(s[i].ep);
	}
}

/*
 * A sleeping read or write is woken even if an exclusive epoll is before it in the wait
 * queue and is woken, too. Not compared: the eventfd of newer kernels does not wake it.
 */
FIXTURE(behind_exclusive)
{
	int fd;
	struct sleeper sleeper;
	int woken;
};

FIXTURE_VARIANT(behind_exclusive)
{
	bool writer;
	__u32 events;
};

FIXTURE_VARIANT_ADD(behind_exclusive, reader_in) { false, EPOLLIN };
FIXTURE_VARIANT_ADD(behind_exclusive, reader_both) { false, EPOLLIN | EPOLLOUT };
FIXTURE_VARIANT_ADD(behind_exclusive, reader_out) { false, EPOLLOUT };
FIXTURE_VARIANT_ADD(behind_exclusive, writer_in) { true, EPOLLIN };
FIXTURE_VARIANT_ADD(behind_exclusive, writer_both) { true, EPOLLIN | EPOLLOUT };
FIXTURE_VARIANT_ADD(behind_exclusive, writer_out) { true, EPOLLOUT };

/* Empty for a reader, full for a writer, and no event that the epoll has not taken. */
FIXTURE_SETUP(behind_exclusive)
{
	__u32 ready = variant->writer ? EPOLLIN : EPOLLOUT;

	self->fd = open_counter(CREATED, 0, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, set_maximum(self->fd, 2));
	if (variant->writer) {
		ASSERT_EQ(8, add(self->fd, 1));
	}
	self->woken = 0;
	self->sleeper = (struct sleeper){ .woken = &self->woken };
	self->sleeper.ep = epoll_on(self->fd, variant->events |
				    EPOLLEXCLUSIVE | EPOLLET);
	ASSERT_EQ(variant->events & ready, epoll_take(self->sleeper.ep, 0));
	ASSERT_TRUE(sleeper_start(&self->sleeper));
}

FIXTURE_TEARDOWN(behind_exclusive)
{
	close(self->fd);
	close(self->sleeper.ep);
}

TEST_F(behind_exclusive, wakes_the_sleeper)
{
	struct call call;
	__u64 value;

	if (variant->writer) {
		ASSERT_TRUE(start_write(&call, self->fd, 1));
		ASSERT_EQ(8, take(self->fd, &value));
	} else {
		ASSERT_TRUE(start_read(&call, self->fd));
		ASSERT_EQ(8, add(self->fd, 1));
	}
	ASSERT_TRUE(call_join(&call));
	EXPECT_EQ(8, call.result);
	EXPECT_EQ(variant->writer, count_of(self->fd));
	/* The epoll of some variants has no event. */
	pthread_cancel(self->sleeper.thread);
	pthread_join(self->sleeper.thread, NULL);
}

/*
 * Compares the events of an epoll on a counter with those on an eventfd after each of
 * many random steps.
 */
static long step(int fd, unsigned int what)
{
	static const __u64 values[] = { 0, 1, 5, ULLONG_MAX - 1,
					ULLONG_MAX - 3 };
	__u64 value = 0;

	if (what < ARRAY_SIZE(values))
		return add(fd, values[what]);
	return take(fd, &value) == 8 ? (long)value : -1;
}

static void expect_same_edges(struct __test_metadata *_metadata, int ours,
			      int theirs, __u32 events)
{
	int ep_ours = epoll_on(ours, events);
	int ep_theirs = epoll_on(theirs, events);
	unsigned int seed = 1;

	for (int i = 0; i < 500; i++) {
		/*
		 * As many reads as writes, or the counter would be full most of the
		 * time.
		 */
		unsigned int what = rand_r(&seed) % 10;
		__u32 expected;

		EXPECT_EQ(step(theirs, what), step(ours, what));
		if (rand_r(&seed) % 3 == 0)
			continue;
		expected = epoll_take(ep_theirs, 0);
		ASSERT_EQ(expected, epoll_take(ep_ours, 0))
			TH_LOG("step %d: %u", i, what);
	}
	close(ep_ours);
	close(ep_theirs);
}

static void compare_edges(struct __test_metadata *_metadata, int fd, int flags)
{
	static const __u32 events[] = { EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT };
	int theirs = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | flags);

	set_nonblock(fd, true);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		expect_same_edges(_metadata, fd, theirs, events[i]);
		expect_same_edges(_metadata, fd, theirs, events[i] | EPOLLET);
	}
	close(theirs);
}

TEST_F(flowfd, edges_as_eventfd)
{
	if (variant->origin == MAPPED)
		SKIP(return, "no edge for room that was there: see mapped_events");
	compare_edges(_metadata, self->fd, 0);
}

TEST(edges_as_semaphore_eventfd)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);

	ASSERT_LE(0, fd);
	compare_edges(_metadata, fd, EFD_SEMAPHORE);
	close(fd);
}

/* Raising the maximum is an edge, as a writer may wait for this room. */
TEST_F(flowfd, raised_maximum_is_an_edge)
{
	int ep;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	ep = epoll_on(self->fd, EPOLLOUT | EPOLLET);
	EXPECT_EQ(0, epoll_take(ep, 0));
	ASSERT_EQ(0, set_maximum(self->fd, 11));
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	ASSERT_EQ(0, set_maximum(self->fd, 20));
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	EXPECT_EQ(0, epoll_take(ep, 0));
	close(ep);
}

TEST_HARNESS_MAIN
