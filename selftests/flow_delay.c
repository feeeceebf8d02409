// SPDX-License-Identifier: GPL-2.0-only
/*
 * The maximum delay: when it begins, when it ends, what starts it anew, and what its
 * timer costs. The time of a wakeup has a lower limit that always holds; the upper limit
 * is what a busy machine keeps.
 */
#include "fixtures.h"
#include "flow_sleeper.h"

#define DELAY_MS 40
#define DELAY (DELAY_MS * MSEC)
/* After a test's last look that must come before the end of the delay. */
#define LONG_DELAY_MS 1500

FLOW_MARKS_FIXTURE(flow);

TEST_F(flow, sleepers_wait_for_the_delay)
{
	struct flow_sleeper s;
	__u64 before;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = DELAY));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		before = now_ns();
		ASSERT_EQ(8, put(&self->f, 3));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(3, s.value);
		EXPECT_LE(before + DELAY, s.woken)
			TH_LOG("%s", way_names[way]);
	}
}

static int by_size(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* Most wakeups come when the delay ends, not some time later. */
TEST_F(flow, wakeups_are_in_time)
{
	__u64 late[15], before;
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = 5 * MSEC));
	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		ASSERT_SLEEPS(&s, &self->f, i % WAYS);
		before = now_ns();
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_WOKEN(&s);
		late[i] = s.woken - before - 5 * MSEC;
	}
	qsort(late, ARRAY_SIZE(late), sizeof(late[0]), by_size);
	EXPECT_GT(20 * MSEC, late[ARRAY_SIZE(late) / 2]);
}

/* From the first add, not from the last. */
TEST_F(flow, later_adds_do_not_postpone)
{
	struct flow_sleeper s;
	__u64 before, last;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 1000000, .max_delay = DELAY));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		before = now_ns();
		do {
			last = now_ns();
			ASSERT_EQ(8, put(&self->f, 1));
			sleep_ms(1);
		} while (!flow_sleeper_finished(&s) && last < before + 20 * DELAY);
		ASSERT_WOKEN(&s);
		EXPECT_LE(before + DELAY, s.woken);
		EXPECT_GT(before + 20 * DELAY, last);
		got(&self->f);
	}
}

/* Nor do settings that make the count ready for a while. */
TEST_F(flow, ready_for_a_while_does_not_postpone)
{
	__u64 before, last;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 8, .read_mark = 5, .max_delay = DELAY));
	before = now_ns();
	ASSERT_EQ(8, put(&self->f, 4));
	do {
		last = now_ns();
		/* There is no room for so much. */
		ASSERT_EQ(0, SET_FLOW(self->fd, .set = FLOWFD_SET_WRITE_MARK,
				      .write_mark = 4));
		EXPECT_EQ(POLLIN, poll_now(self->fd));
		ASSERT_EQ(0, SET_FLOW(self->fd, .set = FLOWFD_SET_WRITE_MARK,
				      .write_mark = 1));
		sleep_ms(1);
	} while (!(poll_now(self->fd) & POLLIN) && last < before + 20 * DELAY);
	EXPECT_LE(before + DELAY, now_ns());
	EXPECT_GT(before + 20 * DELAY, last);
}

/* A take ends the delay, and the next add begins a new one. */
TEST_F(flow, a_take_starts_anew)
{
	struct flow_sleeper s;
	__u64 before;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = DELAY));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 1));
		sleep_ms(DELAY_MS / 2);
		/* On a slow machine the sleeper has it already. */
		if (got(&self->f)) {
			before = now_ns();
			ASSERT_EQ(8, put(&self->f, 2));
			ASSERT_WOKEN(&s);
			EXPECT_EQ(2, s.value);
			EXPECT_LE(before + DELAY, s.woken)
				TH_LOG("%s: %llu us too early", way_names[way],
				       (before + DELAY - s.woken) / 1000);
		} else {
			ASSERT_WOKEN(&s);
		}
	}
}

/* A take in between, and nobody adds: there is nothing to wake for. */
TEST_F(flow, no_wakeup_when_the_count_is_gone)
{
	struct flow_sleeper s;
	long sleeps;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = DELAY));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		sleeps = thread_sleeps(s.tid);
		ASSERT_EQ(8, put(&self->f, 1));
		if (got(&self->f)) {
			sleep_ms(2 * DELAY_MS);
			EXPECT_ASLEEP(&s);
			EXPECT_EQ(sleeps, thread_sleeps(s.tid))
				TH_LOG("%s", way_names[way]);
			ASSERT_EQ(8, put(&self->f, 100));
		}
		ASSERT_WOKEN(&s);
	}
}

/* The mark comes first: no second wakeup when the delay ends. */
TEST_F(flow, the_mark_ends_the_delay)
{
	struct waiter edge, ring;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 3, .max_delay = LONG_DELAY_MS * MSEC));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	ASSERT_EQ(0, waiter_open(&ring, &self->f, RING));
	ASSERT_EQ(8, put(&self->f, 2));
	EXPECT_FALSE(waiter_sees(&edge));
	EXPECT_FALSE(waiter_sees(&ring));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_TRUE(waiter_sees(&edge));
	EXPECT_TRUE(waiter_sees(&ring));
	EXPECT_EQ(0, epoll_take(edge.ep, LONG_DELAY_MS + QUIET_MS));
	EXPECT_FALSE(waiter_sees(&ring));
	waiter_close(&edge);
	waiter_close(&ring);
}

/* Nobody slept while the delay passed, so no timer may have run. */
TEST_F(flow, poll_knows_that_the_delay_passed)
{
	struct flow_sleeper s;
	struct waiter w;
	__u64 before;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = DELAY));
	before = now_ns();
	ASSERT_EQ(8, put(&self->f, 1));
	if (poll_now(self->fd) & POLLIN) {
		EXPECT_LE(before + DELAY, now_ns());
	}
	sleep_ms(2 * DELAY_MS);
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	for (enum way way = LEVEL; way < WAYS; way++) {
		ASSERT_EQ(0, waiter_open(&w, &self->f, way));
		EXPECT_TRUE(waiter_sees(&w))
			TH_LOG("%s", way_names[way]);
		waiter_close(&w);
	}
	/* These do not sleep. */
	for (int i = 0; i < 2; i++) {
		__u64 value;

		ASSERT_EQ(0, waiter_open(&w, &self->f, i ? READ : TIMED_READ));
		EXPECT_EQ(8, waiter_take(&w, &value));
		EXPECT_EQ(i + 1, value);
		waiter_close(&w);
		ASSERT_EQ(8, put(&self->f, 2));
		poll_now(self->fd);
		sleep_ms(2 * DELAY_MS);
	}
	EXPECT_EQ(2, got(&self->f));
	/* And the next delay is whole. */
	ASSERT_SLEEPS(&s, &self->f, READ);
	before = now_ns();
	ASSERT_EQ(8, put(&self->f, 1));
	ASSERT_WOKEN(&s);
	EXPECT_LE(before + DELAY, s.woken);
}

/* They come while the delay runs already. */
TEST_F(flow, late_sleepers_wait_for_the_rest)
{
	struct flow_sleeper s;
	__u64 before;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = 4 * DELAY));
	for (enum way way = 0; way < WAYS; way++) {
		before = now_ns();
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_TRUE(flow_sleeper_begin(&s, &self->f, way));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(1, s.value);
		EXPECT_LE(before + 4 * DELAY, s.woken);
	}
}

/* Without a mark there is nothing to delay. */
TEST_F(flow, delay_without_a_mark)
{
	struct waiter edge;

	for (__u64 mark = 0; mark < 2; mark++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = mark,
				      .max_delay = LONG_DELAY_MS * MSEC));
		ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
		EXPECT_TRUE(waiter_sees(&edge));
		EXPECT_EQ(1, got(&self->f));
		waiter_close(&edge);
	}
}

/*
 * A wakeup that waits for a token, a take, and a new count whose delay begins: then both
 * wait. Each comes at its own time.
 */
#define RATE 20
#define TOKEN_MS (1000 / RATE)

static bool defer_a_wakeup(struct flow *f, struct waiter *edge, __u64 max_delay)
{
	if (SET_FLOW(f->fd, .read_mark = 2, .max_delay = max_delay, .qos = { 1, RATE }))
		return false;
	put(f, 2);
	epoll_take(edge->ep, 0);
	got(f);
	put(f, 2);
	epoll_take(edge->ep, 0);
	got(f);
	return true;
}

TEST_F(flow, delay_does_not_postpone_a_token)
{
	struct waiter edge;

	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	for (int i = 0; i < 5; i++) {
		ASSERT_TRUE(defer_a_wakeup(&self->f, &edge, FLOWFD_MAX_DELAY_MAX));
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(edge.ep, PATIENCE_MS));
		EXPECT_EQ(2, got(&self->f));
	}
	waiter_close(&edge);
}

TEST_F(flow, token_does_not_end_a_delay)
{
	static const int delays[] = { 2, TOKEN_MS / 2, TOKEN_MS, 2 * TOKEN_MS };
	struct flow_sleeper s;
	struct waiter edge;
	__u64 before;

	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	for (enum way way = 0; way < WAYS; way++) {
		for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
			__u64 delay = delays[i] * MSEC;

			ASSERT_TRUE(defer_a_wakeup(&self->f, &edge, delay));
			before = now_ns();
			ASSERT_EQ(8, put(&self->f, 1));
			ASSERT_TRUE(flow_sleeper_begin(&s, &self->f, way));
			ASSERT_TRUE(flow_sleeper_join(&s))
				TH_LOG("%s, delay %d ms", way_names[way], delays[i]);
			EXPECT_EQ(1, s.value);
			EXPECT_LE(before + delay, s.woken);
		}
	}
	waiter_close(&edge);
}

/* Settings that change while the delay runs; it began when the count left 0. */
TEST_F(flow, another_delay)
{
	struct flow_sleeper s;
	__u64 before;

	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100,
				      .max_delay = FLOWFD_MAX_DELAY_MAX));
		ASSERT_SLEEPS(&s, &self->f, way);
		before = now_ns();
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		ASSERT_EQ(0, SET_FLOW(self->fd, .set = FLOWFD_SET_MAX_DELAY,
				      .max_delay = 2 * DELAY));
		ASSERT_WOKEN(&s);
		EXPECT_LE(before + 2 * DELAY, s.woken);
	}
}

TEST_F(flow, shorter_than_what_has_passed)
{
	struct flow_sleeper s;

	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100,
				      .max_delay = FLOWFD_MAX_DELAY_MAX));
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 1));
		sleep_ms(20);
		EXPECT_ASLEEP(&s);
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = 10 * MSEC));
		ASSERT_WOKEN(&s);
	}
}

/* The timer of a counter that is closed, or whose settings change, is gone. */
TEST_F(flow, no_delay_any_more)
{
	struct waiter edge;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = DELAY));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	ASSERT_EQ(8, put(&self->f, 1));
	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100));
	epoll_take(edge.ep, 0);		/* it may have passed already */
	EXPECT_EQ(0, epoll_take(edge.ep, 3 * DELAY_MS));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	waiter_close(&edge);
}

TEST(closed_while_the_delay_runs)
{
	long users = module_users();

	for (int i = 0; i < 200; i++) {
		struct flow f;
		struct waiter w;

		ASSERT_EQ(0, flow_open(&f, i % 2 ? OPENED : CREATED, BY_CALL));
		ASSERT_EQ(0, SET_FLOW(f.fd, .read_mark = 100,
				      .max_delay = (i % 8) * MSEC / 2 + 1));
		ASSERT_EQ(0, waiter_open(&w, &f, LEVEL + i % 4));
		ASSERT_EQ(8, put(&f, 1));
		flow_close(&f);
		waiter_close(&w);
	}
	EXPECT_EQ(users, settled_module_users(users));
}

/*
 * The delay of one nanosecond passes at once, and each add and take begins and ends one.
 * Nothing else than the adds may run the timer.
 */
TEST_F(flow, shortest_delay)
{
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = 1));
	for (int i = 0; i < 100; i++) {
		ASSERT_SLEEPS(&s, &self->f, i % WAYS);
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(1, s.value);
	}
}

/* Interrupts of the processors' timers so far, in sum. */
static unsigned long timer_interrupts(void)
{
	char line[1024], *p, *end;
	unsigned long sum = 0, n;
	FILE *f = fopen("/proc/interrupts", "r");

	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, "LOC:");
		if (!p)
			continue;
		for (p += 4; (n = strtoul(p, &end, 10), end != p); p = end)
			sum += n;
	}
	if (f)
		fclose(f);
	return sum;
}

static unsigned long interrupts_of(unsigned int ms)
{
	unsigned long before = timer_interrupts();

	sleep_ms(ms);
	return timer_interrupts() - before;
}

/* Nobody takes, and the level-triggered poller was told: the timer has nothing to do. */
TEST_F(flow, a_count_that_nobody_takes_costs_nothing)
{
	struct waiter w[3];
	unsigned long idle, held;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 100, .max_delay = 1000));
	ASSERT_EQ(0, waiter_open(&w[0], &self->f, LEVEL));
	ASSERT_EQ(0, waiter_open(&w[1], &self->f, EDGE));
	ASSERT_EQ(0, waiter_open(&w[2], &self->f, RING));
	idle = interrupts_of(500);
	ASSERT_EQ(8, put(&self->f, 1));
	held = interrupts_of(500);
	EXPECT_GT(idle + 500, held);
	for (int i = 0; i < 3; i++) {
		EXPECT_TRUE(waiter_sees(&w[i]));
		waiter_close(&w[i]);
	}
}

TEST_HARNESS_MAIN
