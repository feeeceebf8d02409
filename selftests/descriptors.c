// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file descriptor of a counter: its flags, dup, fork, exec, passing it over a
 * socket, and closing it while a task waits.
 */
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/uio.h>

#include "fixtures.h"
#include "sockets.h"

#define NOBODY 65534

static bool is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

TEST(open_honours_flags)
{
	static const int flags[] = { 0, O_NONBLOCK, O_CLOEXEC,
				     O_NONBLOCK | O_CLOEXEC };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		int fd = open(DEVICE, O_RDWR | flags[i]);

		ASSERT_LE(0, fd);
		EXPECT_EQ(!!(flags[i] & O_CLOEXEC), is_cloexec(fd));
		EXPECT_EQ(flags[i] & O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
		close(fd);
	}
}

TEST(create_honours_flags)
{
	static const int flags[] = { 0, FLOWFD_NONBLOCK, FLOWFD_KEEP_ON_EXEC,
				     FLOWFD_NONBLOCK | FLOWFD_KEEP_ON_EXEC };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct flowfd_create_counter args = { .flags = flags[i] };
		int fd = create_counter(&args);

		ASSERT_LE(0, fd);
		EXPECT_EQ(!(flags[i] & FLOWFD_KEEP_ON_EXEC), is_cloexec(fd));
		EXPECT_EQ(!!(flags[i] & FLOWFD_NONBLOCK),
			  !!(fcntl(fd, F_GETFL) & O_NONBLOCK));
		EXPECT_EQ(O_RDWR, fcntl(fd, F_GETFL) & O_ACCMODE);
		close(fd);
	}
}

/* Each open() gives a new counter. */
TEST(each_open_is_another_counter)
{
	int first = open_counter(OPENED, 1, 0);
	int second = open_counter(OPENED, 2, 0);

	ASSERT_LE(0, first);
	ASSERT_LE(0, second);
	EXPECT_EQ(1, count_of(first));
	EXPECT_EQ(2, count_of(second));
	EXPECT_NE(id_of(first), id_of(second));
	close(first);
	EXPECT_EQ(2, count_of(second));
	close(second);
}

/* A created counter does not depend on the descriptor that created it. */
TEST(created_outlives_its_creator)
{
	int device = open_counter(OPENED, 0, 0);
	struct flowfd_create_counter args = { .initial = 3 };
	int fd;

	ASSERT_LE(0, device);
	fd = ioctl(device, FLOWFD_IOC_CREATE_COUNTER, &args);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, count_of(device));
	close(device);
	EXPECT_EQ(3, count_of(fd));
	EXPECT_EQ(8, add(fd, 1));
	EXPECT_EQ(4, count_of(fd));
	close(fd);
}

TEST(opened_for_one_direction)
{
	int reader = open(DEVICE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int writer = open(DEVICE, O_WRONLY | O_CLOEXEC);
	__u64 value;

	ASSERT_LE(0, reader);
	ASSERT_LE(0, writer);
	EXPECT_EQ(-EBADF, add(reader, 1));
	EXPECT_EQ(0, set_maximum(reader, 10));
	EXPECT_EQ(-EAGAIN, take(reader, &value));
	EXPECT_EQ(8, add(writer, 1));
	EXPECT_EQ(0, set_qos(writer, 1, 1000));
	EXPECT_EQ(-EBADF, take(writer, &value));
	close(reader);
	close(writer);
}

/* Drops all privileges; returns an inotify that watches every event of the device. */
static int watch_device_as_nobody(void)
{
	int notify = -1;

	if (setgid(NOBODY) || setuid(NOBODY))
		return -1;
	notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (inotify_add_watch(notify, DEVICE, IN_ALL_EVENTS) < 0)
		return -1;
	return notify;
}

static void use_in_every_way(struct __test_metadata *_metadata)
{
	int fd = open_counter(OPENED, 0, EFD_NONBLOCK);
	struct iovec iov = { .iov_len = sizeof(__u64) };
	__u64 value = 1;

	iov.iov_base = &value;
	ASSERT_LE(0, fd);
	EXPECT_EQ(8, add(fd, 1));
	EXPECT_EQ(8, writev(fd, &iov, 1));
	EXPECT_EQ(8, take(fd, &value));
	EXPECT_EQ(8, add(fd, 1));
	EXPECT_EQ(8, readv(fd, &iov, 1));
	EXPECT_EQ(0, set_maximum(fd, 10));
	close(fd);
}

/*
 * Opened counters share an inode. If one of them took a file lock, each close of any
 * would look through the list.
 */
TEST(takes_no_locks)
{
	static const int commands[] = { F_SETLK, F_OFD_SETLK, F_GETLK };

	for (int kind = OPENED; kind <= CREATED; kind++) {
		int fd = open_counter(kind, 0, 0);

		EXPECT_EQ(-EOPNOTSUPP, result_of(flock(fd, LOCK_SH | LOCK_NB)));
		for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
			struct flock lock = { .l_type = F_RDLCK, .l_len = 1 };

			EXPECT_EQ(-EOPNOTSUPP,
				  result_of(fcntl(fd, commands[i], &lock)));
		}
		close(fd);
	}
}

/* Opened counters share an inode, which any user may watch. */
TEST(watcher_of_the_device_sees_no_counter)
{
	struct inotify_event event;
	int begin[2], watching[2];
	int status, notify;
	char byte = 0;
	pid_t child;

	ASSERT_EQ(0, pipe(begin));
	ASSERT_EQ(0, pipe(watching));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		notify = watch_device_as_nobody();
		close(begin[1]);
		if (notify < 0 || write(watching[1], &byte, 1) != 1 ||
		    read(begin[0], &byte, 1))
			_exit(2);
		_exit(read(notify, &event, sizeof(event)) > 0);
	}
	close(watching[1]);
	ASSERT_EQ(1, read(watching[0], &byte, 1));
	use_in_every_way(_metadata);
	close(begin[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(counter, dup_is_the_same_counter)
{
	int copy = dup(self->fd);
	__u64 value;

	ASSERT_LE(0, copy);
	ASSERT_EQ(8, add(copy, 5));
	close(copy);
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(5, value);
}

TEST_F(counter, fork_shares_it)
{
	__u64 value;
	int status;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		bool sent = add(self->fd, 5) == 8;

		close(self->fd);
		_exit(!sent);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(5, value);
}

/* 0: open, 1: closed, in a program that this process executes. */
static int state_after_exec(int fd)
{
	char path[64];
	int status;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	child = fork();
	if (!child) {
		execlp("test", "test", "-e", path, NULL);
		_exit(2);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

TEST_F(counter, exec_closes_it)
{
	EXPECT_EQ(1, state_after_exec(self->fd));
	fcntl(self->fd, F_SETFD, 0);
	EXPECT_EQ(0, state_after_exec(self->fd));
}

TEST_F(counter, passes_through_a_socket)
{
	int sockets[2], received;
	__u64 value;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(send_descriptor(sockets[0], self->fd, 0));
	close(self->fd);	/* only the message has it now */
	received = receive_descriptor(sockets[1], 0);
	ASSERT_LE(0, received);
	ASSERT_EQ(8, add(received, 1));
	ASSERT_EQ(8, take(received, &value));
	EXPECT_EQ(6, value);
	self->fd = received;
	close(sockets[0]);
	close(sockets[1]);
}

/* A sleeping read holds the open file description while its descriptor is closed. */
TEST_F(counter, close_under_a_reader)
{
	int copy = dup(self->fd);
	struct call reader;

	ASSERT_TRUE(start_read(&reader, copy));
	close(copy);
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(5, reader.value);
}

TEST_F(counter, killed_while_it_waits)
{
	pid_t child = fork();
	__u64 value;
	int status;

	ASSERT_LE(0, child);
	if (!child) {
		take(self->fd, &value);
		_exit(1);
	}
	sleep_ms(QUIET_MS);
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
	ASSERT_EQ(8, add(self->fd, 5));
	EXPECT_EQ(5, count_of(self->fd));
}

TEST_HARNESS_MAIN
