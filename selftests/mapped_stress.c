// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads and processes on mapped counters: no writer is forgotten, the sum is kept, and
 * a peer that writes everywhere disturbs nobody else. Bursts are in wakeup.c.
 *
 * FLOWFD_ROUNDS sets the number of adds, FLOWFD_STRESS_MS the time of the others.
 */
#include "mapped_user.h"
#include "ring_user.h"

#include <sys/wait.h>

/* Writers that sleep in write, poll, and edge-triggered epoll; the reader never sleeps. */
struct writer {
	pthread_t thread;
	struct mapped *m;
	int ep;
	__u64 value;
	unsigned long adds;
};

static void *writer_run(void *arg)
{
	struct writer *w = arg;

	for (unsigned long i = 0; i < w->adds; i++) {
		while (mapped_add(w->m, w->value) != 8)
			epoll_take(w->ep, -1);
	}
	return NULL;
}

static void run_writers(struct __test_metadata *_metadata, __u32 events, bool nonblock)
{
	unsigned long adds = parameter("FLOWFD_ROUNDS", 2000);
	struct writer w[4];
	__u64 expected = 0, taken = 0, value, end = ms_from_now(3 * PATIENCE_MS);
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .maximum = 5));
	set_nonblock(m.fd, nonblock);
	for (int i = 0; i < 4; i++) {
		w[i] = (struct writer){ .m = &m, .value = 1 + i, .adds = adds,
					.ep = epoll_on(m.fd, events) };
		expected += adds * (1 + i);
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, writer_run, &w[i]));
	}
	while (taken < expected && now_ns() < end) {
		if (mapped_take(&m, &value) == 8) {
			EXPECT_GE(4, value);
			taken += value;
			end = ms_from_now(3 * PATIENCE_MS);
		} else {
			sched_yield();
		}
	}
	EXPECT_EQ(expected, taken)
		TH_LOG("armed %u, count %llu", mapped_armed(&m), mapped_count(&m));
	for (int i = 0; i < 4 && taken == expected; i++) {
		pthread_join(w[i].thread, NULL);
		close(w[i].ep);
	}
	EXPECT_EQ(0, mapped_count(&m));
	mapped_close(&m);
}

TEST(writers_that_sleep_in_write)
{
	run_writers(_metadata, EPOLLERR, false);
}

TEST(writers_that_sleep_in_level_triggered_epoll)
{
	run_writers(_metadata, EPOLLOUT, true);
}

TEST(writers_that_sleep_in_edge_triggered_epoll)
{
	run_writers(_metadata, EPOLLOUT | EPOLLET, true);
}

/* Blocked readers and writers, half of them in memory. */
struct worker {
	pthread_t thread;
	struct mapped *m;
	unsigned int seed;
	bool *stop;
	__u64 sum;
};

static void *producer_run(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		__u64 value = 1 + rand_r(&w->seed) % 6;

		if ((w->seed & 0x100 ? mapped_add(w->m, value) :
				       add(w->m->fd, value)) == 8)
			w->sum += value;
	}
	return NULL;
}

static void *taker_run(void *arg)
{
	struct worker *w = arg;
	__u64 value;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		if ((w->seed & 0x100 && mapped_take(w->m, &value) == 8) ||
		    take(w->m->fd, &value) == 8)
			w->sum += value;
		rand_r(&w->seed);
	}
	return NULL;
}

/* Intervals of tokens from a nanosecond to half a millisecond, and no limit. */
static void random_bucket(int fd, unsigned int *seed)
{
	static const __u32 rates[] = { 0, 2000, 5000, 20000, 100000, 1000000,
				       FLOWFD_TOKEN_RATE_MAX };

	set_qos(fd, 1 + rand_r(seed) % 3, rates[rand_r(seed) % ARRAY_SIZE(rates)]);
}

static void *changer_run(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		set_maximum(w->m->fd, 7 + rand_r(&w->seed) % 20);
		if (rand_r(&w->seed) % 4 == 0)
			random_bucket(w->m->fd, &w->seed);
		notify(w->m->fd);
		spin_ns(rand_r(&w->seed) % 100000);
	}
	return NULL;
}

TEST(sum_of_eight_threads)
{
	struct worker w[9] = { 0 };
	__u64 value, added = 0, taken = 0;
	bool stop = false;
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .maximum = 10));
	for (int i = 0; i < 9; i++) {
		w[i].m = &m;
		w[i].seed = i + 1;
		w[i].stop = &stop;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, i == 8 ? changer_run :
					    i % 2 ? producer_run : taker_run, &w[i]));
	}
	sleep_until_ns(now_ns() + stress_ns());
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	/* Those that still sleep: with room and a count for all. */
	set_nonblock(m.fd, true);
	pthread_join(w[8].thread, NULL);
	set_qos(m.fd, 0, 0);
	for (int i = 0; i < 8; i++) {
		while (!pthread_tryjoin_np(w[i].thread, NULL) == false) {
			if (add(m.fd, 1) == 8)
				added++;
			if (take(m.fd, &value) == 8)
				taken += value;
		}
		*(i % 2 ? &added : &taken) += w[i].sum;
	}
	EXPECT_EQ(added, taken + mapped_count(&m));
	EXPECT_LT(1000, added);
	mapped_close(&m);
}

/* Writes everything that it may write. */
static void *hostile_run(void *arg)
{
	struct worker *w = arg;
	__u64 *words[] = { &w->m->producer->produced, &w->m->consumer->consumed };

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		__u64 value = (__u64)rand_r(&w->seed) << (rand_r(&w->seed) % 40);

		switch (rand_r(&w->seed) % 6) {
		case 0:
		case 1:
			__atomic_store_n(words[w->seed >> 8 & 1], value,
					 __ATOMIC_RELAXED);
			break;
		case 2:
			__atomic_store_n(words[0], *words[1], __ATOMIC_RELAXED);
			break;
		case 3:
			for (int i = 0; i < 1000; i++)
				__atomic_add_fetch(words[i & 1], 1, __ATOMIC_RELAXED);
			break;
		case 4:
			for (int i = 0; i < 1000; i++)
				__atomic_store_n(&w->m->consumer->armed, i,
						 __ATOMIC_RELAXED);
			break;
		default:
			memset(w->m->producer, rand_r(&w->seed), PAGE);
			memset(w->m->consumer, rand_r(&w->seed), PAGE);
		}
	}
	return NULL;
}

static void *victim_run(void *arg)
{
	struct worker *w = arg;
	int fd = w->m->fd, ep = epoll_on(fd, EPOLLIN | EPOLLOUT);
	int edge = epoll_on(fd, EPOLLIN | EPOLLOUT | EPOLLET);
	char *hole = page_before_a_hole() + PAGE;
	__u64 value;

	while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
		switch (rand_r(&w->seed) % 9) {
		case 0:
			add(fd, rand_r(&w->seed) % 5);
			break;
		case 1:
			take(fd, &value);
			break;
		case 2:
			poll_for(fd, POLLIN | POLLOUT, rand_r(&w->seed) % 2);
			break;
		case 3:
			epoll_take(ep, 0);
			epoll_take(edge, 0);
			break;
		case 4:
			notify(fd);
			break;
		case 5:
			set_maximum(fd, 1 + rand_r(&w->seed) % 100);
			break;
		case 6:
			random_bucket(fd, &w->seed);
			break;
		case 7:
			count_of(fd);
			break;
		default:
			syscall(SYS_read, fd, hole, 8);
		}
		w->sum++;
	}
	close(ep);
	close(edge);
	return NULL;
}

/* Sleeps in read and write, until a signal ends it. */
static void hostile_sleeper(int fd, bool writes)
{
	__u64 value = 3;

	for (;;)
		writes ? add(fd, value) : take(fd, &value);
}

TEST(hostile_peer)
{
	struct worker w[5] = { 0 };
	struct mapped mapped, *m = &mapped;
	bool stop = false;
	pid_t children[2];
	__u64 value;
	int status;

	ASSERT_EQ(0, MAPPED_CREATE(m, 0));
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (!children[i])
			hostile_sleeper(m->fd, i);
	}
	for (int i = 0; i < 5; i++) {
		w[i] = (struct worker){ .m = m, .seed = i, .stop = &stop };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, i < 2 ? hostile_run :
					    victim_run, &w[i]));
	}
	set_nonblock(m->fd, true);
	sleep_until_ns(now_ns() + stress_ns());
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 5; i++)
		pthread_join(w[i].thread, NULL);
	for (int i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		EXPECT_EQ(children[i], waitpid(children[i], &status, 0));
	}
	for (int i = 2; i < 5; i++) {
		EXPECT_LT(0, w[i].sum);
	}
	/* It works again as soon as the words are right. */
	m->producer->produced = 0;
	m->consumer->consumed = 0;
	m->consumer->armed = ARMED_ALL;
	set_qos(m->fd, 0, 0);
	EXPECT_EQ(0, set_maximum(m->fd, 10));
	EXPECT_EQ(8, mapped_add(m, 3));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(3, value);
	EXPECT_EQ(POLLOUT, poll_now(m->fd));
	mapped_close(m);
}

/* A process that is killed at any point leaves nobody asleep on a count. */
TEST(killed_at_any_point)
{
	__u64 end = now_ns() + stress_ns(), kills = 0;
	unsigned int seed = 3;
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, 0));
	while (now_ns() < end) {
		struct call reader;
		__u64 value;
		int status;
		pid_t child = fork();

		if (!child) {
			for (;;) {
				mapped_add(&m, 1);
				mapped_take(&m, &value);
			}
		}
		spin_ns(rand_r(&seed) % 3000000);
		/* Sleeps, unless there is a count. */
		reader = (struct call){ .fd = m.fd };
		ASSERT_EQ(0, pthread_create(&reader.thread, NULL, call_run, &reader));
		spin_ns(rand_r(&seed) % 300000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		kills++;
		sleep_ms(1);
		if (!call_finished(&reader) && !mapped_count(&m)) {
			ASSERT_EQ(8, mapped_add(&m, 1));
		}
		ASSERT_TRUE(call_join(&reader))
			TH_LOG("kill %llu: count %llu, armed %u", kills,
			       mapped_count(&m), mapped_armed(&m));
	}
	EXPECT_LT(3, kills);
	mapped_close(&m);
}

TEST_HARNESS_MAIN
