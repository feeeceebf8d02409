// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges step by step: marks, delay, urgent writes and policies for overflow between
 * the ends.
 */
#include "bridge_fixture.h"
#include "flow_user.h"

/* Readers are told at the mark, and so is the sink, also if it finds a count below it. */
TEST_F(bridge, mark)
{
	if (variant->origin == MAPPED)
		SKIP(return, "a mapped counter has no marks");
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){ .read_mark = 10 }));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->fd, 5));
	ASSERT_EQ(0, sink(self->fd, self->out));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(8, add(self->in, 4));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, count_of(self->out));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_TRUE(count_becomes(self->out, signalled(10)));
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_F(bridge, delay)
{
	__u64 begin;

	if (variant->origin == MAPPED)
		SKIP(return, "a mapped counter has no marks");
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.read_mark = 10, .max_delay = 200000000 }));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	begin = now_ns();
	EXPECT_EQ(8, add(self->in, 3));
	EXPECT_TRUE(count_becomes(self->out, signalled(3)));
	EXPECT_LE(begin + 200000000, now_ns());
}

TEST_F(bridge, urgent)
{
	struct flowfd_transfer args = { .value = 3, .flags = FLOWFD_URGENT };

	if (variant->origin == MAPPED)
		SKIP(return, "a mapped counter has no marks");
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){ .read_mark = 10 }));
	ASSERT_EQ(0, sink(self->fd, self->out));
	ASSERT_EQ(0, ioctl(self->fd, FLOWFD_IOC_COUNTER_WRITE, &args));
	EXPECT_TRUE(count_becomes(self->out, signalled(3)));
}

/* A source waits for room, and that must not wait for more to come. */
TEST_F(bridge, marks_and_a_maximum)
{
	__u64 value, sum = 0;

	if (variant->origin == MAPPED)
		SKIP(return, "a mapped counter has no marks");
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.maximum = 20, .read_mark = 15, .write_mark = 12 }));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 100));
	while (sum < 95 && poll_for(self->fd, POLLIN, PATIENCE_MS) == POLLIN) {
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	EXPECT_EQ(95, sum);
	EXPECT_TRUE(count_becomes(self->fd, 5));
}

TEST_F(bridge, source_saturates)
{
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.maximum = 10, .overflow = FLOWFD_OVERFLOW_SATURATE }));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(7, lost_of(self->fd));
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(0, count_of(self->in));
}

TEST_F(bridge, source_drops)
{
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.maximum = 10, .overflow = FLOWFD_OVERFLOW_DROP }));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 5));
	EXPECT_EQ(8, add(self->in, 7));
	EXPECT_EQ(8, add(self->in, 4));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(7, lost_of(self->fd));
	EXPECT_EQ(0, count_of(self->in));
}

/* What fits is not lost with what does not. */
TEST_F(bridge, source_that_is_a_semaphore_drops)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);

	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.maximum = 10, .overflow = FLOWFD_OVERFLOW_DROP }));
	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, 200));
	EXPECT_TRUE(count_becomes(in, 0));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(191, lost_of(self->fd));
	close(in);
}

/* A source that waits for room is told when it need not wait. */
TEST_F(bridge, source_waits_until_the_policy_changes)
{
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(6, waiting_of(self->fd));
	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.maximum = 10, .overflow = FLOWFD_OVERFLOW_SATURATE }));
	for (int i = 0; i < PATIENCE_MS && waiting_of(self->fd); i++)
		sleep_ms(1);
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(6, lost_of(self->fd));
}

/* It writes nothing by itself, so there is nothing to fail: it waits. */
TEST_F(bridge, source_that_may_fail)
{
	__u64 value;

	ASSERT_EQ(0, set_flow(self->fd, (struct flowfd_flow){
		.maximum = 10, .overflow = FLOWFD_OVERFLOW_FAIL }));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(6, waiting_of(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_TRUE(count_becomes(self->fd, 6));
	EXPECT_EQ(0, lost_of(self->fd));
}

TEST_HARNESS_MAIN
