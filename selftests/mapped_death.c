// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapped counters: what makes up for a process that dies in the middle of an add or take,
 * or between its wakeup and its look.
 */
#include "mapped_user.h"

#include <sys/wait.h>

MAPPED_FIXTURE(mapped, .flags = FLOWFD_NONBLOCK)

/* The level is tested, so the next add heals what another left undone. */
TEST_F(mapped, next_add_heals)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, EPOLLIN);

	ASSERT_TRUE(mapped_produce(m, 1));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(1, m->calls);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

/* Nobody waits, so there is nothing to heal: the bits that a peer left stay. */
TEST_F(mapped, end_of_a_process_without_waiters)
{
	struct mapped *m = &self->m;
	int status;
	pid_t child;

	__atomic_store_n(&m->consumer->armed, FLOWFD_ARMED_WATCHED, __ATOMIC_SEQ_CST);
	child = fork();
	if (!child)
		_exit(0);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	sleep_ms(100);
	EXPECT_EQ(FLOWFD_ARMED_WATCHED, mapped_armed(m));
	EXPECT_EQ(0, notify(m->fd));
	EXPECT_EQ(0, mapped_armed(m));
}

enum dying { PRODUCED, CONSUMED, HALF_ARMED };

/* A process with mappings of its own that dies at one point of an add or a take. */
static void die_at(struct mapped *m, enum dying where)
{
	int status;
	pid_t child = fork();

	if (!child) {
		__u64 value, produced;

		if (where == PRODUCED) {
			mapped_produce(m, 1);
			kill(getpid(), SIGKILL);
		}
		produced = mapped_consume(m, &value);
		if (where == HALF_ARMED) {
			mapped_produce(m, 1);
			__atomic_fetch_or(&m->consumer->armed, FLOWFD_ARMED_READERS,
					  __ATOMIC_SEQ_CST);
		}
		kill(getpid(), SIGKILL);
		_exit(produced);
	}
	waitpid(child, &status, 0);
}

FIXTURE(death)
{
	struct mapped m;
};

FIXTURE_VARIANT(death)
{
	__u32 events;
};

FIXTURE_VARIANT_ADD(death, level) { EPOLLIN };
FIXTURE_VARIANT_ADD(death, edge) { EPOLLIN | EPOLLET };

FIXTURE_SETUP(death)
{
	ASSERT_EQ(0, MAPPED_CREATE(&self->m, 0));
}

FIXTURE_TEARDOWN(death)
{
	mapped_close(&self->m);
}

TEST_F(death, of_a_producer)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, variant->events);
	__u64 value;

	EXPECT_EQ(0, epoll_take(ep, 0));
	die_at(m, PRODUCED);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

TEST_F(death, of_a_producer_while_a_reader_sleeps)
{
	struct call reader;

	ASSERT_TRUE(start_read(&reader, self->m.fd));
	die_at(&self->m, PRODUCED);
	EXPECT_TRUE(call_join(&reader));
	EXPECT_EQ(1, reader.value);
}

TEST_F(death, of_a_consumer)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, variant->events);

	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	die_at(m, CONSUMED);
	EXPECT_EQ(0, mapped_count(m));
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	die_at(m, HALF_ARMED);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

TEST_F(death, of_a_consumer_while_a_writer_sleeps)
{
	struct mapped *m = &self->m;
	struct call writer;

	ASSERT_EQ(0, set_maximum(m->fd, 3));
	ASSERT_EQ(8, mapped_add(m, 2));
	ASSERT_TRUE(start_write(&writer, m->fd, 2));
	die_at(m, CONSUMED);
	EXPECT_TRUE(call_join(&writer));
	EXPECT_EQ(2, mapped_count(m));
}

/* Two processes wait by one epoll. The one that is woken dies before it looks. */
TEST_F(death, of_a_waiter_without_mapping)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, variant->events), status;
	pid_t child = fork();
	struct epoll_event event;

	if (!child) {
		mapped_unmap(m);
		pause();
		_exit(0);
	}
	ASSERT_EQ(8, mapped_add(m, 1));
	/* As if the child had got this one. */
	ASSERT_EQ(1, epoll_wait(ep, &event, 1, 0));
	sleep_ms(QUIET_MS);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

/* Only a process that ends has left something undone, and takes a token for it. */
TEST_F(mapped, living_processes_heal_nothing)
{
	struct mapped *m = &self->m, other;
	int ep = epoll_on(m->fd, EPOLLIN | EPOLLET);

	ASSERT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(dup(m->fd));
	ASSERT_EQ(0, mapped_map(&other, m->fd));
	mapped_unmap(&other);
	EXPECT_EQ(0, epoll_take(ep, QUIET_MS));
	close(ep);
}

/* Not even an edge for room, after which a poller would look at the count. */
TEST_F(mapped, passes_no_bucket)
{
	struct mapped *m = &self->m;
	__u64 value;
	int ep;

	ASSERT_EQ(0, set_qos(m->fd, 1, 1));
	ep = epoll_on(m->fd, EPOLLIN | EPOLLOUT | EPOLLET);
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(EPOLLIN | EPOLLOUT, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(8, mapped_add(m, 1));
	ASSERT_TRUE(wakeup_is_deferred(m->fd));
	EXPECT_EQ(0, epoll_take(ep, 0));
	die_at(m, PRODUCED);
	EXPECT_EQ(0, epoll_take(ep, QUIET_MS));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS) & EPOLLIN);
	close(ep);
}

TEST_F(mapped, mapping_ends_with_exec)
{
	struct mapped *m = &self->m;
	int ep = epoll_on(m->fd, EPOLLIN | EPOLLET), status;
	pid_t child;

	EXPECT_EQ(0, epoll_take(ep, 0));
	child = fork();
	if (!child) {
		mapped_produce(m, 1);
		execl("/bin/sleep", "sleep", "1", NULL);
		_exit(1);
	}
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	waitpid(child, &status, 0);
	EXPECT_EQ(0, status);
	close(ep);
}

TEST_HARNESS_MAIN
