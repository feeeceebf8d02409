// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timed reads and writes: how long they wait, what ends them, and each error. Built for
 * 64-bit and 32-bit callers.
 */
#include <stddef.h>

#include "fixtures.h"
#include "flow_user.h"

#define SHORT (30 * MSEC)
#define LONG (PATIENCE_MS * MSEC)

static const unsigned long both[] = { FLOWFD_IOC_COUNTER_WRITE, FLOWFD_IOC_COUNTER_READ };

/* Returns 0 or a negative errno. A read takes what a write adds. */
static long transfer(int fd, bool is_read, __u64 timeout, __u32 flags)
{
	__u64 value;

	return is_read ? read_with(fd, &value, timeout, flags) :
			 write_with(fd, 1, timeout, flags);
}

TEST(layout)
{
	EXPECT_EQ(24, sizeof(struct flowfd_transfer));
	EXPECT_EQ(8, offsetof(struct flowfd_transfer, timeout));
	EXPECT_EQ(16, offsetof(struct flowfd_transfer, flags));
	EXPECT_EQ(20, offsetof(struct flowfd_transfer, reserved));
	EXPECT_EQ(0x40184a1c, FLOWFD_IOC_COUNTER_WRITE);
	EXPECT_EQ(0xc0184a1d, FLOWFD_IOC_COUNTER_READ);
	EXPECT_EQ(32, FLOWFD_URGENT);
}

TEST_F(flowfd, write_and_read)
{
	__u64 value;

	EXPECT_EQ(0, write_with(self->fd, 0, 0, 0));
	EXPECT_EQ(0, write_with(self->fd, 5, 0, 0));
	EXPECT_EQ(0, write_with(self->fd, 6, LONG, 0));
	EXPECT_EQ(0, write_with(self->fd, 7, LONG, FLOWFD_NONBLOCK));
	EXPECT_EQ(0, read_with(self->fd, &value, LONG, 0));
	EXPECT_EQ(18, value);
	EXPECT_EQ(0, write_with(self->fd, ULLONG_MAX - 1, 1, 0));
	EXPECT_EQ(0, read_with(self->fd, &value, 0, 0));
	EXPECT_EQ(ULLONG_MAX - 1, value);
}

TEST_F(flowfd, read_times_out)
{
	__u64 value, start;

	start = now_ns();
	EXPECT_EQ(-ETIMEDOUT, read_with(self->fd, &value, SHORT, 0));
	EXPECT_LE(start + SHORT, now_ns());
	EXPECT_GT(start + LONG, now_ns());
	EXPECT_EQ(-ETIMEDOUT, read_with(self->fd, &value, 1, 0));
	ASSERT_EQ(8, add(self->fd, 5));
	EXPECT_EQ(0, read_with(self->fd, &value, SHORT, 0));
	EXPECT_EQ(5, value);
}

TEST_F(flowfd, write_times_out)
{
	__u64 value, start;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	start = now_ns();
	EXPECT_EQ(-ETIMEDOUT, write_with(self->fd, 5, SHORT, 0));
	EXPECT_LE(start + SHORT, now_ns());
	EXPECT_GT(start + LONG, now_ns());
	EXPECT_EQ(-ETIMEDOUT, write_with(self->fd, 1, 1, 0));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(9, value);
	EXPECT_EQ(0, count_of(self->fd));
	EXPECT_EQ(0, write_with(self->fd, 5, SHORT, 0));
}

/* A read that may wait waits until the counter is ready, and leaves what there was. */
TEST_F(marked, read_below_the_mark_times_out)
{
	__u64 value;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	ASSERT_EQ(8, add(self->fd, 3));
	EXPECT_EQ(-ETIMEDOUT, read_with(self->fd, &value, SHORT, 0));
	EXPECT_EQ(3, count_of(self->fd));
	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5, .max_delay = 2 * SHORT));
	ASSERT_EQ(0, read_with(self->fd, &value, LONG, 0));
	EXPECT_EQ(3, value);
}

/* A read or write in a thread of its own. */
struct timed {
	pthread_t thread;
	pid_t tid;
	int fd;
	bool is_read;
	__u64 value;
	__u64 timeout;
	bool finished;
	long result;
};

static void *timed_run(void *arg)
{
	struct timed *t = arg;

	__atomic_store_n(&t->tid, gettid(), __ATOMIC_RELEASE);
	t->result = t->is_read ? read_with(t->fd, &t->value, t->timeout, 0) :
				 write_with(t->fd, t->value, t->timeout, 0);
	__atomic_store_n(&t->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool timed_start(struct timed *t, int fd, bool is_read, __u64 value, __u64 timeout)
{
	*t = (struct timed){ .fd = fd, .is_read = is_read, .value = value,
			     .timeout = timeout };
	return !pthread_create(&t->thread, NULL, timed_run, t) &&
	       wait_until_asleep(&t->tid, SYS_ioctl);
}

static bool timed_join(struct timed *t)
{
	return wait_until_set(&t->finished) && !pthread_join(t->thread, NULL);
}

static const __u64 long_timeouts[] = { 0, LONG, 1ULL << 62, 1ULL << 63, ULLONG_MAX - 1,
				       ULLONG_MAX };

/* Also of times that no clock reaches. */
TEST_F(flowfd, write_ends_a_timed_read)
{
	struct timed t;

	for (size_t i = 0; i < ARRAY_SIZE(long_timeouts); i++) {
		ASSERT_TRUE(timed_start(&t, self->fd, true, 0, long_timeouts[i]))
			TH_LOG("timeout %llu", long_timeouts[i]);
		ASSERT_EQ(8, add(self->fd, 5));
		ASSERT_TRUE(timed_join(&t));
		EXPECT_EQ(0, t.result);
		EXPECT_EQ(5, t.value);
	}
}

TEST_F(flowfd, read_ends_a_timed_write)
{
	struct timed t;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	for (size_t i = 0; i < ARRAY_SIZE(long_timeouts); i++) {
		ASSERT_EQ(8, add(self->fd, 9));
		ASSERT_TRUE(timed_start(&t, self->fd, false, 5, long_timeouts[i]))
			TH_LOG("timeout %llu", long_timeouts[i]);
		ASSERT_EQ(8, take(self->fd, &value));
		EXPECT_EQ(9, value);
		ASSERT_TRUE(timed_join(&t));
		EXPECT_EQ(0, t.result);
		ASSERT_EQ(8, take(self->fd, &value));
		EXPECT_EQ(5, value);
	}
}

/* A restart would begin a new timeout. */
TEST_F(flowfd, signal_ends_what_has_a_timeout)
{
	struct timed t;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	for (int i = 0; i < 4; i++) {
		bool is_read = i / 2;
		__u64 value = 0;

		catch_signal(i % 2 ? SA_RESTART : 0);
		if (!is_read)
			add(self->fd, 9);
		ASSERT_TRUE(timed_start(&t, self->fd, is_read, 5, 10 * LONG));
		pthread_kill(t.thread, SIGUSR1);
		ASSERT_TRUE(timed_join(&t));
		EXPECT_EQ(-EINTR, t.result);
		if (!is_read) {
			ASSERT_EQ(8, take(self->fd, &value));
			EXPECT_EQ(9, value);
		}
		EXPECT_EQ(0, count_of(self->fd));
	}
}

TEST_F(flowfd, without_a_timeout_it_is_restarted)
{
	struct timed t;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	for (int i = 0; i < 4; i++) {
		bool is_read = i / 2, restarts = i % 2;

		catch_signal(restarts ? SA_RESTART : 0);
		if (!is_read) {
			ASSERT_EQ(8, add(self->fd, 9));
		}
		ASSERT_TRUE(timed_start(&t, self->fd, is_read, 5, 0));
		pthread_kill(t.thread, SIGUSR1);
		sleep_ms(QUIET_MS);
		EXPECT_EQ(!restarts, __atomic_load_n(&t.finished, __ATOMIC_ACQUIRE));
		if (restarts && is_read) {
			ASSERT_EQ(8, add(self->fd, 5));
		} else if (!is_read) {
			ASSERT_EQ(8, take(self->fd, &value));
		}
		ASSERT_TRUE(timed_join(&t));
		EXPECT_EQ(restarts ? 0 : -EINTR, t.result);
		if (!is_read && restarts) {
			ASSERT_EQ(8, take(self->fd, &value));
			EXPECT_EQ(5, value);
		}
		EXPECT_EQ(0, count_of(self->fd));
	}
}

/* The flag and O_NONBLOCK are the same, with a timeout or without. */
TEST_F(flowfd, nonblocking)
{
	__u64 start = now_ns(), value;

	ASSERT_EQ(0, set_maximum(self->fd, 2));
	for (int i = 0; i < 6; i++) {
		__u32 flags = i % 3 ? FLOWFD_NONBLOCK : 0;
		__u64 timeout = i / 3 ? LONG : 0;

		set_nonblock(self->fd, i % 3 != 1);
		EXPECT_EQ(-EAGAIN, transfer(self->fd, true, timeout, flags));
		EXPECT_EQ(0, transfer(self->fd, false, timeout, flags));
		EXPECT_EQ(-EAGAIN, transfer(self->fd, false, timeout, flags));
		EXPECT_EQ(1, count_of(self->fd));
		EXPECT_EQ(0, read_with(self->fd, &value, timeout, flags));
		EXPECT_EQ(1, value);
	}
	EXPECT_GT(start + LONG, now_ns());
}

TEST_F(flowfd, values_that_never_fit)
{
	EXPECT_EQ(-EINVAL, write_with(self->fd, ULLONG_MAX, LONG, 0));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(-EINVAL, write_with(self->fd, 10, LONG, 0));
	EXPECT_EQ(-EINVAL, write_with(self->fd, 10, 0, FLOWFD_NONBLOCK));
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_F(flowfd, unknown_flags)
{
	struct flowfd_transfer args;

	ASSERT_EQ(8, add(self->fd, 5));
	for (int is_read = 0; is_read < 2; is_read++) {
		for (int bit = 0; bit < 32; bit++) {
			__u32 flag = 1U << bit;

			if (flag == FLOWFD_NONBLOCK || (flag == FLOWFD_URGENT && !is_read))
				continue;
			EXPECT_EQ(-EINVAL, transfer(self->fd, is_read, 0, flag))
				TH_LOG("flag %#x", flag);
		}
		args = (struct flowfd_transfer){ .value = 1, .reserved = 1 };
		EXPECT_EQ(-EINVAL, result_of(ioctl(self->fd, both[is_read], &args)));
		args.reserved = 1U << 31;
		EXPECT_EQ(-EINVAL, result_of(ioctl(self->fd, both[is_read], &args)));
	}
	EXPECT_EQ(5, count_of(self->fd));
}

/* The value that a read finds in the structure is not an argument. */
TEST_F(flowfd, value_of_a_read_is_ignored)
{
	struct flowfd_transfer args = { .value = ULLONG_MAX };

	ASSERT_EQ(8, add(self->fd, 5));
	EXPECT_EQ(0, result_of(ioctl(self->fd, FLOWFD_IOC_COUNTER_READ, &args)));
	EXPECT_EQ(5, args.value);
}

TEST(wrong_descriptors)
{
	int only_read = open(DEVICE, O_RDONLY | O_CLOEXEC);
	int only_write = open(DEVICE, O_WRONLY | O_CLOEXEC);
	int event = eventfd(1, EFD_CLOEXEC);

	EXPECT_EQ(-EBADF, transfer(only_read, false, LONG, 0));
	EXPECT_EQ(-EAGAIN, transfer(only_read, true, 0, FLOWFD_NONBLOCK));
	EXPECT_EQ(-EBADF, transfer(only_write, true, LONG, 0));
	EXPECT_EQ(0, transfer(only_write, false, LONG, 0));
	EXPECT_EQ(-ENOTTY, transfer(event, false, LONG, 0));
	EXPECT_EQ(-ENOTTY, transfer(event, true, LONG, 0));
	close(only_read);
	close(only_write);
	close(event);
}

TEST(semaphore)
{
	int fd = open_counter(CREATED, 2, EFD_SEMAPHORE);
	struct timed t[2];
	__u64 value;

	ASSERT_LE(0, fd);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, read_with(fd, &value, LONG, 0));
		EXPECT_EQ(1, value);
	}
	EXPECT_EQ(-ETIMEDOUT, read_with(fd, &value, SHORT, 0));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(timed_start(&t[i], fd, true, 0, LONG));
	}
	ASSERT_EQ(8, add(fd, 3));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(timed_join(&t[i]));
		EXPECT_EQ(0, t[i].result);
		EXPECT_EQ(1, t[i].value);
	}
	EXPECT_EQ(1, count_of(fd));
	close(fd);
}

/* Its end and the timeout at the same time: one of two results, and the sum tells which. */
TEST_F(flowfd, timeout_and_transfer_together)
{
	unsigned int seed = 1, timeouts = 0;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	for (int i = 0; i < 600; i++) {
		bool is_read = i % 2;
		__u64 value = 0, more = 0;
		struct timed t = {
			.fd = self->fd, .is_read = is_read, .value = 5,
			.timeout = 1 + rand_r(&seed) % 100000,
		};

		if (!is_read) {
			ASSERT_EQ(8, add(self->fd, 9));
		}
		ASSERT_EQ(0, pthread_create(&t.thread, NULL, timed_run, &t));
		while (!__atomic_load_n(&t.tid, __ATOMIC_ACQUIRE))
			sched_yield();
		spin_ns(rand_r(&seed) % 200000);
		if (is_read) {
			ASSERT_EQ(8, add(self->fd, 5));
		} else {
			ASSERT_EQ(8, take(self->fd, &value));
		}
		ASSERT_EQ(0, pthread_join(t.thread, NULL));
		if (take_now(self->fd, &more))
			more = 0;
		timeouts += t.result == -ETIMEDOUT;
		if (t.result) {
			EXPECT_EQ(-ETIMEDOUT, t.result);
		}
		if (is_read) {
			EXPECT_EQ(5, (t.result ? 0 : t.value) + more);
		} else {
			EXPECT_EQ(9 + (t.result ? 0 : 5), value + more);
		}
	}
	TH_LOG("%u of 600 timed out", timeouts);
}

TEST_HARNESS_MAIN
