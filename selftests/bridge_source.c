// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridges step by step: an eventfd that feeds a counter.
 */
#include "bridge_fixture.h"
#include "flow_user.h"

#include <linux/aio_abi.h>

TEST_F(bridge, source_moves_the_count)
{
	__u64 value;

	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(id_of(self->in), bridged_id(self->fd, "flowfd-source"));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-sink"));
	EXPECT_EQ(8, add(self->in, 3));
	/* At once: no work item was needed. */
	EXPECT_EQ(3, count_of(self->fd));
	EXPECT_EQ(8, add(self->in, 4));
	EXPECT_EQ(-EAGAIN, take(self->in, &value));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(7, value);
	/* Others may write to the counter as before. */
	EXPECT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(8, add(self->in, ULLONG_MAX - 10));
	EXPECT_EQ(ULLONG_MAX - 9, count_of(self->fd));
}

TEST_F(bridge, source_takes_what_is_there)
{
	EXPECT_EQ(8, add(self->in, 5));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(0, count_of(self->in));
}

TEST_F(bridge, source_wakes_readers)
{
	pthread_t reader = start_reader(&self->fd);
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLET);

	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 9));
	EXPECT_EQ(9, reader_result(reader));
	/* The reader has taken it. */
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

/* What fits is moved, what was taken waits, and what comes then stays in the eventfd. */
TEST_F(bridge, source_waits_for_room)
{
	__u64 value, sum = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 25));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(16, waiting_of(self->fd));
	EXPECT_EQ(8, add(self->in, 5));
	EXPECT_EQ(5, count_of(self->in));
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(count_becomes(self->fd, 9));
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	ASSERT_TRUE(count_becomes(self->fd, 3));
	EXPECT_EQ(30, sum + 3);
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(0, count_of(self->in));
	/* And no work item is needed again. */
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_EQ(5, count_of(self->fd));
}

TEST_F(bridge, source_of_a_full_counter)
{
	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(8, add(self->in, 2));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 1));
	sleep_ms(QUIET_MS);
	EXPECT_EQ(3, count_of(self->in));
	EXPECT_EQ(0, waiting_of(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 100));
	EXPECT_TRUE(count_becomes(self->fd, 12));
	EXPECT_EQ(0, count_of(self->in));
}

/* With a bucket, pollers are not told of each room. */
TEST_F(bridge, source_waits_for_room_with_a_bucket)
{
	__u64 value;

	ASSERT_EQ(0, set_qos(self->fd, 1, 1));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 25));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(count_becomes(self->fd, 9));
		ASSERT_EQ(8, take(self->fd, &value));
	}
	EXPECT_TRUE(count_becomes(self->fd, 7));
}

/* A reader that takes all that comes, until there was nothing for a while. */
struct drain {
	int fd;
	__u64 sum;
};

static void *drain_run(void *arg)
{
	struct drain *d = arg;
	struct flowfd_transfer args = { 0 };

	for (;;) {
		args.timeout = 500000000;
		if (result_of(ioctl(d->fd, FLOWFD_IOC_COUNTER_READ, &args)))
			return NULL;
		d->sum += args.value;
	}
}

/* What sleeping readers take at once is no wakeup that the source could still get. */
static __u64 drained(int fd, unsigned int readers, int in, __u64 value)
{
	struct drain drains[2] = { { .fd = fd }, { .fd = fd } };
	pthread_t threads[2];
	__u64 sum = 0;

	for (unsigned int i = 0; i < readers; i++)
		pthread_create(&threads[i], NULL, drain_run, &drains[i]);
	sleep_ms(QUIET_MS);
	add(in, value);
	for (unsigned int i = 0; i < readers; i++) {
		pthread_join(threads[i], NULL);
		sum += drains[i].sum;
	}
	return sum;
}

TEST_F(bridge, source_beside_sleeping_readers)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	set_nonblock(self->fd, false);
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(25, drained(self->fd, 1, self->in, 25));
	EXPECT_EQ(25, drained(self->fd, 2, self->in, 25));
	EXPECT_EQ(0, waiting_of(self->fd));
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(25, drained(self->fd, 1, in, 25));
	EXPECT_EQ(25, drained(self->fd, 2, in, 25));
	/* By the work item: a wakeup moves 64, twice at most. */
	ASSERT_EQ(0, set_maximum(self->fd, 101));
	EXPECT_EQ(777, drained(self->fd, 1, in, 777));
	EXPECT_EQ(0, count_of(in));
	close(in);
}

/* Others in the queue may know of no count: the wakeup is all they look at. */
TEST_F(bridge, source_leaves_wakeups_to_others)
{
	struct iocb poll = {
		.aio_fildes = self->in,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
	};
	struct timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct iocb *list[] = { &poll };
	aio_context_t context = 0;
	struct io_event done;

	if (syscall(SYS_io_setup, 8, &context))
		SKIP(return, "no AIO");
	ASSERT_EQ(1, syscall(SYS_io_submit, context, 1, list));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(1, count_of(self->fd));
	EXPECT_EQ(1, syscall(SYS_io_getevents, context, 1, 1, &done, &patience));
	syscall(SYS_io_destroy, context);
}

static void *write_late(void *arg)
{
	return (void *)add(*(int *)arg, 5);
}

/* The eventfd was full: taking its count makes room for those that write to it. */
TEST_F(bridge, source_makes_room_in_the_eventfd)
{
	__u64 value;
	pthread_t writer;
	void *written;

	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(8, add(self->in, ULLONG_MAX - 1));
	EXPECT_EQ(-EAGAIN, add(self->in, 1));
	set_nonblock(self->in, false);
	ASSERT_EQ(0, pthread_create(&writer, NULL, write_late, &self->in));
	sleep_ms(QUIET_MS);
	ASSERT_EQ(8, take(self->fd, &value));
	pthread_join(writer, &written);
	EXPECT_EQ(8, (long)written);
	EXPECT_TRUE(count_becomes(self->in, 5));
	EXPECT_EQ(ULLONG_MAX - 1 - 9, waiting_of(self->fd));
}

TEST_F(bridge, source_that_is_a_semaphore)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	__u64 value;

	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, 3));
	EXPECT_EQ(3, count_of(self->fd));
	/* More than a wakeup moves, and than a work item moves at a time. */
	EXPECT_EQ(8, add(in, 5000));
	EXPECT_TRUE(count_becomes(self->fd, 5003));
	EXPECT_EQ(0, count_of(in));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(8, add(in, 20));
	EXPECT_TRUE(count_becomes(self->fd, 9));
	/* None is taken that does not fit. */
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(11, count_of(in));
	close(in);
}

/* It would take years, and nobody needs to be there. */
TEST_F(bridge, source_that_is_a_huge_semaphore)
{
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	__u64 moved;

	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, ULLONG_MAX - 2));
	sleep_ms(1000);
	moved = count_of(self->fd);
	EXPECT_LT(64, moved);
	/* Each rest is twice as long as the one before, and there are 1000 ticks at most. */
	EXPECT_GT(12 * 1024, moved);
	/* A signal makes it begin anew, once. */
	EXPECT_EQ(8, add(in, 1));
	sleep_ms(1000);
	EXPECT_LT(moved + 2 * 1024, count_of(self->fd));
	EXPECT_GT(moved + 12 * 1024, count_of(self->fd));
	close(in);
	EXPECT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
}

#define STAGES 8

/*
 * Each signals the next, and none needs a program. Every other one passes on 1 at a time,
 * so that each of many makes a signal. The last must not be faster than the first.
 */
TEST(chain_of_sources_left_alone)
{
	int fds[STAGES], eventfds[STAGES + 1];
	__u64 before, after;

	for (int i = 0; i <= STAGES; i++) {
		eventfds[i] = eventfd(0, (i % 2 ? 0 : EFD_SEMAPHORE) | EFD_NONBLOCK | EFD_CLOEXEC);
		if (i % 2 == 0)
			ASSERT_EQ(8, add(eventfds[i], 1ULL << 62));
	}
	for (int i = 0; i < STAGES; i++) {
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		if (i % 2)
			ASSERT_EQ(0, set_maximum(fds[i], 2));
		ASSERT_EQ(0, source(fds[i], eventfds[i]));
		ASSERT_EQ(0, sink(fds[i], eventfds[i + 1]));
	}
	/* Until all of them rest. */
	sleep_ms(6000);
	before = fdinfo_number(fds[STAGES - 2], "flowfd-produced", 10);
	sleep_ms(3000);
	after = fdinfo_number(fds[STAGES - 2], "flowfd-produced", 10);
	EXPECT_LT(before, after);
	EXPECT_GT(before + 100, after);
	for (int i = 0; i < STAGES; i++) {
		close(fds[i]);
		close(eventfds[i]);
	}
	close(eventfds[STAGES]);
}

/* Waits until the source of a counter, which its sink empties, begins to rest for a second. */
static bool source_rests(int fd)
{
	__u64 until = ms_from_now(30000), value, last = 0, since = now_ns();

	while (now_ns() < until) {
		value = fdinfo_number(fd, "flowfd-produced", 10);
		if (value != last && now_ns() - since > 900 * MSEC)
			return true;
		if (value != last) {
			last = value;
			since = now_ns();
		}
		sleep_ms(1);
	}
	return false;
}

/*
 * Up to 6.7 a signal adds the whole count. The first still passes on 3200 in each second
 * when it rests, and the second is not left behind for the next, nor the third, as the
 * tokens are slow. Each signal of the second could be worth 64 of the third.
 */
TEST(chain_of_large_counts_left_alone)
{
	static const __u64 maxima[] = { 3201, 65, 2 };
	int fds[3], eventfds[4];
	__u64 before, after;

	for (int i = 0; i < 4; i++)
		eventfds[i] = new_eventfd();
	for (int i = 0; i < 3; i++) {
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		ASSERT_EQ(0, set_maximum(fds[i], maxima[i]));
		ASSERT_EQ(0, sink(fds[i], eventfds[i + 1]));
	}
	ASSERT_EQ(0, set_qos(fds[1], 1, 60));
	ASSERT_EQ(0, source(fds[2], eventfds[2]));
	ASSERT_EQ(8, add(eventfds[0], 1ULL << 62));
	ASSERT_EQ(0, source(fds[0], eventfds[0]));
	ASSERT_TRUE(source_rests(fds[0]));
	ASSERT_EQ(8, take(eventfds[1], &before));
	ASSERT_EQ(0, source(fds[1], eventfds[1]));
	sleep_ms(7000);
	before = fdinfo_number(fds[2], "flowfd-produced", 10);
	sleep_ms(3000);
	after = fdinfo_number(fds[2], "flowfd-produced", 10);
	EXPECT_LT(0, before);
	EXPECT_GT(before + 100, after);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	for (int i = 0; i < 4; i++)
		close(eventfds[i]);
}

/* The source moves 1 to the sink, and begins to rest for a second. */
static bool source_is_overloaded(int fd, int in, int out)
{
	return !set_maximum(fd, 2) && !source(fd, in) && !sink(fd, out) &&
	       add(in, 275) == 8 && source_rests(fd);
}

/* Though it rests: a program is there. */
TEST_F(bridge, room_is_used_during_a_rest)
{
	ASSERT_TRUE(source_is_overloaded(self->fd, self->in, self->out));
	EXPECT_LT(0, waiting_of(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	sleep_ms(300);
	EXPECT_EQ(0, waiting_of(self->fd));
	EXPECT_EQ(275, fdinfo_number(self->fd, "flowfd-produced", 10));
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
	__u64 sum = 275;

	ASSERT_TRUE(source_is_overloaded(self->fd, self->in, self->out));
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

	ASSERT_TRUE(source_is_overloaded(self->fd, self->in, self->out));
	while (waiting_of(self->fd) > 1)
		sleep_ms(1);
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	ASSERT_EQ(0, source(self->fd, in));
	EXPECT_EQ(8, add(in, 20));
	EXPECT_TRUE(is_produced_soon(self->fd, 295));
	close(in);
}

/* A source that rests for a second, in a chain that was overloaded at its end. */
TEST(grants_reach_the_end_of_a_chain)
{
	int first = open_counter(CREATED, 0, EFD_NONBLOCK);
	int last = open_counter(CREATED, 0, EFD_NONBLOCK);
	int in = new_eventfd(), middle = new_eventfd(), out = new_eventfd();
	__u64 sum = 275;

	ASSERT_EQ(0, source(first, in));
	ASSERT_EQ(0, sink(first, middle));
	EXPECT_EQ(8, add(in, 1));
	EXPECT_TRUE(count_becomes(middle, 1));
	EXPECT_EQ(8, take(middle, &(__u64){ 0 }));
	ASSERT_TRUE(source_is_overloaded(last, middle, out));
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

#define LINKS 64

/* Rests that end together must not add up: each is a signal for the next. */
TEST(long_chain_left_alone)
{
	int fds[LINKS], eventfds[LINKS + 1];
	__u64 before, after;

	for (int i = 0; i <= LINKS; i++) {
		eventfds[i] = new_eventfd();
		ASSERT_EQ(8, add(eventfds[i], i < LINKS ? 1ULL << 62 : 1));
	}
	for (int i = 0; i < LINKS; i++) {
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		ASSERT_EQ(0, set_maximum(fds[i], 2));
		ASSERT_EQ(0, source(fds[i], eventfds[i]));
		ASSERT_EQ(0, sink(fds[i], eventfds[i + 1]));
	}
	sleep_ms(8000);
	before = fdinfo_number(fds[LINKS - 1], "flowfd-produced", 10);
	sleep_ms(4000);
	after = fdinfo_number(fds[LINKS - 1], "flowfd-produced", 10);
	EXPECT_LT(before, after);
	EXPECT_GE(before + 8, after);
	for (int i = 0; i < LINKS; i++) {
		close(fds[i]);
		close(eventfds[i]);
	}
	close(eventfds[LINKS]);
}

#define PARTS 8

/*
 * Up to 6.7: each has a little less room than the one before, and so makes two signals of
 * each one that is large, as soon as it has used its turns.
 */
TEST(chain_that_splits_left_alone)
{
	int fds[PARTS], eventfds[PARTS + 1];
	__u64 before, after;

	for (int i = 0; i <= PARTS; i++)
		eventfds[i] = new_eventfd();
	ASSERT_EQ(8, add(eventfds[0], 1ULL << 62));
	for (int i = 0; i < PARTS; i++) {
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		ASSERT_EQ(0, set_maximum(fds[i], 21 - i));
		ASSERT_EQ(0, sink(fds[i], eventfds[i + 1]));
		if (i)
			take(eventfds[i], &before);
		ASSERT_EQ(0, source(fds[i], eventfds[i]));
		if (!i)
			ASSERT_TRUE(source_rests(fds[i]));
	}
	sleep_ms(8000);
	before = fdinfo_number(fds[PARTS - 1], "flowfd-writes", 10);
	sleep_ms(4000);
	after = fdinfo_number(fds[PARTS - 1], "flowfd-writes", 10);
	EXPECT_LT(before, after);
	EXPECT_GE(before + 12, after);
	for (int i = 0; i < PARTS; i++) {
		close(fds[i]);
		close(eventfds[i]);
	}
	close(eventfds[PARTS]);
}

/* Its adds tell those who wait for room that there is still some: not itself. */
TEST(source_beside_a_sleeping_writer)
{
	int fd = open_counter(MAPPED, 1ULL << 62, 0);
	int in = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	struct call call;
	__u64 before, value;

	/* Tokens tell them, too. */
	EXPECT_EQ(0, set_qos(fd, 1, 1000));
	EXPECT_EQ(8, add(in, 1ULL << 62));
	ASSERT_TRUE(start_write(&call, fd, ULLONG_MAX - (1ULL << 62)));
	ASSERT_EQ(0, source(fd, in));
	sleep_ms(3000);
	before = fdinfo_number(fd, "flowfd-produced", 10);
	sleep_ms(1000);
	EXPECT_GT(before + 2 * 1024, fdinfo_number(fd, "flowfd-produced", 10));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_TRUE(call_join(&call));
	close(fd);
	close(in);
}

/* Programs write to the first counter, which has no source, and the last is too small. */
TEST(writes_grant_turns_in_a_chain)
{
	int first = open_counter(CREATED, 0, EFD_NONBLOCK);
	int last = open_counter(CREATED, 0, EFD_NONBLOCK);
	int middle = new_eventfd(), out = new_eventfd();
	__u64 sum = 275;

	ASSERT_EQ(0, sink(first, middle));
	ASSERT_TRUE(source_is_overloaded(last, middle, out));
	/* More than 256 turns. */
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

TEST_F(bridge, source_is_removed)
{
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(8, add(self->in, 1));
	ASSERT_EQ(0, bridge(self->fd, -1, FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
	EXPECT_EQ(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	/* What was taken is the counter's, the rest the eventfd's. */
	EXPECT_EQ(6, waiting_of(self->fd));
	EXPECT_EQ(8, add(self->in, 1));
	EXPECT_EQ(2, count_of(self->in));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(9, value);
	EXPECT_TRUE(count_becomes(self->fd, 6));
	/* And it can be a source again, of this counter too. */
	EXPECT_EQ(0, source(self->fd, self->in));
	EXPECT_TRUE(count_becomes(self->fd, 8));
}

TEST_F(bridge, source_is_closed)
{
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 2));
	close(self->in);
	self->in = -1;
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
	EXPECT_EQ(2, count_of(self->fd));
	EXPECT_EQ(-ENOENT, bridge(self->fd, -1,
				  FLOWFD_BRIDGE_SOURCE | FLOWFD_BRIDGE_REMOVE));
}

/* Another takes its place at once. */
TEST_F(bridge, ends_are_replaced)
{
	for (int i = 0; i < 100; i++) {
		int in = eventfd(0, EFD_CLOEXEC), out = eventfd(0, EFD_CLOEXEC);

		ASSERT_EQ(0, source(self->fd, in));
		ASSERT_EQ(0, sink(self->fd, out));
		close(in);
		close(out);
	}
	ASSERT_EQ(0, source(self->fd, self->in));
	ASSERT_EQ(0, sink(self->fd, self->out));
	EXPECT_EQ(8, add(self->in, 2));
	EXPECT_TRUE(count_becomes(self->out, signalled(2)));
}

/* The last writer is gone, and what it wrote is not lost. */
TEST_F(bridge, source_is_closed_before_there_is_room)
{
	__u64 value, sum = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(0, source(self->fd, self->in));
	EXPECT_EQ(8, add(self->in, 15));
	EXPECT_EQ(8, add(self->in, 20));
	close(self->in);
	self->in = -1;
	sleep_ms(QUIET_MS);
	EXPECT_NE(NO_EVENTFD, bridged_id(self->fd, "flowfd-source"));
	while (sum < 35 && poll_for(self->fd, POLLIN, PATIENCE_MS) == POLLIN) {
		ASSERT_EQ(8, take(self->fd, &value));
		sum += value;
	}
	EXPECT_EQ(35, sum);
	EXPECT_TRUE(end_goes(self->fd, "flowfd-source"));
}

/* A reader that sleeps on the eventfd competes, and finds nothing. */
TEST_F(bridge, source_leaves_nothing_to_readers)
{
	ASSERT_EQ(0, source(self->fd, self->in));
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(8, add(self->in, 1));
	EXPECT_EQ(0, poll_for(self->in, POLLIN, 0));
	EXPECT_EQ(100, count_of(self->fd));
}

/* Takes in memory make room for a source. */
TEST(mapped_source)
{
	int in = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct mapped m;
	__u64 value, sum = 0, until = ms_from_now(PATIENCE_MS);

	ASSERT_EQ(0, MAPPED_CREATE(&m, .flags = FLOWFD_NONBLOCK, .maximum = 10));
	ASSERT_EQ(0, source(m.fd, in));
	EXPECT_EQ(8, add(in, 100));
	while (sum < 100 && now_ns() < until)
		sum += mapped_take(&m, &value) == 8 ? value : 0;
	EXPECT_EQ(100, sum);
	mapped_unmap(&m);
	close(m.fd);
	close(in);
}

TEST_HARNESS_MAIN
