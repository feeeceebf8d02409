// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring of libflowfd, every function in normal use, and each documented error, with
 * each backend that there is. With the module it runs as root in a virtual machine, as
 * some errors can break a machine; the selftests test the kernel beyond that. Without it,
 * it is a host test; ring-epoll.c has what is special there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/refuse.h"
#include "tests/tap.h"

#define MS 1000000ULL
#define NOBODY 65534
#define PIPES 3

static bool fallback;
static struct flowfd_ring ring;
static struct flowfd_event event;
static int readers[PIPES];
static int writers[PIPES];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int create(struct flowfd_ring *own, uint32_t max_items, unsigned int flags)
{
	return flowfd_ring_create(own, max_items, flags | FLOWFD_FALLBACK);
}

/* Events arrive by themselves with the module alone. */
static int next_event(struct flowfd_ring *own)
{
	if (!(flowfd_ring_features(own) & FLOWFD_HAS_EVENTS))
		flowfd_ring_wait(own, 0);
	return flowfd_ring_next(own, &event);
}

static int watched_counter(void)
{
	return fallback ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) :
			  flowfd_counter_create(0, FLOWFD_NONBLOCK);
}

/* A ring that watches pipes, with data 0, 1, 2. */
static void setup(void)
{
	if (create(&ring, PIPES, 0) < 0)
		abort();
	for (int i = 0; i < PIPES; i++) {
		int ends[2];

		if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
			abort();
		readers[i] = ends[0];
		writers[i] = ends[1];
		if (flowfd_ring_add(&ring, readers[i], EPOLLIN | EPOLLET, i))
			abort();
	}
}

static void teardown(void)
{
	for (int i = 0; i < PIPES; i++) {
		close(readers[i]);
		close(writers[i]);
	}
	flowfd_ring_destroy(&ring);
}

static void announce(int i)
{
	if (write(writers[i], "x", 1) != 1)
		abort();
}

/* Runs in a child process, which it may change; returns 0 or a negative errno. */
static int in_child(int (*call)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(-call());
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ENOEXEC;
}

static int create_and_destroy(void)
{
	struct flowfd_ring own;
	int lowest = dup(STDERR_FILENO);
	int ret;

	close(lowest);
	errno = 4711;
	ret = create(&own, 1, 0);
	if (!ret)
		flowfd_ring_destroy(&own);
	if (errno != 4711)
		return -EUCLEAN;
	/* Neither the first descriptor nor the second leaks. */
	return dup(STDERR_FILENO) == lowest &&
	       dup(STDERR_FILENO) == lowest + 1 ? ret : -EXFULL;
}

static int create_with_limit(int resource, rlim_t value)
{
	const struct rlimit limit = {value, value};

	setrlimit(resource, &limit);
	return create_and_destroy();
}

static int create_without_memory(void)
{
	return create_with_limit(RLIMIT_AS, 0);
}

static int create_without_locked_memory(void)
{
	return setresuid(NOBODY, NOBODY, NOBODY) ?
	       -errno : create_with_limit(RLIMIT_MEMLOCK, 0);
}

static int create_as_nobody(void)
{
	return setresuid(NOBODY, NOBODY, NOBODY) ?
	       -errno : create_and_destroy();
}

static int create_on_another_device(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("/dev/null", FLOWFD_DEVICE, NULL, MS_BIND, NULL))
		return -errno;
	return create_and_destroy();
}

/* The answer of a module that does not know the request. */
static int create_by_old_module(void)
{
	if (refuse_request(__NR_ioctl, FLOWFD_IOC_CREATE_RING, ENOTTY))
		return -errno;
	return create_and_destroy();
}

static int create_beside_a_filter(void)
{
	if (refuse_request(__NR_ioctl, FLOWFD_IOC_CREATE_RING, EPERM))
		return -errno;
	return create_and_destroy();
}

/*
 * Limits the open files of the whole system, except root's. With 0 the kernel counts
 * exactly; otherwise it may use an estimate.
 */
static void set_file_max(const char *number)
{
	int fd = open("/proc/sys/fs/file-max", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, number, strlen(number)) < 0)
		abort();
	close(fd);
}

static void test_create(void)
{
	struct flowfd_ring own = {.fd = 42};
	void *mapping;

	tap_is(create(&own, 0, 0), -EINVAL, "for no files");
	tap_is(create(&own, FLOWFD_RING_ITEMS_MAX + 1, 0), -EINVAL,
	       "for too many files");
	tap_is(create(&own, 1, 1U << 31), -EINVAL, "unknown flag");
	tap_ok(own.fd == 42 && !own.header, "the ring is as it was");

	tap_is(create(&own, 1, FLOWFD_KEEP_ON_EXEC), fallback ? -EOPNOTSUPP : 0,
	       "to be kept on exec");
	if (!fallback) {
		tap_is(fcntl(own.fd, F_GETFD), 0, "kept on exec");
		flowfd_ring_destroy(&own);
	}
	tap_is(create(&own, FLOWFD_RING_ITEMS_MAX, 0), 0,
	       "create a large one");
	tap_is(fcntl(own.fd, F_GETFD), FD_CLOEXEC, "close-on-exec");
	tap_is(own.header->max_items, FLOWFD_RING_ITEMS_MAX, "as large");
	tap_is(flowfd_ring_features(&own),
	       fallback ? 0 : FLOWFD_HAS_EVENTS | FLOWFD_HAS_CLOSES | FLOWFD_HAS_SHARING,
	       "what it can do");
	tap_is(next_event(&own), 0, "and empty");
	mapping = own.header;
	flowfd_ring_destroy(&own);
	tap_is(fcntl(own.fd, F_GETFD), -1, "destroyed, it has no descriptor");
	tap_ok(msync(mapping, 1, MS_ASYNC) < 0 && errno == ENOMEM,
	       "and no mapping");
}

/* As root, and with the module alone: these can break a machine. */
static void test_create_errors_of_device(void)
{
	struct stat device;
	char before[32];
	int fd;

	tap_is(in_child(create_as_nobody), 0, "as nobody");
	tap_is(in_child(create_without_locked_memory), -ENOMEM,
	       "RLIMIT_MEMLOCK");
	tap_is(in_child(create_on_another_device), -EPROTONOSUPPORT,
	       "not the module");
	if (prctl(PR_GET_SECCOMP) < 0)
		tap_skip("filters of requests", "a kernel without seccomp");
	else {
		tap_is(in_child(create_by_old_module), -EPROTONOSUPPORT,
		       "a module without rings");
		tap_is(in_child(create_beside_a_filter), -EPERM, "a filter's EPERM");
	}

	stat(FLOWFD_DEVICE, &device);
	chmod(FLOWFD_DEVICE, 0600);
	tap_is(in_child(create_as_nobody), -EACCES, "no permission");
	unsetenv("FLOWFD_BACKEND");
	tap_is(in_child(create_as_nobody), 0, "for which there is the fallback");
	tap_is(in_child(create_on_another_device), 0, "as for another module");
	if (prctl(PR_GET_SECCOMP) >= 0) {
		tap_is(in_child(create_by_old_module), 0, "or one without rings");
		tap_is(in_child(create_beside_a_filter), 0, "or where a filter refuses it");
	}
	setenv("FLOWFD_BACKEND", "module", 1);
	chmod(FLOWFD_DEVICE, device.st_mode & 07777);

	fd = open("/proc/sys/fs/file-max", O_RDONLY | O_CLOEXEC);
	before[read(fd, before, sizeof(before) - 1)] = 0;
	close(fd);
	set_file_max("0");
	tap_is(in_child(create_as_nobody), -ENFILE, "no file in the system");
	set_file_max(before);
}

static void test_create_errors(void)
{
	int lowest = dup(STDERR_FILENO);
	struct rlimit limit;
	rlim_t all;

	close(lowest);
	tap_is(in_child(create_and_destroy), 0, "in a child");
	tap_is(in_child(create_without_memory), -ENOMEM, "no address space");
	getrlimit(RLIMIT_NOFILE, &limit);
	all = limit.rlim_cur;
	for (int room = 0; room < 2; room++) {
		limit.rlim_cur = lowest + room;
		setrlimit(RLIMIT_NOFILE, &limit);
		tap_is(create(&ring, 1, 0), -EMFILE, "no room");
		tap_is(fcntl(lowest, F_GETFD), -1, "nothing is left behind");
	}
	limit.rlim_cur = all;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* @watched: a file that is in the ring. */
static void test_wrong_adds(struct flowfd_ring *own, int watched)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int other = eventfd(0, EFD_CLOEXEC);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	const struct {
		int fd;
		uint32_t events;
		int error;
		const char *name;
	} wrong[] = {
		{-1, EPOLLET, -EBADF, "add no descriptor"},
		{other, 0, -EINVAL, "not edge-triggered"},
		{other, EPOLLET | EPOLLEXCLUSIVE, -EINVAL, "a bit that is not possible"},
		{file, EPOLLET, -EPERM, "a file that cannot be watched"},
		{own->fd, EPOLLET, -ELOOP, "a ring"},
		{epoll, EPOLLET, -ELOOP, "an epoll"},
		{watched, EPOLLET, -EEXIST, "what is watched"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		tap_is(flowfd_ring_add(own, wrong[i].fd, EPOLLIN | wrong[i].events, 0),
		       wrong[i].error, wrong[i].name);
	close(file);
	close(other);
	close(epoll);
}

static void test_add(void)
{
	int counter = watched_counter();
	int no_room = eventfd(0, EFD_CLOEXEC);
	int other = eventfd(1, EFD_CLOEXEC);
	struct flowfd_ring own;
	uint64_t value;

	tap_is(create(&own, 2, 0), 0, "create");
	tap_is(flowfd_ring_add(&own, counter, EPOLLIN | EPOLLET, 1ULL << 40), 0,
	       "add a counter");
	tap_is(next_event(&own), 0, "it is not ready");
	flowfd_write(counter, 1);
	tap_is(next_event(&own), 1, "it is");
	tap_is(event.events, EPOLLIN, "for reading");
	tap_is(event.data, 1ULL << 40, "and has its data");
	tap_is(next_event(&own), 0, "and is told of once");
	tap_is(flowfd_read(counter, &value), 0, "read");

	test_wrong_adds(&own, counter);
	tap_is(flowfd_ring_add(&own, other, EPOLLIN | EPOLLET, 2), 0,
	       "an eventfd, which is pinned");
	tap_is(next_event(&own), 1, "and ready at once");
	tap_is(flowfd_ring_add_pinned(&own, counter, EPOLLIN | EPOLLET, 0),
	       -EEXIST, "pin what is watched");
	tap_is(flowfd_ring_del(&own, counter), 0, "remove the counter");
	tap_is(flowfd_ring_add_pinned(&own, counter, EPOLLIN | EPOLLET, 0),
	       0, "and pin it");
	tap_is(flowfd_ring_add(&own, no_room, EPOLLIN | EPOLLET, 0), -ENOSPC,
	       "more than max_items");
	flowfd_ring_destroy(&own);
	close(counter);
	close(no_room);
	close(other);
}

static void test_mod_and_del(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct flowfd_ring own;

	tap_is(create(&own, 1, 0), 0, "create");
	tap_is(flowfd_ring_mod(&own, fd, EPOLLIN | EPOLLET, 0), -ENOENT,
	       "change what is not watched");
	tap_is(flowfd_ring_del(&own, fd), -ENOENT, "remove it");
	tap_is(flowfd_ring_mod(&own, -1, EPOLLIN | EPOLLET, 0), -EBADF,
	       "change no descriptor");
	tap_is(flowfd_ring_del(&own, -1), -EBADF, "remove it");

	flowfd_ring_add(&own, fd, EPOLLIN | EPOLLET | EPOLLONESHOT, 1);
	tap_is(flowfd_ring_mod(&own, fd, EPOLLIN, 0), -EINVAL,
	       "to level-triggered");
	for (int i = 0; i < 2; i++) {
		flowfd_write(fd, 1);
		tap_is(next_event(&own), !i, "one shot");
	}
	tap_is(flowfd_ring_mod(&own, fd, EPOLLIN | EPOLLET, 2), 0, "change");
	tap_is(next_event(&own), 1, "it is armed again");
	tap_is(event.data, 2, "with other data");
	flowfd_write(fd, 1);
	tap_is(flowfd_ring_mod(&own, fd, EPOLLOUT | EPOLLET, 3), 0,
	       "change before the event is taken");
	tap_is(next_event(&own), 1, "one event");
	tap_is(event.events, EPOLLOUT, "the old one is dropped");

	flowfd_write(fd, 1);
	tap_is(flowfd_ring_del(&own, fd), 0, "remove");
	tap_is(next_event(&own), 0, "no event is left");
	tap_is(flowfd_ring_del(&own, fd), -ENOENT, "it is gone");
	flowfd_ring_destroy(&own);
	close(fd);
}

/* A pinned file that was closed has no descriptor any more. */
static void test_del_data(void)
{
	int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	struct flowfd_ring own;

	tap_is(create(&own, 2, 0), 0, "create");
	tap_is(flowfd_ring_add(&own, fd, EPOLLIN | EPOLLET, 5), 0, "add");
	close(fd);
	tap_is(flowfd_ring_del(&own, fd), -EBADF, "remove what is closed");
	tap_is(flowfd_ring_del_data(&own, 6), -ENOENT, "data of no watch");
	tap_is(flowfd_ring_del_data(&own, 5), 0, "remove it by its data");
	tap_is(next_event(&own), 0, "its event is gone");
	tap_is(flowfd_ring_del_data(&own, 5), -ENOENT, "and so is it");
	flowfd_ring_destroy(&own);
}

static void test_control(void)
{
	struct flowfd_ring_entry entries[] = {
		{.op = FLOWFD_RING_DEL},
		{.op = FLOWFD_RING_MOD, .events = EPOLLIN | EPOLLET, .data = 7},
		{.op = FLOWFD_RING_ADD, .fd = -1, .events = EPOLLET},
		{.op = 42},
		{.op = FLOWFD_RING_ADD, .events = EPOLLET},
		{.op = FLOWFD_RING_DEL_DATA, .fd = -1, .data = 9},
	};
	int pinned = eventfd(0, EFD_CLOEXEC);

	setup();
	for (int i = 0; i < 3; i++)
		announce(i);
	entries[0].fd = readers[0];
	entries[1].fd = readers[1];
	entries[4].fd = pinned;
	entries[4].data = 9;
	tap_is(flowfd_ring_control(&ring, entries, 6), 2, "two of six fail");
	tap_is(entries[0].result, 0, "remove");
	tap_is(entries[1].result, 0, "change");
	tap_is(entries[2].result, -EBADF, "add no descriptor");
	tap_is(entries[3].result, -EINVAL, "an unknown operation");
	tap_is(entries[4].result, fallback ? 0 : FLOWFD_RING_PINNED,
	       "an eventfd is pinned");
	tap_is(entries[5].result, 1, "one watch had this data");
	close(pinned);
	/* 1 keeps its position, with the events that the change found. */
	tap_is(next_event(&ring), 1, "an event");
	tap_is(event.data, 7, "of what was changed");
	tap_is(next_event(&ring), 1, "another");
	tap_is(event.data, 2, "of what was left alone");
	tap_is(next_event(&ring), 0, "none of what was removed");

	tap_is(flowfd_ring_control(&ring, NULL, 0), 0, "nothing to do");
	tap_is(flowfd_ring_control(&ring, entries, FLOWFD_RING_ITEMS_MAX + 1),
	       -EINVAL, "too many");
	tap_is(flowfd_ring_control(&ring, NULL, 1), -EFAULT, "no address");
	teardown();
}

/* A loop can remove other files while it handles an event. */
static void test_removal_in_the_loop(void)
{
	struct flowfd_event events[PIPES];

	setup();
	for (int i = 0; i < PIPES; i++)
		announce(i);
	tap_is(next_event(&ring), 1, "an event");
	tap_is(event.data, 0, "of the first");
	tap_is(flowfd_ring_del(&ring, readers[1]), 0, "removes the second");
	close(readers[2]);
	if (fallback)
		tap_is(flowfd_ring_next(&ring, &event), 1,
		       "the event of a closed file, which was found before");
	tap_is(next_event(&ring), 0,
	       "nothing of what is removed or closed");
	teardown();

	setup();
	for (int i = 0; i < PIPES; i++)
		announce(i);
	tap_is(flowfd_ring_del(&ring, readers[1]), 0, "remove the second");
	tap_is(flowfd_ring_wait(&ring, 0), fallback ? 2 : 3, "entries");
	tap_is(flowfd_ring_harvest(&ring, events, PIPES), 2, "two are left");
	tap_is(events[0].data, 0, "the first");
	tap_is(events[1].data, 2, "the third");
	teardown();
}

static void *announce_soon(void *argument)
{
	const struct timespec soon = {.tv_nsec = 20 * MS};

	nanosleep(&soon, NULL);
	announce(0);
	return argument;
}

static void test_wait(void)
{
	struct pollfd pollfd;
	pthread_t thread;
	uint64_t start;

	setup();
	pollfd = (struct pollfd){.fd = ring.fd, .events = POLLIN};
	tap_is(flowfd_ring_wait(&ring, 0), 0, "nothing, and no time");
	start = now_ns();
	tap_is(flowfd_ring_wait(&ring, 20 * MS), 0, "nothing in time");
	tap_ok(now_ns() - start >= 20 * MS, "which it waited for");
	tap_is(poll(&pollfd, 1, 0), 0, "nothing for poll");
	fcntl(ring.fd, F_SETFL, O_NONBLOCK);
	if (pthread_create(&thread, NULL, announce_soon, NULL))
		abort();
	tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), 1,
	       "an event, which it waits for all the same");
	pthread_join(thread, NULL);
	tap_is(poll(&pollfd, 1, 0), !fallback, "poll knows of it");
	tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), 1,
	       "what is not harvested ends the next wait");
	announce(1);
	tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), 2, "two, at once");
	flowfd_ring_del(&ring, readers[0]);
	tap_is(flowfd_ring_wait(&ring, 0), 2, "an entry stays");
	tap_is(next_event(&ring), 1, "an event");
	tap_is(event.data, 1, "of the file that is there");
	tap_is(flowfd_ring_wait(&ring, 0), 0, "nothing more");
	teardown();
}

static void test_stats(void)
{
	struct flowfd_ring_stats stats = {.published = 42};
	struct flowfd_ring own;

	setup();
	if (fallback) {
		tap_is(flowfd_ring_stats(&ring, &stats, sizeof(stats)), -EOPNOTSUPP,
		       "without the module nothing is counted");
		tap_is(stats.published, 42, "and nothing answered");
		teardown();
		return;
	}
	announce(0);
	announce(1);
	announce(1);
	tap_is(flowfd_ring_wait(&ring, 0), 2, "two entries");
	tap_is(flowfd_ring_stats(&ring, &stats, sizeof(stats)), 0, "statistics");
	tap_is(stats.published, 2, "were published");
	tap_is(stats.coalesced, 1, "for three events");
	tap_is(stats.waits, 1, "one wait");
	tap_is(stats.sleeps, 0, "that did not sleep");
	own = ring;
	own.fd = watched_counter();
	tap_is(flowfd_ring_stats(&own, &stats, sizeof(stats)), -ENOTTY, "a counter");
	close(own.fd);
	teardown();
}

static void test_wait_with(void)
{
	static const struct {
		struct flowfd_ring_wait args;
		int error;
		const char *name;
	} wrong[] = {
		{{.min_events = PIPES + 2}, -EINVAL, "more than there are slots"},
		{{.flags = 1}, -EINVAL, "unknown flag"},
		{{.reserved = 1}, -EINVAL, "reserved field"},
		{{.sigmask_size = 8}, -EINVAL, "size of no mask"},
		{{.sigmask = 8, .sigmask_size = 8}, -EFAULT, "address of the mask"},
		{{.sigmask = 8, .sigmask_size = 4}, -EINVAL, "size of the mask"},
	};
	struct flowfd_ring_wait args = {.timeout = 20 * MS, .min_events = 2};
	struct {
		struct flowfd_ring_wait args;
		uint64_t more;
	} newer = {.more = 0};
	static char large[1 << 14];
	uint64_t start;

	setup();
	announce(0);
	start = now_ns();
	tap_is(flowfd_ring_wait_with(&ring, &args, sizeof(args)), 1,
	       "one of two in time");
	tap_ok(now_ns() - start >= 20 * MS, "which it waited for");
	args.timeout = FLOWFD_RING_FOREVER;
	args.min_wait = 20 * MS;
	tap_is(flowfd_ring_wait_with(&ring, &args, sizeof(args)), 1,
	       "one of two after min_wait");
	announce(1);
	tap_is(flowfd_ring_wait_with(&ring, &args, sizeof(args)), 2, "two");

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		tap_is(flowfd_ring_wait_with(&ring, &wrong[i].args, sizeof(args)),
		       wrong[i].error, wrong[i].name);

	tap_is(flowfd_ring_wait_with(&ring, &newer.args, sizeof(newer)), 2,
	       "a longer structure with a zero tail");
	newer.more = 1;
	tap_is(flowfd_ring_wait_with(&ring, &newer.args, sizeof(newer)),
	       -EPROTONOSUPPORT, "a longer structure with something in it");
	tap_is(flowfd_ring_wait_with(&ring, &newer.args, 8), -EINVAL,
	       "a structure that is too short");
	tap_is(flowfd_ring_wait_with(&ring, (void *)large, sizeof(large)),
	       -EINVAL, "a structure larger than an ioctl takes");
	teardown();
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void test_signals(void)
{
	const struct sigaction action = {.sa_handler = count_signal,
					 .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 10000}, {0, 10000}}, never = {0};
	struct flowfd_ring_wait args = {.timeout = FLOWFD_RING_FOREVER};
	sigset_t blocked, none, now;

	setup();
	sigaction(SIGALRM, &action, NULL);
	/* Repeatedly: the first can come before the wait. */
	setitimer(ITIMER_REAL, &often, NULL);
	tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), -EINTR,
	       "a signal ends the wait");
	setitimer(ITIMER_REAL, &never, NULL);
	tap_ok(signals, "its handler ran");

	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	signals = 0;
	raise(SIGALRM);
	tap_is(flowfd_ring_wait(&ring, MS), 0, "one that is blocked does not");
	args.sigmask = (uintptr_t)&none;
	args.sigmask_size = 8;
	tap_is(flowfd_ring_wait_with(&ring, &args, sizeof(args)), -EINTR,
	       "but with a mask that lets it through");
	tap_is(signals, 1, "its handler ran");
	sigprocmask(SIG_BLOCK, NULL, &now);
	tap_ok(sigismember(&now, SIGALRM), "the mask is as before");
	announce(0);
	raise(SIGALRM);
	tap_is(flowfd_ring_wait_with(&ring, &args, sizeof(args)), 1,
	       "an event comes before a signal");
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	teardown();
}

/* Has only a descriptor, as a process to which it was passed. */
static int take_over(void)
{
	int fd = dup(ring.fd);

	flowfd_ring_destroy(&ring);
	if (flowfd_ring_attach(&ring, fd) ||
	    flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER) != 2 ||
	    !next_event(&ring) || event.data != 1 ||
	    !next_event(&ring) || event.data != 2 || next_event(&ring))
		return -EUCLEAN;
	flowfd_ring_destroy(&ring);
	return 0;
}

static int attach_without_memory(void)
{
	const struct rlimit none = {0, 0};
	struct flowfd_ring other;

	int ret;

	setrlimit(RLIMIT_AS, &none);
	errno = 4711;
	ret = flowfd_ring_attach(&other, ring.fd);
	return errno == 4711 ? ret : -EUCLEAN;
}

static void test_attach(void)
{
	struct flowfd_ring other = {.fd = 42};

	setup();
	for (int i = 0; i < PIPES; i++)
		announce(i);
	tap_is(next_event(&ring), 1, "this process takes one");
	tap_is(in_child(take_over), 0, "another one takes the others");

	tap_is(flowfd_ring_attach(&other, -1), -EBADF, "attach no descriptor");
	tap_is(flowfd_ring_attach(&other, readers[0]), -ENOTTY, "a pipe");
	tap_is(in_child(attach_without_memory), -ENOMEM, "no address space");
	ring.header->version++;
	tap_is(flowfd_ring_attach(&other, ring.fd), -EPROTONOSUPPORT,
	       "another version");
	ring.header->version--;
	ring.header->magic++;
	tap_is(flowfd_ring_attach(&other, ring.fd), -EPROTONOSUPPORT,
	       "something else");
	ring.header->magic--;
	tap_ok(other.fd == 42 && !other.header, "the ring is as it was");
	/* Sizes and offsets in the header must not be trusted. */
	memset(&ring.header->map_size, 0xff, 4 * sizeof(uint32_t));
	tap_is(flowfd_ring_attach(&other, fcntl(ring.fd, F_DUPFD_CLOEXEC, 0)),
	       0, "attach");
	announce(1);
	tap_is(next_event(&other), 1, "goes on where it was");
	flowfd_ring_destroy(&other);
	teardown();
}

static void test_errno(void)
{
	const struct flowfd_ring_wait wrong = {.flags = 1};
	const struct flowfd_ring closed = {.fd = -1};
	struct flowfd_ring own;
	int result;

	errno = 4711;
	create(&own, 0, 0);
	flowfd_ring_attach(&own, -1);
	flowfd_ring_attach(&own, STDERR_FILENO);
	create(&own, 1, 0);
	flowfd_ring_add(&own, -1, EPOLLET, 0);
	flowfd_ring_mod(&own, -1, EPOLLET, 0);
	flowfd_ring_del(&own, -1);
	flowfd_ring_del(&closed, 0);
	flowfd_ring_del_data(&own, 0);
	flowfd_ring_control(&own, NULL, 1);
	flowfd_ring_wait(&own, 0);
	flowfd_ring_wait_with(&own, &wrong, sizeof(wrong));
	next_event(&own);
	flowfd_ring_destroy(&own);
	result = errno;
	tap_is(result, 4711, "no call changes errno");
}

static void test_attach_fallback(void)
{
	struct flowfd_ring other;

	setup();
	tap_is(flowfd_ring_attach(&other, ring.fd), -ENOTTY, "cannot be attached");
	teardown();
}

static void run_backend(const char *name)
{
	setenv("FLOWFD_BACKEND", name, 1);
	fallback = !strcmp(name, "fallback");
	printf("# %s\n", name);
	test_create();
	test_create_errors();
	if (!fallback)
		test_create_errors_of_device();
	test_add();
	test_mod_and_del();
	test_del_data();
	test_control();
	test_removal_in_the_loop();
	test_wait();
	test_wait_with();
	test_stats();
	test_signals();
	if (fallback)
		test_attach_fallback();
	else
		test_attach();
	test_errno();
}

static void test_choice(void)
{
	bool module = access(FLOWFD_DEVICE, F_OK) == 0;
	struct flowfd_ring own;

	setenv("FLOWFD_BACKEND", "other", 1);
	tap_is(create(&own, 1, 0), -EINVAL, "an unknown backend");
	tap_is(flowfd_ring_create(&own, 1, 0), module ? 0 : -ENODEV,
	       "which a program without a fallback does not see");
	if (module)
		flowfd_ring_destroy(&own);
	unsetenv("FLOWFD_BACKEND");
	tap_is(create(&own, 1, 0), 0, "no backend given");
	tap_is(!!(flowfd_ring_features(&own) & FLOWFD_HAS_EVENTS), module,
	       "the module if it is there");
	flowfd_ring_destroy(&own);
	setenv("FLOWFD_BACKEND", "module", 1);
	tap_is(create(&own, 1, 0), module ? 0 : -ENODEV, "the module alone");
	if (module)
		flowfd_ring_destroy(&own);
}

int main(void)
{
	test_choice();
	run_backend("fallback");
	if (access(FLOWFD_DEVICE, F_OK) < 0)
		tap_skip("the ring with the module", "it is not loaded");
	else if (geteuid())
		tap_skip("the ring with the module", "not root");
	else
		run_backend("module");
	return tap_done();
}
