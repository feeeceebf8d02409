// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges that were left alone: a program that comes is served at once, also at the end of
 * a chain.
 */
#include "bridge_fixture.h"

#define TURNS 256

/* The source moves 1 at a time to the sink. */
static bool source_moves(int fd, int in, int out, __u64 sum)
{
	return !set_maximum(fd, 2) && !source(fd, in) && !sink(fd, out) &&
	       add(in, sum) == 8;
}

/* And it begins to rest for a second. */
static bool source_is_overloaded(int fd, int in, int out, __u64 sum)
{
	return source_moves(fd, in, out, sum) && source_rests(fd);
}

/* How many turns there are in a grant: TURNS, or fewer on a machine that is slow. */
static __u64 turns_of_a_grant(void)
{
	int fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	int in = new_eventfd(), out = new_eventfd();
	__u64 moved = 0;

	if (source_moves(fd, in, out, 2 * TURNS)) {
		/* It rests from then on, and moves a few more. */
		sleep_ms(200);
		moved = fdinfo_number(fd, "flowfd-produced", 10);
	}
	close(fd);
	close(in);
	close(out);
	return moved < TURNS ? moved : TURNS;
}

/* So much that there is something left after a grant, but not after two. */
static __u64 overload(void)
{
	return turns_of_a_grant() + 19;
}

/* Though it rests: a program is there. */
TEST_F(bridge, room_is_used_during_a_rest)
{
	__u64 sum = overload();

	ASSERT_TRUE(source_is_overloaded(self->fd, self->in, self->out, sum));
	EXPECT_LT(0, waiting_of(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	sleep_ms(300);
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(sum, fdinfo_number(self->fd, "flowfd-produced", 10));
}

/* Whether so much is in the counter, or was, before a rest of a second is over. */
static bool is_produced_soon(int fd, __u64 sum)
{
	__u64 until = ms_from_now(500);

	while (fdinfo_number(fd, "flowfd-produced", 10) != sum) {
		if (now_ns() > until)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* Also if more comes at a time than fits. */
TEST_F(bridge, source_recovers_from_an_overload)
{
	__u64 sum = overload();

	ASSERT_TRUE(source_is_overloaded(self->fd, self->in, self->out, sum));
	for (int i = 0; i < 5; i++) {
		sum += 10;
		EXPECT_EQ(8, add(self->in, 10));
		EXPECT_TRUE(is_produced_soon(self->fd, sum));
	}
	sleep_ms(1500);
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(8, add(self->in, 1));
		/* At once: nothing was left behind. */
		EXPECT_EQ(++sum, fdinfo_number(self->fd, "flowfd-produced", 10));
		sleep_ms(100);
	}
}

/* And so does another source in the place of one that rests. */
TEST_F(bridge, source_is_replaced_during_a_rest)
{
	int in = new_eventfd();
	__u64 sum = overload();

	ASSERT_TRUE(source_is_overloaded(self->fd, self->in, self->out, sum));
	while (waiting_of(self->fd) > 1)
		sleep_ms(1);
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, 20));
	EXPECT_TRUE(is_produced_soon(self->fd, sum + 20));
	close(in);
}

/* A source that rests for a second, in a chain that was overloaded at its end. */
TEST(grants_reach_the_end_of_a_chain)
{
	int first = open_counter(CREATED, 0, EFD_NONBLOCK);
	int last = open_counter(CREATED, 0, EFD_NONBLOCK);
	int in = new_eventfd(), middle = new_eventfd(), out = new_eventfd();
	__u64 sum = overload();

	ASSERT_EQ(0, source(first, in));
	ASSERT_EQ(0, sink(first, middle));
	EXPECT_EQ(8, add(in, 1));
	EXPECT_TRUE(count_becomes(middle, 1));
	EXPECT_EQ(8, take(middle, &(__u64){ 0 }));
	ASSERT_TRUE(source_is_overloaded(last, middle, out, sum));
	/* Each is a signal of a program for the first, and of a bridge for the last. */
	for (int i = 0; i < 3; i++) {
		sum += signalled(20);
		EXPECT_EQ(8, add(in, 20));
		EXPECT_TRUE(is_produced_soon(last, sum));
	}
	close(first);
	close(last);
	close(in);
	close(middle);
	close(out);
}

/* Programs write to the first counter, which has no source, and the last is too small. */
TEST(writes_grant_turns_in_a_chain)
{
	int first = open_counter(CREATED, 0, EFD_NONBLOCK);
	int last = open_counter(CREATED, 0, EFD_NONBLOCK);
	int middle = new_eventfd(), out = new_eventfd();
	__u64 sum = overload();

	ASSERT_EQ(0, sink(first, middle));
	ASSERT_TRUE(source_is_overloaded(last, middle, out, sum));
	/* More turns than there are in a grant. */
	for (int i = 0; i < 25; i++) {
		sum += signalled(20);
		EXPECT_EQ(8, add(first, 20));
		EXPECT_TRUE(is_produced_soon(last, sum));
	}
	close(first);
	close(last);
	close(middle);
	close(out);
}

/* The number of a counter comes again, and with it must not come its grants. */
TEST(grants_of_a_counter_with_an_old_number)
{
	int first = open_counter(CREATED, 0, EFD_NONBLOCK), id = id_of(first);
	int last = open_counter(CREATED, 0, EFD_NONBLOCK);
	int middle = new_eventfd(), out = new_eventfd();
	__u64 sum = overload();

	ASSERT_EQ(0, set_maximum(last, 2));
	ASSERT_EQ(0, source(last, middle));
	ASSERT_EQ(0, sink(last, out));
	ASSERT_EQ(0, sink(first, middle));
	EXPECT_EQ(8, add(first, 1));
	EXPECT_TRUE(is_produced_soon(last, 1));
	EXPECT_EQ(8, add(middle, sum));
	ASSERT_TRUE(source_rests(last));
	close(first);
	first = open_counter(CREATED, 0, EFD_NONBLOCK);
	EXPECT_EQ(id, id_of(first));
	ASSERT_EQ(0, sink(first, middle));
	EXPECT_EQ(8, add(first, 20));
	EXPECT_TRUE(is_produced_soon(last, sum + 1 + signalled(20)));
	close(first);
	close(last);
	close(middle);
	close(out);
}

/* Has the sink of a counter look at it without rest. */
static void *add_nothing(void *arg)
{
	int fd = *(int *)arg;

	run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	while (add(fd, 0) == 8)
		pthread_testcancel();
	return NULL;
}

/*
 * What the sink takes was granted before it signals. Up to 6.7, where each of these needs
 * more than half of the turns of a grant.
 */
TEST(adds_while_the_sink_looks)
{
	int first = open_counter(CREATED, 0, EFD_NONBLOCK);
	int last = open_counter(CREATED, 0, EFD_NONBLOCK);
	int middle = new_eventfd(), out = new_eventfd();
	__u64 most = turns_of_a_grant() * 5 / 8, sum = 0;
	pthread_t thread;

	ASSERT_EQ(0, set_maximum(last, 2));
	ASSERT_EQ(0, source(last, middle));
	ASSERT_EQ(0, sink(last, out));
	ASSERT_EQ(0, sink(first, middle));
	ASSERT_EQ(0, pthread_create(&thread, NULL, add_nothing, &first));
	run_on(0);
	for (int i = 0; i < 100; i++) {
		sum += signalled(most);
		EXPECT_EQ(8, add(first, most));
		ASSERT_TRUE(is_produced_soon(last, sum));
	}
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	close(first);
	close(last);
	close(middle);
	close(out);
}

TEST_HARNESS_MAIN
