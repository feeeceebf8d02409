// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a write that does not fit does under each policy, compared with a model for all
 * small numbers; and that what was lost is counted.
 */
#include <sys/time.h>
#include <sys/uio.h>

#include "fixtures.h"
#include "flow_user.h"

FLOW_FIXTURE(flow);
FLOW_MARKS_FIXTURE(flow_marked);

static const char *const policies[] = {
	[FLOWFD_OVERFLOW_WAIT] = "wait", [FLOWFD_OVERFLOW_FAIL] = "fail",
	[FLOWFD_OVERFLOW_SATURATE] = "saturate", [FLOWFD_OVERFLOW_DROP] = "drop",
};

/* A write to a counter. Returns what it returns, and stores what it changes. */
static long model_write(__u32 policy, __u64 maximum, __u64 *count, __u64 *lost,
			__u64 value)
{
	bool fits = maximum - *count > value;
	__u64 added = value;

	if (value == ULLONG_MAX)
		return -EINVAL;
	if (!fits && policy <= FLOWFD_OVERFLOW_FAIL)
		return value < maximum ? -EAGAIN : -EINVAL;
	if (!fits)
		added = policy == FLOWFD_OVERFLOW_SATURATE ? maximum - 1 - *count : 0;
	*count += added;
	*lost = ULLONG_MAX - *lost < value - added ? ULLONG_MAX : *lost + value - added;
	return 8;
}

static void compare_with_model(struct __test_metadata *_metadata, struct flow *f,
			       __u32 policy, __u64 maximum, __u64 first, __u64 value)
{
	__u64 lost = lost_of(f->fd), count = first;
	long expected;

	ASSERT_EQ(0, SET_FLOW(f->fd, 0));
	got(f);
	ASSERT_EQ(8, put(f, first));
	ASSERT_EQ(0, SET_FLOW(f->fd, .maximum = maximum, .overflow = policy));
	expected = model_write(policy, maximum, &count, &lost, value);
	EXPECT_EQ(expected, put(f, value))
		TH_LOG("%s, maximum %llu, count %llu, value %llu", policies[policy], maximum,
		       first, value);
	EXPECT_EQ(count, flow_of(f->fd).count)
		TH_LOG("%s, maximum %llu, count %llu, value %llu", policies[policy], maximum,
		       first, value);
	EXPECT_EQ(lost, lost_of(f->fd));
}

TEST_F(flow, small_numbers)
{
	set_nonblock(self->fd, true);
	for (__u32 policy = 0; policy < ARRAY_SIZE(policies); policy++) {
		for (__u64 maximum = 2; maximum < 6; maximum++) {
			for (__u64 count = 0; count < maximum; count++) {
				for (__u64 value = 0; value < 8; value++)
					compare_with_model(_metadata, &self->f, policy,
							   maximum, count, value);
			}
		}
	}
}

TEST_F(flow, large_numbers)
{
	static const __u64 numbers[] = { 1, 5, 1ULL << 32, 1ULL << 63, ULLONG_MAX - 5,
					 ULLONG_MAX - 2, ULLONG_MAX - 1, ULLONG_MAX };

	set_nonblock(self->fd, true);
	for (__u32 policy = 0; policy < ARRAY_SIZE(policies); policy++) {
		for (size_t m = 1; m < ARRAY_SIZE(numbers); m++) {
			for (size_t c = 0; c < m; c++) {
				for (size_t v = 0; v < ARRAY_SIZE(numbers); v++)
					compare_with_model(_metadata, &self->f, policy,
							   numbers[m], numbers[c],
							   numbers[v]);
			}
		}
	}
}

/* The same for a descriptor that may block: only the first policy makes it wait. */
TEST_F(flow, blocking_writes_do_not_wait)
{
	for (__u32 policy = FLOWFD_OVERFLOW_FAIL; policy < ARRAY_SIZE(policies); policy++) {
		for (__u64 value = 0; value < 8; value++)
			compare_with_model(_metadata, &self->f, policy, 5, 3, value);
	}
}

TEST_F(flow, timed_writes_do_not_wait)
{
	__u64 start = now_ns();

	ASSERT_EQ(8, put(&self->f, 3));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 5, .overflow = FLOWFD_OVERFLOW_FAIL));
	EXPECT_EQ(-EAGAIN, write_with(self->fd, 4, PATIENCE_MS * MSEC, 0));
	EXPECT_EQ(-EINVAL, write_with(self->fd, 5, PATIENCE_MS * MSEC, 0));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 5, .overflow = FLOWFD_OVERFLOW_DROP));
	EXPECT_EQ(0, write_with(self->fd, 5, PATIENCE_MS * MSEC, 0));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 5, .overflow = FLOWFD_OVERFLOW_SATURATE));
	EXPECT_EQ(0, write_with(self->fd, 5, PATIENCE_MS * MSEC, 0));
	EXPECT_GT(PATIENCE_MS * MSEC, now_ns() - start);
	EXPECT_EQ(4, count_of(self->fd));
	EXPECT_EQ(5 + 4, lost_of(self->fd));
}

TEST_F(flow, first_policy_waits)
{
	struct call writer;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 5, .overflow = FLOWFD_OVERFLOW_WAIT));
	ASSERT_EQ(8, put(&self->f, 3));
	ASSERT_TRUE(start_write(&writer, self->fd, 4));
	EXPECT_EQ(3, got(&self->f));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_EQ(4, count_of(self->fd));
	EXPECT_EQ(0, lost_of(self->fd));
}

/* Each segment is a write of its own. */
TEST_F(flow, segments)
{
	__u64 values[] = { 3, 3, 1, 9 };
	struct iovec v[4];

	for (int i = 0; i < 4; i++)
		v[i] = (struct iovec){ &values[i], 8 };
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 6, .overflow = FLOWFD_OVERFLOW_DROP));
	EXPECT_EQ(32, result_of(writev(self->fd, v, 4)));
	EXPECT_EQ(4, got(&self->f));
	EXPECT_EQ(3 + 9, lost_of(self->fd));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 6, .overflow = FLOWFD_OVERFLOW_SATURATE));
	EXPECT_EQ(32, result_of(writev(self->fd, v, 4)));
	EXPECT_EQ(5, got(&self->f));
	EXPECT_EQ(12 + 1 + 1 + 9, lost_of(self->fd));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 6, .overflow = FLOWFD_OVERFLOW_FAIL));
	EXPECT_EQ(8, result_of(writev(self->fd, v, 4)));
	EXPECT_EQ(3, got(&self->f));
}

TEST_F(flow, lost_stops_at_its_end)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 5, .overflow = FLOWFD_OVERFLOW_DROP));
	EXPECT_EQ(8, put(&self->f, ULLONG_MAX - 3));
	EXPECT_EQ(ULLONG_MAX - 3, lost_of(self->fd));
	EXPECT_EQ(8, put(&self->f, 5));
	EXPECT_EQ(ULLONG_MAX, lost_of(self->fd));
	EXPECT_EQ(8, put(&self->f, 5));
	EXPECT_EQ(ULLONG_MAX, lost_of(self->fd));
	ASSERT_EQ(0, SET_FLOW(self->fd, 0));
	EXPECT_EQ(ULLONG_MAX, lost_of(self->fd));
	EXPECT_EQ(0, got(&self->f));
}

/* A saturated counter tells its readers, as any write that did not fit does. */
TEST_F(flow_marked, lost_values_make_ready)
{
	for (__u32 policy = FLOWFD_OVERFLOW_SATURATE; policy <= FLOWFD_OVERFLOW_DROP;
	     policy++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9,
				      .overflow = policy));
		ASSERT_EQ(8, put(&self->f, 5));
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		ASSERT_EQ(8, put(&self->f, 6));
		EXPECT_TRUE(poll_now(self->fd) & POLLIN)
			TH_LOG("%s", policies[policy]);
		EXPECT_EQ(policy == FLOWFD_OVERFLOW_DROP ? 5 : 9, got(&self->f));
		ASSERT_EQ(8, put(&self->f, 5));
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		EXPECT_EQ(5, got(&self->f));
	}
}

TEST_F(flow_marked, saturation_wakes)
{
	struct call reader;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9,
			      .overflow = FLOWFD_OVERFLOW_SATURATE));
	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_EQ(8, put(&self->f, 20));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(9, reader.value);
	EXPECT_EQ(11, lost_of(self->fd));
}

/* A policy that does not wait is for those who wait already, too. */
TEST_F(flow, policy_that_changes_under_a_writer)
{
	struct call writer;
	__u64 sum;

	for (__u32 policy = 0; policy < ARRAY_SIZE(policies); policy++) {
		__u64 lost = lost_of(self->fd);

		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10));
		ASSERT_EQ(8, put(&self->f, 8));
		ASSERT_TRUE(start_write(&writer, self->fd, 4));
		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .overflow = policy));
		sleep_ms(QUIET_MS / 2);
		sum = got(&self->f);
		ASSERT_TRUE(call_join(&writer))
			TH_LOG("%s", policies[policy]);
		sum += got(&self->f) + lost_of(self->fd) - lost;
		EXPECT_EQ(writer.result == 8 ? 12 : 8, sum)
			TH_LOG("%s: write returned %ld", policies[policy], writer.result);
		EXPECT_TRUE(writer.result == 8 || writer.result == -EAGAIN);
	}
}

/* Several writers: each value is in the count or in what was lost. */
struct losing {
	int fd;
	__u64 written;
};

static void *losing_run(void *arg)
{
	struct losing *l = arg;

	for (unsigned int i = 0; i < 3000; i++) {
		__u64 value = 1 + i % 7;

		if (add(l->fd, value) == 8)
			l->written += value;
	}
	return NULL;
}

TEST_F(flow_marked, sums_of_several_writers)
{
	for (__u32 policy = FLOWFD_OVERFLOW_FAIL; policy < ARRAY_SIZE(policies); policy++) {
		__u64 before = lost_of(self->fd), taken = 0;
		struct losing l[2];
		pthread_t thread[2];

		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 7,
				      .overflow = policy));
		for (int i = 0; i < 2; i++) {
			l[i] = (struct losing){ .fd = self->fd };
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, losing_run, &l[i]));
		}
		for (int i = 0; i < 2; i++) {
			while (pthread_tryjoin_np(thread[i], NULL))
				taken += got(&self->f);
		}
		taken += got(&self->f);
		EXPECT_EQ(l[0].written + l[1].written, taken + lost_of(self->fd) - before)
			TH_LOG("%s", policies[policy]);
	}
}

TEST(semaphore_saturates)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);
	__u64 value;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, SET_FLOW(fd, .maximum = 4, .overflow = FLOWFD_OVERFLOW_SATURATE));
	EXPECT_EQ(8, add(fd, 10));
	EXPECT_EQ(3, count_of(fd));
	EXPECT_EQ(7, lost_of(fd));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_EQ(8, add(fd, 10));
	EXPECT_EQ(3, count_of(fd));
	EXPECT_EQ(7 + 9, lost_of(fd));
	close(fd);
}

/* It is done in one step: signals neither end it nor have it lose twice. */
TEST_F(flow, saturating_writes_under_signals)
{
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_signal };
	__u64 end = ms_from_now(300), written = 0, taken = 0;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10,
			      .overflow = FLOWFD_OVERFLOW_SATURATE));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (now_ns() < end) {
		for (int i = 0; i < 3; i++) {
			ASSERT_EQ(8, add(self->fd, 7));
			written += 7;
		}
		taken += got(&self->f);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	EXPECT_EQ(written, taken + lost_of(self->fd));
}

TEST_HARNESS_MAIN
