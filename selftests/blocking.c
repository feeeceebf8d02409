// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocking reads and writes: which operations wake them, what a signal does to them,
 * and that several readers and writers lose nothing and make nothing up.
 */
#include <sys/wait.h>

#include "fixtures.h"

#define WORKERS 2

TEST_F(counter, read_waits_for_write)
{
	struct call reader;

	ASSERT_TRUE(start_read(&reader, self->fd));
	sleep_ms(QUIET_MS);
	EXPECT_FALSE(call_finished(&reader));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(8, reader.result);
	EXPECT_EQ(5, reader.value);
}

TEST_F(counter, write_waits_for_read)
{
	struct call writer;
	__u64 value;

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 5));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	sleep_ms(QUIET_MS);
	EXPECT_FALSE(call_finished(&writer));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(ULLONG_MAX - 5, value);
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_EQ(5, count_of(self->fd));
}

/* Both readers are woken; one takes the count, the other goes back to sleep. */
TEST_F(counter, one_of_two_readers)
{
	struct call reader[2];

	ASSERT_TRUE(start_read(&reader[0], self->fd));
	ASSERT_TRUE(start_read(&reader[1], self->fd));
	ASSERT_EQ(8, add(self->fd, 5));
	while (!call_finished(&reader[0]) && !call_finished(&reader[1]))
		sleep_ms(1);
	sleep_ms(QUIET_MS);
	EXPECT_NE(call_finished(&reader[0]), call_finished(&reader[1]));
	ASSERT_EQ(8, add(self->fd, 6));
	ASSERT_TRUE(call_join(&reader[0]));
	ASSERT_TRUE(call_join(&reader[1]));
	EXPECT_EQ(11, reader[0].value + reader[1].value);
}

TEST_F(semaphore, each_reader_gets_one)
{
	struct call reader[2];

	ASSERT_TRUE(start_read(&reader[0], self->fd));
	ASSERT_TRUE(start_read(&reader[1], self->fd));
	ASSERT_EQ(8, add(self->fd, 2));
	ASSERT_TRUE(call_join(&reader[0]));
	ASSERT_TRUE(call_join(&reader[1]));
	EXPECT_EQ(1, reader[0].value);
	EXPECT_EQ(1, reader[1].value);
	EXPECT_EQ(0, count_of(self->fd));
}

TEST_F(semaphore, read_makes_room_for_one)
{
	struct call writer;
	__u64 value;

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	ASSERT_TRUE(start_write(&writer, self->fd, 2));
	ASSERT_EQ(8, take(self->fd, &value));
	sleep_ms(QUIET_MS);
	EXPECT_FALSE(call_finished(&writer));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(ULLONG_MAX - 1, count_of(self->fd));
}

TEST_F(counter, signal_interrupts_read)
{
	struct call reader;

	catch_signal(0);
	ASSERT_TRUE(start_read(&reader, self->fd));
	pthread_kill(reader.thread, SIGUSR1);
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(-EINTR, reader.result);
	ASSERT_EQ(8, add(self->fd, 5));
	EXPECT_EQ(5, count_of(self->fd));
}

TEST_F(counter, signal_interrupts_write)
{
	struct call writer;

	catch_signal(0);
	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 5));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	pthread_kill(writer.thread, SIGUSR1);
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(-EINTR, writer.result);
	EXPECT_EQ(ULLONG_MAX - 5, count_of(self->fd));
}

/* Waits until the thread sleeps again after the signal. */
static bool sleeps_again(struct call *c, long sleeps, long call)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (thread_sleeps(c->tid) > sleeps &&
		    thread_sleeps_in(c->tid, call))
			return true;
		sleep_ms(1);
	}
	return false;
}

TEST_F(counter, restart_of_read)
{
	struct call reader;
	long sleeps;

	catch_signal(SA_RESTART);
	ASSERT_TRUE(start_read(&reader, self->fd));
	sleeps = thread_sleeps(reader.tid);
	pthread_kill(reader.thread, SIGUSR1);
	EXPECT_TRUE(sleeps_again(&reader, sleeps, SYS_read));
	EXPECT_FALSE(call_finished(&reader));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(8, reader.result);
	EXPECT_EQ(5, reader.value);
}

TEST_F(counter, restart_of_write)
{
	struct call writer;
	__u64 value;
	long sleeps;

	catch_signal(SA_RESTART);
	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	ASSERT_TRUE(start_write(&writer, self->fd, 5));
	sleeps = thread_sleeps(writer.tid);
	pthread_kill(writer.thread, SIGUSR1);
	EXPECT_TRUE(sleeps_again(&writer, sleeps, SYS_write));
	EXPECT_FALSE(call_finished(&writer));
	ASSERT_EQ(8, take(self->fd, &value));
	ASSERT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_EQ(5, count_of(self->fd));
}

/* Two readers and two writers of one counter; the sums must agree. */
struct flow {
	int fd;
	unsigned int writes;
	bool stop;
	__u64 written;
	__u64 taken;
};

static void wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	/* Bounded, as stopping the readers does not write. */
	poll(&p, 1, 20);
}

static void *flow_write(void *arg)
{
	struct flow *f = arg;

	for (unsigned int i = 0; i < f->writes; i++) {
		__u64 value = i % 7;

		while (add(f->fd, value) != 8)
			wait_for(f->fd, POLLOUT);
		__atomic_add_fetch(&f->written, value, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *flow_read(void *arg)
{
	struct flow *f = arg;
	__u64 value;

	while (!__atomic_load_n(&f->stop, __ATOMIC_SEQ_CST)) {
		if (take(f->fd, &value) == 8)
			__atomic_add_fetch(&f->taken, value, __ATOMIC_SEQ_CST);
		else
			wait_for(f->fd, POLLIN);
	}
	return NULL;
}

/*
 * Ends blocked readers by writing a unit for each, which counts as written and taken
 * like all others. If the reader has gone, the unit stays in the counter.
 */
static void flow_run(struct flow *f)
{
	pthread_t reader[WORKERS], writer[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		pthread_create(&reader[i], NULL, flow_read, f);
		pthread_create(&writer[i], NULL, flow_write, f);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(writer[i], NULL);
	__atomic_store_n(&f->stop, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < WORKERS; i++) {
		while (pthread_tryjoin_np(reader[i], NULL)) {
			if (count_of(f->fd) == 0 && add(f->fd, 1) == 8)
				f->written++;
			sleep_ms(1);
		}
	}
}

static void expect_all_arrived(struct __test_metadata *_metadata, int fd,
			       __u64 maximum, bool nonblock)
{
	struct flow f = { .fd = fd,
			  .writes = parameter("FLOWFD_FLOW", 3000) };

	if (maximum) {
		ASSERT_EQ(0, set_maximum(fd, maximum));
	}
	set_nonblock(fd, nonblock);
	flow_run(&f);
	EXPECT_LT(0, f.written);
	EXPECT_EQ(f.written, f.taken + count_of(fd));
}

TEST_F(counter, sum_of_two_and_two)
{
	expect_all_arrived(_metadata, self->fd, 0, false);
}

TEST_F(counter, sum_of_two_and_two_nonblocking)
{
	expect_all_arrived(_metadata, self->fd, 0, true);
}

TEST_F(semaphore, sum_of_two_and_two)
{
	expect_all_arrived(_metadata, self->fd, 0, false);
}

TEST_F(semaphore, sum_of_two_and_two_nonblocking)
{
	expect_all_arrived(_metadata, self->fd, 0, true);
}

TEST_F(flowfd, sum_below_a_maximum)
{
	expect_all_arrived(_metadata, self->fd, 10, false);
}

TEST_F(flowfd, sum_below_a_maximum_nonblocking)
{
	expect_all_arrived(_metadata, self->fd, 10, true);
}

#define SLEEPERS 1500
#define SMALL_STACK 65536

static void *read_one(void *arg)
{
	__u64 value;

	take(*(int *)arg, &value);
	return NULL;
}

/* A process with many threads that read; it says on @ready how many. */
static pid_t start_sleepers(int fd, int ready)
{
	pid_t child = fork();
	pthread_attr_t attr;
	pthread_t thread;
	int n = 0;

	if (child)
		return child;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SMALL_STACK);
	while (n < SLEEPERS && !pthread_create(&thread, &attr, read_one, &fd))
		n++;
	sleep_ms(QUIET_MS);
	if (write(ready, &n, sizeof(n)) == sizeof(n))
		pause();
	_exit(1);
}

/* The least time of a poller that comes and goes. */
static __u64 time_of_poller(int ep, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	__u64 start, time, least = ULLONG_MAX;

	for (int i = 0; i < 100; i++) {
		start = now_ns();
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
		epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
		time = now_ns() - start;
		least = time < least ? time : least;
	}
	return least;
}

/* Interrupts are off as a task joins the queue, so the others there must not matter. */
TEST_F(counter, joining_does_not_search)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	__u64 alone, among_many;
	int ready[2], n = 0;
	pid_t child;

	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	alone = time_of_poller(ep, self->fd);
	child = start_sleepers(self->fd, ready[1]);
	ASSERT_LT(0, child);
	ASSERT_EQ(sizeof(n), read(ready[0], &n, sizeof(n)));
	among_many = time_of_poller(ep, self->fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_LT(0, n);
	EXPECT_LT(among_many, 3 * alone)
	{
		TH_LOG("alone: %llu ns, with %d sleepers: %llu ns", alone, n,
		       among_many);
	}
	close(ready[0]);
	close(ready[1]);
	close(ep);
}

TEST_HARNESS_MAIN
