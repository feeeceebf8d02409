// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer of the token bucket, which delivers deferred wakeups, while the counter is
 * closed and while the bucket is changed.
 */
#include "bucket_watch.h"
#include "fixtures.h"

/* Closing a copy of the descriptor does not cancel the deferred wakeup. */
TEST(closed_copy_leaves_the_wakeup)
{
	struct watched w;
	int copy, status;
	pid_t child;

	ASSERT_TRUE(watched_open_deferred(&w, 5, EPOLLIN));
	copy = dup(w.fd);
	close(copy);
	child = fork();
	if (!child)
		_exit(close(w.fd));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(EPOLLIN, epoll_take(w.ep, PATIENCE_MS));
	watched_close(&w);
}

/* Closes before, while and after the timer fires. */
TEST(close_while_the_timer_is_armed)
{
	unsigned long rounds = parameter("FLOWFD_CLOSES", 1000);
	unsigned int seed = 1, deferred = 0;
	int id;

	id = open_counter(CREATED, 0, 0);
	ASSERT_LE(0, id);
	close(id);
	for (unsigned long i = 0; i < rounds; i++) {
		struct watched w;

		/* A timer of 5 ms to 40 us: a slow machine meets the long ones. */
		ASSERT_TRUE(watched_open(&w, 1, 200u << rand_r(&seed) % 8,
					 EPOLLIN));
		add(w.fd, 1);
		add(w.fd, 1);
		deferred += wakeup_is_deferred(w.fd);
		spin_ns(rand_r(&seed) % 500000);
		/* Either close can be the one that frees the wait queue. */
		close(i % 2 ? w.fd : w.ep);
		close(i % 2 ? w.ep : w.fd);
	}
	EXPECT_LT(0, deferred);
}

TEST(pending_wakeups_leak_nothing)
{
	int fd = open_counter(CREATED, 0, 0);
	struct watched w;
	int id = id_of(fd);

	ASSERT_LE(0, fd);
	close(fd);
	for (int i = 0; i < 20; i++) {
		ASSERT_TRUE(watched_open_deferred(&w, 1, EPOLLIN));
		EXPECT_EQ(id, id_of(w.fd));
		for (int j = 0; j < 5; j++) {
			ASSERT_EQ(0, set_qos(w.fd, 1, 1));
			edges_of_writes(&w, 3);
		}
		watched_close(&w);
	}
}

struct changes {
	int fd;
	bool stop;
	unsigned long torn;
};

static void *changes_write(void *arg)
{
	struct changes *c = arg;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED))
		add(c->fd, 1);
	return NULL;
}

static void *changes_look(void *arg)
{
	struct changes *c = arg;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		struct eventfd_qos qos = qos_of(c->fd);

		c->torn += qos.token_capacity * 1000 != qos.token_rate;
	}
	return NULL;
}

/* The bucket is replaced while writers write and the timer fires. */
TEST_F(flowfd, change_while_the_timer_fires)
{
	struct changes c = { .fd = self->fd };
	pthread_t writer, looker;
	unsigned int edges = 0;
	__u64 end = now_ns() + NSEC_PER_SEC;
	int ep;

	set_nonblock(self->fd, true);
	ep = epoll_on(self->fd, EPOLLIN | EPOLLET);
	ASSERT_EQ(0, pthread_create(&writer, NULL, changes_write, &c));
	ASSERT_EQ(0, pthread_create(&looker, NULL, changes_look, &c));
	for (__u32 i = 0; now_ns() < end; i++) {
		ASSERT_EQ(0, set_qos(self->fd, i % 4, i % 4 * 1000));
		edges += epoll_take(ep, i % 8 ? 0 : 2) != 0;
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(writer, NULL);
	pthread_join(looker, NULL);
	EXPECT_LT(0, edges);
	EXPECT_EQ(0, c.torn);

	/* The bucket works as before. */
	ASSERT_EQ(0, set_qos(self->fd, 2, 10));
	while (epoll_take(ep, 0))
		;
	ASSERT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

TEST_HARNESS_MAIN
