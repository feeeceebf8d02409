// SPDX-License-Identifier: GPL-2.0-only
/*
 * The low-water marks: when a counter is ready to be read and to be written, for each way
 * of waiting, and who is woken by what. The delay is in flow_delay.c, urgent writes are
 * in flow_urgent.c.
 */
#include <liburing.h>

#include "fixtures.h"
#include "flow_sleeper.h"

FLOW_MARKS_FIXTURE(flow);

TEST_F(flow, poll_at_the_mark)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	for (int round = 0; round < 3; round++) {
		for (int count = 0; count < 5; count++) {
			EXPECT_EQ(POLLOUT, poll_now(self->fd));
			ASSERT_EQ(8, put(&self->f, 1));
		}
		EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
		ASSERT_EQ(8, put(&self->f, 1));
		EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
		EXPECT_EQ(6, got(&self->f));
	}
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

/* As recv(2) with SO_RCVLOWAT. */
TEST_F(flow, read_that_does_not_block_takes_what_is_there)
{
	__u64 value;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	EXPECT_EQ(-EAGAIN, take_now(self->fd, &value));
	ASSERT_EQ(8, put(&self->f, 2));
	EXPECT_EQ(0, take_now(self->fd, &value));
	EXPECT_EQ(2, value);
	EXPECT_EQ(-EAGAIN, take_now(self->fd, &value));

	set_nonblock(self->fd, true);
	ASSERT_EQ(8, put(&self->f, 3));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(3, value);
	EXPECT_EQ(-EAGAIN, take(self->fd, &value));
}

TEST_F(flow, sleepers_wait_for_the_mark)
{
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	for (enum way way = 0; way < WAYS; way++) {
		long sleeps;

		ASSERT_SLEEPS(&s, &self->f, way);
		sleeps = thread_sleeps(s.tid);
		for (int i = 0; i < 4; i++) {
			ASSERT_EQ(8, put(&self->f, 1));
		}
		sleep_ms(QUIET_MS / 2);
		EXPECT_ASLEEP(&s);
		EXPECT_EQ(sleeps, thread_sleeps(s.tid))
			TH_LOG("%s", way_names[way]);
		ASSERT_EQ(8, put(&self->f, 2));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(8, s.result);
		EXPECT_EQ(6, s.value);
	}
}

/* They look only when the count is below the mark already. */
TEST_F(flow, sleepers_that_find_a_count_below_the_mark)
{
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(8, put(&self->f, 4));
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(5, s.value);
	}
}

/* Somebody takes what was there: the mark counts from 0 again. */
TEST_F(flow, a_take_starts_anew)
{
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 4));
		EXPECT_EQ(4, got(&self->f));
		ASSERT_EQ(8, put(&self->f, 4));
		sleep_ms(QUIET_MS / 4);
		EXPECT_ASLEEP(&s);
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(5, s.value);
	}
}

/* One event at the mark, none below; above it each add is an edge, as with eventfd. */
TEST_F(flow, edges)
{
	struct waiter edge, ring;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 3));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	ASSERT_EQ(0, waiter_open(&ring, &self->f, RING));
	for (int round = 0; round < 3; round++) {
		for (int count = 1; count < 3; count++) {
			ASSERT_EQ(8, put(&self->f, 1));
			EXPECT_FALSE(waiter_sees(&edge));
			EXPECT_FALSE(waiter_sees(&ring));
		}
		for (int count = 3; count < 6; count++) {
			ASSERT_EQ(8, put(&self->f, 1));
			EXPECT_TRUE(waiter_sees(&edge));
			EXPECT_TRUE(waiter_sees(&ring));
			EXPECT_FALSE(waiter_sees(&edge));
			EXPECT_FALSE(waiter_sees(&ring));
		}
		EXPECT_EQ(5, got(&self->f));
		EXPECT_FALSE(waiter_sees(&edge));
		EXPECT_FALSE(waiter_sees(&ring));
	}
	waiter_close(&edge);
	waiter_close(&ring);
}

/* What is true when a watch begins: nothing below the mark. */
TEST_F(flow, watches_that_begin_late)
{
	struct waiter w;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 3));
	for (enum way way = LEVEL; way < WAYS; way++) {
		ASSERT_EQ(8, put(&self->f, 2));
		ASSERT_EQ(0, waiter_open(&w, &self->f, way));
		EXPECT_FALSE(waiter_sees(&w))
			TH_LOG("%s", way_names[way]);
		waiter_close(&w);
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_EQ(0, waiter_open(&w, &self->f, way));
		EXPECT_TRUE(waiter_sees(&w))
			TH_LOG("%s", way_names[way]);
		waiter_close(&w);
		EXPECT_EQ(3, got(&self->f));
	}
}

/* A lower mark delivers the wakeup that it makes due, a higher one delivers none. */
TEST_F(flow, another_mark_delivers)
{
	struct flow_sleeper s;

	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 3));
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 6));
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 4));
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		EXPECT_ASLEEP(&s);
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 3));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(3, s.value);
	}
}

TEST_F(flow, zero_settings_deliver)
{
	struct flow_sleeper s;

	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5, .qos = { 1, 1 }));
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 1));
		ASSERT_EQ(0, SET_FLOW(self->fd, 0));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(1, s.value);
	}
}

struct changer {
	pthread_t thread;
	int fd;
	unsigned long changes;
	bool failed;
	bool finished;
};

/* By turns: ready because there is no room above 1, and ready because there is no mark. */
static void *changer_run(void *arg)
{
	struct changer *ch = arg;

	for (unsigned long i = 0; i < ch->changes; i++) {
		ch->failed |= SET_FLOW(ch->fd, .maximum = 5, .read_mark = 4,
				       .write_mark = 4) ||
			      SET_FLOW(ch->fd, 0);
	}
	__atomic_store_n(&ch->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * A poller that saw some settings of the one and some of the other would see a count that
 * is not ready, and nobody would tell it of the rest: it was ready before the change.
 */
TEST_F(flow, poll_sees_settings_of_one_moment)
{
	struct changer ch = { .fd = self->fd,
			      .changes = parameter("FLOWFD_ROUNDS", 2000) };
	unsigned long polls = 0, missed = 0;

	ASSERT_EQ(8, put(&self->f, 1));
	ASSERT_EQ(0, pthread_create(&ch.thread, NULL, changer_run, &ch));
	while (!__atomic_load_n(&ch.finished, __ATOMIC_ACQUIRE)) {
		missed += !(poll_for(self->fd, POLLIN, 0) & POLLIN);
		polls++;
	}
	pthread_join(ch.thread, NULL);
	EXPECT_FALSE(ch.failed);
	EXPECT_EQ(0, missed)
		TH_LOG("of %lu polls", polls);
	EXPECT_EQ(1, got(&self->f));
}

/* The bucket limits what the mark lets through, and poll knows no bucket. */
TEST_F(flow, mark_and_bucket)
{
	struct waiter edge;

	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 3, .qos = { 1, 1 }));
	ASSERT_EQ(0, waiter_open(&edge, &self->f, EDGE));
	ASSERT_EQ(8, put(&self->f, 2));	/* takes no token */
	EXPECT_FALSE(waiter_sees(&edge));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_TRUE(waiter_sees(&edge));
	EXPECT_EQ(3, got(&self->f));
	ASSERT_EQ(8, put(&self->f, 3));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	EXPECT_FALSE(waiter_sees(&edge));
	EXPECT_EQ(EPOLLIN, epoll_take(edge.ep, PATIENCE_MS));
	waiter_close(&edge);
}

static void *write_five(void *arg)
{
	struct flow *f = arg;

	put(f, 5);
	return NULL;
}

/*
 * Room comes only if somebody reads, and the readers wait for the mark: a write that does
 * not fit makes the counter ready.
 */
TEST_F(flow, blocked_writer_makes_ready)
{
	struct flow_sleeper s;
	pthread_t writer;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	for (enum way way = 0; way < WAYS; way++) {
		/* The reader comes first. */
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 6));
		EXPECT_ASLEEP(&s);
		ASSERT_EQ(0, pthread_create(&writer, NULL, write_five, &self->f));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(6, s.value);
		ASSERT_EQ(0, pthread_join(writer, NULL));
		EXPECT_EQ(5, count_of(self->fd));
		/* That was before the take. */
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		EXPECT_EQ(5, got(&self->f));
	}
}

TEST_F(flow, blocked_writer_lets_later_readers_go_on)
{
	struct waiter w;
	pthread_t writer;
	__u64 value;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(8, put(&self->f, 6));
		ASSERT_EQ(0, pthread_create(&writer, NULL, write_five, &self->f));
		ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
		ASSERT_EQ(0, waiter_open(&w, &self->f, way));
		EXPECT_EQ(8, waiter_take(&w, &value));
		EXPECT_EQ(6, value);
		waiter_close(&w);
		ASSERT_EQ(0, pthread_join(writer, NULL));
		EXPECT_EQ(5, got(&self->f));
	}
}

/*
 * A take lets two writers go on and not the third: the count is below the mark, and only
 * another take makes room.
 */
TEST_F(flow, writer_that_still_waits_makes_ready)
{
	struct call writers[3];
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(8, put(&self->f, 9));
		for (int i = 0; i < 3; i++) {
			ASSERT_TRUE(start_write(&writers[i], self->fd, 4));
		}
		EXPECT_EQ(9, got(&self->f));
		ASSERT_TRUE(call_join(&writers[0]));
		ASSERT_TRUE(call_join(&writers[1]));
		EXPECT_EQ(8, count_of(self->fd));
		EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd))
			TH_LOG("%s", way_names[way]);
		ASSERT_TRUE(flow_sleeper_begin(&s, &self->f, way));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(8, s.value);
		ASSERT_TRUE(call_join(&writers[2]));
		EXPECT_EQ(4, got(&self->f));
	}
}

/* The same with readers that sleep already as the take is made. */
TEST_F(flow, writer_that_still_waits_wakes_readers)
{
	struct call writers[3];
	struct flow_sleeper s;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	for (enum way way = 0; way < WAYS; way++) {
		__u64 taken = 0;

		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 8));
		for (int i = 0; i < 3; i++) {
			writers[i] = (struct call){ .fd = self->fd, .is_write = true,
						    .value = 6 };
			ASSERT_EQ(0, pthread_create(&writers[i].thread, NULL, call_run,
						    &writers[i]));
		}
		ASSERT_WOKEN(&s);
		taken += s.value;
		for (int i = 0; i < 3 && taken < 8 + 2 * 6; i++) {
			ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS) & POLLIN)
				TH_LOG("%s: %llu taken", way_names[way], taken);
			taken += got(&self->f);
		}
		for (int i = 0; i < 3; i++) {
			ASSERT_TRUE(call_join(&writers[i]));
		}
		taken += got(&self->f);
		EXPECT_EQ(8 + 3 * 6, taken);
	}
}

/* A writer waits for room. Settings that change must not make readers wait for more. */
TEST_F(flow, settings_under_a_blocked_writer)
{
	struct flow_sleeper s;
	pthread_t writer;

	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 6));
		ASSERT_EQ(8, put(&self->f, 6));
		ASSERT_EQ(0, pthread_create(&writer, NULL, write_five, &self->f));
		sleep_ms(QUIET_MS / 4);
		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
		ASSERT_TRUE(flow_sleeper_begin(&s, &self->f, way));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(6, s.value);
		ASSERT_EQ(0, pthread_join(writer, NULL));
		EXPECT_EQ(5, got(&self->f));
	}
}

/* A reader that sleeps in read(2) makes room at once: then the write is not refused. */
TEST_F(flow, refused_write_makes_ready)
{
	struct flow_sleeper s;
	bool refused;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 6));
		refused = write_with(self->fd, 5, 0, FLOWFD_NONBLOCK);
		EXPECT_TRUE(refused || waiter_takes(&s.w));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(6, s.value);
		EXPECT_EQ(refused ? 0 : 5, got(&self->f));
		ASSERT_EQ(8, put(&self->f, 6));
		EXPECT_EQ(POLLOUT, poll_now(self->fd));
		EXPECT_EQ(6, got(&self->f));
	}
}

/* The count had reached its mark as the write was refused; the mark is higher now. */
TEST_F(flow, settings_after_a_refused_write)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 6));
	ASSERT_EQ(8, put(&self->f, 6));
	EXPECT_EQ(-EAGAIN, write_with(self->fd, 5, 0, FLOWFD_NONBLOCK));
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	EXPECT_EQ(6, got(&self->f));
	ASSERT_EQ(8, put(&self->f, 6));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

/* A value that can never fit is an error of its writer, and no reason to wake. */
TEST_F(flow, impossible_write_makes_nothing_ready)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .read_mark = 9));
	ASSERT_EQ(8, put(&self->f, 6));
	EXPECT_EQ(-EINVAL, put(&self->f, 10));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

/* Neither mark is reached: a reader and a writer that poll would wait for each other. */
TEST_F(flow, marks_that_meet)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 100, .read_mark = 90, .write_mark = 50));
	ASSERT_EQ(8, put(&self->f, 49));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	EXPECT_EQ(50, got(&self->f));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

/* A lower maximum leaves no room: who reads must not wait for more. */
TEST_F(flow, lower_maximum_makes_ready)
{
	struct flow_sleeper s;

	for (enum way way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 100, .read_mark = 10,
				      .write_mark = 10));
		ASSERT_SLEEPS(&s, &self->f, way);
		ASSERT_EQ(8, put(&self->f, 5));
		EXPECT_ASLEEP(&s);
		ASSERT_EQ(0, set_maximum(self->fd, 15));
		ASSERT_WOKEN(&s);
		EXPECT_EQ(5, s.value);
	}
}

/* A higher one makes room, and the count is ready only after its delay. */
TEST_F(flow, higher_maximum_begins_the_delay)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 12, .read_mark = 10, .write_mark = 5,
			      .max_delay = 10 * MSEC));
	ASSERT_EQ(8, put(&self->f, 7));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 100));
	EXPECT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
	EXPECT_EQ(7, got(&self->f));
}

/* The count is ready because a writer sleeps, until its value can never fit any more. */
TEST_F(flow, delay_begins_when_the_last_writer_gives_up)
{
	struct call first, last;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 100, .read_mark = 70,
			      .max_delay = 10 * MSEC));
	ASSERT_EQ(8, put(&self->f, 50));
	ASSERT_TRUE(start_write(&first, self->fd, 60));
	ASSERT_TRUE(start_write(&last, self->fd, 98));
	EXPECT_EQ(50, got(&self->f));
	ASSERT_TRUE(call_join(&first));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 98));
	ASSERT_TRUE(call_join(&last));
	EXPECT_EQ(-EINVAL, last.result);
	EXPECT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
	EXPECT_EQ(60, got(&self->f));
}

TEST_F(flow, poll_at_the_write_mark)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .write_mark = 5));
	for (__u64 count = 0; count < 9; count++) {
		EXPECT_EQ(10 - count > 5, !!(poll_now(self->fd) & POLLOUT))
			TH_LOG("count %llu", count);
		ASSERT_EQ(8, put(&self->f, 1));
	}
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	EXPECT_EQ(9, got(&self->f));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

/* Only poll knows the mark: a write needs no more room than its value. */
TEST_F(flow, writes_do_not_wait_for_the_write_mark)
{
	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .write_mark = 9));
	ASSERT_EQ(8, put(&self->f, 3));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	EXPECT_EQ(8, put(&self->f, 6));
	EXPECT_EQ(9, count_of(self->fd));
}

TEST_F(flow, room_at_the_write_mark_is_an_event)
{
	int ep[3];
	__u32 flags[3] = { 0, EPOLLET, EPOLLEXCLUSIVE };

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .write_mark = 5));
	ASSERT_EQ(8, put(&self->f, 6));
	for (int i = 0; i < 3; i++) {
		ep[i] = epoll_on(self->fd, EPOLLOUT | flags[i]);
		EXPECT_EQ(0, epoll_take(ep[i], 0));
	}
	ASSERT_EQ(0, set_maximum(self->fd, 11));	/* 11 - 6 > 5 is false */
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, epoll_take(ep[i], 0));
	}
	ASSERT_EQ(0, set_maximum(self->fd, 12));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(EPOLLOUT, epoll_take(ep[i], 0));
	}
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(0, epoll_take(ep[0], 0));
	EXPECT_EQ(6, got(&self->f));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(EPOLLOUT, epoll_take(ep[i], 0));
		close(ep[i]);
	}
}

static void *poll_then_write(void *arg)
{
	struct flow *f = arg;
	unsigned long turns = 0;

	for (int i = 0; i < 200; turns++) {
		if (poll_for(f->fd, POLLOUT, PATIENCE_MS) != POLLOUT)
			break;
		i += !write_with(f->fd, 5, 0, FLOWFD_NONBLOCK);
	}
	return (void *)turns;
}

/* With a bucket, a take tells of room only those who may wait for it: this one may. */
TEST_F(flow, timeout_and_edge_of_room)
{
	int ep;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .qos = { 1, 1000 }));
	ASSERT_EQ(8, put(&self->f, 7));
	ep = epoll_on(self->fd, EPOLLOUT | EPOLLET);
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	EXPECT_EQ(-ETIMEDOUT, write_with(self->fd, 5, MSEC, 0));
	EXPECT_EQ(7, got(&self->f));
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

/* One writer that polls for what it needs: each poll is followed by a write that fits. */
TEST_F(flow, poll_and_write_do_not_spin)
{
	pthread_t writer;
	__u64 taken = 0;
	void *turns;

	ASSERT_EQ(0, SET_FLOW(self->fd, .maximum = 10, .write_mark = 5));
	ASSERT_EQ(0, pthread_create(&writer, NULL, poll_then_write, &self->f));
	while (taken < 200 * 5) {
		ASSERT_EQ(POLLIN, poll_for(self->fd, POLLIN, PATIENCE_MS));
		taken += got(&self->f);
	}
	ASSERT_EQ(0, pthread_join(writer, &turns));
	EXPECT_EQ(200, (unsigned long)turns);
}

/* Each read makes room for 1; the poller sleeps until there is room for 5. */
TEST(semaphore_and_write_mark)
{
	int fd = open_counter(CREATED, 0, EFD_SEMAPHORE), ep;
	__u64 value;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, SET_FLOW(fd, .maximum = 10, .write_mark = 5));
	ASSERT_EQ(8, add(fd, 9));
	ep = epoll_on(fd, EPOLLOUT);
	for (int count = 8; count >= 0; count--) {
		ASSERT_EQ(8, take(fd, &value));
		EXPECT_EQ(10 - count > 5 ? EPOLLOUT : 0, epoll_take(ep, 0))
			TH_LOG("count %d", count);
	}
	close(ep);
	close(fd);
}

/* The results of io_uring requests; -EAGAIN: none is there. */
static int uring_result(struct io_uring *uring, bool wait)
{
	struct __kernel_timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct io_uring_cqe *cqe;
	int result;

	if (wait ? io_uring_wait_cqe_timeout(uring, &cqe, &patience) :
		   io_uring_peek_cqe(uring, &cqe))
		return -EAGAIN;
	result = cqe->res;
	io_uring_cqe_seen(uring, cqe);
	return result;
}

TEST_F(flow, uring_waits_for_the_mark)
{
	struct io_uring uring;
	__u64 value = 0;

	if (io_uring_queue_init(4, &uring, 0))
		SKIP(return, "io_uring is not available here");
	ASSERT_EQ(0, SET_FLOW(self->fd, .read_mark = 5));
	io_uring_prep_poll_add(io_uring_get_sqe(&uring), self->fd, POLLIN);
	ASSERT_EQ(1, io_uring_submit(&uring));
	ASSERT_EQ(8, put(&self->f, 4));
	EXPECT_EQ(-EAGAIN, uring_result(&uring, false));
	ASSERT_EQ(8, put(&self->f, 1));
	EXPECT_EQ(POLLIN, uring_result(&uring, true));
	EXPECT_EQ(5, got(&self->f));

	io_uring_prep_read(io_uring_get_sqe(&uring), self->fd, &value, 8, 0);
	ASSERT_EQ(1, io_uring_submit(&uring));
	ASSERT_EQ(8, put(&self->f, 4));
	EXPECT_EQ(-EAGAIN, uring_result(&uring, false));
	ASSERT_EQ(8, put(&self->f, 2));
	EXPECT_EQ(8, uring_result(&uring, true));
	EXPECT_EQ(6, value);
	io_uring_queue_exit(&uring);
}

TEST_HARNESS_MAIN
