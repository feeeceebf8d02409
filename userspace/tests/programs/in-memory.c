// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract of eventfd(2) that flowfd-run --mapped must keep: descriptors that come
 * and go in every way while they are written and read. Run alone it tests the system.
 * With the argument "mapped" it also counts the system calls: there must be none. With
 * "simulated" it does not poll: device.c plays the module.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/refuse.h"
#include "tests/tap.h"

#define ERRNO_BEFORE 4711
#define MANY	     1000

static bool mapped;
static bool simulated;

/* reads + writes of this thread so far, by the kernel's account */
static long calls(void)
{
	FILE *io = fopen("/proc/thread-self/io", "r");
	char line[128];
	long sum = 0;
	long number;

	while (io && fgets(line, sizeof(line), io)) {
		if (sscanf(line, "syscr: %ld", &number) == 1 ||
		    sscanf(line, "syscw: %ld", &number) == 1)
			sum += number;
	}
	if (io)
		fclose(io);
	return sum;
}

/* What was made since @before: the file that says so is read in some calls itself. */
static void no_calls(long before, const char *what)
{
	long made = calls() - before;

	if (mapped)
		tap_ok(made < 20, what);
	else
		tap_skip(what, "not mapped");
	printf("# %ld system calls\n", made);
}

static ssize_t add(int fd, uint64_t value)
{
	return write(fd, &value, sizeof(value));
}

static uint64_t take(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

/* A close inside the C library, which a preloaded library does not see. */
static void close_unseen(int fd)
{
	FILE *file = fdopen(fd, "r");

	if (file)
		fclose(file);
}

/* Of a read from another file: some architectures do not look at addresses first. */
static int error_of_the_system(void *data, size_t size)
{
	int ends[2], error = 0;

	if (pipe(ends))
		return -1;
	if (read(ends[0], data, size) < 0)
		error = errno;
	close(ends[0]);
	close(ends[1]);
	return error;
}

static void test_values(void)
{
	int fd = eventfd(3, EFD_NONBLOCK);
	uint64_t words[4] = { 5, 1, 1, 1 };
	volatile size_t too_much = SIZE_MAX;
	eventfd_t value;
	int error;
	ssize_t ret;
	long before;

	errno = ERRNO_BEFORE;
	ret = add(fd, 4);
	value = take(fd);
	tap_is(errno, ERRNO_BEFORE, "success leaves errno alone");
	tap_is(ret, 8, "a write");
	tap_is(value, 7, "and a read");
	tap_is(read(fd, words, 8), -1, "nothing to read");
	tap_is(errno, EAGAIN, "is EAGAIN");
	tap_is(words[0], 5, "and stores nothing");
	tap_is(write(fd, words, 7), -1, "7 bytes");
	tap_is(errno, EINVAL, "are EINVAL");
	add(fd, 5);
	tap_is(read(fd, words, 7), -1, "7 bytes to read");
	tap_is(errno, EINVAL, "are EINVAL");
	tap_is(read(fd, words, too_much), -1, "more than there can be");
	error = errno;
	tap_is(error, error_of_the_system(words, too_much), "is an error as elsewhere");
	tap_is(read(fd, words, 32), 8, "32 bytes to read");
	tap_ok(words[0] == 5 && words[1] == 1, "are 8");
	tap_is(add(fd, UINT64_MAX), -1, "the highest value");
	tap_is(errno, EINVAL, "is EINVAL");
	tap_is(add(fd, UINT64_MAX - 1), 8, "all but the highest value");
	tap_is(add(fd, 1), -1, "and 1 more");
	tap_is(errno, EAGAIN, "is EAGAIN");
	tap_is(add(fd, 0), 8, "0 fits");
	tap_ok(take(fd) == UINT64_MAX - 1, "all of it");
	tap_is(eventfd_write(fd, 6), 0, "eventfd_write(3)");
	tap_is(eventfd_read(fd, &value), 0, "eventfd_read(3)");
	tap_is(value, 6, "its value");
	tap_is(eventfd_read(fd, &value), -1, "nothing for eventfd_read(3)");
	tap_is(read(-1, words, 8), -1, "a descriptor that is none");
	tap_is(errno, EBADF, "is EBADF");

	before = calls();
	for (int i = 0; i < MANY; i++) {
		add(fd, 1);
		eventfd_write(fd, 1);
		value = 0;
		if (i % 2 ? eventfd_read(fd, &value) : (value = take(fd)) != 2)
			break;
	}
	tap_is(value, 2, "many of them");
	no_calls(before, "without a system call");
	close(fd);
}

static void *read_later(void *argument)
{
	return (void *)(uintptr_t)take(*(int *)argument);
}

static bool sleeps(pthread_t thread)
{
	(void)thread;
	usleep(50000);
	return true;
}

static void test_sleepers(void)
{
	int fd = eventfd(0, 0);
	pthread_t thread;
	void *result;

	for (int i = 1; i < 4; i++) {
		pthread_create(&thread, NULL, read_later, &fd);
		sleeps(thread);
		add(fd, i);
		pthread_join(thread, &result);
		tap_is((uintptr_t)result, i, "a reader that sleeps is woken");
	}
	close(fd);
}

static int wait_for(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

static void must_refuse(long number)
{
	if (refuse(number, EPERM))
		_exit(EXIT_FAILURE);
}

static void wake_reader(void)
{
	int fd = eventfd(0, 0);
	pthread_t thread;
	void *result;

	for (uintptr_t i = 1; i < 4; i++) {
		pthread_create(&thread, NULL, read_later, &fd);
		sleeps(thread);
		must_refuse(SYS_ioctl);
		if (add(fd, i) != 8)
			_exit(2);
		pthread_join(thread, &result);
		if ((uintptr_t)result != i)
			_exit(3);
	}
}

static void *write_later(void *argument)
{
	return (void *)(uintptr_t)add(*(int *)argument, 1);
}

static void wake_writer(void)
{
	int fd = eventfd(0, 0);
	pthread_t thread;
	void *result;

	for (int i = 1; i < 4; i++) {
		add(fd, UINT64_MAX - 1);
		pthread_create(&thread, NULL, write_later, &fd);
		sleeps(thread);
		must_refuse(SYS_ioctl);
		if (take(fd) != UINT64_MAX - 1)
			_exit(4);
		pthread_join(thread, &result);
		if ((uintptr_t)result != 8 || take(fd) != 1)
			_exit(5);
	}
}

/* A sandbox that was entered after the eventfd was made. */
static void test_sandbox(void)
{
	pid_t child = fork();

	if (child == 0) {
		alarm(10);
		wake_reader();
		if (!simulated)
			wake_writer();
		_exit(EXIT_SUCCESS);
	}
	tap_is(wait_for(child), 0, "sleepers are woken in a sandbox");
}

static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static int open_files(void)
{
	int open = 0;

	for (int fd = 0; fd < 256; fd++)
		open += fcntl(fd, F_GETFD) >= 0;
	return open;
}

/* Its number, flags and count; false if there is another one. */
static bool is_right(int fd, int number, int flags)
{
	return fd == number &&
	       fcntl(fd, F_GETFD) == (flags & EFD_CLOEXEC ? FD_CLOEXEC : 0) &&
	       !(fcntl(fd, F_GETFL) & O_NONBLOCK) == !(flags & EFD_NONBLOCK) &&
	       take(fd) == 4;
}

/* With @room for so many more descriptors. */
static int make_within(int room, int flags)
{
	struct rlimit all, few;
	int fd, error;

	getrlimit(RLIMIT_NOFILE, &all);
	few = all;
	few.rlim_cur = lowest_free() + room;
	setrlimit(RLIMIT_NOFILE, &few);
	errno = ERRNO_BEFORE;
	fd = eventfd(4, flags);
	error = errno;
	setrlimit(RLIMIT_NOFILE, &all);
	errno = error;
	return fd;
}

static void test_last(void)
{
	static const int flags[] = { 0, EFD_CLOEXEC, EFD_NONBLOCK,
				     EFD_CLOEXEC | EFD_NONBLOCK };
	int before = open_files();
	int number = lowest_free();
	pid_t child;

	for (int i = 0; i < 4; i++) {
		for (int room = 1; room <= 2; room++) {
			int fd = make_within(room, flags[i]);

			tap_is(errno, ERRNO_BEFORE, "one of the last descriptors");
			tap_ok(is_right(fd, number, flags[i]), "is what it should be");
			close(fd);
		}
	}
	tap_is(make_within(0, 0), -1, "none is left");
	tap_is(errno, EMFILE, "is EMFILE");
	tap_is(open_files(), before, "and nothing is open");

	child = fork();
	if (child == 0) {
		int fd;

		must_refuse(SYS_dup3);
		fd = eventfd(4, EFD_CLOEXEC);
		if (!is_right(fd, number, EFD_CLOEXEC))
			_exit(1);
		close(fd);
		_exit(open_files() == before ? 0 : 2);
	}
	tap_is(wait_for(child), 0, "a sandbox without dup3(2)");
}

static int events(int ep)
{
	struct epoll_event event;

	return epoll_wait(ep, &event, 1, 0) == 1 ? (int)event.events : 0;
}

static int watch(int fd, uint32_t wanted)
{
	struct epoll_event event = { .events = wanted };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
	return ep;
}

static void test_epoll(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	int level = watch(fd, EPOLLIN);
	int edge;

	tap_is(events(level), 0, "nothing to read");
	for (int i = 0; i < 3; i++) {
		add(fd, 1);
		add(fd, 1);
		tap_is(events(level), EPOLLIN, "something to read");
		tap_is(events(level), EPOLLIN, "until it is read");
		tap_is(take(fd), 2, "which it is");
		tap_is(events(level), 0, "nothing to read");
	}
	close(level);
	edge = watch(fd, EPOLLIN | EPOLLET);
	for (int i = 0; i < 3; i++) {
		add(fd, 1);
		tap_is(events(edge), EPOLLIN, "an edge for each write");
		tap_is(events(edge), 0, "and one only");
	}
	tap_is(take(fd), 3, "without a read");
	add(fd, 1);
	level = watch(fd, EPOLLIN);
	tap_is(events(level), EPOLLIN, "watched");
	close(fd);
	tap_is(events(level) | events(edge), 0, "a close ends each watch");
	close(level);
	close(edge);
}

/* 8 bytes that must arrive in a pipe which has the number of a counter. */
static void arrives(int ends[2], const char *what)
{
	uint64_t value = 0;

	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	add(ends[1], 0x1122334455667788);
	if (read(ends[0], &value, sizeof(value)) != sizeof(value))
		value = 0;
	tap_ok(value == 0x1122334455667788, what);
	close(ends[0]);
	close(ends[1]);
}

/* Makes a pipe whose end for writing is @fd, which must be the lowest free one. */
static void make_pipe(int ends[2], int fd)
{
	int other[2];

	if (pipe(other))
		exit(EXIT_FAILURE);
	ends[0] = other[0];
	ends[1] = other[1];
	if (other[1] == fd)
		return;
	/* It was the first: moves it away. */
	ends[0] = dup(other[0]);
	close(other[0]);
	ends[1] = dup(other[1]);
	close(other[1]);
	tap_is(ends[1], fd, "the number");
}

static void test_descriptors(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	int copy = dup(fd);
	int other = fcntl(fd, F_DUPFD, 50);
	int ends[2];

	add(copy, 1);
	add(other, 2);
	add(fd, 4);
	tap_is(take(copy), 7, "a count that three descriptors share");
	close(copy);
	add(fd, 1);
	tap_is(take(other), 1, "one of them is closed");
	close(other);
	close(fd);

	fd = eventfd(0, EFD_NONBLOCK);
	close(fd);
	make_pipe(ends, fd);
	arrives(ends, "close(2)");
	fd = eventfd(0, EFD_NONBLOCK);
	syscall(SYS_close, fd);
	make_pipe(ends, fd);
	arrives(ends, "close(2) by syscall(2)");
	fd = eventfd(0, EFD_NONBLOCK);
	close_range(fd, fd, 0);
	make_pipe(ends, fd);
	arrives(ends, "close_range(2)");
	fd = eventfd(0, EFD_NONBLOCK);
	close_unseen(fd);
	make_pipe(ends, fd);
	arrives(ends, "fclose(3)");

	fd = eventfd(0, EFD_NONBLOCK);
	make_pipe(ends, fd + 2);
	dup2(ends[1], fd);
	close(ends[1]);
	ends[1] = fd;
	arrives(ends, "dup2(2) over it");
	fd = eventfd(0, EFD_NONBLOCK);
	make_pipe(ends, fd + 2);
	dup3(ends[1], fd, O_CLOEXEC);
	close(ends[1]);
	ends[1] = fd;
	arrives(ends, "dup3(2) over it");

	fd = eventfd(0, EFD_NONBLOCK);
	close(fd);
	errno = 0;
	tap_is(add(fd, 1), -1, "one that is closed");
	tap_is(errno, EBADF, "is EBADF");
	fd = eventfd(5, EFD_NONBLOCK);
	close_unseen(fd);
	errno = 0;
	tap_is(take(fd), 0, "one that fclose(3) closed");
	tap_is(errno, EBADF, "is EBADF, too");
	other = eventfd(9, EFD_NONBLOCK);
	tap_is(other, fd, "the next has its number");
	tap_is(take(other), 9, "and its own count");
	add(fd, 2);
	dup2(other, other);
	tap_is(take(other), 2, "dup2(2) to itself");
	close(other);
}

static void test_bad_address(void)
{
	void *bad = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = eventfd(0, EFD_NONBLOCK);
	int ends[2];

	close_unseen(fd);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		exit(EXIT_FAILURE);
	tap_is(ends[0], fd, "a socket has the number of an eventfd");
	tap_is(write(fd, bad, 8), -1, "a bad address for it");
	tap_is(errno, EFAULT, "is EFAULT");
	close(ends[0]);
	close(ends[1]);
	munmap(bad, 1);
}

static void test_high(void)
{
	struct rlimit limit;
	int low = eventfd(1, EFD_NONBLOCK);
	int high;
	int null;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max < 3000 ? limit.rlim_max : 3000;
	setrlimit(RLIMIT_NOFILE, &limit);
	do
		null = open("/dev/null", O_RDONLY);
	while (null >= 0 && null < 1500);
	high = eventfd(1, EFD_NONBLOCK);
	add(high, 1);
	add(low, 2);
	tap_is(take(high), high < 0 ? 0 : 2, "a high descriptor");
	tap_is(take(low), 3, "beside a low one");
	close_range(low + 1, UINT32_MAX, 0);
	tap_is(add(high, 1), -1, "closed with all others");
	tap_is(add(low, 1), 8, "but that one");
	close(low);
}

static void test_fork(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	long before;
	pid_t child;

	for (int i = 0; i < 5; i++) {
		child = fork();
		if (child == 0) {
			int own = eventfd(3, EFD_NONBLOCK);

			add(fd, 1);
			if (take(own) != 3)
				_exit(1);
			before = calls();
			for (int j = 0; j < MANY; j++)
				add(own, 1);
			if (take(own) != MANY || (mapped && calls() - before > 20))
				_exit(2);
			if (i % 2)
				close(fd);
			_exit(i % 2 && add(fd, 1) != -1);
		}
		tap_is(wait_for(child), 0, "a child adds, and makes its own");
	}
	tap_is(take(fd), 5, "its parent gets all");
	before = calls();
	for (int i = 0; i < MANY; i++) {
		add(fd, 1);
		if (take(fd) != 1)
			break;
	}
	no_calls(before, "and goes on without a system call");
	close(fd);
}

/* The child has the memory, but not the descriptors, of its parent. */
static void test_vfork(void)
{
	static volatile int made;
	int fd = eventfd(0, EFD_NONBLOCK);
	int ends[2], other;
	uint64_t value;
	pid_t child;

	if (pipe(ends))
		exit(EXIT_FAILURE);
	child = vfork();
	if (child == 0) {
		/* The pipe instead of the counter. */
		close(fd);
		if (dup2(ends[1], fd) != fd || add(fd, 77) != 8)
			_exit(1);
		made = eventfd(0, EFD_NONBLOCK);
		if (add(made, 5) != 8 || take(made) != 5)
			_exit(2);
		_exit(0);
	}
	tap_is(wait_for(child), 0, "a child of vfork(2) has descriptors of its own");
	tap_is(read(ends[0], &value, 8), 8, "its pipe");
	tap_is(value, 77, "got what it wrote");
	tap_is(take(fd), 0, "the counter did not");
	add(fd, 3);
	tap_is(take(fd), 3, "and goes on");
	other = dup(ends[1]);
	tap_is(other, made, "a file of the parent with the number of the child's");
	add(other, 78);
	tap_is(read(ends[0], &value, 8), 8, "is a pipe");
	tap_is(value, 78, "that gets what is written");
	close(other);
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

static void test_exec(char *self)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	char number[16];
	pid_t child;

	snprintf(number, sizeof(number), "%d", fd);
	child = fork();
	if (child == 0) {
		execl(self, self, "add", number, NULL);
		_exit(1);
	}
	tap_is(wait_for(child), 0, "another program adds");
	tap_is(take(fd), 3, "as it should");
	close(fd);
}

static void test_socket(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr message = { .msg_iov = &v,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int sockets[2];
	int copy;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) ||
	    sendmsg(sockets[0], &message, 0) < 0)
		exit(EXIT_FAILURE);
	close(fd);
	if (recvmsg(sockets[1], &message, 0) < 0)
		exit(EXIT_FAILURE);
	memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(copy));
	add(copy, 4);
	tap_is(take(copy), 4, "one that comes over a socket");
	close(copy);
	close(sockets[0]);
	close(sockets[1]);
}

static int handled_fd;
static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
	(void)number;
	if (add(handled_fd, 1) == 8)
		handled++;
}

static void test_handler(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerspec often = { { 0, 100000 }, { 0, 100000 } };
	uint64_t taken = 0, own = 0;
	timer_t timer;

	handled_fd = eventfd(0, EFD_NONBLOCK);
	sigaction(SIGALRM, &action, NULL);
	timer_create(CLOCK_MONOTONIC, NULL, &timer);
	timer_settime(timer, 0, &often, NULL);
	while (handled < 100) {
		own += add(handled_fd, 1) == 8;
		if (own % 3 == 0)
			taken += take(handled_fd);
	}
	timer_delete(timer);
	taken += take(handled_fd);
	tap_is(taken, own + handled, "a signal handler adds in the middle of all");
	close(handled_fd);
}

static int shared_fd;
static _Atomic uint64_t added, taken_all;
static _Atomic bool stop;

static void *add_many(void *argument)
{
	(void)argument;
	for (int i = 0; i < 5000; i++)
		added += add(shared_fd, 1 + i % 3) == 8 ? 1 + i % 3 : 0;
	return NULL;
}

static void *take_many(void *argument)
{
	(void)argument;
	while (!stop) {
		taken_all += take(shared_fd);
		sched_yield();
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];

	shared_fd = eventfd(0, EFD_NONBLOCK);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i < 2 ? add_many : take_many, NULL);
	for (int i = 0; i < 4; i++) {
		stop = i >= 2;
		pthread_join(threads[i], NULL);
	}
	taken_all += take(shared_fd);
	tap_is(taken_all, added, "threads add and take");
	close(shared_fd);
}

/* Makes and closes its own all the time. */
static void *come_and_go(void *argument)
{
	uintptr_t wrong = 0;

	(void)argument;
	for (int i = 0; i < 200; i++) {
		int fd = eventfd(i, EFD_NONBLOCK);

		wrong += add(fd, 2) != 8 || take(fd) != (uint64_t)i + 2;
		if (i % 5 == 4)
			close_unseen(fd);
		else
			wrong += close(fd) != 0;
	}
	return (void *)wrong;
}

static void test_many_threads(void)
{
	pthread_t threads[4];
	uintptr_t wrong = 0;
	void *result;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, come_and_go, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		wrong += (uintptr_t)result;
	}
	tap_is(wrong, 0, "threads make and close their own");
}

enum cancelled { BY_WRITE, BY_READ, BY_EVENTFD_READ };

static void *be_cancelled(void *argument)
{
	int fd = eventfd(1, EFD_NONBLOCK);
	eventfd_t value;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!stop)
		sched_yield();
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	switch (*(enum cancelled *)argument) {
	case BY_WRITE:
		add(fd, 1);
		break;
	case BY_READ:
		take(fd);
		break;
	default:
		eventfd_read(fd, &value);
	}
	return NULL;
}

static void test_cancel(void)
{
	static const char *const names[] = { "write(2) is a cancellation point",
					     "so is read(2)", "and eventfd_read(3)" };
	pthread_t thread;
	void *result;

	for (enum cancelled how = BY_WRITE; how <= BY_EVENTFD_READ; how++) {
		stop = false;
		pthread_create(&thread, NULL, be_cancelled, &how);
		pthread_cancel(thread);
		stop = true;
		pthread_join(thread, &result);
		tap_ok(result == PTHREAD_CANCELED, names[how]);
	}
}

/* One descriptor beside a model of it, and two more that are sometimes the same file. */
static void test_random(unsigned int seed)
{
	uint64_t count = 0;
	int fd = eventfd(0, EFD_NONBLOCK);
	int copy = -1;
	bool right = true;

	srand(seed);
	for (int i = 0; right && i < 3000; i++) {
		uint64_t value = rand() % 5;
		int by = copy >= 0 && rand() % 3 == 0 ? copy : fd;

		switch (rand() % 200) {
		case 0 ... 99:
			right = add(by, value) == 8;
			count += value;
			break;
		case 100 ... 180:
			right = take(by) == count;
			count = 0;
			break;
		case 181 ... 185:
			if (copy < 0)
				copy = dup(fd);
			break;
		case 186 ... 189:
			if (copy >= 0)
				close(copy);
			copy = -1;
			break;
		case 190 ... 192:
			if (copy >= 0)
				right = dup2(copy, fd) == fd;
			break;
		case 193 ... 195:
			close_unseen(fd);
			if (copy >= 0)
				close(copy);
			copy = -1;
			fd = eventfd(7, EFD_NONBLOCK);
			count = 7;
			break;
		case 196:
			if (i % 4 == 0) {
				pid_t child = fork();

				if (child == 0)
					_exit(add(fd, 1) != 8);
				right = wait_for(child) == 0;
				count++;
			}
			break;
		default:
			if (copy < 0)
				break;
			/* The other number stays. */
			close(fd);
			fd = copy;
			copy = -1;
		}
	}
	tap_ok(right, "as its model");
	close(fd);
	if (copy >= 0)
		close(copy);
}

static _Atomic int alone_fd;

/* A thread with a table of its own makes counters, and opens files, of the same numbers. */
static void *alone(void *argument)
{
	int *ends = argument;
	int fd = -1;

	if (unshare(CLONE_FILES) == 0) {
		fd = eventfd(4, EFD_NONBLOCK);
		if (take(fd) != 4)
			exit(EXIT_FAILURE);
		close(ends[3]);
		dup2(ends[1], ends[3]);
		add(ends[3], 5);
	}
	alone_fd = fd;
	/* The end of this thread would close its descriptors. */
	while (!stop)
		usleep(1000);
	return NULL;
}

static void test_unshare(void)
{
	int ends[4];
	uint64_t value = 0;
	pthread_t thread;
	int other;

	stop = false;
	if (pipe(ends) || pipe(ends + 2))
		exit(EXIT_FAILURE);
	close(ends[2]);
	close(ends[3]);
	ends[3] = eventfd(0, EFD_NONBLOCK);
	pthread_create(&thread, NULL, alone, ends);
	while (!alone_fd)
		usleep(1000);
	tap_is(read(ends[0], &value, 8), 8, "a thread with descriptors of its own");
	tap_is(value, 5, "writes to its file");
	tap_is(take(ends[3]), 0, "not to ours");
	add(ends[3], 2);
	tap_is(take(ends[3]), 2, "which goes on");
	other = dup(ends[1]);
	tap_is(other, alone_fd, "a file of our own with the number of its counter");
	add(other, 6);
	tap_is(read(ends[0], &value, 8), 8, "is not its counter");
	stop = true;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "add") == 0)
		return add(atoi(argv[2]), 3) != 8;
	simulated = argc == 2 && strcmp(argv[1], "simulated") == 0;
	mapped = simulated || (argc == 2 && strcmp(argv[1], "mapped") == 0);
	alarm(100);
	test_values();
	test_sleepers();
	test_sandbox();
	test_last();
	if (!simulated)
		test_epoll();
	test_descriptors();
	test_bad_address();
	test_fork();
	test_vfork();
	test_exec(argv[0]);
	test_socket();
	test_handler();
	test_threads();
	test_many_threads();
	test_cancel();
	for (unsigned int seed = 1; seed <= 10; seed++)
		test_random(seed);
	test_high();
	test_unshare();
	return tap_done();
}
