// SPDX-License-Identifier: GPL-2.0-only
/*
 * A mapped counter step by step: layout, ways to map, what is refused, charge, calls
 * and memory on one count, which bits are set when, and the maximum.
 */
#include "flow_user.h"
#include "ring_user.h"
#include "sockets.h"

#include <sys/wait.h>

MAPPED_FIXTURE(mapped, .flags = FLOWFD_NONBLOCK)

TEST(layout)
{
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, .initial = 5, .maximum = 9));
	EXPECT_EQ(FLOWFD_COUNTER_MAGIC, m.header->magic);
	EXPECT_EQ(FLOWFD_COUNTER_VERSION, m.header->version);
	EXPECT_EQ(PAGE, m.header->page_size);
	EXPECT_EQ(FLOWFD_MAPPED, m.header->flags);
	EXPECT_EQ(9, m.header->maximum);
	EXPECT_EQ(0, m.header->closes);
	EXPECT_EQ(id_of(m.fd), m.header->id);
	EXPECT_EQ(0, m.header->reserved);
	EXPECT_EQ(5, m.producer->produced);
	EXPECT_EQ(0, m.consumer->consumed);
	EXPECT_EQ(0, m.consumer->armed);
	EXPECT_EQ(0, m.consumer->reserved);
	EXPECT_EQ(5, count_of(m.fd));
	EXPECT_EQ(9, maximum_of(m.fd));
	EXPECT_EQ(1, fdinfo_number(m.fd, "flowfd-mapped", 10));
	mapped_close(&m);
	ASSERT_EQ(0, MAPPED_CREATE(&m, 0));
	EXPECT_EQ(ULLONG_MAX, m.header->maximum);
	mapped_close(&m);
}

static long try_create(struct flowfd_create_counter args)
{
	long fd = create_counter(&args);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST(flags)
{
	static const struct { __u32 flags; long result; } all[] = {
		{ FLOWFD_MAPPED, 0 },
		{ FLOWFD_MAPPED | 1U << 4, -EINVAL },
		{ FLOWFD_MAPPED | FLOWFD_SEMAPHORE, -EINVAL },
		{ FLOWFD_MAPPED | 1U << 5, -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct flowfd_create_counter args = { .flags = all[i].flags };

		EXPECT_EQ(all[i].result, try_create(args));
	}
	EXPECT_EQ(-EINVAL, try_create((struct flowfd_create_counter){
		.flags = FLOWFD_MAPPED, .initial = 3, .maximum = 3 }));
}

TEST(not_mapped)
{
	int fd = open_counter(CREATED, 0, 0);

	EXPECT_EQ(MAP_FAILED, map_page(fd, 1, PROT_READ));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-ENODEV, notify(fd));
	EXPECT_EQ(0, fdinfo_number(fd, "flowfd-mapped", 10));
	close(fd);
	fd = open(DEVICE, O_RDWR);
	EXPECT_EQ(MAP_FAILED, map_page(fd, 1, PROT_READ));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-ENODEV, notify(fd));
	close(fd);
}

static long try_map(int fd, int first, int pages, int prot, int flags)
{
	long size = PAGE;
	void *map = mmap(NULL, pages * size, prot, flags, fd, first * size);

	if (map == MAP_FAILED)
		return -errno;
	munmap(map, pages * size);
	return 0;
}

TEST_F(mapped, ways_to_map)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = self->m.fd;

	for (int page = 0; page < 3; page++) {
		EXPECT_EQ(0, try_map(fd, page, 1, PROT_READ, MAP_SHARED));
		EXPECT_EQ(page ? 0 : -EACCES, try_map(fd, page, 1, rw, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(fd, page, 1, PROT_READ, MAP_PRIVATE));
		EXPECT_EQ(-EPERM, try_map(fd, page, 1, PROT_READ | PROT_EXEC,
					  MAP_SHARED));
	}
	EXPECT_EQ(0, try_map(fd, 0, 3, PROT_READ, MAP_SHARED));
	EXPECT_EQ(-EACCES, try_map(fd, 0, 3, rw, MAP_SHARED));
	EXPECT_EQ(-EACCES, try_map(fd, 0, 2, PROT_WRITE, MAP_SHARED));
	EXPECT_EQ(0, try_map(fd, 1, 2, rw, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, 1, 3, rw, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, 0, 4, PROT_READ, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, 3, 1, PROT_READ, MAP_SHARED));
	EXPECT_GT(0, try_map(fd, INT_MAX, 1, PROT_READ, MAP_SHARED));
}

TEST_F(mapped, protection_stays)
{
	long size = PAGE;
	void *kernel = (void *)self->m.header;
	char *all = mmap(NULL, 3 * size, PROT_READ, MAP_SHARED, self->m.fd, 0);

	ASSERT_NE(MAP_FAILED, all);
	EXPECT_EQ(-EACCES, result_of(mprotect(kernel, size, PROT_READ | PROT_WRITE)));
	EXPECT_EQ(-EACCES, result_of(mprotect(kernel, size, PROT_READ | PROT_EXEC)));
	EXPECT_EQ(-EACCES, result_of(mprotect(all + size, size,
					      PROT_READ | PROT_WRITE)));
	EXPECT_EQ(-EACCES, result_of(mprotect(self->m.producer, size,
					      PROT_READ | PROT_EXEC)));
	EXPECT_EQ(0, mprotect(self->m.producer, size, PROT_READ));
	EXPECT_EQ(0, mprotect(self->m.producer, size, PROT_READ | PROT_WRITE));
	munmap(all, 3 * size);
}

/* Not even a debugger can write what the kernel trusts programs not to write. */
TEST_F(mapped, kernel_page_through_proc)
{
	int mem = open("/proc/self/mem", O_RDWR);
	__u64 value = 77;

	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &value, 8, (off_t)&self->m.header->maximum));
	EXPECT_EQ(ULLONG_MAX, self->m.header->maximum);
	close(mem);
}

TEST_F(mapped, moved)
{
	long size = PAGE;
	struct flowfd_counter_producer *there;
	__u64 value;

	EXPECT_EQ(MAP_FAILED, mremap(self->m.producer, size, 2 * size, MREMAP_MAYMOVE));
	there = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(there, mremap(self->m.producer, size, size,
				MREMAP_MAYMOVE | MREMAP_FIXED, there));
	self->m.producer = there;
	EXPECT_EQ(8, mapped_add(&self->m, 3));
	EXPECT_EQ(8, take(self->m.fd, &value));
	EXPECT_EQ(3, value);
}

/* All are the same pages, and any of them can go. */
TEST_F(mapped, mapped_many_times)
{
	struct mapped others[20];
	__u64 value;

	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, mapped_map(&others[i], self->m.fd));
		EXPECT_EQ(8, mapped_add(&others[i], 1));
	}
	for (int i = 0; i < 20; i += 2)
		mapped_unmap(&others[i]);
	EXPECT_EQ(20, mapped_count(&others[1]));
	EXPECT_EQ(8, mapped_take(&others[7], &value));
	EXPECT_EQ(20, value);
	EXPECT_EQ(-EAGAIN, take(self->m.fd, &value));
}

/* Also where nothing is there: EAGAIN would promise a wakeup. */
TEST_F(mapped, bad_buffer)
{
	__u64 value;

	EXPECT_EQ(-EFAULT, result_of(syscall(SYS_read, self->m.fd, NULL, 8)));
	EXPECT_EQ(8, mapped_add(&self->m, 3));
	EXPECT_EQ(-EFAULT, result_of(syscall(SYS_read, self->m.fd, NULL, 8)));
	EXPECT_EQ(8, take(self->m.fd, &value));
	EXPECT_EQ(3, value);
}

TEST(mapping_outlives_the_descriptor)
{
	int ep, copy;
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m, 0));
	ep = epoll_on(m.fd, EPOLLIN);
	copy = dup(m.fd);
	close(m.fd);
	EXPECT_EQ(8, mapped_produce(&m, 4) ? 8 : 0);
	EXPECT_EQ(0, notify(copy));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(copy);
	EXPECT_EQ(4, mapped_count(&m));
	mapped_unmap(&m);
	EXPECT_EQ(0, epoll_take(ep, 0));
	close(ep);
}

/* Runs this as an unprivileged user who may lock so many bytes. */
static int as_user(unsigned int uid, rlim_t limit, int (*run)(void))
{
	struct rlimit memlock = { limit, limit };
	int status;
	pid_t child = fork();

	if (!child) {
		if (setrlimit(RLIMIT_MEMLOCK, &memlock) || setgid(uid) || setuid(uid))
			_exit(100);
		_exit(run());
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 101;
	return WEXITSTATUS(status);
}

/* Three pages each. */
static int fill_the_limit(void)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_MAPPED };
	int fds[16], n = 0;

	while (n < 16 && (fds[n] = create_counter(&args)) >= 0)
		n++;
	if (n != 5 || fds[n] != -ENOMEM)
		return 1;
	close(fds[n - 1]);
	fds[n - 1] = create_counter(&args);
	if (fds[n - 1] < 0)
		return 2;
	args.flags = 0;
	if (create_counter(&args) < 0)
		return 3;
	while (n)
		close(fds[--n]);
	return 0;
}

TEST(memory_is_charged)
{
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, as_user(54331, 17 * PAGE, fill_the_limit));
	}
}

/* A counter is created as a mapped one, or never is one. */
TEST(set_up)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_MAPPED };
	int fd = open(DEVICE, O_RDWR);

	EXPECT_EQ(-EINVAL, result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args)));
	args.flags = 0;
	EXPECT_EQ(0, ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args));
	EXPECT_EQ(MAP_FAILED, map_page(fd, 1, PROT_READ));
	EXPECT_EQ(ENODEV, errno);
	close(fd);
}

TEST_F(mapped, calls_and_memory_share_the_count)
{
	struct mapped *m = &self->m;
	__u64 value;

	EXPECT_EQ(POLLOUT, poll_now(m->fd));
	EXPECT_EQ(8, mapped_add(m, 3));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(m->fd));
	EXPECT_EQ(8, add(m->fd, 4));
	EXPECT_EQ(7, mapped_count(m));
	EXPECT_EQ(7, count_of(m->fd));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(7, value);
	EXPECT_EQ(-EAGAIN, take(m->fd, &value));
	EXPECT_EQ(8, add(m->fd, 2));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(8, take(m->fd, &value));
	EXPECT_EQ(3, value);
	EXPECT_EQ(-EAGAIN, mapped_take(m, &value));
	EXPECT_EQ(8, mapped_add(m, 0));
	EXPECT_EQ(-EINVAL, mapped_add(m, ULLONG_MAX));
	EXPECT_EQ(8, mapped_add(m, ULLONG_MAX - 1));
	EXPECT_EQ(POLLIN, poll_now(m->fd));
	EXPECT_EQ(-EAGAIN, mapped_add(m, 1));
	EXPECT_EQ(8, take(m->fd, &value));
	EXPECT_EQ(ULLONG_MAX - 1, value);
	/* Nobody ever slept or polled while it waited. */
	EXPECT_EQ(0, m->calls);
}

/* The words wrap, and nobody sees it. */
TEST_F(mapped, words_wrap)
{
	struct mapped *m = &self->m;
	__u64 value;

	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(8, mapped_add(m, ULLONG_MAX - 1 - i));
		ASSERT_EQ(8, i % 2 ? take(m->fd, &value) : mapped_take(m, &value));
		EXPECT_EQ(ULLONG_MAX - 1 - i, value);
		ASSERT_EQ(8, add(m->fd, 7));
		EXPECT_EQ(7, mapped_count(m));
		ASSERT_EQ(8, mapped_take(m, &value));
		EXPECT_EQ(7, value);
	}
}

TEST_F(mapped, maximum)
{
	struct mapped *m = &self->m;
	__u64 value;

	EXPECT_EQ(-EINVAL, set_maximum(m->fd, 0));
	EXPECT_EQ(0, set_maximum(m->fd, 10));
	EXPECT_EQ(10, m->header->maximum);
	EXPECT_EQ(10, maximum_of(m->fd));
	EXPECT_EQ(8, mapped_add(m, 5));
	EXPECT_EQ(-EAGAIN, mapped_add(m, 5));
	EXPECT_EQ(-EINVAL, mapped_add(m, 10));
	EXPECT_EQ(8, mapped_add(m, 4));
	EXPECT_EQ(POLLIN, poll_now(m->fd));
	EXPECT_EQ(-EINVAL, set_maximum(m->fd, 9));
	EXPECT_EQ(10, m->header->maximum);
	EXPECT_EQ(0, set_maximum(m->fd, 11));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(m->fd));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(9, value);
	EXPECT_EQ(0, set_maximum(m->fd, 1));
	EXPECT_EQ(0, poll_now(m->fd));
	EXPECT_EQ(-EINVAL, mapped_add(m, 1));
	EXPECT_EQ(8, add(m->fd, 0));
}

/* As after adds in memory that overlapped with a lower maximum. */
TEST_F(mapped, count_above_the_maximum)
{
	struct mapped *m = &self->m;
	__u64 value;

	ASSERT_EQ(0, set_maximum(m->fd, 10));
	__atomic_add_fetch(&m->producer->produced, 10, __ATOMIC_SEQ_CST);
	EXPECT_EQ(POLLIN, poll_now(m->fd));
	__atomic_add_fetch(&m->producer->produced, 15, __ATOMIC_SEQ_CST);
	EXPECT_EQ(POLLIN, poll_now(m->fd));
	EXPECT_EQ(-EAGAIN, mapped_add(m, 1));
	EXPECT_EQ(-EAGAIN, add(m->fd, 0));
	EXPECT_EQ(-EINVAL, set_maximum(m->fd, 25));
	EXPECT_EQ(0, set_maximum(m->fd, 26));
	EXPECT_EQ(POLLIN, poll_now(m->fd));
	EXPECT_EQ(0, set_maximum(m->fd, 30));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(m->fd));
	EXPECT_EQ(8, take(m->fd, &value));
	EXPECT_EQ(25, value);
}

/* There is no room, also for an edge, and what else is set has nothing to do with it. */
TEST_F(mapped, settings_above_the_maximum)
{
	struct flowfd_flow flow = { .set = FLOWFD_SET_OVERFLOW, .maximum = 1,
				    .overflow = FLOWFD_OVERFLOW_FAIL };
	struct mapped *m = &self->m;
	int ep;

	ASSERT_EQ(0, set_maximum(m->fd, 10));
	__atomic_add_fetch(&m->producer->produced, 25, __ATOMIC_SEQ_CST);
	ep = epoll_on(m->fd, EPOLLOUT | EPOLLET);
	ASSERT_LE(0, ep);
	EXPECT_EQ(0, epoll_take(ep, 0));
	mapped_notify(m);
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(0, set_flow(m->fd, flow));
	flow.set = FLOWFD_SET_QOS;
	EXPECT_EQ(0, set_flow(m->fd, flow));
	flow.set = FLOWFD_SET_MAXIMUM;
	EXPECT_EQ(-EINVAL, set_flow(m->fd, flow));
	EXPECT_EQ(10, maximum_of(m->fd));
	close(ep);
}

TEST_F(mapped, who_arms)
{
	struct mapped *m = &self->m;
	struct call reader;
	__u64 value;
	int ep;

	/* No queue: poll that does not wait arms nothing. */
	EXPECT_EQ(POLLOUT, poll_now(m->fd));
	EXPECT_EQ(-EAGAIN, take(m->fd, &value));
	EXPECT_EQ(0, mapped_armed(m));

	set_nonblock(m->fd, false);
	ASSERT_TRUE(start_read(&reader, m->fd));
	EXPECT_EQ(FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED, mapped_armed(m));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_TRUE(call_join(&reader));
	EXPECT_EQ(1, m->calls);
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(8, mapped_take(m, &value));
	/* One more at most, which finds that the reader is gone. */
	EXPECT_GE(2, m->calls);
	EXPECT_EQ(0, mapped_armed(m));

	m->calls = 0;
	ep = epoll_on(m->fd, EPOLLIN);
	EXPECT_EQ(FLOWFD_ARMED_READERS | FLOWFD_ARMED_WATCHED, mapped_armed(m));
	for (int i = 0; i < 100; i++)
		mapped_add(m, 1);
	EXPECT_EQ(1, m->calls);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(100, value);
	EXPECT_EQ(0, epoll_take(ep, 0));
	EXPECT_EQ(8, mapped_add(m, 1));
	EXPECT_EQ(2, m->calls);
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

TEST_F(mapped, writers_arm)
{
	struct mapped *m = &self->m;
	struct call writer;
	__u64 value;

	ASSERT_EQ(0, set_maximum(m->fd, 4));
	ASSERT_EQ(8, mapped_add(m, 3));
	set_nonblock(m->fd, false);
	ASSERT_TRUE(start_write(&writer, m->fd, 2));
	EXPECT_EQ(FLOWFD_ARMED_WRITERS, mapped_armed(m));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(1, m->calls);
	EXPECT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
	EXPECT_EQ(2, mapped_count(m));
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(2, value);
	EXPECT_GE(2, m->calls);
}

/*
 * A consumer has taken, and is interrupted before it looks for writers. Meanwhile the
 * first edge-triggered poller comes, for which a take is an edge from there on.
 */
TEST_F(mapped, edge_poller_between_the_steps_of_a_take)
{
	struct mapped *m = &self->m;
	__u64 value, produced;
	int level, edge;

	ASSERT_EQ(0, set_maximum(m->fd, 2));
	ASSERT_EQ(8, mapped_add(m, 1));
	level = epoll_on(m->fd, EPOLLOUT);
	EXPECT_EQ(0, epoll_take(level, 0));
	produced = mapped_consume(m, &value);
	edge = epoll_on(m->fd, EPOLLOUT | EPOLLET);
	mapped_arm(m, produced);
	EXPECT_EQ(EPOLLOUT, epoll_take(level, 0));
	EXPECT_EQ(EPOLLOUT, epoll_take(edge, 0));
	close(level);
	close(edge);
}

/* A consumer takes and does not look for writers; the read of another one does. */
TEST_F(mapped, empty_read_tells_writers)
{
	struct mapped *m = &self->m;
	struct call writer;
	__u64 value;

	ASSERT_EQ(0, set_maximum(m->fd, 2));
	ASSERT_EQ(8, mapped_add(m, 1));
	set_nonblock(m->fd, false);
	ASSERT_TRUE(start_write(&writer, m->fd, 1));
	set_nonblock(m->fd, true);
	mapped_consume(m, &value);
	EXPECT_EQ(8, take(m->fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_TRUE(call_join(&writer));
	EXPECT_EQ(8, writer.result);
}

/* All that was taken is a multiple of 2^64. */
TEST_F(mapped, writers_are_told_after_huge_takes)
{
	struct mapped *m = &self->m;
	__u64 value;
	int ep;

	ASSERT_EQ(8, add(m->fd, 2));
	ASSERT_EQ(8, take(m->fd, &value));
	ASSERT_EQ(8, add(m->fd, ULLONG_MAX - 1));
	ep = epoll_on(m->fd, EPOLLOUT);
	EXPECT_EQ(0, epoll_take(ep, 0));
	ASSERT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(EPOLLOUT, epoll_take(ep, 0));
	close(ep);
}

/* A notification without reason wakes nobody. */
TEST_F(mapped, idle_notifications)
{
	struct mapped *m = &self->m;
	int edge = epoll_on(m->fd, EPOLLIN | EPOLLOUT | EPOLLET);

	EXPECT_EQ(EPOLLOUT, epoll_take(edge, 0));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(0, notify(m->fd));
	EXPECT_EQ(0, epoll_take(edge, 0) & EPOLLIN);
	EXPECT_EQ(FLOWFD_ARMED_READERS, mapped_armed(m) & FLOWFD_ARMED_READERS);
	close(edge);
	EXPECT_EQ(0, notify(m->fd));
	EXPECT_EQ(0, mapped_armed(m));
}

TEST_F(mapped, over_fork_and_sockets)
{
	struct mapped *m = &self->m, other;
	int sockets[2], fd, status;
	__u64 value;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
	child = fork();
	if (!child) {
		/* By the inherited mapping, then by one of its own. */
		if (mapped_add(m, 1) != 8)
			_exit(1);
		fd = receive_descriptor(sockets[1], 0);
		if (fd < 0 || mapped_map(&other, fd) || mapped_add(&other, 2) != 8)
			_exit(2);
		_exit(0);
	}
	ASSERT_TRUE(send_descriptor(sockets[0], m->fd, 0));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(8, mapped_take(m, &value));
	EXPECT_EQ(3, value);
	close(sockets[0]);
	close(sockets[1]);
}

/* A child that does this with its copy of the descriptor, or that executes a program. */
static void in_child(void (*run)(int fd), int fd)
{
	int status;
	pid_t child = fork();

	if (!child) {
		run(fd);
		_exit(0);
	}
	waitpid(child, &status, 0);
}

static void only_exit(int fd)
{
	_exit(fd < 0);
}

static void be_killed(int fd)
{
	kill(getpid(), fd < 0 ? 0 : SIGKILL);
}

static void execute(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	execl("/bin/true", "true", NULL);
}

static void inherit(int fd)
{
	fcntl(fd, F_SETFD, 0);
	execl("/bin/true", "true", NULL);
}

/* Each way to close a descriptor counts once, and nothing else does. */
TEST_F(mapped, closes_are_counted)
{
	static void (*const ends[])(int fd) = { only_exit, be_killed, execute, inherit };
	const struct flowfd_counter_header *header = self->m.header;
	int fd = self->m.fd, sockets[2], copy;
	struct mapped other;
	__u64 value;

	ASSERT_EQ(0, mapped_map(&other, fd));
	mapped_unmap(&other);
	EXPECT_EQ(8, mapped_add(&self->m, 1));
	EXPECT_EQ(8, take(fd, &value));
	copy = dup(fd);
	EXPECT_EQ(0, header->closes);
	close(copy);
	EXPECT_EQ(1, header->closes);
	copy = dup(fd);
	ASSERT_EQ(copy, dup2(STDERR_FILENO, copy));
	EXPECT_EQ(2, header->closes);
	ASSERT_EQ(copy, dup3(fd, copy, O_CLOEXEC));
	EXPECT_EQ(2, header->closes);
	ASSERT_EQ(0, syscall(SYS_close_range, copy, copy, 0));
	EXPECT_EQ(3, header->closes);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		in_child(ends[i], fd);
		EXPECT_EQ(4 + i, header->closes);
	}
	/* A message holds the file, but no descriptor. */
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
	ASSERT_TRUE(send_descriptor(sockets[0], fd, 0));
	close(sockets[0]);
	close(sockets[1]);
	EXPECT_EQ(7, header->closes);
	EXPECT_EQ(-EBADF, result_of(close(copy)));
	EXPECT_EQ(7, header->closes);
}

TEST(last_close_counts)
{
	struct mapped m;

	ASSERT_EQ(0, MAPPED_CREATE(&m));
	close(m.fd);
	EXPECT_EQ(1, m.header->closes);
	mapped_unmap(&m);
}

/* It tells a descriptor of this counter from that of another, mapped or not. */
TEST_F(mapped, id)
{
	int other = open_counter(CREATED, 0, 0), opened = open(DEVICE, O_RDWR);
	int copy = dup(self->m.fd), ends[2];

	ASSERT_EQ(0, pipe(ends));
	EXPECT_LT(0, id_of(self->m.fd));
	EXPECT_LT(0, id_of(other));
	EXPECT_LT(0, id_of(opened));
	EXPECT_EQ(self->m.header->id, ioctl(self->m.fd, FLOWFD_IOC_COUNTER_ID));
	EXPECT_EQ(self->m.header->id, ioctl(copy, FLOWFD_IOC_COUNTER_ID));
	EXPECT_EQ(id_of(other), ioctl(other, FLOWFD_IOC_COUNTER_ID));
	EXPECT_EQ(id_of(opened), ioctl(opened, FLOWFD_IOC_COUNTER_ID));
	EXPECT_NE(self->m.header->id, ioctl(other, FLOWFD_IOC_COUNTER_ID));
	EXPECT_EQ(-ENOTTY, result_of(ioctl(ends[0], FLOWFD_IOC_COUNTER_ID)));
	close(other);
	close(opened);
	close(copy);
	close(ends[0]);
	close(ends[1]);
}

TEST_HARNESS_MAIN
