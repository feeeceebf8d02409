// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wait queues that go before the file does, and files whose object is removed
 * while a ring watches them.
 */
#include "cgroup.h"
#include "ring_user.h"

#include <sys/wait.h>
#include <linux/android/binder.h>

/*
 * A binder has a wait queue for each thread that polls it, which goes with
 * BINDER_THREAD_EXIT.
 */
FIXTURE(binder)
{
	struct user_ring ring;
	int fd;
};

FIXTURE_SETUP(binder)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	if (system("modprobe -q binder_linux"))
		SKIP(return, "no binder");
	self->fd = open("/dev/binder", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (self->fd < 0)
		SKIP(return, "no binder");
}

FIXTURE_TEARDOWN(binder)
{
	ring_close(&self->ring);
	if (self->fd >= 0)
		close(self->fd);
}

static long thread_exit(int binder)
{
	__s32 nothing = 0;

	return result_of(ioctl(binder, BINDER_THREAD_EXIT, &nothing));
}

TEST_F(binder, queue_goes)
{
	struct user_ring *r = &self->ring;
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLET);

	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(r, self->fd, EPOLLIN, 1));
	EXPECT_EQ(epoll_take(ep, 0), ring_take_only(r));
	ASSERT_EQ(0, thread_exit(self->fd));
	EXPECT_TRUE(ring_take_only(r) & EPOLLHUP);
	EXPECT_EQ(1, ring_watched(r->fd));
	EXPECT_EQ(0, ring_mod(r, self->fd, EPOLLIN, 2));
	EXPECT_EQ(0, ring_del(r, self->fd));
	/* The next queue is another one. */
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(r, self->fd, EPOLLIN, 3));
	ASSERT_EQ(0, thread_exit(self->fd));
	EXPECT_TRUE(ring_take_only(r) & EPOLLHUP);
	close(ep);
}

TEST_F(binder, queue_goes_and_then_the_ring)
{
	struct user_ring other;

	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, ring_open(&other, 1));
		ASSERT_EQ(FLOWFD_RING_PINNED,
			  ring_add(&other, self->fd, EPOLLIN, 1));
		ASSERT_EQ(0, thread_exit(self->fd));
		ring_close(&other);
	}
}

struct remover {
	struct user_ring *ring;
	int fd;
	bool stop;
};

static void *remove_it(void *arg)
{
	struct remover *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		ring_del(r->ring, r->fd);
	return NULL;
}

/* Leaving the queue, and being thrown out of it, at the same time. */
TEST_F(binder, queue_goes_while_it_is_left)
{
	struct remover remover = { .ring = &self->ring, .fd = self->fd };
	__u64 end = now_ns() + 1500000000ULL;
	struct ring_event event;
	pthread_t thread;
	int added = 0;

	ASSERT_EQ(0, pthread_create(&thread, NULL, remove_it, &remover));
	while (now_ns() < end) {
		added += ring_add(&self->ring, self->fd, EPOLLIN, 1) >= 0;
		ASSERT_EQ(0, thread_exit(self->fd));
		while (ring_take(&self->ring, &event))
			;
	}
	__atomic_store_n(&remover.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	EXPECT_LT(0, added);
}

FIXTURE(group)
{
	struct user_ring ring;
	struct cgroup group;
};

FIXTURE_SETUP(group)
{
	ASSERT_EQ(0, ring_open(&self->ring, 4));
	if (!cgroup_make(&self->group, NULL))
		SKIP(return, "no control groups");
}

FIXTURE_TEARDOWN(group)
{
	ring_close(&self->ring);
	cgroup_remove(&self->group);
}

static void read_all(int fd)
{
	char text[256];

	lseek(fd, 0, SEEK_SET);
	while (read(fd, text, sizeof(text)) > 0)
		;
}

TEST_F(group, events)
{
	struct user_ring *r = &self->ring;
	int fd = cgroup_open_file(&self->group, "cgroup.events", O_RDONLY);
	struct ring_event event;
	pid_t child;
	int ep;

	ASSERT_LE(0, fd);
	read_all(fd);
	ep = epoll_on(fd, EPOLLPRI | EPOLLET);
	ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(r, fd, EPOLLPRI, 1));
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(0, ring_take_only(r));
	child = fork();
	if (!child) {
		cgroup_enter(&self->group);
		_exit(0);
	}
	ASSERT_TRUE(ring_take_wait(r, &event));
	EXPECT_EQ(epoll_take(ep, PATIENCE_MS), event.events);
	EXPECT_TRUE(event.events & EPOLLPRI);
	waitpid(child, NULL, 0);
	close(ep);
	close(fd);
}

/* The group goes, the open files stay: what is in them is gone. */
TEST_F(group, goes_while_it_is_watched)
{
	static const char * const names[] = { "cgroup.events",
					      "memory.pressure" };
	const char trigger[] = "some 150000 2000000";
	struct user_ring *r = &self->ring;
	int fds[ARRAY_SIZE(names)];
	struct ring_event event;
	__u32 seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		fds[i] = cgroup_open_file(&self->group, names[i],
					  i ? O_RDWR : O_RDONLY);
		if (fds[i] < 0)
			SKIP(return, "no %s", names[i]);
		read_all(fds[i]);
	}
	if (write(fds[1], trigger, sizeof(trigger)) < 0)
		SKIP(return, "no pressure, errno %d", errno);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ASSERT_EQ(FLOWFD_RING_PINNED,
			  ring_add(r, fds[i], EPOLLPRI, i));
	}
	ASSERT_EQ(0, ring_take_only(r));
	ASSERT_EQ(0, rmdir(self->group.path));
	/* Only the trigger says that it goes. */
	while (!(seen & 2)) {
		ASSERT_TRUE(ring_take_wait(r, &event));
		EXPECT_TRUE(event.events & (EPOLLERR | EPOLLPRI));
		seen |= 1 << event.data;
	}
	ASSERT_EQ(0, ring_mod(r, fds[1], EPOLLPRI, 2));
	EXPECT_EQ(0, ring_del(r, fds[1]));
	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(1, ring_watched(r->fd));
}

TEST_HARNESS_MAIN
