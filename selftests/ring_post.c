// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posts: items without a file. Adding and removing them, and what wakes the consumer.
 * What makes up for a task that dies is in ring_post_death.c, many posters at once are in
 * ring_post_stress.c.
 */
#include "ring_fixtures.h"
#include "post_user.h"
#include "ring_waiter.h"

static __u32 posts_in_fdinfo(int fd)
{
	return fdinfo_number(fd, "flowfd-ring-posts", 10);
}

TEST_F(ring, numbers)
{
	struct user_ring *r = &self->ring;

	for (int i = 0; i < 4; i++)
		EXPECT_EQ(i, ring_add_post(r, 10 + i));
	EXPECT_EQ(-ENOSPC, ring_add_post(r, 1));
	EXPECT_EQ(-ENOSPC, ring_add(r, self->event, EPOLLIN, 1));
	EXPECT_EQ(4, posts_in_fdinfo(r->fd));
	EXPECT_EQ(0, ring_watched(r->fd));
	EXPECT_EQ(0, ring_del_post(r, 2));
	EXPECT_EQ(-ENOENT, ring_del_post(r, 2));
	EXPECT_EQ(3, posts_in_fdinfo(r->fd));
	EXPECT_LE(0, ring_add(r, self->event, EPOLLIN, 1));
	EXPECT_EQ(-ENOENT, ring_del_post(r, 2));
	EXPECT_EQ(-ENOSPC, ring_add_post(r, 1));
	EXPECT_EQ(1, ring_watched(r->fd));
}

TEST_F(ring, bad_entries)
{
	struct user_ring *r = &self->ring;

	EXPECT_EQ(0, ring_add_post(r, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_ADD_POST, 0, 0, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_ADD_POST, self->event, 0, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_ADD_POST, -1, EPOLLIN, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_ADD_POST, -1, EPOLLET, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL_POST, 0, EPOLLIN, 0));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL_POST, 0, 0, 1));
	EXPECT_EQ(-ENOENT, ring_del_post(r, -1));
	EXPECT_EQ(-ENOENT, ring_del_post(r, 1));
	EXPECT_EQ(-ENOENT, ring_del_post(r, 4));
	EXPECT_EQ(-ENOENT, ring_del_post(r, INT_MAX));
	EXPECT_EQ(-ENOENT, ring_del_post(r, INT_MIN));
	EXPECT_EQ(-EINVAL, ring_change(r, 8, -1, 0, 0));
	EXPECT_EQ(1, posts_in_fdinfo(r->fd));
	EXPECT_EQ(-ENOTTY, ring_notify(self->event));
	EXPECT_EQ(-ENOTTY, result_of(ioctl(r->fd, _IO('J', 0x19))));
	EXPECT_EQ(-ENOTTY, result_of(ioctl(r->fd, _IOW('J', 0x18, __u32), &r)));
}

TEST_F(ring, fdinfo)
{
	char line[64];

	ring_add_post(&self->ring, 0xabc);
	fdinfo_line(self->ring.fd, "post", line, sizeof(line));
	EXPECT_NE(NULL, strstr(line, "0 data:"))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " abc"));
	ring_add(&self->ring, self->event, EPOLLIN, 1);
	EXPECT_EQ(1, ring_shown(self->ring.fd));
}

/* All items of a ring, and more than fdinfo lists. */
TEST(many_posts)
{
	enum { POSTS = 5000 };
	struct ring_event event;
	struct user_ring r;

	ASSERT_EQ(0, ring_open(&r, POSTS));
	for (int i = 0; i < POSTS; i++)
		ASSERT_EQ(i, ring_add_post(&r, i));
	EXPECT_EQ(-ENOSPC, ring_add_post(&r, 1));
	EXPECT_EQ(POSTS, posts_in_fdinfo(r.fd));
	for (int i = 0; i < POSTS; i++)
		EXPECT_FALSE(ring_post(&r, i, 1));
	for (int i = 0; i < POSTS; i++) {
		ASSERT_TRUE(ring_take_post(&r, &event));
		ASSERT_EQ(i, event.data);
	}
	EXPECT_EQ(0, next_post(&r, 1));
	ring_close(&r);
}

/* The item of a removed post is used again only when the consumer has taken it. */
TEST(removed_in_the_stack)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct user_ring r;

	ASSERT_EQ(0, ring_open(&r, 2));
	EXPECT_EQ(0, ring_add_post(&r, 100));
	EXPECT_EQ(1, ring_add_post(&r, 101));
	ring_post(&r, 1, 1);
	ring_post(&r, 0, 1);
	EXPECT_EQ(0, ring_del_post(&r, 0));
	EXPECT_EQ(-ENOSPC, ring_add(&r, event, EPOLLIN, 7));
	EXPECT_EQ(-ENOSPC, ring_add_post(&r, 7));
	EXPECT_EQ(101, next_post(&r, 1));
	EXPECT_EQ(0, next_post(&r, 1));
	add(event, 1);
	EXPECT_LE(0, ring_add(&r, event, EPOLLIN, 7));
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	EXPECT_EQ(0, ring_del(&r, event));
	/* Others are used first. */
	ring_post(&r, 1, 1);
	EXPECT_EQ(0, ring_del_post(&r, 1));
	EXPECT_EQ(0, ring_add_post(&r, 102));
	EXPECT_EQ(-ENOSPC, ring_add_post(&r, 103));
	ring_close(&r);
	close(event);
}

/*
 * The item of a removed file becomes a post only when the consumer has taken its entry:
 * while it is in the index, a post would not end a wait for more entries.
 */
TEST(item_of_a_file)
{
	int event = eventfd(1, EFD_CLOEXEC), other = eventfd(1, EFD_CLOEXEC);
	struct waiter w;
	struct user_ring r;

	ASSERT_EQ(0, ring_open(&r, 2));
	ASSERT_LE(0, ring_add(&r, event, EPOLLIN, 7));
	ASSERT_EQ(0, ring_del(&r, event));
	EXPECT_EQ(1, ring_add_post(&r, 100));
	EXPECT_EQ(-ENOSPC, ring_add_post(&r, 101));
	ASSERT_TRUE(waiter_start(&w, &r, 2, false));
	EXPECT_TRUE(ring_post(&r, 1, 4));
	EXPECT_TRUE(waiter_ends(&w));
	EXPECT_EQ(100, next_post(&r, 4));
	/* Another file may have it. */
	ASSERT_LE(0, ring_add(&r, other, EPOLLIN, 8));
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	ASSERT_EQ(0, ring_del(&r, other));
	EXPECT_EQ(0, ring_add_post(&r, 101));
	ring_post(&r, 0, 4);
	EXPECT_EQ(101, next_post(&r, 4));
	ring_close(&r);
	close(event);
	close(other);
}

/* What was posted before is not delivered to the next user of the item. */
TEST_F(ring, removed_with_bits)
{
	struct user_ring *r = &self->ring;

	ring_add_post(r, 100);
	ring_post(r, 0, 1);
	EXPECT_EQ(0, ring_del_post(r, 0));
	EXPECT_EQ(0, next_post(r, 1));
	for (int i = 0; i < 4; i++)
		EXPECT_LE(0, ring_add_post(r, 200 + i));
	ring_post(r, 0, 2);
	EXPECT_EQ(203, next_post(r, 2));
}

TEST_F(ring, removed_by_data)
{
	struct user_ring *r = &self->ring;

	ring_add_post(r, 5);
	ring_add_post(r, 6);
	ring_add_post(r, 5);
	ring_add(r, self->event, EPOLLIN, 5);
	EXPECT_EQ(3, ring_del_data(r, 5));
	EXPECT_EQ(-ENOENT, ring_del_data(r, 5));
	EXPECT_EQ(1, posts_in_fdinfo(r->fd));
	EXPECT_EQ(0, ring_watched(r->fd));
	EXPECT_EQ(1, ring_del_data(r, 6));
}

TEST_F(ring, ends_a_wait)
{
	struct user_ring *r = &self->ring;
	int post = ring_add_post(r, 100);
	struct waiter w;

	EXPECT_FALSE(ring_is_armed(r));
	for (int i = 0; i < 6; i++) {
		/* Whatever it waits for. */
		ASSERT_TRUE(waiter_start(&w, r, i, i == 5));
		EXPECT_TRUE(ring_is_armed(r));
		EXPECT_TRUE(ring_post(r, post, 1));
		ASSERT_TRUE(waiter_ends(&w));
		EXPECT_EQ(1, w.result);
		EXPECT_FALSE(ring_is_armed(r));
		EXPECT_EQ(100, next_post(r, 1));
		EXPECT_FALSE(ring_post(r, post, 1));
		EXPECT_EQ(100, next_post(r, 1));
	}
}

TEST_F(ring, ends_all_waits)
{
	struct user_ring *r = &self->ring;
	int post = ring_add_post(r, 100);
	struct waiter w[4];

	for (int i = 0; i < 4; i++)
		ASSERT_TRUE(waiter_start(&w[i], r, i + 1, false));
	EXPECT_TRUE(ring_post(r, post, 1));
	for (int i = 0; i < 4; i++)
		EXPECT_TRUE(waiter_ends(&w[i]));
}

/* A wait does not begin while there are posts, also such as were taken in part. */
TEST_F(ring, wait_with_posts)
{
	struct user_ring *r = &self->ring;
	int a = ring_add_post(r, 100), b = ring_add_post(r, 101);
	__u64 value = 0;

	set_nonblock(r->fd, true);
	EXPECT_EQ(-EAGAIN, result_of(read(r->fd, &value, 8)));
	ring_post(r, a, 1);
	ring_post(r, b, 1);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(1, ring_wait_ms(r, 4, PATIENCE_MS));
		EXPECT_EQ(8, read(r->fd, &value, 8));
		EXPECT_EQ(1, value);
		EXPECT_EQ(POLLIN, poll_now(r->fd));
		EXPECT_EQ(100 + i, next_post(r, 1));
	}
	EXPECT_EQ(0, ring_wait_ms(r, 4, 1));
	EXPECT_EQ(-EAGAIN, result_of(read(r->fd, &value, 8)));
	EXPECT_EQ(0, poll_now(r->fd));
	/* The number of slots, if there are any. */
	ASSERT_LE(0, ring_add(r, self->event, EPOLLIN, 7));
	add(self->event, 1);
	ring_post(r, a, 1);
	EXPECT_EQ(1, ring_wait_ms(r, 4, PATIENCE_MS));
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
}

/* Without a post, a notification wakes nobody, and the next post still does. */
TEST_F(ring, needless_notification)
{
	struct user_ring *r = &self->ring;
	int post = ring_add_post(r, 100);
	struct waiter w;
	long sleeps;

	EXPECT_EQ(0, ring_notify(r->fd));
	ASSERT_TRUE(waiter_start(&w, r, 1, false));
	sleeps = thread_sleeps(w.tid);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(0, ring_notify(r->fd));
	EXPECT_TRUE(ring_is_armed(r));
	EXPECT_TRUE(waiter_sleeps(&w));
	EXPECT_EQ(sleeps, thread_sleeps(w.tid));
	EXPECT_TRUE(ring_post(r, post, 1));
	EXPECT_TRUE(waiter_ends(&w));
}

struct toggler {
	pthread_t thread;
	struct user_ring *ring;
	bool notifies;
	bool posts_only, notifies_only;
	int stop;
};

static void *toggle(void *arg)
{
	struct toggler *t = arg;
	struct flowfd_ring_header *h = t->ring->header;

	for (unsigned int i = 0; !__atomic_load_n(&t->stop, __ATOMIC_RELAXED); i++) {
		if (!t->notifies_only)
			__atomic_store_n(&h->posted, i & 1, __ATOMIC_RELAXED);
		if (t->posts_only)
			continue;
		__atomic_store_n(&h->armed, i >> 1 & 1, __ATOMIC_RELAXED);
		if (t->notifies)
			ring_notify(t->ring->fd);
	}
	return NULL;
}

static bool waiter_ends_or_is_armed(struct waiter *w)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (now_ns() < end) {
		if (waiter_finished(w) || ring_is_armed(w->ring))
			return true;
	}
	return false;
}

/*
 * Posts come and go while a notification runs: if it has cleared @armed, it wakes the
 * waiter, which ends or arms the ring again.
 */
TEST_F(ring, posts_that_are_gone)
{
	enum { WAITS = 200, NOTIFICATIONS = 200 };
	struct toggler t = { .ring = &self->ring, .posts_only = true };
	struct waiter w;

	ring_add_post(&self->ring, 100);
	for (int i = 0; i < WAITS; i++) {
		t.stop = 0;
		self->ring.header->posted = 0;
		ASSERT_TRUE(waiter_start(&w, &self->ring, 1, false));
		ASSERT_EQ(0, pthread_create(&t.thread, NULL, toggle, &t));
		for (int j = 0; j < NOTIFICATIONS; j++) {
			ring_notify(self->ring.fd);
			ASSERT_TRUE(waiter_ends_or_is_armed(&w));
			if (waiter_finished(&w))
				break;
		}
		__atomic_store_n(&t.stop, 1, __ATOMIC_RELAXED);
		pthread_join(t.thread, NULL);
		self->ring.header->posted = 1;
		ring_notify(self->ring.fd);
		ASSERT_TRUE(waiter_ends(&w));
	}
}

TEST_F(ring, epoll)
{
	struct user_ring *r = &self->ring;
	int post = ring_add_post(r, 100), other = ring_add_post(r, 101);
	int level = epoll_on(r->fd, EPOLLIN);
	int edge = epoll_on(r->fd, EPOLLIN | EPOLLET);

	EXPECT_EQ(0, epoll_take(level, 0));
	EXPECT_EQ(0, epoll_take(edge, 0));
	for (int i = 0; i < 20; i++) {
		EXPECT_TRUE(ring_is_armed(r));
		EXPECT_TRUE(ring_post(r, post, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(level, PATIENCE_MS));
		EXPECT_EQ(EPOLLIN, epoll_take(edge, PATIENCE_MS));
		EXPECT_EQ(EPOLLIN, epoll_take(level, 0));
		EXPECT_EQ(0, epoll_take(edge, 0));
		/* An edge for each item while it is polled. */
		ring_post(r, other, 1);
		EXPECT_EQ(EPOLLIN, epoll_take(edge, PATIENCE_MS));
		EXPECT_EQ(100, next_post(r, 1));
		EXPECT_EQ(EPOLLIN, epoll_take(level, 0));
		EXPECT_EQ(101, next_post(r, 1));
		EXPECT_EQ(0, epoll_take(level, 0));
		EXPECT_EQ(0, epoll_take(edge, 0));
	}
	close(level);
	close(edge);
}

/* The kernel follows no link: whatever is in the stack, posts only wake. */
TEST_F(ring, hostile_links)
{
	static const __u32 values[] = { 1, 2, 4, 5, 0x1fffff, 0x3fffffff, 0xffffffff, 0xffe00000 };
	struct user_ring *r = &self->ring;

	ring_add_post(r, 1);
	ring_add_post(r, 2);
	for (int i = 0; i < 8 * 8 * 2; i++) {
		r->items[0].queued = values[i % 8] << 2 | i % 4;
		r->items[1].queued = 2 << 2 | 3;
		if (i & 64)
			r->header->posted = values[i / 8 % 8];
		else
			r->header->taken = values[i / 8 % 8];
		EXPECT_EQ(0, ring_notify(r->fd));
		if (r->header->taken || ring_stack(r)) {
			EXPECT_EQ(1, ring_wait_ms(r, 3, PATIENCE_MS));
			EXPECT_EQ(POLLIN, poll_now(r->fd));
		} else {
			EXPECT_EQ(0, ring_wait_ms(r, 3, 0));
		}
		r->header->posted = r->header->taken = 0;
	}
	/* Items that say that they are somewhere are not used; the others are. */
	r->items[2].queued = 3;
	EXPECT_EQ(3, ring_add_post(r, 3));
	EXPECT_EQ(-ENOSPC, ring_add_post(r, 4));
	r->items[2].queued = 1;
	EXPECT_EQ(-ENOSPC, ring_add_post(r, 4));
	r->items[2].queued = 0;
	EXPECT_EQ(2, ring_add_post(r, 4));
}

/*
 * A peer that toggles the words keeps nobody in the kernel: signals end each wait. @posts:
 * also what is posted, which can end it as well.
 */
static void toggle_beside_waiters(struct __test_metadata *_metadata, struct user_ring *r,
				  bool posts)
{
	struct toggler t[3];
	struct waiter w[4];
	int ep = epoll_on(r->fd, EPOLLIN | EPOLLET);
	__u64 end = now_ns() + stress_ns() / 2;

	for (int i = 0; i < 3; i++) {
		t[i] = (struct toggler){ .ring = r, .notifies = i, .notifies_only = !posts };
		ASSERT_EQ(0, pthread_create(&t[i].thread, NULL, toggle, &t[i]));
	}
	do {
		for (int i = 0; i < 4; i++) {
			ASSERT_TRUE(waiter_begin(&w[i], r, (struct flowfd_ring_wait){
				.min_events = i + 1, .timeout = FLOWFD_RING_FOREVER }, false));
		}
		epoll_take(ep, 0);
		poll_now(r->fd);
		for (int i = 0; i < 4; i++) {
			__u64 late = ms_from_now(PATIENCE_MS);

			while (!waiter_finished(&w[i])) {
				ASSERT_GT(late, now_ns());
				pthread_kill(w[i].thread, SIGUSR1);
				sched_yield();
			}
			pthread_join(w[i].thread, NULL);
			EXPECT_TRUE(w[i].result == -EINTR || (posts && w[i].result == 1));
		}
	} while (now_ns() < end);
	for (int i = 0; i < 3; i++) {
		t[i].stop = 1;
		pthread_join(t[i].thread, NULL);
	}
	r->header->posted = 0;
	close(ep);
}

TEST_F_TIMEOUT(ring, hostile_toggling, 24 * 3600)
{
	catch_signal(0);
	ring_add_post(&self->ring, 1);
	toggle_beside_waiters(_metadata, &self->ring, true);
	toggle_beside_waiters(_metadata, &self->ring, false);
}

TEST_HARNESS_MAIN
