// SPDX-License-Identifier: GPL-2.0-only
/*
 * All operations at the same time on one counter: no call hangs, no call fails with an
 * unexpected error, and the sum of writes is the sum of reads plus the count.
 *
 * FLOWFD_STRESS_MS sets the time.
 */
#include "selftest.h"

#define THREADS 6

struct shared {
	int fd;
	bool stop;
	__u64 written;
	__u64 taken;
	unsigned long operations;
	unsigned long surprises;
};

struct worker {
	pthread_t thread;
	struct shared *shared;
	unsigned int seed;
};

static void expect(struct shared *s, bool as_it_should_be)
{
	if (!as_it_should_be)
		__atomic_add_fetch(&s->surprises, 1, __ATOMIC_SEQ_CST);
}

static void write_some(struct shared *s, __u64 value)
{
	long result = add(s->fd, value);

	if (result == 8)
		__atomic_add_fetch(&s->written, value, __ATOMIC_SEQ_CST);
	else
		/* EINVAL: the value can never fit below the present maximum. */
		expect(s, result == -EAGAIN || (result == -EINVAL && value));
}

static void read_some(struct shared *s)
{
	__u64 value;
	long result = take(s->fd, &value);

	if (result == 8)
		__atomic_add_fetch(&s->taken, value, __ATOMIC_SEQ_CST);
	else
		expect(s, result == -EAGAIN);
}

static void change_maximum(struct shared *s, unsigned int random)
{
	long result = set_maximum(s->fd, random % 50);

	expect(s, !result || result == -EINVAL);
	expect(s, maximum_of(s->fd) > 0);
}

static void change_bucket(struct shared *s, unsigned int random)
{
	expect(s, !set_qos(s->fd, 1 + random % 3, random % 100000));
}

static void look(struct shared *s, unsigned int random)
{
	int events = poll_for(s->fd, POLLIN | POLLOUT, random % 2);

	expect(s, !(events & ~(POLLIN | POLLOUT | POLLERR)));
}

static void copy(struct shared *s)
{
	int fd = dup(s->fd), ep = epoll_on(fd, EPOLLIN | EPOLLOUT | EPOLLET);

	epoll_take(ep, 0);
	close(fd);
	close(ep);
}

static void fail_to_read(struct shared *s)
{
	long result = result_of(syscall(SYS_read, s->fd, NULL, 8));

	expect(s, result == -EFAULT || result == -EAGAIN);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->shared;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		unsigned int random = rand_r(&w->seed);

		switch (rand_r(&w->seed) % 16) {
		case 0:
			change_maximum(s, random);
			break;
		case 1:
			change_bucket(s, random);
			break;
		case 2:
			look(s, random);
			break;
		case 3:
			copy(s);
			break;
		case 4:
			count_of(s->fd);
			break;
		case 5 ... 9:
			read_some(s);
			break;
		default:
			write_some(s, random % 7);
		}
		__atomic_add_fetch(&s->operations, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *work_and_fail(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(&w->shared->stop, __ATOMIC_RELAXED)) {
		fail_to_read(w->shared);
		sched_yield();
	}
	return NULL;
}

/*
 * Two tests: a failed read loses nothing while the maximum stays, but what it gives
 * back may not fit below one that was lowered.
 */
static void run(struct __test_metadata *_metadata, struct shared *s,
		void *(*first)(void *))
{
	struct worker worker[THREADS];

	for (int i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){ .shared = s, .seed = i + 1 };
		ASSERT_EQ(0, pthread_create(&worker[i].thread, NULL,
					    i ? work : first, &worker[i]));
	}
	sleep_until_ns(now_ns() + stress_ns());
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(worker[i].thread, NULL));
	}
	EXPECT_EQ(0, s->surprises);
	EXPECT_LT(100, s->operations);
}

TEST(everything_at_once)
{
	struct shared s = { .fd = open_counter(CREATED, 0, EFD_NONBLOCK) };

	ASSERT_LE(0, s.fd);
	run(_metadata, &s, work);
	EXPECT_LT(0, s.written);
	EXPECT_EQ(s.written, s.taken + count_of(s.fd));
	close(s.fd);
}

TEST(everything_and_failing_reads)
{
	struct shared s = { .fd = open_counter(OPENED, 0, EFD_NONBLOCK) };

	ASSERT_LE(0, s.fd);
	run(_metadata, &s, work_and_fail);
	EXPECT_LT(0, s.written);
	EXPECT_GE(s.written, s.taken + count_of(s.fd));
	close(s.fd);
}

TEST_HARNESS_MAIN
