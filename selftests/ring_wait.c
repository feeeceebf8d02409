// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting for a ring: FLOWFD_IOC_RING_WAIT with its times, numbers and signal mask, and
 * read. poll and epoll are in ring_poll.c.
 */
#include "ring_fixtures.h"
#include "ring_waiter.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/wait.h>

TEST_F(wait, does_not_wait_without_time)
{
	EXPECT_EQ(0, ring_wait_ms(&self->ring, 1, 0));
	add(self->events[0], 1);
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 1, 0));
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 0, 0));
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 3, 0));
	ring_take_only(&self->ring);
	EXPECT_EQ(0, ring_wait_ms(&self->ring, 1, 0));
}

TEST_F(wait, until_the_timeout)
{
	__u64 start = now_ns();

	EXPECT_EQ(0, ring_wait_ms(&self->ring, 1, 50));
	EXPECT_LE(50000000, now_ns() - start);
	add(self->events[0], 1);
	start = now_ns();
	EXPECT_EQ(1, ring_wait_ms(&self->ring, 2, 50));
	EXPECT_LE(50000000, now_ns() - start);
}

/*
 * If the event is gone when the sleeper runs, it must not return, and must be woken
 * again. It shares a processor with this thread, which runs first.
 */
TEST_F(wait, woken_too_late_it_sleeps_on)
{
	struct sched_param none = { 0 };
	struct waiter s;
	cpu_set_t here;
	int tries = 0;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(here), &here));
	do {
		ASSERT_GT(20, tries++);
		ASSERT_TRUE(waiter_start(&s, &self->ring, 1, false));
		ASSERT_EQ(0, sched_setscheduler(s.tid, SCHED_IDLE, &none));
		add(self->events[0], 1);
		ring_take_only(&self->ring);
	} while (!waiter_sleeps(&s) && waiter_ends(&s));
	add(self->events[1], 1);
	EXPECT_TRUE(waiter_ends(&s));
	EXPECT_EQ(1, s.result);
}

/* Fewer events than it wants must not wake it. */
TEST_F(wait, for_several_events)
{
	struct waiter s;
	long sleeps;

	ASSERT_TRUE(waiter_start(&s, &self->ring, 3, false));
	sleeps = thread_sleeps(s.tid);
	add(self->events[0], 1);
	add(self->events[0], 1);
	add(self->events[1], 1);
	EXPECT_TRUE(waiter_sleeps(&s));
	EXPECT_EQ(sleeps, thread_sleeps(s.tid));
	add(self->events[2], 1);
	ASSERT_TRUE(waiter_ends(&s));
	EXPECT_EQ(3, s.result);
}

TEST_F(wait, gathers_for_a_while)
{
	struct waiter s;
	__u64 start = now_ns();

	ASSERT_TRUE(waiter_start_with(&s, &self->ring, (struct flowfd_ring_wait){
		.timeout = FLOWFD_RING_FOREVER, .min_events = 3,
		.min_wait = 200000000 }));
	add(self->events[0], 1);
	ASSERT_TRUE(waiter_ends(&s));
	EXPECT_EQ(1, s.result);
	EXPECT_LE(200000000, s.woken - start);
	/* Enough events end it early. */
	add(self->events[1], 1);
	add(self->events[2], 1);
	EXPECT_EQ(3, ring_wait_with(&self->ring, (struct flowfd_ring_wait){
		.timeout = FLOWFD_RING_FOREVER, .min_events = 3,
		.min_wait = FLOWFD_RING_FOREVER }));
}

/* After min_wait without any event, one event is enough. */
TEST_F(wait, gathers_nothing_and_goes_on)
{
	struct waiter s;

	ASSERT_TRUE(waiter_start_with(&s, &self->ring, (struct flowfd_ring_wait){
		.timeout = FLOWFD_RING_FOREVER, .min_events = 3,
		.min_wait = 1000000 }));
	EXPECT_TRUE(waiter_sleeps(&s));
	add(self->events[0], 1);
	ASSERT_TRUE(waiter_ends(&s));
	EXPECT_EQ(1, s.result);
}

TEST_F(wait, gathering_ends_with_the_timeout)
{
	EXPECT_EQ(0, ring_wait_with(&self->ring, (struct flowfd_ring_wait){
		.timeout = 20000000, .min_events = 3,
		.min_wait = FLOWFD_RING_FOREVER }));
}

TEST_F(wait, wrong_arguments)
{
	sigset_t set;

	sigemptyset(&set);
#define WAIT(...) \
	ring_wait_with(&self->ring, (struct flowfd_ring_wait){ __VA_ARGS__ })
	EXPECT_EQ(0, WAIT(.min_events = 4));
	EXPECT_EQ(-EINVAL, WAIT(.min_events = 5));
	EXPECT_EQ(-EINVAL, WAIT(.flags = 1));
	EXPECT_EQ(-EINVAL, WAIT(.reserved = 1));
	EXPECT_EQ(-EINVAL, WAIT(.sigmask_size = 8));
	EXPECT_EQ(-EINVAL, WAIT(.sigmask = (uintptr_t)&set));
	EXPECT_EQ(-EINVAL, WAIT(.sigmask = (uintptr_t)&set, .sigmask_size = 4));
	EXPECT_EQ(-EFAULT, WAIT(.sigmask = 1, .sigmask_size = 8));
	EXPECT_EQ(0, WAIT(.sigmask = (uintptr_t)&set, .sigmask_size = 8));
}

static volatile int handled;
static sigset_t seen_in_handler;

static void handler(int number)
{
	handled = number;
	pthread_sigmask(SIG_BLOCK, NULL, &seen_in_handler);
}

TEST_F(wait, signal_ends_it)
{
	struct sigaction action = { .sa_handler = handler,
				    .sa_flags = SA_RESTART };
	struct waiter s;

	sigaction(SIGUSR1, &action, NULL);
	for (int reads = 0; reads < 2; reads++) {
		handled = 0;
		ASSERT_TRUE(waiter_start(&s, &self->ring, 1, reads));
		pthread_kill(s.thread, SIGUSR1);
		ASSERT_TRUE(waiter_ends(&s));
		EXPECT_EQ(-EINTR, s.result);
		EXPECT_EQ(SIGUSR1, handled);
	}
}

TEST_F(wait, read_waits_for_one_and_takes_none)
{
	struct waiter readers[2];

	ASSERT_TRUE(waiter_start(&readers[0], &self->ring, 1, true));
	ASSERT_TRUE(waiter_start(&readers[1], &self->ring, 1, true));
	EXPECT_TRUE(waiter_sleeps(&readers[0]));
	add(self->events[0], 1);
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(waiter_ends(&readers[i]));
		EXPECT_EQ(1, readers[i].result);
	}
	add(self->events[1], 1);
	EXPECT_EQ(2, ring_read_pending(&self->ring));
	EXPECT_EQ(2, ring_read_pending(&self->ring));
	EXPECT_EQ(~0U, ring_take_only(&self->ring));
}

TEST_F(wait, read_refuses)
{
	struct user_ring *r = &self->ring;
	char small[7];

	EXPECT_EQ(-EINVAL, result_of(read(r->fd, small, sizeof(small))));
	EXPECT_EQ(-EINVAL, result_of(write(r->fd, "12345678", 8)));
	EXPECT_EQ(-ESPIPE, result_of(pread(r->fd, &(__u64){ 0 }, 8, 0)));
	EXPECT_EQ(0, fcntl(r->fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, ring_read_pending(r));
	add(self->events[0], 1);
	EXPECT_EQ(1, ring_read_pending(r));
	EXPECT_EQ(-EFAULT, result_of(syscall(SYS_read, r->fd, NULL, 8)));
	EXPECT_EQ(1, ring_read_pending(r));
}

/* As with ppoll: a signal that is blocked otherwise ends the wait, once. */
TEST_F(wait, signal_mask)
{
	struct sigaction action = { .sa_handler = handler };
	struct flowfd_ring_wait args = { .sigmask_size = 8 };
	sigset_t blocked, open_mask, after;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	raise(SIGUSR1);
	EXPECT_EQ(0, handled);
	sigemptyset(&open_mask);
	sigaddset(&open_mask, SIGUSR2);
	args.sigmask = (uintptr_t)&open_mask;
	args.timeout = FLOWFD_RING_FOREVER;
	EXPECT_EQ(-EINTR, ring_wait_with(&self->ring, args));
	EXPECT_EQ(SIGUSR1, handled);
	/* The handler ran with the mask of the wait. */
	EXPECT_EQ(1, sigismember(&seen_in_handler, SIGUSR2));
	sigprocmask(SIG_SETMASK, NULL, &after);
	EXPECT_EQ(1, sigismember(&after, SIGUSR1));
	EXPECT_EQ(0, sigismember(&after, SIGUSR2));

	/* Events come before signals, and the mask is restored as well. */
	handled = 0;
	raise(SIGUSR1);
	add(self->events[0], 1);
	EXPECT_EQ(1, ring_wait_with(&self->ring, args));
	EXPECT_EQ(0, handled);
	sigprocmask(SIG_SETMASK, NULL, &after);
	EXPECT_EQ(1, sigismember(&after, SIGUSR1));
	EXPECT_EQ(0, sigismember(&after, SIGUSR2));
}

TEST_F(wait, can_be_killed)
{
	pid_t child = fork();
	sigset_t all;
	int status;

	if (!child) {
		sigfillset(&all);
		ring_wait_with(&self->ring, (struct flowfd_ring_wait){
			.timeout = FLOWFD_RING_FOREVER,
			.sigmask = (uintptr_t)&all, .sigmask_size = 8 });
		_exit(1);
	}
	ASSERT_TRUE(wait_until_asleep(&child, SYS_ioctl));
	kill(child, SIGTERM);
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, waitpid(child, &status, WNOHANG));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
}

/*
 * Each sleeper is woken when there are as many slots as it wants, in whatever order
 * they began to sleep.
 */
TEST_F(wait, sleepers_that_want_different_numbers)
{
	static const __u32 wanted[] = { 3, 1, 2, 3, 2, 1 };
	struct waiter s[ARRAY_SIZE(wanted)];

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		ASSERT_TRUE(waiter_start(&s[i], &self->ring, wanted[i], false));
	for (__u32 n = 1; n <= 3; n++) {
		add(self->events[n - 1], 1);
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
			if (wanted[i] == n) {
				ASSERT_TRUE(waiter_ends(&s[i]));
				EXPECT_LE(n, s[i].result);
			}
		}
		sleep_ms(QUIET_MS);
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
			if (wanted[i] > n)
				EXPECT_FALSE(waiter_finished(&s[i]));
		}
	}
}

/* What publishers were told last is of one that wants more. */
TEST_F(wait, sleeper_that_wants_less_comes_last)
{
	static const __u32 wanted[] = { 1, 2, 3 };
	struct waiter s[ARRAY_SIZE(wanted)];

	ASSERT_TRUE(waiter_start(&s[2], &self->ring, wanted[2], false));
	for (size_t i = 0; i < 2; i++) {
		ASSERT_TRUE(waiter_start(&s[i], &self->ring, wanted[i], false));
		add(self->events[i], 1);
		ASSERT_TRUE(waiter_ends(&s[i]));
		EXPECT_EQ(wanted[i], s[i].result);
	}
	add(self->events[2], 1);
	ASSERT_TRUE(waiter_ends(&s[2]));
}

#define FILES 60
#define POLLED (15 * FILES)

/* What wakes the ring without a key; a worker polls, two tasks wait for that. */
struct polled {
	int file, round, failed;
	struct user_ring ring;
	pthread_barrier_t ready;
	atomic_bool told;
	__u64 spent; /* processor time of the two, in ns */
};

static void *wait_when_told(void *arg)
{
	struct polled *p = arg;
	bool kept = keep_processor(true);
	__u64 begun;

	pthread_barrier_wait(&p->ready);
	while (!atomic_load(&p->told))
		sched_yield();
	begun = thread_ns();
	/* All entries are there, and too few. */
	if (!kept || ring_wait_ms(&p->ring, 4 * POLLED, 300) != POLLED)
		p->failed++;
	__atomic_fetch_add(&p->spent, thread_ns() - begun, __ATOMIC_RELAXED);
	return NULL;
}

/* A worker polls on the other processor, until this thread takes that from it. */
static void *tell_amid_polls(void *arg)
{
	struct polled *p = arg;
	bool kept = keep_processor(true) && run_on(1);

	pthread_barrier_wait(&p->ready);
	if (!kept || write(p->file, "x", 1) != 1)
		p->failed++;
	usleep(20 * p->round);
	atomic_store(&p->told, true);
	return NULL;
}

/*
 * With PREEMPT_RT a mutex reads as locked from an unlock until the next waiter runs. Two that
 * took this for a poll that they must wait for handed the mutex to each other for ever.
 */
TEST(waiters_that_polled_sleep)
{
	char path[] = "/tmp/flowfd-XXXXXX", buffer[4096];
	int fds[POLLED];
	struct polled p = { };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "nobody polls beside them with one processor");
	p.file = mkstemp(path);
	ASSERT_LE(0, p.file);
	ASSERT_EQ(0, ring_open(&p.ring, 4 * POLLED));
	for (int i = 0; i < POLLED; i++) {
		fds[i] = i < FILES ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) :
				     dup(fds[i - FILES]);
		ASSERT_LE(0, fds[i]);
		ASSERT_LE(0, inotify_add_watch(fds[i], path, IN_MODIFY));
		ASSERT_LE(0, ring_add(&p.ring, fds[i], EPOLLIN, i));
	}
	ASSERT_EQ(0, pthread_barrier_init(&p.ready, NULL, 3));
	for (p.round = 1; p.round <= 20; p.round++) {
		pthread_t threads[3];

		p.told = false;
		p.spent = 0;
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(0, pthread_create(&threads[i], NULL,
						    i ? wait_when_told : tell_amid_polls,
						    &p));
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		EXPECT_EQ(0, p.failed);
		/* Some milliseconds, or the whole of the wait. */
		EXPECT_LT(p.spent, 200000000);
		/* An unread event would be joined with the next one, without a wakeup. */
		for (int i = 0; i < FILES; i++)
			ASSERT_LT(0, read(fds[i], buffer, sizeof(buffer)));
	}
	for (int i = 0; i < POLLED; i++)
		close(fds[i]);
	ring_close(&p.ring);
	close(p.file);
	unlink(path);
}

TEST_HARNESS_MAIN
