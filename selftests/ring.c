// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring: adding, changing and removing watches, one by one and in batches; when
 * items are used again; fdinfo. Which wakeups become events is in ring_files.c.
 */
#include "ring_fixtures.h"

#include <sys/signalfd.h>
#include <linux/io_uring.h>

TEST_F(ring, only_what_was_asked_for)
{
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLOUT, 1));
	EXPECT_EQ(EPOLLOUT, ring_take_only(&self->ring));
	add(self->event, 1);
	EXPECT_EQ(0, ring_take_only(&self->ring));
}

TEST_F(ring, wrong_entries)
{
	struct user_ring *r = &self->ring;
	const __u32 bad[] = { 0x20, 0x800, 0x1000, 0x4000, 0x8000, 1 << 16,
			      1 << 27, EPOLLEXCLUSIVE, EPOLLWAKEUP };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = self->event;

	EXPECT_EQ(-EINVAL, ring_change(r, 0, fd, EPOLLET, 0));
	EXPECT_EQ(-EINVAL, ring_change(r, 6, fd, EPOLLET, 0));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_ADD, fd, EPOLLIN, 0));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_ADD_PINNED, fd,
				       EPOLLIN, 0));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL, fd, EPOLLIN, 0));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL, fd, 0, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL_DATA, fd, 0, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL_DATA, -2, 0, 1));
	EXPECT_EQ(-EINVAL, ring_change(r, FLOWFD_RING_DEL_DATA, -1, EPOLLET, 1));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, ring_add(r, fd, EPOLLIN | bad[i], 0))
			TH_LOG("%#x", bad[i]);
	}
	EXPECT_EQ(-EBADF, ring_add(r, -1, EPOLLIN, 0));
	EXPECT_EQ(-EBADF, ring_mod(r, 1000, EPOLLIN, 0));
	EXPECT_EQ(-EPERM, ring_add(r, file, EPOLLIN, 0));
	EXPECT_EQ(-ENOENT, ring_mod(r, fd, EPOLLIN, 0));
	EXPECT_EQ(-ENOENT, ring_del(r, fd));
	EXPECT_EQ(-ENOENT, ring_del_data(r, 0));
	EXPECT_EQ(0, ring_watched(r->fd));
	close(file);
}

TEST_F(ring, refuses_files_that_poll_others)
{
	struct io_uring_params params = { 0 };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	int uring = syscall(SYS_io_uring_setup, 4, &params);
	struct user_ring other;
	sigset_t set;
	int sig;

	ASSERT_EQ(0, ring_open(&other, 1));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sig = signalfd(-1, &set, SFD_CLOEXEC);
	EXPECT_EQ(-ELOOP, ring_add(&self->ring, self->ring.fd, EPOLLIN, 0));
	EXPECT_EQ(-ELOOP, ring_add(&self->ring, other.fd, EPOLLIN, 0));
	EXPECT_EQ(-ELOOP, ring_add(&self->ring, ep, EPOLLIN, 0));
	EXPECT_EQ(-EPERM, ring_add(&self->ring, sig, EPOLLIN, 0));
	if (uring >= 0) {
		EXPECT_EQ(-ELOOP, ring_add(&self->ring, uring, EPOLLIN, 0));
		close(uring);
	}
	close(ep);
	close(sig);
	ring_close(&other);
}

TEST_F(ring, one_watch_for_a_file_and_a_number)
{
	int copy = dup(self->event);

	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 1));
	EXPECT_EQ(-EEXIST, ring_add(&self->ring, self->event, EPOLLIN, 1));
	EXPECT_LE(0, ring_add(&self->ring, copy, EPOLLIN, 2));
	EXPECT_EQ(2, ring_watched(self->ring.fd));
	add(self->event, 1);
	EXPECT_EQ(~0U, ring_take_only(&self->ring));
	EXPECT_EQ(0, ring_del(&self->ring, copy));
	close(copy);
}

TEST_F(ring, batch)
{
	struct flowfd_ring_entry entries[] = {
		{ .op = FLOWFD_RING_ADD, .fd = self->event,
		  .events = EPOLLIN | EPOLLET, .data = 1 },
		{ .op = FLOWFD_RING_ADD, .fd = -1, .events = EPOLLET },
		{ .op = FLOWFD_RING_ADD, .fd = self->event,
		  .events = EPOLLIN | EPOLLET },
		{ .op = FLOWFD_RING_MOD, .fd = self->event,
		  .events = EPOLLOUT | EPOLLET, .data = 2 },
		{ .op = FLOWFD_RING_DEL, .fd = self->event },
		{ .op = FLOWFD_RING_DEL, .fd = self->event },
	};

	EXPECT_EQ(3, ring_control(self->ring.fd, entries, 6));
	EXPECT_EQ(FLOWFD_RING_PINNED, entries[0].result);
	EXPECT_EQ(-EBADF, entries[1].result);
	EXPECT_EQ(-EEXIST, entries[2].result);
	EXPECT_EQ(0, entries[3].result);
	EXPECT_EQ(0, entries[4].result);
	EXPECT_EQ(-ENOENT, entries[5].result);
	EXPECT_EQ(0, ring_control(self->ring.fd, NULL, 0));
	EXPECT_EQ(-EFAULT, ring_control(self->ring.fd, NULL, 1));
	EXPECT_EQ(-EINVAL, ring_control(self->ring.fd, entries,
					FLOWFD_RING_ITEMS_MAX + 1));
}

/* An entry whose result cannot be stored is not carried out; those before it are. */
TEST_F(ring, batch_at_the_end_of_memory)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct flowfd_ring_entry *e = (void *)(pages + PAGE);

	ASSERT_NE(MAP_FAILED, pages);
	e[-1] = e[0] = (struct flowfd_ring_entry){
		.op = FLOWFD_RING_ADD, .fd = self->event,
		.events = EPOLLIN | EPOLLET,
	};
	e[0].fd = self->ring.fd;
	ASSERT_EQ(0, mprotect(pages + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, ring_control(self->ring.fd, e - 1, 2));
	EXPECT_EQ(FLOWFD_RING_PINNED, e[-1].result);
	EXPECT_EQ(1, ring_watched(self->ring.fd));
	EXPECT_EQ(0, ring_del(&self->ring, self->event));
	e[-1].fd = -1;
	ASSERT_EQ(0, mprotect(pages, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, ring_control(self->ring.fd, e - 1, 1));
}

TEST_F(ring, one_shot)
{
	struct user_ring *r = &self->ring;

	ASSERT_LE(0, ring_add(r, self->event, EPOLLIN | EPOLLONESHOT, 1));
	add(self->event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	add(self->event, 1);
	EXPECT_EQ(0, ring_take_only(r));
	EXPECT_EQ(0, ring_mod(r, self->event, EPOLLIN | EPOLLONESHOT, 2));
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	EXPECT_EQ(0, ring_take_only(r));
	add(self->event, 1);
	EXPECT_EQ(0, ring_take_only(r));
}

TEST_F(ring, mod_changes_and_looks_again)
{
	struct ring_event event;

	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLOUT, 1));
	add(self->event, 1);
	/* The earlier event is dropped. */
	ASSERT_EQ(0, ring_mod(&self->ring, self->event, EPOLLIN, 2));
	ASSERT_TRUE(ring_take(&self->ring, &event));
	EXPECT_EQ(EPOLLIN, event.events);
	EXPECT_EQ(2, event.data);
	EXPECT_FALSE(ring_take(&self->ring, &event));
	ASSERT_EQ(0, ring_mod(&self->ring, self->event, 0, 3));
	EXPECT_FALSE(ring_take(&self->ring, &event));
	add(self->event, 1);
	EXPECT_FALSE(ring_take(&self->ring, &event));
}

TEST_F(ring, del_by_data)
{
	struct user_ring *r = &self->ring;
	int copy = dup(self->event), other = eventfd(0, EFD_CLOEXEC);

	ASSERT_LE(0, ring_add(r, self->event, EPOLLIN, 7));
	ASSERT_LE(0, ring_add(r, copy, EPOLLIN, 7));
	ASSERT_LE(0, ring_add(r, other, EPOLLIN, 8));
	EXPECT_EQ(-ENOENT, ring_del_data(r, 6));
	EXPECT_EQ(3, ring_watched(r->fd));
	add(self->event, 1);
	EXPECT_EQ(2, ring_del_data(r, 7));
	EXPECT_EQ(1, ring_watched(r->fd));
	EXPECT_EQ(0, ring_take_only(r));
	add(self->event, 1);
	EXPECT_EQ(0, ring_take_only(r));
	EXPECT_EQ(-ENOENT, ring_del_data(r, 7));
	add(other, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	/* Watches are found by the data of their last change. */
	ASSERT_EQ(0, ring_mod(r, other, EPOLLIN, 1ULL << 63));
	EXPECT_EQ(-ENOENT, ring_del_data(r, 8));
	EXPECT_EQ(1, ring_del_data(r, 1ULL << 63));
	EXPECT_EQ(0, ring_watched(r->fd));
	close(copy);
	close(other);
}

/* A ring with many hash buckets, none of which must be skipped. */
TEST(del_by_data_many)
{
	const int many = 500;
	struct user_ring r;
	int fds[500];

	ASSERT_EQ(0, ring_open(&r, many));
	for (int i = 0; i < many; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
		ASSERT_LE(0, ring_add(&r, fds[i], EPOLLIN, i % 2));
	}
	EXPECT_EQ(many / 2, ring_del_data(&r, 1));
	EXPECT_EQ(many / 2, ring_watched(r.fd));
	EXPECT_EQ(many / 2, ring_del_data(&r, 0));
	EXPECT_EQ(0, ring_watched(r.fd));
	/* The items are free again. */
	for (int i = 0; i < many; i++)
		EXPECT_LE(0, ring_add(&r, fds[i], EPOLLIN, 2));
	for (int i = 0; i < many; i++)
		close(fds[i]);
	ring_close(&r);
}

/* A new watch must not inherit the events of the old one. */
TEST_F(ring, used_again_with_an_entry_outstanding)
{
	int quiet = eventfd(0, EFD_CLOEXEC);
	struct ring_event event;

	for (int i = 0; i < 16; i++) {
		ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 1));
		add(self->event, 1);
		ASSERT_EQ(0, ring_del(&self->ring, self->event));
		ASSERT_LE(0, ring_add(&self->ring, quiet, EPOLLIN, 2));
		ASSERT_EQ(0, ring_del(&self->ring, quiet));
	}
	for (int i = 0; i < 4; i++) {
		int fd = dup(quiet);

		ASSERT_LE(0, ring_add(&self->ring, fd, EPOLLIN, 100 + i));
	}
	ASSERT_FALSE(ring_take(&self->ring, &event));
	add(quiet, 1);
	for (int i = 0; i < 4; i++) {
		ASSERT_TRUE(ring_take(&self->ring, &event));
		EXPECT_LE(100, event.data);
		EXPECT_EQ(EPOLLIN, event.events);
	}
	EXPECT_FALSE(ring_take(&self->ring, &event));
}

TEST(items_are_used_again_as_late_as_possible)
{
	struct user_ring r;
	int fd = eventfd(1, EFD_CLOEXEC);

	ASSERT_EQ(0, ring_open(&r, 4));
	for (__u32 i = 0; i < 40; i++) {
		ASSERT_LE(0, ring_add(&r, fd, EPOLLIN, i));
		EXPECT_EQ(i % 4 + 1, r.index[r.header->head & r.mask]);
		EXPECT_EQ(EPOLLIN, ring_take_only(&r));
		ASSERT_EQ(0, ring_del(&r, fd));
	}
	ring_close(&r);
}

TEST_F(ring, fdinfo)
{
	char line[128];

	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 0xabc));
	fdinfo_line(self->ring.fd, "tfd", line, sizeof(line));
	EXPECT_NE(NULL, strstr(line, "events:       19"))
		TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "abc pinned: 1"));
	EXPECT_EQ(4, fdinfo_number(self->ring.fd, "flowfd-ring-max-items", 10));
	add(self->event, 1);
	EXPECT_EQ(1, fdinfo_number(self->ring.fd, "flowfd-ring-tail", 10));
	EXPECT_EQ(0, fdinfo_number(self->ring.fd, "flowfd-ring-head", 10));
	ring_take_only(&self->ring);
	EXPECT_EQ(1, fdinfo_number(self->ring.fd, "flowfd-ring-head", 10));
}

/* The time to read fdinfo is bounded, however large another user's ring is. */
TEST_F(ring, fdinfo_shows_the_first_4096)
{
	const rlim_t files = 4100;
	struct rlimit limit = { files + 100, files + 100 };
	struct user_ring r;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(0, ring_open(&r, files));
	EXPECT_EQ(0, ring_watched(r.fd));
	for (rlim_t i = 0; i < files; i++) {
		ASSERT_LE(0, ring_add(&r, dup(self->event), EPOLLIN, i));
		if (i != 0 && i != 4095)
			continue;
		EXPECT_EQ(i + 1, ring_watched(r.fd));
		EXPECT_EQ(i + 1, ring_shown(r.fd));
	}
	EXPECT_EQ(files, ring_watched(r.fd));
	EXPECT_EQ(4096, ring_shown(r.fd));
	ring_close(&r);
}

TEST_HARNESS_MAIN
