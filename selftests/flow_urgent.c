// SPDX-License-Identifier: GPL-2.0-only
/*
 * Urgent writes: they wake past mark, delay and bucket, take no token, and make the
 * counter ready until the next take.
 */
#include "fixtures.h"
#include "flow_sleeper.h"

/* A delay and a rate that no test waits for. */
#define HOUR FLOWFD_MAX_DELAY_MAX

FLOW_FIXTURE(flow);
FLOW_MARKS_FIXTURE(flow_marked);

TEST_F(flow_marked, urgent_write_passes_the_mark)
{
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = HOUR));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 2));
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		EXPECT_EQ(0, add_urgent(self->fd, 3));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(8, s.result);
		EXPECT_EQ(5, s.value);
		/* It ended with the take. */
		ASSERT_EQ(8, put(&self->f, 2));
		EXPECT_EQ(POLLOUT, poll_now(self->fd))
			TH_LOG("%s", way_names[way]);
		EXPECT_EQ(2, got(&self->f));
	}
}

/* Nobody slept as it came. */
TEST_F(flow_marked, urgent_write_makes_ready)
{
	struct waiter w;
	__u64 value;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100));
	for (enum way way = 0; way < WAYS; way++) {
		EXPECT_EQ(0, add_urgent(self->fd, 1));
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
		ASSERT_EQ(0, waiter_open(&w, &self->f, way));
		EXPECT_EQ(8, waiter_take(&w, &value))
			TH_LOG("%s", way_names[way]);
		EXPECT_EQ(2, value);
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		waiter_close(&w);
	}
}

/* It came since the last take. */
TEST_F(flow_marked, settings_after_an_urgent_write)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100));
	EXPECT_EQ(0, add_urgent(self->fd, 1));
	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 50, .max_delay = HOUR));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	EXPECT_EQ(1, got(&self->f));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

TEST_F(flow, urgent_write_passes_the_bucket)
{
	struct waiter edge;

	ASSERT_EQ(0, SET_FLOW(self->fd, .qos = { 1, 1 }));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_TRUE(waiter_sees(&edge));
	EXPECT_EQ(1, got(&self->f));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_FALSE(waiter_sees(&edge));
	EXPECT_TRUE(wakeup_is_deferred(self->fd));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, add_urgent(self->fd, 1));
		EXPECT_TRUE(waiter_sees(&edge));
	}
	EXPECT_EQ(4, got(&self->f));
	waiter_close(&edge);
}

TEST_F(flow, urgent_write_passes_the_bucket_for_every_sleeper)
{
	struct flow_sleeper s;
	struct waiter edge;

	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .qos = { 1, 1 }));
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_TRUE(waiter_sees(&edge));
		EXPECT_EQ(1, got(&self->f));
		ASSERT_SLEEPS(&s, &self->f, way);
		EXPECT_EQ(0, add_urgent(self->fd, 4));
		/* A second is more than this takes on any machine. */
		for (int i = 0; i < 800 && !flow_sleeper_finished(&s); i++)
			sleep_ms(1);
		EXPECT_TRUE(flow_sleeper_finished(&s))
			TH_LOG("%s", way_names[way]);
		ASSERT_WOKEN(&s);
		EXPECT_EQ(4, s.value);
		waiter_sees(&edge);
	}
	waiter_close(&edge);
}

TEST_F(flow, urgent_write_takes_no_token)
{
	struct waiter edge;
	__u64 start = now_ns();

	ASSERT_EQ(0, SET_FLOW(self->fd, .qos = { 2, 1 }));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, add_urgent(self->fd, 1));
		EXPECT_TRUE(waiter_sees(&edge));
	}
	for (int i = 0; i < 2; i++) {
		EXPECT_NE(0, got(&self->f));
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_TRUE(waiter_sees(&edge));
	}
	EXPECT_EQ(1, got(&self->f));
	ASSERT_EQ(8, put(&self->f, 1));
	/* Unless a second has passed, with which a token came. */
	EXPECT_TRUE(!waiter_sees(&edge) || now_ns() - start >= 1000 * MSEC);
	waiter_close(&edge);
}

TEST_F(flow, urgent_write_without_settings_is_a_write)
{
	struct waiter edge;

	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, add_urgent(self->fd, 2));
		EXPECT_TRUE(waiter_sees(&edge));
		EXPECT_FALSE(waiter_sees(&edge));
	}
	EXPECT_EQ(6, got(&self->f));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	waiter_close(&edge);
}

TEST_F(flow_marked, urgent_write_below_the_maximum)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	EXPECT_EQ(-EINVAL, add_urgent(self->fd, 10));
	EXPECT_EQ(-EINVAL, add_urgent(self->fd, ULLONG_MAX));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, put(&self->f, 5));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_EQ(-EAGAIN, write_with(self->fd, 5, 0, FLOWFD_URGENT | FLOWFD_NONBLOCK));
	EXPECT_EQ(5, count_of(self->fd));
}

static void *urgent_run(void *arg)
{
	struct flow *f = arg;

	return (void *)add_urgent(f->fd, 5);
}

/* It waits for room; as it is added, it wakes past the mark. */
TEST_F(flow_marked, urgent_write_that_waits)
{
	struct waiter edge;
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	ASSERT_EQ(8, put(&self->f, 9));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	EXPECT_TRUE(waiter_sees(&edge));
	ASSERT_EQ(0, pthread_create(&thread, NULL, urgent_run, &self->f));
	sleep_ms(QUIET_MS);
	epoll_take(edge.ep, 0);
	EXPECT_EQ(9, got(&self->f));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(0, (long)result);
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(EPOLLIN, epoll_take(edge.ep, PATIENCE_MS));
	EXPECT_EQ(POLLIN, poll_now(self->fd) & POLLIN);
	waiter_close(&edge);
}

/* Nothing is added: there is nothing to wake for. */
TEST_F(flow_marked, urgent_write_that_is_lost)
{
	struct waiter edge;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9,
			      .overflow = FLOWFD_OVERFLOW_DROP));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	EXPECT_EQ(0, add_urgent(self->fd, 20));
	EXPECT_FALSE(waiter_sees(&edge));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_EQ(20, lost_of(self->fd));
	waiter_close(&edge);
}

/* A deferral has programs make no calls. Who ends it has them call again. */
TEST(urgent_write_ends_a_deferral)
{
	struct mapped m;
	__u64 value;
	int ep;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .flags = FLOWFD_NONBLOCK));
	ep = epoll_on(m.fd, EPOLLIN | EPOLLET);
	ASSERT_EQ(0, set_qos(m.fd, 1, 1));
	EXPECT_EQ(8, mapped_add(&m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_take(&m, &value));
	EXPECT_EQ(8, mapped_add(&m, 1));
	EXPECT_TRUE(wakeup_is_deferred(m.fd));
	EXPECT_EQ(0, mapped_armed(&m));
	EXPECT_EQ(0, add_urgent(m.fd, 1));
	EXPECT_FALSE(wakeup_is_deferred(m.fd));
	EXPECT_NE(0, mapped_armed(&m) & FLOWFD_ARMED_WATCHED);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
	mapped_close(&m);
}

TEST(semaphore_and_urgent_write)
{
	struct flow f = { .fd = open_counter(CREATED, 0, EFD_SEMAPHORE) };
	struct flow_sleeper s[2];

	ASSERT_LE(0, f.fd);
	ASSERT_SLEEPS(&s[0], &f, READ);
	ASSERT_SLEEPS(&s[1], &f, READ);
	EXPECT_EQ(0, add_urgent(f.fd, 3));
	for (int i = 0; i < 2; i++) {
		ASSERT_WOKEN(&s[i]);
		EXPECT_EQ(1, s[i].value);
	}
	EXPECT_EQ(1, count_of(f.fd));
	close(f.fd);
}

TEST_HARNESS_MAIN
