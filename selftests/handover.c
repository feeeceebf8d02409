// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who makes room adds the value of the first sleeping writer and wakes it alone; who adds
 * gives the count to the first sleeping reader. The order of those who sleep, and that
 * whoever goes away while it sleeps takes nothing with it.
 */
#include <sys/wait.h>

#include "fixtures.h"
#include "flow_user.h"

FLOW_FIXTURE(flow);
FLOW_MARKS_FIXTURE(flow_marked);

/* Has the writers sleep in the order of their values. */
static void start_writers(struct __test_metadata *_metadata, struct call *writers, int n,
			  int fd, const __u64 *values)
{
	for (int i = 0; i < n; i++) {
		ASSERT_TRUE(start_write(&writers[i], fd, values[i]))
			TH_LOG("writer %d", i);
	}
}

TEST_F(flow, writers_in_order)
{
	static const __u64 values[] = { 9, 8, 7, 6, 5, 9, 8, 7 };
	struct call writers[ARRAY_SIZE(values)];

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 9));
	start_writers(_metadata, writers, ARRAY_SIZE(values), self->fd, values);
	EXPECT_EQ(9, got(&self->f));
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		ASSERT_TRUE(call_join(&writers[i]))
			TH_LOG("writer %zu", i);
		EXPECT_EQ(8, writers[i].result);
		EXPECT_EQ(values[i], count_of(self->fd));
		EXPECT_EQ(values[i], got(&self->f));
	}
	EXPECT_EQ(0, count_of(self->fd));
}

/* All that fit are added by the take itself; the first that does not is the next. */
TEST_F(flow, as_many_as_fit)
{
	static const __u64 values[] = { 3, 4, 2, 1, 9 };
	struct call writers[ARRAY_SIZE(values)];
	long sleeps;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 9));
	start_writers(_metadata, writers, ARRAY_SIZE(values), self->fd, values);
	sleeps = thread_sleeps(writers[3].tid);
	EXPECT_EQ(9, got(&self->f));
	EXPECT_EQ(9, count_of(self->fd));
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(call_join(&writers[i]));
	}
	sleep_ms(QUIET_MS / 2);
	EXPECT_EQ(sleeps, thread_sleeps(writers[3].tid));
	EXPECT_EQ(9, got(&self->f));
	ASSERT_TRUE(call_join(&writers[3]));
	EXPECT_EQ(1, got(&self->f));
	ASSERT_TRUE(call_join(&writers[4]));
	EXPECT_EQ(9, got(&self->f));
}

/* It would fit, but another came first. */
TEST_F(flow, later_writers_wait_behind_the_first)
{
	struct call big, small;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(start_write(&big, self->fd, 9));
	ASSERT_TRUE(start_write(&small, self->fd, 1));
	sleep_ms(QUIET_MS / 2);
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(5, got(&self->f));
	ASSERT_TRUE(call_join(&big));
	EXPECT_FALSE(call_finished(&small));
	EXPECT_EQ(9, got(&self->f));
	ASSERT_TRUE(call_join(&small));
	EXPECT_EQ(1, got(&self->f));
}

/* As with eventfd, where nobody waits in line. */
TEST_F(flow, writes_that_do_not_block_pass)
{
	struct call big;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(start_write(&big, self->fd, 9));
	EXPECT_EQ(0, write_with(self->fd, 1, 0, FLOWFD_NONBLOCK));
	set_nonblock(self->fd, true);
	EXPECT_EQ(8, add(self->fd, 2));
	EXPECT_EQ(8, put(&self->f, 1));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	EXPECT_EQ(-EAGAIN, add(self->fd, 1));
	set_nonblock(self->fd, false);
	EXPECT_EQ(9, got(&self->f));
	ASSERT_TRUE(call_join(&big));
	EXPECT_EQ(9, count_of(self->fd));
}

/* Whoever was first goes away: the next must not wait for it. */
static void expect_next(struct __test_metadata *_metadata, struct flow *f, struct call *next)
{
	ASSERT_TRUE(call_join(next));
	EXPECT_EQ(8, next->result);
	EXPECT_EQ(6, count_of(f->fd));
	EXPECT_EQ(6, got(f));
}

TEST_F(flow, interrupted_writer_lets_the_next_go)
{
	struct call first, next;

	catch_signal(0);
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(start_write(&first, self->fd, 9));
	ASSERT_TRUE(start_write(&next, self->fd, 1));
	pthread_kill(first.thread, SIGUSR1);
	ASSERT_TRUE(call_join(&first));
	EXPECT_EQ(-EINTR, first.result);
	expect_next(_metadata, &self->f, &next);
}

TEST_F(flow, writer_that_times_out_lets_the_next_go)
{
	struct call next;
	pid_t child;
	int status;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 5));
	child = fork();
	if (!child)
		_exit(write_with(self->fd, 9, 500 * MSEC, 0) != -ETIMEDOUT);
	ASSERT_TRUE(wait_until_asleep(&child, SYS_ioctl));
	ASSERT_TRUE(start_write(&next, self->fd, 1));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	expect_next(_metadata, &self->f, &next);
}

/* A process of a real-time priority that writes @value, or reads if it is 0. */
static pid_t start_realtime(int fd, int priority, __u64 value)
{
	struct sched_param param = { .sched_priority = priority };
	pid_t child = fork();

	if (!child) {
		if (sched_setscheduler(0, SCHED_FIFO, &param))
			_exit(200);
		if ((value ? add(fd, value) : take(fd, &value)) != 8)
			_exit(201);
		_exit(value);
	}
	return child;
}

/* It sleeps, and ends with what it took. */
static pid_t start_realtime_reader(int fd, int priority)
{
	pid_t child = start_realtime(fd, priority, 0);

	return wait_until_asleep(&child, SYS_read) ? child : -1;
}

static int exit_status(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ?
		       WEXITSTATUS(status) : -1;
}

/* The reader that came first may not get a processor while they do. */
TEST_F(flow, realtime_readers_come_first)
{
	struct call ordinary;
	pid_t low, high;

	ASSERT_TRUE(start_read(&ordinary, self->fd));
	low = start_realtime_reader(self->fd, 5);
	high = start_realtime_reader(self->fd, 7);
	ASSERT_LT(0, low);
	ASSERT_LT(0, high);
	ASSERT_EQ(8, put(&self->f, 3));
	EXPECT_EQ(3, exit_status(high));
	ASSERT_EQ(8, put(&self->f, 4));
	EXPECT_EQ(4, exit_status(low));
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(call_join(&ordinary));
	EXPECT_EQ(5, ordinary.value);
}

/* It has the lock that a real-time task waits for, and reads. */
struct lent {
	pthread_mutex_t lock;
	int fd;
	pid_t lender, reader;
	__u64 value;
};

static void *lend_priority(void *arg)
{
	const struct sched_param param = { .sched_priority = 9 };
	struct lent *l = arg;

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return NULL;
	__atomic_store_n(&l->lender, gettid(), __ATOMIC_RELEASE);
	pthread_mutex_lock(&l->lock);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void *read_with_lent_priority(void *arg)
{
	struct lent *l = arg;
	pthread_t lender;

	pthread_mutex_lock(&l->lock);
	if (pthread_create(&lender, NULL, lend_priority, l))
		return NULL;
	if (wait_until_asleep(&l->lender, SYS_futex)) {
		__atomic_store_n(&l->reader, gettid(), __ATOMIC_RELEASE);
		take(l->fd, &l->value);
	}
	pthread_mutex_unlock(&l->lock);
	pthread_join(lender, NULL);
	return NULL;
}

/* The ordinary reader is ordinary, whatever it has been lent. */
TEST_F(flow, realtime_readers_come_before_lent_priorities)
{
	struct lent l = { .fd = self->fd };
	pthread_mutexattr_t inherits;
	pthread_t reader;
	pid_t realtime;

	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	ASSERT_EQ(0, pthread_mutex_init(&l.lock, &inherits));
	realtime = start_realtime_reader(self->fd, 5);
	ASSERT_LT(0, realtime);
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_with_lent_priority, &l));
	ASSERT_TRUE(wait_until_asleep(&l.reader, SYS_read));
	ASSERT_EQ(8, put(&self->f, 3));
	EXPECT_EQ(3, exit_status(realtime));
	ASSERT_EQ(8, put(&self->f, 4));
	pthread_join(reader, NULL);
	EXPECT_EQ(4, l.value);
}

/* It goes before those that sleep, and so need not wait for the next take. */
TEST_F(flow, realtime_writer_that_fits)
{
	struct call big;
	pid_t high;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(start_write(&big, self->fd, 9));
	high = start_realtime(self->fd, 5, 3);
	ASSERT_LT(0, high);
	sleep_ms(300);
	EXPECT_EQ(high, waitpid(high, NULL, WNOHANG));
	EXPECT_EQ(8, count_of(self->fd));
	kill(high, SIGKILL);
	ASSERT_EQ(0, set_maximum(self->fd, 100));
	ASSERT_TRUE(call_join(&big));
}

/* Its room could come only from readers that wait for what those behind it add. */
TEST(writers_of_a_semaphore_pass)
{
	int fd = open_counter(CREATED, 3, EFD_SEMAPHORE);
	struct call big, small, later;
	__u64 value;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, set_maximum(fd, 6));
	ASSERT_TRUE(start_write(&big, fd, 5));
	EXPECT_EQ(8, add(fd, 1));
	EXPECT_EQ(8, add(fd, 1));
	/* Behind both, and the first that fits. */
	ASSERT_TRUE(start_write(&small, fd, 2));
	ASSERT_TRUE(start_write(&later, fd, 1));
	EXPECT_EQ(8, take(fd, &value));
	ASSERT_TRUE(call_join(&later));
	EXPECT_EQ(5, count_of(fd));
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(8, take(fd, &value));
	ASSERT_TRUE(call_join(&small));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(8, take(fd, &value));
	ASSERT_TRUE(call_join(&big));
	close(fd);
}

/* It is at the head of the line, and can never fit any more. */
TEST_F(flow, writer_that_can_never_fit_lets_the_next_go)
{
	struct call first, next;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(start_write(&first, self->fd, 9));
	ASSERT_TRUE(start_write(&next, self->fd, 1));
	ASSERT_EQ(0, set_maximum(self->fd, 8));
	ASSERT_TRUE(call_join(&first));
	EXPECT_EQ(-EINVAL, first.result);
	expect_next(_metadata, &self->f, &next);
}

/* A maximum that makes room is as good as a take. */
TEST_F(flow, raised_maximum_serves_in_order)
{
	static const __u64 values[] = { 4, 2, 1 };
	struct call writers[3];

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 9));
	start_writers(_metadata, writers, 3, self->fd, values);
	ASSERT_EQ(0, set_maximum(self->fd, 13));	/* not for the first */
	EXPECT_EQ(9, count_of(self->fd));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 14));
	EXPECT_EQ(13, count_of(self->fd));
	ASSERT_TRUE(call_join(&writers[0]));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 100));
	EXPECT_EQ(16, count_of(self->fd));
	ASSERT_TRUE(call_join(&writers[1]));
	ASSERT_TRUE(call_join(&writers[2]));
}

/* What a writer added as it was served wakes readers, as any add does. */
TEST_F(flow, served_writer_wakes_readers)
{
	struct call writer;
	int edge, level;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, put(&self->f, 9));
	edge = epoll_on(self->fd, EPOLLIN | EPOLLET);
	level = epoll_on(self->fd, EPOLLIN);
	EXPECT_EQ(EPOLLIN, epoll_take(edge, 0));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	epoll_take(edge, 0);
	EXPECT_EQ(9, got(&self->f));
	EXPECT_EQ(EPOLLIN, epoll_take(edge, PATIENCE_MS));
	EXPECT_EQ(EPOLLIN, epoll_take(level, PATIENCE_MS));
	ASSERT_TRUE(call_join(&writer));
	close(edge);
	close(level);
}

/* A writer waits at one side, and at the other a reader until there is enough. */
TEST_F(flow_marked, served_writer_below_the_mark)
{
	struct call writer, reader;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 8));
	ASSERT_EQ(8, put(&self->f, 9));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	EXPECT_EQ(9, got(&self->f));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_EQ(8, put(&self->f, 3));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(8, reader.value);
}

/* The count goes to the reader that slept first, and the other is not even woken. */
TEST_F(flow, readers_in_order)
{
	struct call reader[4];
	long sleeps[4];

	for (int i = 0; i < 4; i++) {
		ASSERT_TRUE(start_read(&reader[i], self->fd));
		sleeps[i] = thread_sleeps(reader[i].tid);
	}
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(8, put(&self->f, 5 + i));
		ASSERT_TRUE(call_join(&reader[i]))
			TH_LOG("reader %d", i);
		EXPECT_EQ(5 + i, reader[i].value);
		for (int j = i + 1; j < 4; j++) {
			EXPECT_FALSE(call_finished(&reader[j]));
			EXPECT_EQ(sleeps[j], thread_sleeps(reader[j].tid));
		}
	}
	EXPECT_EQ(0, count_of(self->fd));
}

/* What is more than there are readers stays. */
TEST(semaphore_readers_in_order)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);
	struct call reader[6];
	long sleeps[6];

	ASSERT_LE(0, fd);
	for (int i = 0; i < 6; i++) {
		ASSERT_TRUE(start_read(&reader[i], fd));
		sleeps[i] = thread_sleeps(reader[i].tid);
	}
	for (int i = 0; i < 6; i += 2) {
		__u64 rest = i == 4 ? 3 : 0;

		ASSERT_EQ(8, add(fd, 2 + rest));
		EXPECT_EQ(rest, count_of(fd));
		for (int j = i; j < i + 2; j++) {
			ASSERT_TRUE(call_join(&reader[j]));
			EXPECT_EQ(1, reader[j].value);
		}
		for (int j = i + 2; j < 6; j++) {
			EXPECT_EQ(sleeps[j], thread_sleeps(reader[j].tid));
		}
	}
	close(fd);
}

/* Room that a semaphore's reader makes as it is given its part. */
TEST(semaphore_of_readers_and_writers)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE);
	struct call writer[3];
	__u64 value;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, set_maximum(fd, 3));
	ASSERT_EQ(8, add(fd, 2));
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(start_write(&writer[i], fd, 1));
	}
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(8, take(fd, &value));
		EXPECT_EQ(1, value);
		EXPECT_EQ(2, count_of(fd));
		ASSERT_TRUE(call_join(&writer[i]));
	}
	close(fd);
}

TEST_F(flow, interrupted_reader_lets_the_next_go)
{
	struct call first, next;

	catch_signal(0);
	ASSERT_TRUE(start_read(&first, self->fd));
	ASSERT_TRUE(start_read(&next, self->fd));
	pthread_kill(first.thread, SIGUSR1);
	ASSERT_TRUE(call_join(&first));
	EXPECT_EQ(-EINTR, first.result);
	ASSERT_EQ(8, put(&self->f, 5));
	ASSERT_TRUE(call_join(&next));
	EXPECT_EQ(5, next.value);
}

/*
 * A signal as the call could end, before that or after it. A signal that comes before the
 * call has begun ends nothing.
 */
static bool signal_together(struct call *c, int round, unsigned int *seed,
			    void (*serve)(struct flow *f), struct flow *f)
{
	if (pthread_create(&c->thread, NULL, call_run, c))
		return false;
	while (!__atomic_load_n(&c->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	spin_ns(rand_r(seed) % 100000);
	if (round % 2)
		pthread_kill(c->thread, SIGUSR1);
	serve(f);
	if (round % 2 == 0)
		pthread_kill(c->thread, SIGUSR1);
	return call_join(c);
}

static __u64 served;

static void serve_writer(struct flow *f)
{
	served = got(f);
}

static void serve_reader(struct flow *f)
{
	put(f, 5);
}

/* The result says whether the value was added, or taken. */
TEST_F(flow, signal_together_with_room_or_count)
{
	unsigned int seed = 1, interrupted = 0;

	catch_signal(0);
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	for (int i = 0; i < 200; i++) {
		struct call writer = { .fd = self->fd, .is_write = true, .value = 5 };
		struct call reader = { .fd = self->fd };

		ASSERT_EQ(8, put(&self->f, 9));
		ASSERT_TRUE(signal_together(&writer, i, &seed, serve_writer, &self->f));
		interrupted += writer.result == -EINTR;
		EXPECT_EQ(9 + (writer.result == 8 ? 5 : 0), served + got(&self->f))
			TH_LOG("round %d: write returned %ld", i, writer.result);
		EXPECT_EQ(0, count_of(self->fd));
		ASSERT_TRUE(signal_together(&reader, i, &seed, serve_reader, &self->f));
		interrupted += reader.result == -EINTR;
		EXPECT_EQ(5, (reader.result == 8 ? reader.value : 0) + got(&self->f))
			TH_LOG("round %d: read returned %ld", i, reader.result);
	}
	TH_LOG("%u of 400 were interrupted", interrupted);
}

/* The process is killed as it is served: its value is there once or not at all. */
TEST_F(flow, kill_and_room_together)
{
	unsigned int seed = 1;
	struct call next;
	__u64 sum;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	for (int i = 0; i < 16; i++) {
		pid_t child;

		ASSERT_EQ(8, put(&self->f, 9));
		child = fork();
		if (!child) {
			add(self->fd, 5);
			pause();
		}
		ASSERT_TRUE(wait_until_asleep(&child, SYS_write));
		ASSERT_TRUE(start_write(&next, self->fd, 8));
		if (i % 2)
			kill(child, SIGKILL);
		spin_ns(rand_r(&seed) % 50000);
		sum = got(&self->f);
		if (i % 2 == 0)
			kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		while (!call_finished(&next))
			sum += got(&self->f);
		ASSERT_TRUE(call_join(&next));
		sum += got(&self->f);
		EXPECT_TRUE(sum == 9 + 8 || sum == 9 + 8 + 5)
			TH_LOG("round %d: sum %llu", i, sum);
	}
}

TEST_HARNESS_MAIN
