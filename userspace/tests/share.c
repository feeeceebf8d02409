// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters without the module that several processes share: what is sent and received, what
 * is refused, what a hostile peer can do, policies, and counters that nobody polls.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "lib/doorbell.h"
#include "lib/eventfd.h"
#include "lib/words.h"
#include "tests/interrupt.h"
#include "tests/refuse.h"
#include "tests/tap.h"

#define SECOND 1000000000ULL
#define SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t page;

static struct flowfd_counter open_with(uint64_t maximum, unsigned int options)
{
	const struct flowfd_create_counter settings = { .maximum = maximum };
	struct flowfd_counter c;

	if (flowfd_counter_open(&c, &settings, sizeof(settings), FLOWFD_FALLBACK | options))
		abort();
	return c;
}

static struct flowfd_counter import(const int *fds, unsigned int count)
{
	struct flowfd_counter c;

	if (flowfd_counter_import(&c, fds, count))
		abort();
	return c;
}

/* ---- two processes that have nothing in common but a socket ---- */

union message {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(FLOWFD_EXPORT_MAX * sizeof(int))];
};

static void send_counter(int socket, const struct flowfd_counter *c)
{
	union message message = { .bytes = { 0 } };
	int fds[FLOWFD_EXPORT_MAX];
	int count = flowfd_counter_export(c, fds);
	char byte = (char)count;
	struct iovec vector = { &byte, 1 };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };

	header.msg_control = &message;
	header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	message.header.cmsg_level = SOL_SOCKET;
	message.header.cmsg_type = SCM_RIGHTS;
	message.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&message.header), fds, count * sizeof(int));
	if (count < 1 || sendmsg(socket, &header, 0) != 1)
		abort();
}

static struct flowfd_counter receive_counter(int socket)
{
	union message message;
	int fds[FLOWFD_EXPORT_MAX];
	char byte;
	struct iovec vector = { &byte, 1 };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };

	header.msg_control = &message;
	header.msg_controllen = sizeof(message);
	if (recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != 1)
		abort();
	memcpy(fds, CMSG_DATA(&message.header), byte * sizeof(int));
	return import(fds, byte);
}

#define ROUNDS 2000

/* Answers each count with the same on the second counter. */
static void echo(int socket)
{
	struct flowfd_counter there = receive_counter(socket);
	struct flowfd_counter back = receive_counter(socket);
	uint64_t value;

	for (unsigned int sum = 0; sum < ROUNDS; sum += value)
		if (flowfd_take(&there, &value) || flowfd_add(&back, value))
			_exit(1);
	flowfd_counter_close(&there);
	flowfd_counter_close(&back);
	_exit(0);
}

static bool poll_and_take(const struct flowfd_counter *c, uint64_t *value)
{
	struct pollfd poller = { .fd = c->fd, .events = POLLIN };

	while (flowfd_try_take(c, value))
		if (poll(&poller, 1, 10000) != 1)
			return false;
	return true;
}

static bool take(const struct flowfd_counter *c, uint64_t *value)
{
	return !flowfd_take_with(c, value, 10 * SECOND, 0);
}

static void test_processes(const char *what, unsigned int options,
			   bool (*receive)(const struct flowfd_counter *c, uint64_t *value))
{
	struct flowfd_counter there, back;
	int sockets[2], status = -1;
	uint64_t value;
	pid_t child;
	unsigned int i;

	printf("# %s\n", what);
	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		abort();
	child = fork();
	if (!child)
		echo(sockets[1]);
	there = open_with(0, options);
	back = open_with(0, options);
	send_counter(sockets[0], &there);
	send_counter(sockets[0], &back);
	for (i = 0; i < ROUNDS; i++)
		if (flowfd_add(&there, 1) || !receive(&back, &value) || value != 1)
			break;
	tap_is(i, ROUNDS, "rounds in turn");
	if (i < ROUNDS)
		kill(child, SIGKILL);
	waitpid(child, &status, 0);
	tap_is(status, 0, "the other process");
	flowfd_counter_close(&there);
	flowfd_counter_close(&back);
	close(sockets[0]);
	close(sockets[1]);
}

static void test_export(void)
{
	struct flowfd_create_counter settings = { .flags = FLOWFD_SEMAPHORE };
	struct flowfd_counter c = open_with(0, 0), twin;
	int fds[FLOWFD_EXPORT_MAX];
	uint64_t value = 0;

	tap_is(flowfd_counter_export(&c, fds), 2, "export an eventfd and memory");
	tap_is(fds[0], c.fd, "the first is for polling");
	tap_is(ftruncate(fds[1], 0) ? errno : 0, EPERM, "the memory cannot shrink");
	fds[0] = dup(fds[0]);
	fds[1] = dup(fds[1]);
	tap_is(flowfd_counter_import(&twin, fds, 2), 0, "import them here");
	tap_is(flowfd_features(&twin), flowfd_features(&c), "with the same features");
	flowfd_add(&c, 7);
	tap_is(flowfd_try_take(&twin, &value), 0, "take there what was added here");
	tap_is(value, 7, "all of it");
	flowfd_counter_close(&twin);
	tap_is(fcntl(fds[0], F_GETFD), -1, "the descriptors were the counter's");
	tap_is(fcntl(fds[1], F_GETFD), -1, "both");
	flowfd_counter_unmap(&c);
	tap_is(flowfd_counter_export(&c, fds), -ENODEV, "one that was unmapped");
	tap_is(flowfd_counter_set_flow(&c, &(struct flowfd_flow){ 0 },
				       sizeof(struct flowfd_flow)),
	       -ENODEV, "which has no settings");
	flowfd_counter_close(&c);

	c = open_with(0, FLOWFD_NO_POLL);
	tap_is(flowfd_counter_export(&c, fds), 1, "memory alone, if nobody polls");
	tap_is(flowfd_features(&c), FLOWFD_HAS_MEMORY | FLOWFD_HAS_OVERFLOW,
	       "as its features say");
	flowfd_counter_close(&c);

	if (flowfd_counter_open(&c, &settings, sizeof(settings), FLOWFD_FALLBACK))
		abort();
	tap_is(flowfd_counter_export(&c, fds), -EOPNOTSUPP, "a semaphore");
	tap_is(flowfd_counter_set_flow(&c, &(struct flowfd_flow){ 0 },
				       sizeof(struct flowfd_flow)),
	       -EOPNOTSUPP, "which has no policies");
	flowfd_counter_close(&c);
}

/* Descriptors for a program that is executed. */
static void test_kept(void)
{
	const struct flowfd_create_counter settings = { .flags = FLOWFD_KEEP_ON_EXEC };
	struct flowfd_counter c;
	int fds[FLOWFD_EXPORT_MAX];

	if (flowfd_counter_open(&c, &settings, sizeof(settings), FLOWFD_FALLBACK))
		abort();
	flowfd_counter_export(&c, fds);
	tap_is(fcntl(fds[0], F_GETFD), 0, "kept on exec");
	tap_is(fcntl(fds[1], F_GETFD), 0, "the memory as well");
	flowfd_counter_close(&c);
}

static short poll_now(const struct flowfd_counter *c)
{
	struct pollfd poller = { .fd = c->fd, .events = POLLIN };

	poll(&poller, 1, 0);
	return poller.revents;
}

/* ---- what is refused ---- */

static int make_memory(size_t size, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) ||
	    (seals && fcntl(fd, F_ADD_SEALS, seals)))
		abort();
	return fd;
}

static void refuse_pair(int event, int memory, int error, const char *what)
{
	const int fds[] = { event, memory };
	struct flowfd_counter c = { .fd = 42 };
	int before = fcntl(memory, F_GETFD);

	errno = 4711;
	tap_is(flowfd_counter_import(&c, fds, 2), error, what);
	tap_is(errno, 4711, "errno stays");
	tap_is(c.fd, 42, "nothing is filled in");
	tap_is(fcntl(memory, F_GETFD), before, "the descriptors stay the caller's");
}

/* What the memory has is right, so that it is refused for what it is. */
static void refuse_memory(int event, size_t size, unsigned int seals, const char *what)
{
	struct flowfd_counter good = open_with(0, 0);
	int memory = make_memory(size, 0);

	if (pwrite(memory, good.map, page, 0) != (ssize_t)page ||
	    fcntl(memory, F_ADD_SEALS, seals))
		abort();
	refuse_pair(event, memory, -ENOTTY, what);
	close(memory);
	flowfd_counter_close(&good);
}

static void refuse_event(int event, int memory, const char *what)
{
	refuse_pair(event, memory, -ENOTTY, what);
	close(event);
}

/* A copy of good memory with one field changed. */
static void refuse_field(int event, size_t offset, uint32_t value, int error,
			 const char *what)
{
	struct flowfd_counter good = open_with(0, 0);
	int memory = make_memory(3 * page, SEALS);
	uint32_t *copy = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	memcpy(copy, good.map, page);
	memcpy((char *)copy + offset, &value, sizeof(value));
	munmap(copy, page);
	refuse_pair(event, memory, error, what);
	close(memory);
	flowfd_counter_close(&good);
}

#define FIELD(name) offsetof(struct flowfd__settings_page, name)

static void test_refused(void)
{
	struct flowfd_counter c = open_with(0, 0), alone = open_with(0, FLOWFD_NO_POLL);
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), pipes[2], fd;
	struct flowfd_counter none = { .fd = 42 };
	char path[64];

	tap_is(flowfd_counter_import(&none, &event, 0), -EINVAL, "no descriptor");
	tap_is(flowfd_counter_import(&none, &event, 3), -EINVAL, "three");
	tap_is(flowfd_counter_import(&none, &event, 1), -ENOTTY, "an eventfd alone");
	tap_is(flowfd_counter_import(&none, &(int){ -1 }, 1), -EBADF, "no file");
	tap_is(flowfd_counter_import(&none, &c.memory, 1), -ENOTTY,
	       "memory without its eventfd");
	refuse_pair(event, alone.memory, -ENOTTY, "an eventfd with memory that has none");
	refuse_pair(c.memory, c.fd, -ENOTTY, "another order");
	refuse_pair(-1, c.memory, -EBADF, "no eventfd");
	refuse_pair(event, -1, -EBADF, "no memory");

	refuse_memory(event, 3 * page, 0, "memory without a seal");
	refuse_memory(event, 3 * page, F_SEAL_GROW | F_SEAL_SEAL, "memory that can shrink");
	refuse_memory(event, 3 * page, F_SEAL_SHRINK | F_SEAL_GROW,
		      "memory that can get other seals");
	refuse_memory(event, 2 * page, SEALS, "memory that is too small");
	refuse_memory(event, 4 * page, SEALS, "memory that is too large");
	fd = make_memory(3 * page, SEALS);
	refuse_pair(event, fd, -ENOTTY, "memory with nothing in it");
	close(fd);
	fd = make_memory(3 * page, SEALS | F_SEAL_WRITE);
	refuse_pair(event, fd, -EPERM, "memory that cannot be written");
	close(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c.memory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	refuse_pair(event, fd, -EACCES, "memory that is open for reading");
	close(fd);
	refuse_field(event, FIELD(header.magic), 1, -ENOTTY, "another magic number");
	refuse_field(event, FIELD(magic), 1, -ENOTTY, "memory of the module's kind");
	refuse_field(event, FIELD(header.version), 99, -EPROTONOSUPPORT, "another version");
	refuse_field(event, FIELD(version), 99, -EPROTONOSUPPORT,
		     "another version of the library's part");
	refuse_field(event, FIELD(header.page_size), 1, -EPROTONOSUPPORT, "a page size");
	refuse_field(event, FIELD(doorbell), 0x81, -EPROTONOSUPPORT, "an unknown option");
	refuse_field(event, FIELD(doorbell), 0, -EPROTONOSUPPORT, "no option");

	if (pipe2(pipes, O_NONBLOCK | O_CLOEXEC))
		abort();
	refuse_event(pipes[0], c.memory, "a pipe");
	close(pipes[1]);
	refuse_event(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), c.memory,
		     "a timer");
	refuse_event(epoll_create1(EPOLL_CLOEXEC), c.memory, "an epoll");
	refuse_event(eventfd(0, EFD_CLOEXEC), c.memory, "an eventfd that blocks");
	refuse_event(eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC), c.memory,
		     "a semaphore");
	refuse_event(open("/dev/null", O_RDWR | O_NONBLOCK | O_CLOEXEC), c.memory,
		     "another device");
	close(event);
	flowfd_counter_close(&alone);
	flowfd_counter_close(&c);
}

static unsigned int requests;

/* Instead of that of the C library. */
int ioctl(int fd, unsigned long request, ...)
{
	(void)fd;
	(void)request;
	requests++;
	errno = ENOTTY;
	return -1;
}

static void test_not_asked(void)
{
	struct flowfd_counter c = open_with(0, FLOWFD_NO_POLL), none;
	int pipes[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (pipe2(pipes, O_NONBLOCK | O_CLOEXEC))
		abort();
	requests = 0;
	tap_is(flowfd_counter_import(&none, &file, 1), -ENOTTY, "a file");
	tap_is(flowfd_counter_import(&none, pipes, 1), -ENOTTY, "a pipe alone");
	none = import(&(int){ dup(c.fd) }, 1);
	tap_is(requests, 0, "are not asked by ioctl, nor is memory");
	flowfd_counter_close(&none);
	close(file);
	close(pipes[0]);
	close(pipes[1]);
	flowfd_counter_close(&c);
}

/* As on kernels that do not tell what a semaphore is. */
static void test_probed(void)
{
	struct flowfd_counter c = open_with(5, 0), bad = c;
	uint64_t value = 0;

	tap_is(flowfd__doorbell_probe(&c), 0, "a doorbell is no semaphore");
	tap_is(poll_now(&c), 0, "it stays empty");
	flowfd_add(&c, 2);
	tap_is(flowfd__doorbell_probe(&c), 0, "one that is rung");
	tap_is(poll_now(&c), POLLIN, "stays readable");
	flowfd_add_with(&c, 5, 0, FLOWFD_NONBLOCK);
	tap_is(flowfd__doorbell_probe(&c), 0, "one that is full");
	tap_is(poll_now(&c), POLLIN, "can be read");
	tap_is(flowfd_try_take(&c, &value), 0, "take");
	tap_is(value, 2, "what was added");
	flowfd_try_take(&c, &value);
	tap_is(poll_now(&c), 0, "it is empty again");

	bad.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	tap_is(flowfd__doorbell_probe(&bad), -ENOTTY, "a semaphore");
	tap_is(poll_now(&bad), 0, "is left as it was");
	flowfd__eventfd_write(bad.fd, 7);
	tap_is(flowfd__doorbell_probe(&bad), -ENOTTY, "one with a count");
	close(bad.fd);
	flowfd_counter_close(&c);
}

static void *import_late(void *argument)
{
	int *fds = argument;
	struct flowfd_counter c;

	/* Until the first thread has ended. */
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	_exit(-flowfd_counter_import(&c, fds, 2));
}

static void test_first_thread_ended(void)
{
	struct flowfd_counter c = open_with(0, 0);
	int fds[FLOWFD_EXPORT_MAX], status = -1;
	pthread_t thread;
	pid_t child;

	flowfd_counter_export(&c, fds);
	child = fork();
	if (!child) {
		pthread_create(&thread, NULL, import_late, fds);
		syscall(SYS_exit, 0);
	}
	waitpid(child, &status, 0);
	tap_is(status, 0, "import after the first thread has ended");
	flowfd_counter_close(&c);
}

/* As at a limit of the process, nothing is left behind. */
static void test_limits(void)
{
	const struct flowfd_create_counter settings = { .maximum = 5 };
	struct rlimit limit, small;
	struct flowfd_counter c;
	int lowest = dup(0), error;

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &limit);
	small = (struct rlimit){ .rlim_cur = lowest + 1, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &small);
	error = flowfd_counter_open(&c, &settings, sizeof(settings), FLOWFD_FALLBACK);
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_is(error, -EMFILE, "no descriptor for the memory");
	tap_is(dup(0), lowest, "none is left open");
	close(lowest);

	getrlimit(RLIMIT_FSIZE, &limit);
	small = (struct rlimit){ .rlim_cur = 2 * page, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	error = flowfd_counter_open(&c, &settings, sizeof(settings), FLOWFD_FALLBACK);
	setrlimit(RLIMIT_FSIZE, &limit);
	tap_is(error, -EFBIG, "files may not have three pages: no SIGXFSZ");
	tap_is(dup(0), lowest, "none is left open");
	close(lowest);
}

/* ---- a peer that stores anything ---- */

static const uint32_t wild[] = { 0, 1, 2, 3, 7, 10, 19, 33, 0x121, 0xffffffff, 0x80000002 };

static void test_hostile(unsigned int options)
{
	struct flowfd_counter c = open_with(100, options);
	bool bounded = true;
	uint64_t value;

	for (unsigned int i = 0; i < 3 * sizeof(wild) / sizeof(*wild); i++) {
		c.take.consumer->armed = wild[i / 3];
		c.add.producer->produced = i % 3 == 1 ? c.take.consumer->consumed + 7000 :
						       c.take.consumer->consumed;
		if (i % 3 == 2)
			c.take.consumer->consumed += 1ULL << 40;
		flowfd_add_with(&c, 1, 0, FLOWFD_NONBLOCK);
		flowfd_take_with(&c, &value, SECOND / 1000, 0);
		flowfd_add_with(&c, 200, SECOND / 1000, 0);
		bounded &= flowfd_try_take(&c, &value) <= 0;
		flowfd_counter_notify(&c, FLOWFD_CONSUMER);
	}
	tap_ok(bounded, "words of any value end no loop");
	tap_is(flowfd_try_take(&c, &value) == -EAGAIN || !flowfd_try_take(&c, &value), 1,
	       "the counter can be taken from");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "until it is empty");
	tap_is(flowfd_add(&c, 3), 0, "and added to");
	tap_is(flowfd_take(&c, &value), 0, "and taken from");
	tap_is(value, 3, "what was added");

	if (fallocate(c.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 3 * page))
		abort();
	tap_is(flowfd_add(&c, 1), -EINVAL, "memory with a hole has a maximum of 0");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "and no count");
	flowfd_counter_close(&c);
}

static struct flowfd_counter disturbed;
static volatile bool stop;

static void *disturb(void *unused)
{
	unsigned int i;

	for (i = 0; !stop; i++)
		__atomic_store_n(&disturbed.take.consumer->armed,
				 wild[i % (sizeof(wild) / sizeof(*wild))], __ATOMIC_RELAXED);
	return unused;
}

static void test_disturbed(unsigned int options)
{
	pthread_t thread;
	uint64_t value;

	disturbed = open_with(100, options);
	stop = false;
	pthread_create(&thread, NULL, disturb, NULL);
	for (int i = 0; i < 300; i++) {
		flowfd_add_with(&disturbed, 60, SECOND / 100000, 0);
		flowfd_take_with(&disturbed, &value, SECOND / 100000, 0);
	}
	stop = true;
	pthread_join(thread, NULL);
	tap_ok(true, "a peer that stores all the time keeps no call from its end");
	flowfd_counter_close(&disturbed);
}

/* The description is shared, so a peer can clear the flag of all. */
static void test_blocking(void)
{
	struct flowfd_counter c = open_with(0, 0);
	struct interrupt interrupt;
	uint64_t value;

	if (fcntl(c.fd, F_SETFL, 0))
		abort();
	c.take.consumer->armed = FLOWFD_ARMED_WRITERS;
	interrupt_begin(&interrupt);
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "an eventfd that blocks is not waited for");
	flowfd__eventfd_write(c.fd, UINT64_MAX - 1);
	tap_is(flowfd_add_with(&c, 1, SECOND, 0), -EPERM, "one that is full is told of no add");
	interrupt_end(&interrupt);
	tap_is(flowfd_try_take(&c, &value), 0, "which was made");
	tap_is(value, 1, "once");
	flowfd_counter_close(&c);
}

/* An answer that no eventfd gives. */
static void test_no_eventfd(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t value = 42;

	tap_is(flowfd__eventfd_drain(fd, &value), -EBADF, "a read of nothing");
	close(fd);
}

/* A doorbell that is always ready, as a peer can make it. */
static struct flowfd_counter open_ready(void)
{
	struct flowfd_counter c = open_with(5, 0);
	int zero = open("/dev/zero", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (dup2(zero, c.fd) < 0)
		abort();
	close(zero);
	return c;
}

/* How often this thread has left its processor by itself. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void test_always_ready(void)
{
	struct flowfd_counter c = open_ready();
	struct interrupt interrupt;
	uint64_t value;
	long began = sleeps();

	tap_is(flowfd_take_with(&c, &value, SECOND / 2, 0), -ETIMEDOUT, "take nothing");
	tap_ok(sleeps() - began > 10, "and sleep, time after time");
	interrupt_begin(&interrupt);
	tap_is(flowfd_take_with(&c, &value, 5 * SECOND, 0), -EINTR, "interrupted");
	interrupt_end(&interrupt);

	flowfd_add(&c, 4);
	began = sleeps();
	tap_is(flowfd_add_with(&c, 4, SECOND / 2, 0), -ETIMEDOUT, "add without room");
	tap_ok(sleeps() - began > 10, "and sleep, time after time");
	interrupt_begin(&interrupt);
	tap_is(flowfd_add_with(&c, 4, 5 * SECOND, 0), -EINTR, "interrupted");
	interrupt_end(&interrupt);
	flowfd_counter_close(&c);
}

static void *change(void *unused)
{
	while (!stop)
		__atomic_fetch_add(&disturbed.take.consumer->armed, 8, __ATOMIC_RELAXED);
	return unused;
}

/* A word that always changes, so that nobody goes to sleep on it. */
static void test_always_changed(void)
{
	struct rlimit limit, none;
	struct interrupt interrupt;
	pthread_t thread;
	uint64_t value;

	disturbed = open_with(5, FLOWFD_NO_POLL);
	stop = false;
	pthread_create(&thread, NULL, change, NULL);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	interrupt_begin(&interrupt);
	tap_is(flowfd_take_with(&disturbed, &value, 5 * SECOND, 0), -EINTR,
	       "a take without a sleep is interrupted");
	flowfd_add(&disturbed, 4);
	tap_is(flowfd_add_with(&disturbed, 4, 5 * SECOND, 0), -EINTR, "an add, too");
	interrupt_end(&interrupt);
	setrlimit(RLIMIT_NOFILE, &limit);
	stop = true;
	pthread_join(thread, NULL);
	flowfd_counter_close(&disturbed);
}

/* ---- policies ---- */

static int set(const struct flowfd_counter *c, struct flowfd_flow flow)
{
	return flowfd_counter_set_flow(c, &flow, sizeof(flow));
}

static struct flowfd_flow get(const struct flowfd_counter *c)
{
	struct flowfd_flow flow;

	if (flowfd_counter_get_flow(c, &flow, sizeof(flow)))
		abort();
	return flow;
}

static void test_policies(unsigned int options)
{
	struct flowfd_counter c = open_with(10, options), twin;
	int fds[FLOWFD_EXPORT_MAX];
	int number = flowfd_counter_export(&c, fds);
	struct {
		struct flowfd_flow flow;
		uint64_t more;
	} longer = { .more = 1 };
	uint64_t value;

	for (int i = 0; i < number; i++)
		fds[i] = dup(fds[i]);
	twin = import(fds, number);
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 10, .overflow = FLOWFD_OVERFLOW_FAIL }),
	       0, "to fail");
	tap_is(get(&twin).overflow, FLOWFD_OVERFLOW_FAIL, "the other process sees it");
	tap_is(flowfd_add(&twin, 6), 0, "what fits is added");
	tap_is(flowfd_add(&twin, 6), -EAGAIN, "what does not fails, and does not wait");
	tap_is(flowfd_add(&twin, 10), -EINVAL, "what never fits");

	tap_is(set(&c, (struct flowfd_flow){ .overflow = FLOWFD_OVERFLOW_SATURATE,
					     .set = FLOWFD_SET_OVERFLOW }),
	       0, "to saturate");
	tap_is(get(&c).maximum, 10, "the maximum stays");
	tap_is(flowfd_add(&twin, 6), 0, "is done");
	tap_is(get(&c).count, 9, "what fits is added");
	tap_is(get(&c).lost, 3, "the rest is lost");
	tap_is(flowfd_add(&twin, 1), 0, "nothing fits");
	tap_is(get(&c).lost, 4, "all is lost");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 9, "what fit");

	tap_is(set(&c, (struct flowfd_flow){ .overflow = FLOWFD_OVERFLOW_DROP,
					     .set = FLOWFD_SET_OVERFLOW }),
	       0, "to drop");
	tap_is(flowfd_add(&twin, 8), 0, "what fits is added");
	tap_is(flowfd_add(&twin, 2), 0, "what does not is dropped");
	tap_is(flowfd_add(&twin, 50), 0, "what never fits, too");
	tap_is(get(&c).count, 8, "the count stays");
	tap_is(get(&c).lost, 56, "what was dropped is counted");
	tap_is(flowfd_add(&twin, UINT64_MAX), -EINVAL, "ULLONG_MAX");
	tap_is(flowfd_add(&twin, UINT64_MAX - 1), 0, "as much as there is");
	tap_is(flowfd_add(&twin, UINT64_MAX - 1), 0, "twice");
	tap_ok(get(&c).lost == UINT64_MAX, "the sum stops at the highest");

	tap_is(set(&c, (struct flowfd_flow){ .maximum = 8, .set = FLOWFD_SET_MAXIMUM }),
	       -EINVAL, "a maximum at the count");
	tap_is(set(&c, (struct flowfd_flow){ .overflow = 9 }), -EINVAL, "an unknown policy");
	tap_is(set(&c, (struct flowfd_flow){ .set = 1U << 31 }), -EINVAL, "an unknown setting");
	tap_is(set(&c, (struct flowfd_flow){ .reserved = 1 }), -EINVAL, "a reserved field");
	tap_is(set(&c, (struct flowfd_flow){ .flags = 1U << 31 }), -EINVAL, "an unknown flag");
	tap_is(set(&c, (struct flowfd_flow){ .read_mark = 2 }), -EOPNOTSUPP, "a read mark");
	tap_is(set(&c, (struct flowfd_flow){ .write_mark = 2 }), -EOPNOTSUPP, "a write mark");
	tap_is(set(&c, (struct flowfd_flow){ .max_delay = 2 }), -EOPNOTSUPP, "a delay");
	tap_is(set(&c, (struct flowfd_flow){ .qos = { 1, 1 } }), -EOPNOTSUPP, "a bucket");
	tap_is(set(&c, (struct flowfd_flow){ .flags = FLOWFD_SEAL }), -EOPNOTSUPP, "a seal");
	tap_is(get(&c).maximum, 10, "nothing has changed");
	tap_is(flowfd_counter_set_flow(&c, &longer.flow, 8), -EINVAL, "a short size");
	tap_is(flowfd_counter_set_flow(&c, &longer.flow, sizeof(longer)), -EPROTONOSUPPORT,
	       "a field that nobody knows");
	longer.more = 0;
	tap_is(flowfd_counter_set_flow(&c, &longer.flow, sizeof(longer)), 0,
	       "one that asks for nothing");
	longer.more = 1;
	tap_is(flowfd_counter_get_flow(&c, &longer.flow, sizeof(longer)), 0, "longer");
	tap_is((long long)longer.more, 0, "what nobody knows is 0");
	tap_is(flowfd_counter_get_flow(&c, &longer.flow, 8), -EINVAL, "a short size");
	tap_ok(get(&c).maximum == UINT64_MAX, "no maximum");
	flowfd_counter_close(&twin);
	flowfd_counter_close(&c);
}

/* Who waits for room learns that none is needed any more. */
static void test_full_policy(uint32_t overflow)
{
	struct flowfd_counter c = open_with(3, 0);
	struct pollfd poller = { .fd = c.fd, .events = POLLOUT };

	tap_is(flowfd_add(&c, 2), 0, "full");
	tap_is(flowfd_add_with(&c, 1, 0, FLOWFD_NONBLOCK), -EAGAIN, "an add is refused");
	tap_is(poll(&poller, 1, 0), 0, "pollers see no room");
	tap_is(set(&c, (struct flowfd_flow){ .overflow = overflow,
					     .set = FLOWFD_SET_OVERFLOW }),
	       0, "what does not fit is lost from now on");
	tap_is(poll(&poller, 1, 0), 1, "pollers see that they may add");
	tap_is(flowfd_add(&c, 1), 0, "and they may");
	tap_is(poll(&poller, 1, 0), 1, "again and again");
	flowfd_counter_close(&c);
}

/* Settings that were stored are no failure, whoever could not be told of them. */
static void test_untold_policy(void)
{
	struct flowfd_counter c = open_with(3, 0);

	flowfd_add(&c, 2);
	tap_is(flowfd_add_with(&c, 1, 0, FLOWFD_NONBLOCK), -EAGAIN, "full");
	close(c.fd);
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 10 }), 0,
	       "a maximum without the descriptor");
	tap_is(get(&c).maximum, 10, "is stored");
	flowfd_counter_unmap(&c);
}

/* ---- filters of seccomp(2) ---- */

/* Of a counter that is full. Returns an exit status. */
static int refuse_doorbell_by(const struct flowfd_counter *c, unsigned int error)
{
	uint64_t value = 0;

	if (refuse(SYS_write, error) || refuse(SYS_preadv2, error) ||
	    refuse(SYS_read, error))
		return REFUSE_UNABLE;
	if (flowfd_add(c, 1) != -EACCES || flowfd_add_with(c, 1, SECOND, 0) != -EACCES)
		return 3;
	/* Not -EAGAIN: a poll may find the doorbell ready at once, time after time. */
	if (flowfd_add_with(c, 1, 0, FLOWFD_NONBLOCK) != -EACCES || get(c).count != 2)
		return 4;
	if (flowfd_take(c, &value) || value != 2 || flowfd_try_take(c, &value) != -EACCES)
		return 5;
	return flowfd_add(c, 1) != -EPERM || get(c).count != 1;
}

static int refuse_doorbell(const void *c)
{
	return refuse_doorbell_by(c, EPERM);
}

/* As a filter answers calls that it does not know. */
static int not_know_doorbell(const void *c)
{
	return refuse_doorbell_by(c, ENOSYS);
}

/* And a peer has made the eventfd block. */
static int refuse_preadv2(const void *argument)
{
	const struct flowfd_counter *c = argument;
	struct interrupt interrupt;
	uint64_t value;
	int ret;

	if (refuse(SYS_preadv2, EPERM))
		return REFUSE_UNABLE;
	if (flowfd_take(c, &value) || fcntl(c->fd, F_SETFL, 0))
		return 3;
	c->take.consumer->armed = FLOWFD_ARMED_WRITERS;
	interrupt_begin(&interrupt);
	ret = flowfd_try_take(c, &value);
	interrupt_end(&interrupt);
	return ret != -EAGAIN;
}

static int refuse_sleep_by(const struct flowfd_counter *c, unsigned int error)
{
	uint64_t value = 42;

	if (refuse(SYS_ppoll, error) || refuse(SYS_futex, error))
		return REFUSE_UNABLE;
#ifdef SYS_poll
	if (refuse(SYS_poll, error))
		return REFUSE_UNABLE;
#endif
	if (flowfd_add(c, 1) != -EACCES || flowfd_add_with(c, 1, SECOND, 0) != -EACCES ||
	    get(c).count != 2)
		return 3;
	flowfd_take(c, &value);
	return flowfd_take_with(c, &value, SECOND, 0) != -EACCES || value != 2;
}

static int refuse_sleep(const void *c)
{
	return refuse_sleep_by(c, EPERM);
}

static int not_know_sleep(const void *c)
{
	return refuse_sleep_by(c, ENOSYS);
}

/* -EPERM says that a value was added, and nothing else does. */
static void test_refused_call(int (*use)(const void *c), unsigned int options,
			      const char *what)
{
	struct flowfd_counter c = open_with(3, options);

	flowfd_add(&c, 2);
	refuse_in_child(use, &c, what);
	flowfd_counter_close(&c);
}

/* ---- sleepers ---- */

static void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

/* @late: it was not woken, and looked when its time had passed. */
struct sleeper {
	pthread_t thread;
	const struct flowfd_counter *c;
	uint64_t value;
	int result;
	bool late;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

static void *add_now(void *argument)
{
	struct sleeper *s = argument;
	uint64_t began = now_ns();

	s->result = flowfd_add_with(s->c, s->value, 20 * SECOND, 0);
	s->late = now_ns() - began >= 20 * SECOND;
	return NULL;
}

static void *take_now(void *argument)
{
	struct sleeper *s = argument;
	uint64_t began = now_ns();

	s->result = flowfd_take_with(s->c, &s->value, 20 * SECOND, 0);
	s->late = now_ns() - began >= 20 * SECOND;
	return NULL;
}

static void begin(struct sleeper *s, const struct flowfd_counter *c, uint64_t value,
		  void *(*run)(void *argument))
{
	*s = (struct sleeper){ .c = c, .value = value };
	pthread_create(&s->thread, NULL, run, s);
}

static int end(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->late ? -ETIMEDOUT : s->result;
}

static void test_room(unsigned int options)
{
	struct flowfd_counter c = open_with(5, options);
	struct sleeper writers[2];
	uint64_t value;

	flowfd_add(&c, 4);
	begin(&writers[0], &c, 3, add_now);
	rest();
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 20 }), 0, "a higher maximum");
	tap_is(end(&writers[0]), 0, "wakes a writer that fits now");
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 8 }), 0, "a lower one");
	begin(&writers[0], &c, 3, add_now);
	begin(&writers[1], &c, 4, add_now);
	rest();
	tap_is(flowfd_take(&c, &value), 0, "a take");
	tap_is(value, 7, "of all");
	tap_is(end(&writers[0]) + end(&writers[1]), 0, "wakes all writers that fit");
	tap_is(flowfd_add_with(&c, 5, SECOND / 1000, 0), -ETIMEDOUT, "no room");
	flowfd_counter_close(&c);
}

/* What a writer waits for may have become impossible when it looks again. */
static void test_never_fits(unsigned int options)
{
	struct flowfd_counter c = open_with(100, options);
	struct sleeper writers[2];
	uint64_t value;

	flowfd_add(&c, 60);
	begin(&writers[0], &c, 50, add_now);
	rest();
	/* A take that has not yet told. */
	__atomic_fetch_add(&c.take.consumer->consumed, 60, __ATOMIC_SEQ_CST);
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 40 }), 0, "a lower maximum");
	tap_is(end(&writers[0]), -EINVAL, "wakes a writer that can never fit");
	tap_is(flowfd_add(&c, 35), 0, "add");
	begin(&writers[0], &c, 30, add_now);
	rest();
	begin(&writers[1], &c, 4, add_now);
	tap_is(end(&writers[1]), 0, "what fits overtakes");
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 50,
					     .overflow = FLOWFD_OVERFLOW_SATURATE }),
	       0, "another policy");
	tap_is(end(&writers[0]), 0, "holds for one that waits");
	tap_is((long long)get(&c).lost, 20, "of whose value a part is lost");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is((long long)value, 49, "the rest");
	flowfd_counter_close(&c);
}

/* A writer that waits is told also of settings that leave it no room. */
static void test_waits_no_more(unsigned int options)
{
	struct flowfd_counter c = open_with(100, options);
	struct sleeper writer;
	uint64_t value;

	flowfd_add(&c, 99);
	begin(&writer, &c, 50, add_now);
	rest();
	tap_is(set(&c, (struct flowfd_flow){ .overflow = FLOWFD_OVERFLOW_FAIL,
					     .set = FLOWFD_SET_OVERFLOW }),
	       0, "to fail");
	tap_is(end(&writer), -EAGAIN, "a writer that waits fails");
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 100 }), 0, "to wait");
	flowfd_take(&c, &value);
	flowfd_add(&c, 60);
	begin(&writer, &c, 70, add_now);
	rest();
	tap_is(set(&c, (struct flowfd_flow){ .maximum = 61 }), 0, "a maximum that it exceeds");
	tap_is(end(&writer), -EINVAL, "is told to a writer that waits");
	flowfd_counter_close(&c);
}

static void test_unpolled(void)
{
	struct flowfd_counter c = open_with(0, FLOWFD_NO_POLL);
	struct sleeper readers[3];
	struct interrupt interrupt;
	uint64_t value, sum = 0;
	int i;

	for (i = 0; i < 3; i++)
		begin(&readers[i], &c, 0, take_now);
	rest();
	for (i = 0; i < 3; i++) {
		flowfd_add(&c, 5);
		rest();
	}
	for (i = 0; i < 3; i++)
		if (!end(&readers[i]))
			sum += readers[i].value;
	tap_is((long long)sum, 15, "each add wakes one of three");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "nothing is left");
	tap_is(flowfd_take_with(&c, &value, SECOND / 1000, 0), -ETIMEDOUT,
	       "until the time has passed");
	interrupt_begin(&interrupt);
	tap_is(flowfd_take(&c, &value), -EINTR, "interrupted");
	interrupt_end(&interrupt);
	flowfd_counter_close(&c);
}

static void test_spin(unsigned int options)
{
	struct flowfd_counter c = open_with(0, options);
	struct interrupt interrupt;
	struct sleeper writer;
	uint64_t value = 0, began;

	flowfd_add(&c, 1);
	tap_is(flowfd_take_spin(&c, &value, 0), 0, "take without a look");
	begin(&writer, &c, 2, add_now);
	tap_is(flowfd_take_spin(&c, &value, SECOND / 2), 0, "take while looking, or after");
	tap_is(value, 2, "what another adds");
	end(&writer);
	interrupt_begin(&interrupt);
	tap_is(flowfd_take_spin(&c, &value, UINT64_MAX), -EINTR, "a look for ever ends");
	interrupt_end(&interrupt);
	c.roles = FLOWFD_PRODUCER;
	c.doorbell |= DOORBELL_NONBLOCK;
	began = now_ns();
	tap_is(flowfd_take_spin(&c, &value, SECOND / 2), -EAGAIN, "nothing to look at");
	tap_ok(now_ns() - began < SECOND / 2, "so it does not look");
	c.roles |= FLOWFD_CONSUMER;
	flowfd_counter_close(&c);
}

int main(void)
{
	/* Here and in children. */
	setenv("FLOWFD_BACKEND", "fallback", 1);
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_export();
	test_kept();
	test_processes("any number of consumers, blocking", 0, take);
	test_processes("any number of consumers, polled", 0, poll_and_take);
	test_processes("one consumer, blocking", FLOWFD_ONE_CONSUMER, take);
	test_processes("one consumer, polled", FLOWFD_ONE_CONSUMER, poll_and_take);
	test_processes("nobody polls", FLOWFD_NO_POLL, take);
	test_refused();
	test_not_asked();
	test_probed();
	test_first_thread_ended();
	test_limits();
	test_hostile(0);
	test_hostile(FLOWFD_ONE_CONSUMER);
	test_hostile(FLOWFD_NO_POLL);
	test_disturbed(0);
	test_disturbed(FLOWFD_ONE_CONSUMER);
	test_disturbed(FLOWFD_NO_POLL);
	test_blocking();
	test_refused_call(refuse_doorbell, 0, "calls on the eventfd are refused");
	test_refused_call(not_know_doorbell, 0, "calls on the eventfd are not known");
	test_refused_call(refuse_preadv2, 0, "a read(2) that a signal ends");
	test_refused_call(refuse_sleep, 0, "poll(2) is refused");
	test_refused_call(refuse_sleep, FLOWFD_NO_POLL, "futex(2) is refused");
	test_refused_call(not_know_sleep, FLOWFD_NO_POLL, "futex(2) is not known");
	test_no_eventfd();
	test_always_ready();
	test_always_changed();
	test_full_policy(FLOWFD_OVERFLOW_SATURATE);
	test_full_policy(FLOWFD_OVERFLOW_DROP);
	test_untold_policy();
	test_policies(0);
	test_policies(FLOWFD_NO_POLL);
	test_room(0);
	test_room(FLOWFD_NO_POLL);
	test_never_fits(0);
	test_never_fits(FLOWFD_NO_POLL);
	test_waits_no_more(0);
	test_waits_no_more(FLOWFD_NO_POLL);
	test_unpolled();
	test_spin(0);
	test_spin(FLOWFD_NO_POLL);
	return tap_done();
}
