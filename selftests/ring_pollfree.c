// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wait queues that are freed before the file is (POLLFREE), and files whose object is
 * removed while a ring watches them.
 */
#include "cgroup.h"
#include "ring_user.h"

static const char pressure_trigger[] = "some 150000 2000000";

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

/*
 * A file with a trigger of pressure: its wait queue is freed with the group while the
 * file stays open. A negative number: no such file.
 */
static int open_trigger(struct cgroup *group)
{
	int fd = cgroup_open_file(group, "memory.pressure", O_RDWR);

	if (fd >= 0 && write(fd, pressure_trigger, sizeof(pressure_trigger)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The control group is removed while its files are open and watched. */
TEST_F(group, goes_while_it_is_watched)
{
	struct user_ring *r = &self->ring;
	int fds[2] = { cgroup_open_file(&self->group, "cgroup.events", O_RDONLY),
		       open_trigger(&self->group) };
	struct ring_event event;

	if (fds[0] < 0 || fds[1] < 0)
		SKIP(return, "no events or pressure triggers, errno %d", errno);
	for (int i = 0; i < 2; i++) {
		read_all(fds[i]);
		ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(r, fds[i], EPOLLPRI, i));
	}
	ASSERT_EQ(0, ring_take_only(r));
	ASSERT_EQ(0, rmdir(self->group.path));
	/* Only the trigger of pressure reports the removal. */
	do {
		ASSERT_TRUE(ring_take_wait(r, &event));
		EXPECT_TRUE(event.events & (EPOLLERR | EPOLLPRI));
	} while (event.data != 1);
	ASSERT_EQ(0, ring_mod(r, fds[1], EPOLLPRI, 2));
	EXPECT_EQ(0, ring_del(r, fds[1]));
	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(1, ring_watched(r->fd));
}

/* The same in a group of its own, which the caller removes. */
static int open_inner_trigger(const struct cgroup *outer, struct cgroup *inner)
{
	*inner = *outer;
	strcat(inner->path, "/x");
	if (mkdir(inner->path, 0755))
		return -1;
	return open_trigger(inner);
}

TEST_F(group, queue_goes_and_then_the_ring)
{
	struct cgroup inner;
	struct user_ring r;
	int fd;

	for (int i = 0; i < 50; i++) {
		fd = open_inner_trigger(&self->group, &inner);
		if (fd < 0) {
			rmdir(inner.path);
			SKIP(return, "no pressure triggers");
		}
		ASSERT_EQ(0, ring_open(&r, 1));
		ASSERT_EQ(FLOWFD_RING_PINNED, ring_add(&r, fd, EPOLLPRI, 1));
		ASSERT_EQ(0, rmdir(inner.path));
		ring_close(&r);
		close(fd);
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
		ring_del(r->ring, __atomic_load_n(&r->fd, __ATOMIC_ACQUIRE));
	return NULL;
}

/* The watch is removed while its wait queue is freed. */
TEST_F(group, queue_goes_while_it_is_left)
{
	struct remover remover = { .ring = &self->ring, .fd = -1 };
	__u64 end = now_ns() + 1500000000ULL;
	struct ring_event event;
	struct cgroup inner;
	pthread_t thread;
	int added = 0, fd = -1;

	ASSERT_EQ(0, pthread_create(&thread, NULL, remove_it, &remover));
	while (now_ns() < end) {
		fd = open_inner_trigger(&self->group, &inner);
		if (fd < 0) {
			rmdir(inner.path);
			break;
		}
		__atomic_store_n(&remover.fd, fd, __ATOMIC_RELEASE);
		added += ring_add(&self->ring, fd, EPOLLPRI, 1) >= 0;
		ASSERT_EQ(0, rmdir(inner.path));
		while (ring_take(&self->ring, &event))
			;
		ring_del(&self->ring, fd);
		close(fd);
	}
	__atomic_store_n(&remover.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (fd < 0)
		SKIP(return, "no pressure triggers");
	EXPECT_LT(0, added);
}

/*
 * The poll method of binder looks at the calling thread, and a worker is another one.
 */
TEST(binder_is_refused)
{
	struct user_ring r;
	int fd = -1;

	ASSERT_EQ(0, ring_open(&r, 1));
	if (!system("modprobe -q binder_linux"))
		fd = open("/dev/binder", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		SKIP(return, "no binder");
	EXPECT_EQ(-EPERM, ring_add(&r, fd, EPOLLIN, 1));
	EXPECT_EQ(-EPERM, ring_add_pinned(&r, fd, EPOLLIN, 1));
	close(fd);
	ring_close(&r);
}

TEST_HARNESS_MAIN
