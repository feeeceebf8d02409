// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is special about a ring without the module: descriptors and files as epoll knows
 * them, items of files that were closed, polling, children, and that no wakeup is lost.
 * guest-ring.c and guest-post.c have what is the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "lib/watches.h"
#include "tests/refuse.h"
#include "tests/tap.h"

#define READ (EPOLLIN | EPOLLET)
/* More than one system call takes from epoll. */
#define MANY 300

static struct flowfd_ring ring;

static void setup(uint32_t items)
{
	if (flowfd_ring_create(&ring, items, FLOWFD_FALLBACK))
		abort();
}

static int counter(unsigned int count)
{
	return eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC);
}

static void count_up(int fd)
{
	if (eventfd_write(fd, 1))
		abort();
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* The data of the next event; -1: there is none. */
static int taken(void)
{
	struct flowfd_event event;

	return flowfd_ring_next(&ring, &event) ? (int)event.data : -1;
}

static int next_data(void)
{
	flowfd_ring_wait(&ring, 0);
	return taken();
}

static int is_readable(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0);
}

/* A post wakes. All events are taken before that, and after it. */
static int is_woken_by(int post)
{
	int is_woken;

	while (next_data() != -1)
		;
	flowfd_ring_post(&ring, post, 1);
	is_woken = is_readable(ring.fd);
	while (next_data() != -1)
		;
	return is_woken;
}

/* What the ring is made of cannot be watched, and stays as it is. */
static void test_itself(void)
{
	int copy, post;

	setup(2);
	post = flowfd_ring_add_post(&ring, 1);
	copy = dup(ring.fd);
	tap_is(flowfd_ring_add(&ring, ring.fd, READ, 2), -ELOOP, "the ring itself");
	tap_is(flowfd_ring_add(&ring, copy, READ, 2), -ELOOP, "a copy of its descriptor");
	tap_is(is_woken_by(post), 1, "posts still wake");
	tap_is(flowfd_ring_mod(&ring, ring.doorbell, READ, 2), -ENOENT, "the doorbell");
	tap_is(is_woken_by(post), 1, "which still wakes");
	tap_is(flowfd_ring_del(&ring, ring.doorbell), -ENOENT, "to remove");
	tap_is(is_woken_by(post), 1, "which still wakes");
	tap_is(flowfd_ring_add(&ring, ring.doorbell, READ, 2), -ELOOP, "to add");
	tap_is(is_woken_by(post), 1, "which still wakes");
	flowfd_ring_destroy(&ring);
	close(copy);
}

/* The same number again and again, and items with and without an event. */
static void test_closed(void)
{
	unsigned int failed = 0;
	int fd, files[6], ends[2];

	setup(3);
	for (int i = 0; i < 100; i++) {
		fd = counter(1);
		failed += flowfd_ring_add(&ring, fd, READ, i) != 0;
		if (i % 2)
			failed += next_data() != i;
		close(fd);
		failed += next_data() != -1;
	}
	tap_is(failed, 0, "items of closed files are used again");
	flowfd_ring_destroy(&ring);

	setup(4);
	for (int i = 0; i < 6; i++)
		files[i] = counter(0);
	for (int i = 0; i < 4; i++)
		flowfd_ring_add(&ring, files[i], READ, i);
	tap_is(flowfd_ring_add(&ring, files[4], READ, 4), -ENOSPC, "the ring is full");
	tap_is(flowfd_ring_add_post(&ring, 4), -ENOSPC, "for posts, too");
	tap_is(flowfd_ring_add(&ring, -1, READ, 4), -EBADF, "other errors come first");
	tap_is(flowfd_ring_add(&ring, files[0], READ, 4), -EEXIST, "this one as well");
	if (pipe(ends))
		abort();
	close(ends[1]);
	tap_is(flowfd_ring_add(&ring, ends[0], READ, 4), -ENOSPC, "a file with an event");
	tap_is(is_readable(ring.fd), 0, "which is not watched");
	close(ends[0]);
	tap_is(next_data(), -1, "no event of all this");
	count_up(files[1]);
	flowfd_ring_wait(&ring, 0);
	close(files[1]);
	close(files[2]);
	tap_is(flowfd_ring_add(&ring, files[4], READ, 4), 0, "until a file is closed");
	tap_is(flowfd_ring_add_post(&ring, 5) >= 0, 1, "a post has the item of the other");
	tap_is(flowfd_ring_add(&ring, files[5], READ, 6), -ENOSPC, "two were closed");
	count_up(files[0]);
	count_up(files[4]);
	/* Not in order: the new one has the item of a closed one, and its index entry. */
	tap_is(next_data() + next_data(), 4, "the others and the new one are watched");
	tap_is(next_data(), -1, "the closed one has no event any more");
	flowfd_ring_destroy(&ring);
	for (int i = 0; i < 6; i++)
		close(files[i]);
}

/* Nothing is taken for closed where the list of what is watched cannot be read. */
static void test_no_list(void)
{
	int file = counter(0), closed = counter(0), other = counter(0);
	struct rlimit limit;
	rlim_t all;

	setup(2);
	flowfd_ring_add(&ring, file, READ, 1);
	flowfd_ring_add(&ring, closed, READ, 2);
	close(closed);
	getrlimit(RLIMIT_NOFILE, &limit);
	all = limit.rlim_cur;
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_is(flowfd_ring_add(&ring, other, READ, 3), -EMFILE, "no descriptor is left");
	tap_is(flowfd_ring_add_post(&ring, 3), -EMFILE, "for a post, too");
	tap_is(flowfd_ring_add(&ring, file, READ, 3), -EEXIST, "other errors come first");
	limit.rlim_cur = all;
	setrlimit(RLIMIT_NOFILE, &limit);
	count_up(file);
	tap_is(next_data(), 1, "what is watched stays");
	tap_is(flowfd_ring_add(&ring, -1, READ, 3), -EBADF, "other errors");
	tap_is(flowfd_ring_add(&ring, file, READ, 3), -EEXIST, "come");
	tap_is(ring.watches->free_count, 0, "without the list");
	tap_is(flowfd_ring_add(&ring, other, READ, 3), 0, "then it can be read");
	flowfd_ring_destroy(&ring);
	close(file);
	close(other);
}

/* A post that was removed while it was in the stack. */
static void test_resting(void)
{
	int file = counter(1), item;

	setup(1);
	item = flowfd_ring_add_post(&ring, 1);
	flowfd_ring_post(&ring, item, 1);
	tap_is(flowfd_ring_del_post(&ring, item), 0, "remove what is posted");
	tap_is(flowfd_ring_add(&ring, file, READ, 2), -ENOSPC, "its item rests");
	tap_is(taken(), -1, "until it is taken");
	tap_is(flowfd_ring_add(&ring, file, READ, 2), 0, "then it is a file's");
	tap_is(next_data(), 2, "which has an event");
	flowfd_ring_destroy(&ring);
	close(file);
}

/* A file that was removed when its event was in the index: no post gets that item. */
static void test_in_index(void)
{
	const struct flowfd_ring_wait two = { .timeout = FLOWFD_MS(100),
					      .min_events = 2 };
	int file = counter(1), other = counter(0), closed = counter(1), post;

	setup(2);
	flowfd_ring_add(&ring, file, READ, 1);
	flowfd_ring_add(&ring, other, READ, 2);
	flowfd_ring_wait(&ring, 0);
	tap_is(flowfd_ring_del(&ring, file), 0, "remove a file with an event");
	tap_is(flowfd_ring_add_post(&ring, 3), -ENOSPC, "its item is not a post's");
	tap_is(flowfd_ring_add(&ring, closed, READ, 4), 0, "but a file's");
	flowfd_ring_wait(&ring, 0);
	close(closed);
	tap_is(flowfd_ring_add_post(&ring, 3), -ENOSPC, "nor after that is closed");
	tap_is(taken(), -1, "until the entry is taken");
	post = flowfd_ring_add_post(&ring, 3);
	tap_ok(post >= 0, "then it is");
	flowfd_ring_post(&ring, post, 1);
	tap_is(flowfd_ring_wait_with(&ring, &two, sizeof(two)), 1, "and ends a wait");
	tap_is(taken(), 3, "with its event");
	flowfd_ring_destroy(&ring);
	close(file);
	close(other);
}

/* A watch belongs to the file and the number, as in epoll. */
static void test_numbers(void)
{
	int a = counter(0), b = counter(0), number = counter(0), kept;

	setup(4);
	kept = dup(a);
	dup2(a, number);
	tap_is(flowfd_ring_add(&ring, number, READ, 1), 0, "add a file");
	tap_is(flowfd_ring_add(&ring, number, READ, 9), -EEXIST, "once under a number");
	tap_is(flowfd_ring_add(&ring, kept, READ, 2), 0, "but also under another");
	count_up(a);
	tap_is(next_data() + next_data(), 3, "both have events");
	tap_is(next_data(), -1, "one each");
	dup2(b, number);
	tap_is(flowfd_ring_mod(&ring, number, READ, 9), -ENOENT, "the number is another's");
	tap_is(flowfd_ring_del(&ring, number), -ENOENT, "which is not watched");
	tap_is(flowfd_ring_add(&ring, number, READ, 3), 0, "yet");
	count_up(b);
	tap_is(next_data(), 3, "now it is");
	count_up(a);
	tap_is(next_data() + next_data(), 3, "the first is still open, and watched");
	tap_is(next_data(), -1, "as before");
	tap_is(flowfd_ring_del_data(&ring, 1), 0, "remove that by its data");
	count_up(a);
	tap_is(next_data(), 2, "only the other watch is left");
	tap_is(next_data(), -1, "although epoll still has both");
	count_up(b);
	tap_is(next_data(), 3, "the file that has the number now is watched");
	tap_is(flowfd_ring_mod(&ring, number, READ, 4), 0, "the number is its own");
	tap_is(next_data(), 4, "when it is changed");
	tap_is(flowfd_ring_del(&ring, number), 0, "and when it is removed");
	count_up(b);
	tap_is(next_data(), -1, "it is not watched any more");
	dup2(a, number);
	tap_is(flowfd_ring_add(&ring, number, READ, 5), 0, "it can be added again");
	tap_is(next_data(), 5, "and has its events");
	flowfd_ring_destroy(&ring);
	close(a);
	close(b);
	close(number);
	close(kept);
}

/* epoll still has a file that was removed, whose item is another's by now. */
static void test_left_behind(void)
{
	int file = counter(0), number = dup(file), other = counter(0);

	setup(1);
	flowfd_ring_add(&ring, number, READ, 1);
	close(number);
	tap_is(flowfd_ring_del(&ring, number), -EBADF, "a closed number");
	tap_is(flowfd_ring_del_data(&ring, 1), 0, "remove its file by the data");
	tap_is(flowfd_ring_add(&ring, other, READ, 2), 0, "another has its item");
	count_up(file);
	tap_is(next_data(), -1, "and none of its events");
	count_up(other);
	tap_is(next_data(), 2, "but its own");
	flowfd_ring_destroy(&ring);
	close(file);
	close(other);
}

/* epoll still has a file that the ring does not know: it stays as it is there. */
static void test_unknown(void)
{
	int a = counter(0), b = counter(0), number = dup(a), ends[2], kept;

	setup(2);
	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC))
		abort();
	kept = dup(ends[0]);
	flowfd_ring_add(&ring, ends[0], READ, 1);
	close(ends[0]);
	flowfd_ring_del_data(&ring, 1);
	dup2(kept, ends[0]);
	tap_is(flowfd_ring_mod(&ring, ends[0], READ, 1), -ENOENT, "removed by its data");
	close(ends[1]);
	tap_is(next_data(), -1, "it has no event");
	tap_is(is_readable(ring.fd), 0, "and does not keep the ring readable");
	close(ends[0]);
	close(kept);

	flowfd_ring_add(&ring, number, READ, 2);
	dup2(b, number);
	flowfd_ring_add(&ring, number, READ, 3);
	flowfd_ring_del(&ring, number);
	dup2(a, number);
	tap_is(flowfd_ring_mod(&ring, number, READ, 4), -ENOENT,
	       "a file whose number was another's");
	count_up(a);
	tap_is(next_data(), 2, "is watched as before");
	tap_is(flowfd_ring_mod(&ring, -1, READ, 4), -EBADF, "not a descriptor");
	flowfd_ring_destroy(&ring);
	close(a);
	close(b);
	close(number);
}

/* What is watched is what was asked for, and ready at the wait. */
static void test_events(void)
{
	struct flowfd_event event;
	int ends[2];

	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC))
		abort();
	setup(2);
	tap_is(flowfd_ring_add(&ring, ends[1], EPOLLOUT | EPOLLET | EPOLLONESHOT, 1), 0,
	       "add the end of a pipe");
	tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), 1, "it is ready");
	tap_is(flowfd_ring_next(&ring, &event), 1, "an event");
	tap_is(event.events, EPOLLOUT, "to write");
	tap_is(event.reserved, 0, "nothing else");
	close(ends[0]);
	tap_is(next_data(), -1, "one-shot");
	tap_is(flowfd_ring_mod(&ring, ends[1], READ, 2), 0, "arm it again");
	flowfd_ring_wait(&ring, 0);
	tap_is(flowfd_ring_next(&ring, &event), 1, "an event");
	tap_is(event.events, EPOLLERR, "errors come without being asked for");
	tap_is((long long)event.data, 2, "with the new data");
	flowfd_ring_destroy(&ring);
	close(ends[1]);
}

static void test_many(void)
{
	struct flowfd_ring_entry entries[MANY] = { 0 };
	struct flowfd_event events[MANY];
	unsigned int wrong = 0;
	int files[MANY];

	setup(MANY);
	for (int i = 0; i < MANY; i++) {
		files[i] = counter(0);
		entries[i] = (struct flowfd_ring_entry){
			.op = FLOWFD_RING_ADD_PINNED,
			.fd = files[i],
			.events = READ,
			.data = i,
		};
	}
	tap_is(flowfd_ring_control(&ring, entries, MANY), 0, "add many");
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < MANY; i++)
			count_up(files[i]);
		wrong += flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER) != MANY;
		wrong += is_readable(ring.fd) != 0;
		wrong += flowfd_ring_harvest(&ring, events, MANY) != MANY;
		for (int i = 0; i < MANY; i++)
			wrong += events[i].data != (uint64_t)i;
	}
	tap_is(wrong, 0, "one wait moves all, in order");
	for (int i = 0; i < MANY; i++)
		close(files[i]);
	flowfd_ring_destroy(&ring);
}

/* The descriptor itself, polled and in another epoll. */
static void test_polled(unsigned int trigger, const char *what)
{
	struct epoll_event event = { .events = EPOLLIN | trigger };
	int outer = epoll_create1(EPOLL_CLOEXEC), file = counter(0);
	unsigned int wrong = 0;
	int post;

	setup(2);
	epoll_ctl(outer, EPOLL_CTL_ADD, ring.fd, &event);
	flowfd_ring_add(&ring, file, READ, 1);
	post = flowfd_ring_add_post(&ring, 2);
	for (int i = 0; i < 100; i++) {
		wrong += is_readable(ring.fd) || epoll_wait(outer, &event, 1, 0);
		count_up(file);
		wrong += !is_readable(ring.fd) || epoll_wait(outer, &event, 1, 0) != 1;
		wrong += next_data() != 1;
		wrong += is_readable(ring.fd) || epoll_wait(outer, &event, 1, 0);
		flowfd_ring_post(&ring, post, 1);
		wrong += !is_readable(ring.fd) || epoll_wait(outer, &event, 1, 0) != 1;
		flowfd_ring_wait(&ring, 0);
		wrong += !is_readable(ring.fd);
		wrong += taken() != 2;
		/* Armed by that wait: an edge although the doorbell is not drained. */
		flowfd_ring_post(&ring, post, 1);
		wrong += epoll_wait(outer, &event, 1, 0) != 1;
		wrong += next_data() != 2 || next_data() != -1;
		while (!(trigger & EPOLLET) && epoll_wait(outer, &event, 1, 0))
			flowfd_ring_wait(&ring, 0);
		epoll_wait(outer, &event, 1, 0);
	}
	tap_is(wrong, 0, what);
	flowfd_ring_destroy(&ring);
	close(outer);
	close(file);
}

/* Files have their turn though posts wait, and posts are not counted. */
static void test_both(void)
{
	const struct flowfd_ring_wait two = { .timeout = FLOWFD_RING_FOREVER,
					      .min_events = 2 };
	int file = counter(1);
	int post;

	setup(2);
	post = flowfd_ring_add_post(&ring, 2);
	flowfd_ring_add(&ring, file, READ, 1);
	flowfd_ring_post(&ring, post, 1);
	tap_is(flowfd_ring_wait_with(&ring, &two, sizeof(two)), 1, "a post ends a wait for two");
	tap_is(taken(), 1, "which has fetched the event of a file");
	tap_is(taken(), 2, "and not taken the post");
	tap_is(taken(), -1, "nothing else");
	tap_is(flowfd_ring_wait(&ring, 0), 0, "nothing more");
	tap_is(flowfd_ring_notify(&ring), 0, "a needless notification");
	tap_is(is_readable(ring.fd), 0, "wakes nobody");
	flowfd_ring_destroy(&ring);
	close(file);
}

/* @call in a child, which has the same ring. Returns the errno that it got. */
static int in_child(int (*call)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(-call());
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ENOEXEC;
}

static int file_of_child;

static int add(void)
{
	return flowfd_ring_add(&ring, file_of_child, READ, 3);
}

static int del(void)
{
	return flowfd_ring_del(&ring, file_of_child);
}

static int add_post(void)
{
	return flowfd_ring_add_post(&ring, 3);
}

static int wait_at_once(void)
{
	return flowfd_ring_wait(&ring, 0);
}

static int wait_with(void)
{
	const struct flowfd_ring_wait args = { .timeout = 0 };

	return flowfd_ring_wait_with(&ring, &args, sizeof(args));
}

static int post(void)
{
	return flowfd_ring_post(&ring, 0, 4);
}

static int post_and_destroy(void)
{
	int lowest = ring.fd, ret = post();

	flowfd_ring_destroy(&ring);
	return ret ? ret : fcntl(lowest, F_GETFD) >= 0;
}

static void test_fork(void)
{
	struct flowfd_event event;

	file_of_child = counter(0);
	setup(3);
	flowfd_ring_add_post(&ring, 2);
	flowfd_ring_add(&ring, file_of_child, READ, 1);
	tap_is(in_child(add), -ECHILD, "a child cannot add");
	tap_is(in_child(del), -ECHILD, "nor remove");
	tap_is(in_child(add_post), -ECHILD, "nor add a post");
	tap_is(in_child(wait_at_once), -ECHILD, "nor wait");
	tap_is(in_child(wait_with), -ECHILD, "in no way");
	tap_ok(strstr(flowfd_ring_strerror(-ECHILD), "child"), "which a text explains");
	tap_is(is_readable(ring.fd), 0, "nobody was woken");
	tap_is(in_child(post), 0, "it can post");
	tap_is(flowfd_ring_wait(&ring, FLOWFD_SEC(20)), 1, "which wakes the parent");
	tap_is(flowfd_ring_next(&ring, &event), 1, "an event");
	tap_is(event.events, 4, "with its bits");
	tap_is(in_child(post_and_destroy), 0, "and destroy its copy");
	tap_is(flowfd_ring_wait(&ring, FLOWFD_SEC(20)), 1, "what it posted is there");
	tap_is(next_data(), 2, "and the ring goes on");
	count_up(file_of_child);
	tap_is(next_data(), 1, "for files as well");
	flowfd_ring_destroy(&ring);
	close(file_of_child);
}

/* Its timeouts are in milliseconds; no wait ends too early. */
static int wait_without_pwait2(const void *error)
{
	struct flowfd_ring own;
	unsigned int waits = 0;
	uint64_t start;

	if (refuse(SYS_epoll_pwait2, *(const unsigned int *)error))
		return REFUSE_UNABLE;
	if (flowfd_ring_create(&own, 1, FLOWFD_FALLBACK))
		return ENOMEM;
	errno = 0;
	start = now();
	waits = flowfd_ring_wait(&own, 20500000) + flowfd_ring_wait(&own, 1);
	return waits || errno || now() - start < 20500000;
}

static void test_without_pwait2(unsigned int error, const char *what)
{
	refuse_in_child(wait_without_pwait2, &error, what);
}

static void *sleep_in_ring(void *unused)
{
	flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER);
	return unused;
}

static void test_cancel(void)
{
	pthread_t thread;
	void *result = NULL;

	setup(1);
	if (pthread_create(&thread, NULL, sleep_in_ring, NULL))
		abort();
	usleep(50000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	tap_ok(result == PTHREAD_CANCELED, "a wait for ever can be cancelled");
	tap_is(flowfd_ring_add_post(&ring, 7), 0, "the ring can be used");
	flowfd_ring_post(&ring, 0, 1);
	tap_is(next_data(), 7, "as before");
	flowfd_ring_destroy(&ring);
}

/* An event and the cancellation are both there before the thread runs. */
static void test_cancel_with_event(void)
{
	unsigned int lost = 0;
	cpu_set_t all, one;
	pthread_t thread;
	int file;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 100; i++) {
		setup(1);
		file = counter(0);
		flowfd_ring_add(&ring, file, READ, 1);
		if (pthread_create(&thread, NULL, sleep_in_ring, NULL))
			abort();
		usleep(1000);
		count_up(file);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		lost += next_data() != 1;
		flowfd_ring_destroy(&ring);
		close(file);
	}
	sched_setaffinity(0, sizeof(all), &all);
	tap_is(lost, 0, "a wait that is cancelled loses no event");
}

/*
 * A file is changed and removed while another thread waits and takes: when that returns,
 * no event with the old data is taken any more. (Old bits with the new data are possible,
 * as with the module: docs/ring.md, "An item is used again".)
 */
#define CHANGES 100000

static struct {
	_Atomic uint64_t oldest;
	_Atomic bool ended;
	unsigned int late;
	unsigned int events;
} changes;

static void *take_changes(void *unused)
{
	struct flowfd_event event;
	uint64_t oldest;

	while (!changes.ended) {
		flowfd_ring_wait(&ring, FLOWFD_MS(1));
		for (;;) {
			oldest = changes.oldest;
			if (!flowfd_ring_next(&ring, &event))
				break;
			changes.events++;
			changes.late += event.data < oldest;
		}
	}
	return unused;
}

static void test_changes(void)
{
	unsigned int failed = 0;
	pthread_t thread;
	int file;

	setup(2);
	memset(&changes, 0, sizeof(changes));
	if (pthread_create(&thread, NULL, take_changes, NULL))
		abort();
	file = counter(1);
	flowfd_ring_add(&ring, file, READ, 0);
	for (uint64_t i = 1; i < CHANGES; i++) {
		uint32_t events = i % 2 ? EPOLLET : READ;

		count_up(file);
		if (i % 3) {
			failed += flowfd_ring_mod(&ring, file, events, i) != 0;
		} else {
			failed += flowfd_ring_del(&ring, file) != 0;
			changes.oldest = i;
			failed += flowfd_ring_add(&ring, file, events, i) != 0;
		}
		changes.oldest = i;
	}
	changes.ended = true;
	pthread_join(thread, NULL);
	tap_is(failed, 0, "change and remove while another thread takes");
	tap_is(changes.late, 0, "no event comes late");
	printf("# %u events\n", changes.events);
	flowfd_ring_destroy(&ring);
	close(file);
}

/*
 * Bursts: a lost wakeup shows only if nothing follows that makes up for it. So threads
 * count and post a few times and stop, and all of that must be taken, by a thread that
 * sleeps.
 */
#define PRODUCERS 3
#define ROUNDS 3000
#define BURST 4
#define BURSTS_NS 1000000000ULL
#define DEADLINE_S 10

/* How the consumer sleeps. */
enum { WAIT, WAIT_FOR_TWO, POLL, EPOLL, EPOLL_EDGE, WAYS };

static const char *const ways[] = {
	"bursts, wait", "bursts, wait for two", "bursts, poll",
	"bursts, level-triggered epoll", "bursts, edge-triggered epoll",
};

static struct {
	int how;
	_Atomic unsigned int round;
	_Atomic unsigned int ended;
	_Atomic uint64_t sent;
	_Atomic uint64_t seen;
	_Atomic bool quit;
	int files[PRODUCERS];
	int posts[PRODUCERS];
	_Atomic uint64_t posted[PRODUCERS];
} bursts;

static void *burst(void *argument)
{
	unsigned int number = (unsigned int)(uintptr_t)argument, random = number;

	for (unsigned int round = 1; round <= ROUNDS; round++) {
		while (bursts.round < round && !bursts.quit)
			sched_yield();
		if (bursts.quit)
			break;
		for (int i = rand_r(&random) % BURST; i >= 0; i--) {
			for (volatile int n = rand_r(&random) % 300; n > 0; n--)
				;
			bursts.sent++;
			if (rand_r(&random) % 2) {
				count_up(bursts.files[number]);
			} else {
				bursts.posted[number]++;
				flowfd_ring_post(&ring, bursts.posts[number], 1);
			}
		}
		bursts.ended++;
	}
	return NULL;
}

static void sleep_for_events(int epoll)
{
	const struct flowfd_ring_wait two = { .timeout = FLOWFD_RING_FOREVER,
					      .min_wait = FLOWFD_MS(1),
					      .min_events = 2 };
	struct pollfd poller = { .fd = ring.fd, .events = POLLIN };
	struct epoll_event event;

	if (bursts.how == WAIT) {
		flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER);
		return;
	}
	if (bursts.how == WAIT_FOR_TWO) {
		flowfd_ring_wait_with(&ring, &two, sizeof(two));
		return;
	}
	if (bursts.how == POLL)
		poll(&poller, 1, -1);
	else
		epoll_wait(epoll, &event, 1, -1);
	flowfd_ring_wait(&ring, 0);
}

static void *consume(void *unused)
{
	struct epoll_event watched = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct flowfd_event event;
	eventfd_t value;

	if (bursts.how == EPOLL_EDGE)
		watched.events |= EPOLLET;
	epoll_ctl(epoll, EPOLL_CTL_ADD, ring.fd, &watched);
	while (!bursts.quit) {
		while (flowfd_ring_next(&ring, &event)) {
			if (event.data < PRODUCERS) {
				if (!eventfd_read(bursts.files[event.data], &value))
					bursts.seen += value;
			} else {
				bursts.seen += atomic_exchange(
					&bursts.posted[event.data - PRODUCERS], 0);
			}
		}
		sleep_for_events(epoll);
	}
	close(epoll);
	return unused;
}

static bool all_is_seen(void)
{
	time_t deadline = time(NULL) + DEADLINE_S;

	while (bursts.ended < PRODUCERS * bursts.round || bursts.seen != bursts.sent) {
		if (time(NULL) > deadline)
			return false;
		sched_yield();
	}
	return true;
}

static void test_bursts(int how)
{
	pthread_t threads[PRODUCERS + 1];
	uint64_t end = now() + BURSTS_NS;
	bool passed = true;

	setup(2 * PRODUCERS);
	memset(&bursts, 0, sizeof(bursts));
	bursts.how = how;
	for (uintptr_t i = 0; i < PRODUCERS; i++) {
		bursts.files[i] = counter(0);
		flowfd_ring_add(&ring, bursts.files[i], READ, i);
		bursts.posts[i] = flowfd_ring_add_post(&ring, PRODUCERS + i);
	}
	for (uintptr_t i = 0; i <= PRODUCERS; i++)
		if (pthread_create(&threads[i], NULL, i < PRODUCERS ? burst : consume,
				   (void *)i))
			abort();
	while (passed && bursts.round < ROUNDS && now() < end) {
		bursts.round++;
		passed = all_is_seen();
	}
	printf("# %u rounds\n", bursts.round);
	tap_ok(passed, ways[how]);
	if (!passed)
		exit(EXIT_FAILURE); /* without the threads that sleep for ever */
	bursts.quit = true;
	flowfd_ring_post(&ring, bursts.posts[0], 1);
	for (int i = 0; i <= PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PRODUCERS; i++)
		close(bursts.files[i]);
	flowfd_ring_destroy(&ring);
}

int main(void)
{
	setenv("FLOWFD_BACKEND", "fallback", 1);
	test_itself();
	test_closed();
	test_no_list();
	test_resting();
	test_in_index();
	test_numbers();
	test_left_behind();
	test_unknown();
	test_events();
	test_many();
	test_polled(0, "polled, and in a level-triggered epoll");
	test_polled(EPOLLET, "polled, and in an edge-triggered epoll");
	test_both();
	test_fork();
	test_without_pwait2(ENOSYS, "a kernel without epoll_pwait2(2)");
	test_without_pwait2(EPERM, "a container without epoll_pwait2(2)");
	test_cancel();
	test_cancel_with_event();
	test_changes();
	for (int how = 0; how < WAYS; how++)
		test_bursts(how);
	return tap_done();
}
