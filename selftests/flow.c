// SPDX-License-Identifier: GPL-2.0-only
/*
 * All settings of the flow control in one call: what it accepts, that a failed call
 * changes nothing, that zero is an eventfd, and that settings and count are of one moment.
 * What the settings do is in flow_marks.c and flow_overflow.c.
 */
#include <stddef.h>

#include "fixtures.h"
#include "flow_user.h"

static const struct flowfd_flow all_set = {
	.maximum = 1000, .read_mark = 20, .write_mark = 30, .max_delay = 40 * MSEC,
	.qos = { 3, 70 }, .overflow = FLOWFD_OVERFLOW_DROP,
};

static void expect_settings(struct __test_metadata *_metadata, int fd,
			    struct flowfd_flow expected)
{
	struct flowfd_flow flow = flow_of(fd);

	EXPECT_EQ(expected.maximum, flow.maximum);
	EXPECT_EQ(expected.read_mark, flow.read_mark);
	EXPECT_EQ(expected.write_mark, flow.write_mark);
	EXPECT_EQ(expected.max_delay, flow.max_delay);
	EXPECT_EQ(expected.qos.token_capacity, flow.qos.token_capacity);
	EXPECT_EQ(expected.qos.token_rate, flow.qos.token_rate);
	EXPECT_EQ(expected.overflow, flow.overflow);
}

TEST(layout)
{
	EXPECT_EQ(72, sizeof(struct flowfd_flow));
	EXPECT_EQ(72, FLOWFD_FLOW_SIZE_VER0);
	EXPECT_EQ(8, offsetof(struct flowfd_flow, read_mark));
	EXPECT_EQ(16, offsetof(struct flowfd_flow, write_mark));
	EXPECT_EQ(24, offsetof(struct flowfd_flow, max_delay));
	EXPECT_EQ(32, offsetof(struct flowfd_flow, qos));
	EXPECT_EQ(40, offsetof(struct flowfd_flow, overflow));
	EXPECT_EQ(44, offsetof(struct flowfd_flow, flags));
	EXPECT_EQ(48, offsetof(struct flowfd_flow, count));
	EXPECT_EQ(56, offsetof(struct flowfd_flow, lost));
	EXPECT_EQ(64, offsetof(struct flowfd_flow, set));
	EXPECT_EQ(0x40484a1a, FLOWFD_IOC_SET_FLOW);
	EXPECT_EQ(0x80484a1b, FLOWFD_IOC_GET_FLOW);
}

TEST_F(flowfd, by_default)
{
	struct flowfd_flow flow = flow_of(self->fd);

	EXPECT_EQ(ULLONG_MAX, flow.maximum);
	EXPECT_GE(1, flow.read_mark);
	EXPECT_GE(1, flow.write_mark);
	EXPECT_EQ(0, flow.max_delay);
	EXPECT_EQ(0, flow.qos.token_capacity);
	EXPECT_EQ(0, flow.qos.token_rate);
	EXPECT_EQ(FLOWFD_OVERFLOW_WAIT, flow.overflow);
	EXPECT_EQ(0, flow.count);
	EXPECT_EQ(0, flow.lost);
	EXPECT_EQ(0, flow.flags & ~FLOWFD_MAPPED);
}

TEST_F(marked, settings_are_what_was_set)
{
	static const struct flowfd_flow good[] = {
		all_set,
		{ .maximum = 2, .read_mark = 1, .write_mark = 1 },
		{ .maximum = ULLONG_MAX, .read_mark = ULLONG_MAX - 1,
		  .write_mark = ULLONG_MAX - 1, .max_delay = FLOWFD_MAX_DELAY_MAX,
		  .qos = { UINT_MAX, FLOWFD_TOKEN_RATE_MAX },
		  .overflow = FLOWFD_OVERFLOW_SATURATE },
		{ .maximum = 3, .read_mark = 2, .write_mark = 2, .max_delay = 1,
		  .qos = { 5, 0 }, .overflow = FLOWFD_OVERFLOW_FAIL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ASSERT_EQ(0, set_flow(self->fd, good[i]));
		expect_settings(_metadata, self->fd, good[i]);
		EXPECT_EQ(good[i].maximum, maximum_of(self->fd));
		EXPECT_EQ(good[i].qos.token_rate, qos_of(self->fd).token_rate);
		EXPECT_EQ(good[i].qos.token_capacity, qos_of(self->fd).token_capacity);
	}
	ASSERT_EQ(0, SET_FLOW(self->fd, 0));
	EXPECT_EQ(ULLONG_MAX, flow_of(self->fd).maximum);
}

TEST_F(marked, single_settings_change_nothing_else)
{
	struct flowfd_flow expected = all_set;

	ASSERT_EQ(0, set_flow(self->fd, all_set));
	ASSERT_EQ(0, set_maximum(self->fd, 500));
	expected.maximum = 500;
	expect_settings(_metadata, self->fd, expected);
	ASSERT_EQ(0, set_qos(self->fd, 4, 80));
	expected.qos = (struct eventfd_qos){ 4, 80 };
	expect_settings(_metadata, self->fd, expected);
}

TEST_F(marked, maximum_must_be_above_both_marks)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 100, .read_mark = 20, .write_mark = 10));
	EXPECT_EQ(-EINVAL, set_maximum(self->fd, 20));
	EXPECT_EQ(0, set_maximum(self->fd, 21));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 100, .read_mark = 10, .write_mark = 20));
	EXPECT_EQ(-EINVAL, set_maximum(self->fd, 20));
	EXPECT_EQ(100, maximum_of(self->fd));
	EXPECT_EQ(0, set_maximum(self->fd, 21));
	/* Marks of 0 are as marks of 1, but those allow a maximum of 1. */
	ASSERT_EQ(0, SET_FLOW(self->fd, 0));
	EXPECT_EQ(0, set_maximum(self->fd, 1));
}

TEST_F(marked, count_and_flags_and_lost_are_only_read)
{
	struct flowfd_flow flow = all_set;

	ASSERT_EQ(8, add(self->fd, 7));
	flow.count = 99;
	flow.lost = 98;
	flow.flags = FLOWFD_SEMAPHORE | FLOWFD_MAPPED;
	ASSERT_EQ(0, set_flow(self->fd, flow));
	flow = flow_of(self->fd);
	EXPECT_EQ(7, flow.count);
	EXPECT_EQ(0, flow.lost);
	EXPECT_EQ(0, flow.flags & ~FLOWFD_MAPPED);
	EXPECT_EQ(7, count_of(self->fd));
}

TEST(flags_say_what_the_counter_is)
{
	static const __u32 all[] = { 0, FLOWFD_SEMAPHORE, FLOWFD_MAPPED };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct flowfd_create_counter args = { .flags = all[i] };
		int fd = create_counter(&args);

		ASSERT_LE(0, fd);
		EXPECT_EQ(all[i], flow_of(fd).flags);
		close(fd);
	}
}

/* Each of these is all right but for one field. */
static void expect_refusals(struct __test_metadata *_metadata, int fd)
{
	static const struct flowfd_flow bad[] = {
		{ .maximum = 5 },	/* the count is 5 */
		{ .maximum = 1 },
		{ .maximum = 100, .read_mark = 100 },
		{ .maximum = 100, .read_mark = ULLONG_MAX },
		{ .read_mark = ULLONG_MAX },
		{ .maximum = 100, .write_mark = 100 },
		{ .maximum = 100, .write_mark = ULLONG_MAX },
		{ .write_mark = ULLONG_MAX },
		{ .max_delay = FLOWFD_MAX_DELAY_MAX + 1 },
		{ .max_delay = ULLONG_MAX },
		{ .overflow = FLOWFD_OVERFLOW_DROP + 1 },
		{ .overflow = UINT_MAX },
		{ .qos = { 0, 1 } },
		{ .qos = { 1, FLOWFD_TOKEN_RATE_MAX + 1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, set_flow(fd, bad[i]))
			TH_LOG("setting %zu", i);
		expect_settings(_metadata, fd, all_set);
	}
}

TEST_F(marked, bad_settings_change_nothing)
{
	ASSERT_EQ(0, set_flow(self->fd, all_set));
	ASSERT_EQ(8, add(self->fd, 5));
	expect_refusals(_metadata, self->fd);
	EXPECT_EQ(5, count_of(self->fd));
}

TEST(semaphore_has_no_wakeup_settings)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, SET_FLOW(fd, .read_mark = 2));
	EXPECT_EQ(-EINVAL, SET_FLOW(fd, .max_delay = 1));
	EXPECT_EQ(-EINVAL, SET_FLOW(fd, .qos = { 1, 1 }));
	EXPECT_EQ(0, SET_FLOW(fd, .maximum = 10, .read_mark = 1, .write_mark = 5,
			      .overflow = FLOWFD_OVERFLOW_DROP));
	EXPECT_EQ(5, flow_of(fd).write_mark);
	EXPECT_EQ(FLOWFD_SEMAPHORE, flow_of(fd).flags);
	close(fd);
}

/* In memory there is a count, and no mark: each add below it would be a call. */
TEST(mapped_counter_has_no_marks)
{
	int fd = open_counter(MAPPED, 0, 0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, SET_FLOW(fd, .read_mark = 2));
	EXPECT_EQ(-EINVAL, SET_FLOW(fd, .write_mark = 2));
	EXPECT_EQ(-EINVAL, SET_FLOW(fd, .max_delay = 1));
	EXPECT_EQ(ULLONG_MAX, flow_of(fd).maximum);
	EXPECT_EQ(0, SET_FLOW(fd, .maximum = 10, .read_mark = 1, .write_mark = 1,
			      .qos = { 1, 2 }, .overflow = FLOWFD_OVERFLOW_DROP));
	EXPECT_EQ(10, flow_of(fd).maximum);
	EXPECT_EQ(FLOWFD_OVERFLOW_DROP, flow_of(fd).overflow);
	close(fd);
}

/* Each bit alone changes its setting, and nothing else. */
TEST_F(marked, some_settings)
{
	static const struct flowfd_flow other = {
		.maximum = 500, .read_mark = 7, .write_mark = 8, .max_delay = 9 * MSEC,
		.qos = { 5, 10 }, .overflow = FLOWFD_OVERFLOW_FAIL,
	};

	for (__u32 bit = 1; bit <= FLOWFD_SET_OVERFLOW; bit <<= 1) {
		struct flowfd_flow args = other, expected = all_set;

		args.set = bit;
		if (bit == FLOWFD_SET_MAXIMUM)
			expected.maximum = other.maximum;
		if (bit == FLOWFD_SET_READ_MARK)
			expected.read_mark = other.read_mark;
		if (bit == FLOWFD_SET_WRITE_MARK)
			expected.write_mark = other.write_mark;
		if (bit == FLOWFD_SET_MAX_DELAY)
			expected.max_delay = other.max_delay;
		if (bit == FLOWFD_SET_QOS)
			expected.qos = other.qos;
		if (bit == FLOWFD_SET_OVERFLOW)
			expected.overflow = other.overflow;
		ASSERT_EQ(0, set_flow(self->fd, all_set));
		EXPECT_EQ(0, set_flow(self->fd, args));
		expect_settings(_metadata, self->fd, expected);
	}
	ASSERT_EQ(0, set_flow(self->fd, all_set));
	EXPECT_EQ(-EINVAL, SET_FLOW(self->fd, .maximum = 20, .set = FLOWFD_SET_MAXIMUM));
	EXPECT_EQ(-EINVAL, SET_FLOW(self->fd, .read_mark = 1000,
				    .set = FLOWFD_SET_READ_MARK));
	EXPECT_EQ(-EINVAL, SET_FLOW(self->fd, .set = FLOWFD_SET_OVERFLOW << 1));
	EXPECT_EQ(-EINVAL, SET_FLOW(self->fd, .reserved = 1));
	EXPECT_EQ(-EINVAL, SET_FLOW(self->fd, .flags = 1U << 31));
	expect_settings(_metadata, self->fd, all_set);
}

/* Whoever has a descriptor: all of them are of one open file description. */
TEST_F(flowfd, sealed)
{
	struct flowfd_create_counter setup = { 0 };
	struct flowfd_create_ring ring = { .max_items = 1 };
	struct flowfd_flow flow;
	__u64 value;

	EXPECT_EQ(-EINVAL, SET_FLOW(self->fd, .overflow = 9, .flags = FLOWFD_SEAL));
	EXPECT_EQ(0, SET_FLOW(self->fd, 0));
	EXPECT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .qos = { 2, 3 },
			      .flags = FLOWFD_SEAL));
	flow = flow_of(self->fd);
	EXPECT_EQ(FLOWFD_SEAL, flow.flags & ~FLOWFD_MAPPED);
	EXPECT_EQ(-EPERM, set_flow(self->fd, flow));
	EXPECT_EQ(-EPERM, SET_FLOW(self->fd, 0));
	EXPECT_EQ(-EPERM, set_maximum(self->fd, 20));
	EXPECT_EQ(-EPERM, set_qos(self->fd, 0, 0));
	if (variant->origin == OPENED)
		EXPECT_EQ(-EPERM, result_of(ioctl(self->fd, FLOWFD_IOC_SETUP_COUNTER,
						  &setup)));
	EXPECT_EQ(-EPERM, result_of(ioctl(self->fd, FLOWFD_IOC_CREATE_RING, &ring)));
	EXPECT_EQ(10, maximum_of(self->fd));
	EXPECT_EQ(3, qos_of(self->fd).token_rate);
	EXPECT_EQ(8, add(self->fd, 9));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(9, value);
}

TEST(eventfd_does_not_know_it)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct flowfd_flow flow = { 0 };

	EXPECT_EQ(-ENOTTY, result_of(ioctl(event, FLOWFD_IOC_GET_FLOW, &flow)));
	EXPECT_EQ(-ENOTTY, set_flow(event, flow));
	close(event);
}

TEST_F(marked, fdinfo_shows_the_settings)
{
	static const char *const names[] = { " wait", " fail", " saturate", " drop" };
	struct flowfd_flow flow = all_set;
	char value[32];

	fdinfo_line(self->fd, "flowfd-overflow", value, sizeof(value));
	EXPECT_STREQ(names[0], value);
	for (__u32 i = 0; i < ARRAY_SIZE(names); i++) {
		flow.overflow = i;
		ASSERT_EQ(0, set_flow(self->fd, flow));
		fdinfo_line(self->fd, "flowfd-overflow", value, sizeof(value));
		EXPECT_STREQ(names[i], value);
	}
	EXPECT_EQ(all_set.read_mark, fdinfo_number(self->fd, "flowfd-read-mark", 10));
	EXPECT_EQ(all_set.write_mark, fdinfo_number(self->fd, "flowfd-write-mark", 10));
	EXPECT_EQ(all_set.max_delay, fdinfo_number(self->fd, "flowfd-max-delay", 10));
	ASSERT_EQ(8, add(self->fd, 1000));	/* dropped */
	EXPECT_EQ(1000, fdinfo_number(self->fd, "flowfd-lost", 10));
}

/*
 * The same random operations on an eventfd and on a counter whose settings were policies
 * and are zero again.
 */
TEST_F(marked, zero_is_an_eventfd)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int ep[2] = { epoll_on(event, EPOLLIN | EPOLLOUT | EPOLLET),
		      epoll_on(self->fd, EPOLLIN | EPOLLOUT | EPOLLET) };
	__u64 value[2] = { 0 };
	unsigned int seed = 1;

	set_nonblock(self->fd, true);
	for (int i = 0; i < 3000; i++) {
		__u64 v = rand_r(&seed) % 4;

		if (rand_r(&seed) % 3 == 0)
			v = ULLONG_MAX - v;
		if (i % 50 == 0) {
			take(event, &value[0]);
			take(self->fd, &value[1]);
			ASSERT_EQ(0, set_flow(self->fd, all_set));
			ASSERT_EQ(0, SET_FLOW(self->fd, 0));
			epoll_take(ep[0], 0);
			epoll_take(ep[1], 0);
		}
		if (rand_r(&seed) % 3) {
			ASSERT_EQ(add(event, v), add(self->fd, v));
		} else {
			ASSERT_EQ(take(event, &value[0]), take(self->fd, &value[1]));
			ASSERT_EQ(value[0], value[1]);
		}
		ASSERT_EQ(poll_now(event), poll_now(self->fd));
		ASSERT_EQ(epoll_take(ep[0], 0), epoll_take(ep[1], 0))
			TH_LOG("step %d", i);
	}
	close(ep[0]);
	close(ep[1]);
	close(event);
}

/*
 * Cycles through: 0 with wide settings, 5 with wide settings, 0 with wide, 0 with narrow
 * settings. A count of 5 with narrow settings, or a mixture of settings, never exists.
 */
static const struct flowfd_flow wide = { .maximum = 100, .read_mark = 9, .write_mark = 8,
					 .max_delay = 3600, .qos = { 2, 7 },
					 .overflow = FLOWFD_OVERFLOW_SATURATE };
static const struct flowfd_flow narrow = { .maximum = 5, .read_mark = 3, .write_mark = 4,
					   .max_delay = 1800, .qos = { 3, 9 },
					   .overflow = FLOWFD_OVERFLOW_FAIL };

struct hammer {
	int fd;
	bool stop;
};

static void *hammer_run(void *arg)
{
	struct hammer *h = arg;
	__u64 value;

	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		set_flow(h->fd, wide);
		add(h->fd, 5);
		take(h->fd, &value);
		set_flow(h->fd, narrow);
	}
	return NULL;
}

static bool same_settings(const struct flowfd_flow *a, const struct flowfd_flow *b)
{
	return a->maximum == b->maximum && a->read_mark == b->read_mark &&
	       a->write_mark == b->write_mark && a->max_delay == b->max_delay &&
	       !memcmp(&a->qos, &b->qos, sizeof(a->qos)) && a->overflow == b->overflow;
}

TEST_F(marked, settings_and_count_of_one_moment)
{
	unsigned int ms = parameter("FLOWFD_HAMMER_MS", 1500);
	/* A busy machine may run one of the threads for long. */
	__u64 end = ms_from_now(ms + PATIENCE_MS), enough = ms_from_now(ms);
	unsigned long wides = 0, narrows = 0, fives = 0;
	struct hammer h = { .fd = self->fd };
	struct flowfd_flow flow;
	pthread_t thread;

	set_nonblock(self->fd, true);
	ASSERT_EQ(0, set_flow(self->fd, narrow));
	ASSERT_EQ(0, pthread_create(&thread, NULL, hammer_run, &h));
	while (now_ns() < end) {
		bool is_wide, is_narrow;

		flow = flow_of(self->fd);
		is_wide = same_settings(&flow, &wide) &&
			  (flow.count == 0 || flow.count == 5);
		is_narrow = same_settings(&flow, &narrow) && flow.count == 0;
		wides += is_wide;
		narrows += is_narrow;
		fives += flow.count == 5;
		EXPECT_TRUE(is_wide || is_narrow) {
			TH_LOG("maximum %llu, read mark %llu, count %llu", flow.maximum,
			       flow.read_mark, flow.count);
			end = 0;
		}
		if (wides && narrows && fives && now_ns() > enough)
			end = 0;
	}
	__atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* Both threads ran at the same time. */
	EXPECT_LT(0, wides);
	EXPECT_LT(0, narrows);
	EXPECT_LT(0, fives);
}

TEST_HARNESS_MAIN
