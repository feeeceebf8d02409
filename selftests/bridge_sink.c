// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges step by step: an eventfd that gets what a counter has.
 */
#include "bridge_fixture.h"

TEST_F(bridge, sink_signals)
{
	__u64 value;

	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(id_of(self->out), bridged_id(self->fd, "flowfd-sink"));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	EXPECT_EQ(8, add(self->fd, 5));
	ASSERT_EQ(POLLIN, poll_for(self->out, POLLIN, PATIENCE_MS));
	ASSERT_EQ(8, take(self->out, &value));
	EXPECT_EQ(signalled(5), value);
	EXPECT_EQ(0, count_of(self->fd));
	/* Nothing is signalled without a count. */
	EXPECT_EQ(8, add(self->fd, 0));
	EXPECT_EQ(0, poll_for(self->out, POLLIN, QUIET_MS));
}

TEST_F(bridge, sink_signals_what_is_there)
{
	EXPECT_EQ(8, add(self->fd, 5));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_TRUE(count_becomes(self->out, signalled(5)));
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_F(bridge, sink_wakes_readers)
{
	int ep = epoll_on(self->out, EPOLLIN | EPOLLET);
	struct call reader;

	set_nonblock(self->out, false);
	ASSERT_TRUE(start_read(&reader, self->out));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(signalled(3), reader.value);
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, add(self->fd, 3));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

/* Writers that wait for room are woken by what the sink takes, and nothing is left. */
TEST_F(bridge, sink_makes_room)
{
	ASSERT_EQ(0, set_maximum(self->fd, 3));
	ASSERT_EQ(0, sink(self->fd, self->out));
	set_nonblock(self->fd, false);
	for (int i = 0; i < 500; i++)
		ASSERT_EQ(8, add(self->fd, 2));
	EXPECT_TRUE(count_becomes(self->fd, 0));
	if (signals_have_values())
		EXPECT_TRUE(count_becomes(self->out, 1000));
}

/* Interrupt moderation: a signal for each token at most, and nothing is lost. */
TEST_F(bridge, sink_signals_through_the_bucket)
{
	__u64 value, sum = 0, written = 0, begin, end;
	unsigned int signals = 0;

	ASSERT_EQ(0, set_qos(self->fd, 1, 100));
	ASSERT_EQ(0, sink(self->fd, self->out));
	begin = now_ns();
	while (now_ns() < begin + 500000000) {
		ASSERT_EQ(8, add(self->fd, 1));
		written++;
		if (take(self->out, &value) == 8) {
			signals++;
			sum += value;
		}
	}
	while (sum < signalled(written) &&
	       poll_for(self->out, POLLIN, PATIENCE_MS) == POLLIN) {
		ASSERT_EQ(8, take(self->out, &value));
		signals++;
		sum += value;
	}
	end = now_ns();
	EXPECT_TRUE(count_becomes(self->fd, 0));
	EXPECT_LE(signals, (end - begin) / 10000000 + 2);
	EXPECT_LT(10, signals);
	EXPECT_LT(1000, written);
	if (signals_have_values())
		EXPECT_EQ(written, sum);
}

TEST_F(bridge, sink_is_removed)
{
	ASSERT_EQ(0, sink(self->fd, self->out));
	ASSERT_EQ(0, remove_sink(self->fd));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-sink"));
	EXPECT_EQ(8, add(self->fd, 4));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(4, count_of(self->fd));
	EXPECT_EQ(0, count_of(self->out));
	EXPECT_EQ(0, sink(self->fd, self->out));
	EXPECT_TRUE(count_becomes(self->out, signalled(4)));
}

/* Nobody would see the count there, so it stays in the counter. */
TEST_F(bridge, sink_is_closed)
{
	ASSERT_EQ(0, sink(self->fd, self->out));
	close(self->out);
	self->out = -1;
	EXPECT_TRUE(end_goes(self->fd, "flowfd-sink"));
	EXPECT_EQ(8, add(self->fd, 4));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(4, count_of(self->fd));
	EXPECT_EQ(-ENOENT, remove_sink(self->fd));
}

/* The work item was queued for a sink, and runs after its end: the count stays. */
TEST_F(bridge, sink_ends_before_it_signals)
{
	__u64 value;

	for (int removed = 0; removed < 2; removed++) {
		int out = new_eventfd();

		ASSERT_EQ(0, sink(self->fd, out));
		if (!keep_processor(true)) {
			close(out);
			SKIP(return, "no right to keep a processor");
		}
		EXPECT_EQ(8, add(self->fd, 4));
		if (removed)
			remove_sink(self->fd);
		else
			close(out);
		ASSERT_TRUE(keep_processor(false));
		sleep_ms(QUIET_MS);
		EXPECT_EQ(4, count_of(self->fd));
		EXPECT_EQ(8, take(self->fd, &value));
		if (removed)
			close(out);
	}
}

/* The work item that was queued for one sink finds the next, for which there is no token. */
TEST_F(bridge, sink_is_closed_and_replaced)
{
	int out = new_eventfd();
	__u64 begin, count;

	ASSERT_EQ(0, set_qos(self->fd, 1, 1));
	ASSERT_EQ(0, sink(self->fd, self->out));
	if (!keep_processor(true))
		SKIP(goto end, "no right to keep a processor");
	begin = now_ns();
	EXPECT_EQ(8, add(self->fd, 1));
	close(self->out);
	self->out = -1;
	EXPECT_EQ(0, sink(self->fd, out));
	ASSERT_TRUE(keep_processor(false));
	sleep_ms(QUIET_MS);
	count = count_of(out);
	if (now_ns() < begin + 1000000000)
		EXPECT_EQ(0, count);
	EXPECT_TRUE(count_becomes(out, signalled(1)));
end:
	close(out);
}

/* Keeps the mutex of a bridge busy. */
static void *add_refused_sinks(void *arg)
{
	int *fds = arg;

	run_on(1);
	while (sink(fds[0], fds[1]) == -EBUSY)
		pthread_testcancel();
	return NULL;
}

/* The work item does not need the mutex. */
TEST_F(bridge, sink_beside_refused_ones)
{
	int fds[2] = { self->fd, new_eventfd() };
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(goto end, "it needs two processors");
	ASSERT_EQ(0, sink(self->fd, self->out));
	ASSERT_EQ(0, pthread_create(&thread, NULL, add_refused_sinks, fds));
	run_on(0);
	for (int i = 0; i < 500; i++) {
		ASSERT_EQ(8, add(self->fd, 1));
		ASSERT_TRUE(count_becomes(self->out, 1)) TH_LOG("%d", i);
		ASSERT_EQ(8, take(self->out, &(__u64){ 0 }));
	}
	pthread_cancel(thread);
	pthread_join(thread, NULL);
end:
	close(fds[1]);
}

/* As any signal by the kernel, it stops there and reports it. */
TEST_F(bridge, sink_overflows)
{
	ASSERT_EQ(8, add(self->out, ULLONG_MAX - 1));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->fd, 10));
	EXPECT_TRUE(count_becomes(self->out, ULLONG_MAX));
	EXPECT_EQ(POLLIN | POLLERR, poll_now(self->out));
	EXPECT_EQ(8, add(self->fd, 10));
	EXPECT_TRUE(count_becomes(self->fd, 0));
	EXPECT_EQ(ULLONG_MAX, count_of(self->out));
}

TEST_F(bridge, sink_that_is_a_semaphore)
{
	int out = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);

	ASSERT_EQ(0, sink(self->fd, out));
	EXPECT_EQ(8, add(self->fd, 2));
	EXPECT_TRUE(count_becomes(out, signalled(2)));
	close(out);
}

/* Adds in memory make no call until somebody waits, and a sink always does. */
TEST(mapped_sink)
{
	int out = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct mapped m;
	__u64 value, sum = 0;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .flags = FLOWFD_NONBLOCK));
	ASSERT_EQ(0, sink(m.fd, out));
	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(8, mapped_add(&m, 2));
	while (sum < signalled(2000) && poll_for(out, POLLIN, PATIENCE_MS) == POLLIN) {
		ASSERT_EQ(8, take(out, &value));
		sum += value;
	}
	EXPECT_TRUE(count_becomes(m.fd, 0));
	if (signals_have_values())
		EXPECT_EQ(2000, sum);
	mapped_unmap(&m);
	close(m.fd);
	close(out);
}

static void *shake_run(void *arg)
{
	struct mapped *m = ((void **)arg)[0];
	bool *stop = ((void **)arg)[1];

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
		__atomic_add_fetch(&m->consumer->consumed, 2, __ATOMIC_RELAXED);
	return NULL;
}

/* A program that changes the words all the time keeps nobody from the ends. */
TEST(mapped_sink_of_a_hostile_program)
{
	int out = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	bool stop = false;
	struct mapped m;
	void *arg[] = { &m, &stop };
	pthread_t thread;
	__u64 begin, value;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .flags = FLOWFD_NONBLOCK));
	ASSERT_EQ(0, pthread_create(&thread, NULL, shake_run, arg));
	begin = now_ns();
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, sink(m.fd, out));
		mapped_notify(&m);
		ASSERT_EQ(0, remove_sink(m.fd));
	}
	EXPECT_GT(PATIENCE_MS, (now_ns() - begin) / 1000000);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* It is as good as before, and the eventfd, which was told any count, is empty. */
	m.producer->produced = m.consumer->consumed;
	take(out, &value);
	ASSERT_EQ(0, sink(m.fd, out));
	notify(m.fd);
	EXPECT_EQ(8, mapped_add(&m, 3));
	EXPECT_EQ(POLLIN, poll_for(out, POLLIN, PATIENCE_MS));
	EXPECT_TRUE(count_becomes(m.fd, 0));
	mapped_close(&m);
	close(out);
}

TEST_HARNESS_MAIN
