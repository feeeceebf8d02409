// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocking reads and writes: which operations wake them, what a signal does to them,
 * and that several of a semaphore lose nothing and make nothing up. Those of other
 * counters are in handover_crowd.c.
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

TEST_F(counter, signals_interrupt_or_restart)
{
	__u64 value;

	for (int i = 0; i < 4; i++) {
		bool is_write = i / 2, restarts = i % 2;
		struct call c;
		long sleeps;

		catch_signal(restarts ? SA_RESTART : 0);
		if (is_write) {
			ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
			ASSERT_TRUE(start_write(&c, self->fd, 5));
		} else {
			ASSERT_TRUE(start_read(&c, self->fd));
		}
		sleeps = thread_sleeps(c.tid);
		pthread_kill(c.thread, SIGUSR1);
		if (restarts) {
			EXPECT_TRUE(sleeps_again(&c, sleeps, is_write ? SYS_write : SYS_read));
			EXPECT_FALSE(call_finished(&c));
			ASSERT_EQ(8, is_write ? take(self->fd, &value) : add(self->fd, 5));
		}
		ASSERT_TRUE(call_join(&c));
		EXPECT_EQ(restarts ? 8 : -EINTR, c.result);
		if (is_write) {
			ASSERT_EQ(8, take(self->fd, &value));
			EXPECT_EQ(restarts ? 5 : ULLONG_MAX - 1, value);
		} else if (restarts) {
			EXPECT_EQ(5, c.value);
		}
		EXPECT_EQ(0, count_of(self->fd));
	}
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

TEST_F(semaphore, sum_of_two_and_two)
{
	for (int nonblock = 0; nonblock < 2; nonblock++) {
		struct flow f = { .fd = self->fd,
				  .writes = parameter("FLOWFD_FLOW", 3000) };
		__u64 before = count_of(self->fd);

		set_nonblock(self->fd, nonblock);
		flow_run(&f);
		EXPECT_LT(0, f.written);
		EXPECT_EQ(before + f.written, f.taken + count_of(self->fd));
	}
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
