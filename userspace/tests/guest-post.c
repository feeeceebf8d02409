// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posts of libflowfd with each backend that there is: every function in normal use, each
 * documented error, and posters that are killed. Without the module it is a host test.
 * post.c has what needs no kernel, the selftests test the kernel beyond that.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/tap.h"

#define KILLS 100
#define PATIENCE FLOWFD_SEC(20)

static bool fallback;
static struct flowfd_ring ring;

/* The data of the next event if it has these bits; 0: there is none; -1: other bits. */
static int next_is(uint32_t bits)
{
	struct flowfd_event event;

	if (!flowfd_ring_next(&ring, &event))
		return 0;
	return event.events == bits ? (int)event.data : -1;
}

static void setup(uint32_t items)
{
	if (flowfd_ring_create(&ring, items, FLOWFD_FALLBACK) < 0)
		abort();
}

static void teardown(void)
{
	flowfd_ring_destroy(&ring);
}

static void test_functions(void)
{
	int file = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	setup(2);
	tap_is(flowfd_ring_add_post(&ring, 10), 0, "add a post");
	tap_is(flowfd_ring_add_post(&ring, 11), 1, "and another");
	tap_is(flowfd_ring_add_post(&ring, 12), -ENOSPC, "no item is left");
	tap_is(flowfd_ring_add(&ring, file, EPOLLIN | EPOLLET, 1), -ENOSPC, "for files too");
	tap_is(flowfd_ring_post(&ring, 0, 5), 0, "post");
	tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), 1, "does not wait");
	tap_is(flowfd_ring_wait(&ring, PATIENCE), 1, "nor this way");
	tap_is(next_is(5), 10, "an event");
	tap_is(flowfd_ring_wait(&ring, 0), 0, "no more");
	tap_is(flowfd_ring_post(&ring, 2, 1), -EINVAL, "no such item");
	tap_is(flowfd_ring_post(&ring, 0, 0), 0, "no bits");
	tap_is(next_is(5), 0, "are no event");
	tap_is(flowfd_ring_notify(&ring), 0, "a needless notification");
	tap_is(flowfd_ring_revive_post(&ring, 0), 0, "nothing to revive");
	tap_is(flowfd_ring_revive_post(&ring, 2), -EINVAL, "no such item");
	tap_is(flowfd_ring_del_post(&ring, 0), 0, "remove a post");
	tap_is(flowfd_ring_del_post(&ring, 0), -ENOENT, "once");
	tap_is(flowfd_ring_del_post(&ring, UINT32_MAX), -ENOENT, "no such item");
	tap_is(flowfd_ring_add(&ring, file, EPOLLIN | EPOLLET, 1), 0, "a file in its place");
	tap_is(flowfd_ring_del_post(&ring, 0), -ENOENT, "is not a post");
	tap_is(flowfd_ring_del_data(&ring, 11), 0, "remove a post by its data");
	tap_is(flowfd_ring_del_data(&ring, 11), -ENOENT, "once");
	for (int error = 1; error < 40; error++) {
		if (!*flowfd_ring_strerror(-error))
			tap_ok(false, "each error has a text");
	}
	tap_is(flowfd_ring_add_post(&ring, 12), 1, "the item is used again");
	if (fallback) {
		close(file);
		teardown();
		return;
	}
	close(ring.fd);
	ring.header->armed = 1;
	tap_is(flowfd_ring_post(&ring, 1, 1), -EBADF, "the descriptor was closed");
	tap_is(next_is(1), 12, "but it is posted");
	dup2(file, ring.fd);
	tap_is(flowfd_ring_post(&ring, 1, 1), -ENOTTY, "its number is another file's");
	tap_is(next_is(1), 12, "it is posted as well");
	flowfd_ring_destroy(&ring);
	close(file);
}

static void *post_soon(void *argument)
{
	(void)argument;
	usleep(100000);
	flowfd_ring_post(&ring, 0, 1);
	return NULL;
}

/* Another thread ends each way of sleeping. */
static void test_sleep(void)
{
	const struct flowfd_ring_wait many = { .timeout = FLOWFD_RING_FOREVER,
					       .min_events = 4 };
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct pollfd polled;
	pthread_t thread;

	setup(4);
	flowfd_ring_add_post(&ring, 10);
	polled = (struct pollfd){ .fd = ring.fd, .events = POLLIN };
	epoll_ctl(ep, EPOLL_CTL_ADD, ring.fd, &watched);
	for (int i = 0; i < 5; i++) {
		pthread_create(&thread, NULL, post_soon, NULL);
		switch (i) {
		case 0:
			tap_is(flowfd_ring_wait(&ring, FLOWFD_RING_FOREVER), 1, "read");
			break;
		case 1:
			tap_is(flowfd_ring_wait(&ring, PATIENCE), 1, "wait");
			break;
		case 2:
			tap_is(flowfd_ring_wait_with(&ring, &many, sizeof(many)), 1,
			       "wait for more");
			break;
		case 3:
			tap_is(poll(&polled, 1, 20000), 1, "poll");
			break;
		default:
			epoll_wait(ep, &watched, 1, 0);
			tap_is(epoll_wait(ep, &watched, 1, 20000), 1, "epoll");
			break;
		}
		pthread_join(thread, NULL);
		/* As after each poll: without the module it arms the next post. */
		flowfd_ring_wait(&ring, 0);
		tap_is(next_is(1), 10, "ends with a post");
	}
	close(ep);
	teardown();
}

/* A handler that interrupts the consumer and its sleep. */
static unsigned int handled;

static void post_in_handler(int signal)
{
	(void)signal;
	handled++;
	flowfd_ring_post(&ring, handled % 2, 1);
}

static void test_signals(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = post_in_handler };
	unsigned int events = 0;
	time_t end = time(NULL) + 2;
	struct flowfd_event event;
	bool late = false;

	setup(2);
	flowfd_ring_add_post(&ring, 10);
	flowfd_ring_add_post(&ring, 11);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (time(NULL) < end) {
		while (flowfd_ring_next(&ring, &event))
			events++;
		late |= flowfd_ring_wait(&ring, PATIENCE) == 0;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	while (flowfd_ring_next(&ring, &event))
		events++;
	tap_ok(events > 0 && events <= handled, "a signal handler posts to its own thread");
	tap_ok(!late, "whose sleep it ends");
	tap_is(flowfd_ring_wait(&ring, 0), 0, "nothing is left");
	printf("# %u posts, %u events\n", handled, events);
	signal(SIGALRM, SIG_IGN);
	teardown();
}

/* Another process attaches to post, and the ring is then handed over to it. */
static void test_processes(void)
{
	struct flowfd_ring mine;
	int status = -1;
	pid_t child;

	setup(4);
	flowfd_ring_add_post(&ring, 10);
	flowfd_ring_add_post(&ring, 11);
	child = fork();
	if (!child) {
		mine = ring;
		if (!fallback && flowfd_ring_attach(&mine, dup(ring.fd)))
			_exit(1);
		flowfd_ring_post(&mine, 1, 2);
		flowfd_ring_post(&mine, 0, 4);
		flowfd_ring_destroy(&mine);
		_exit(0);
	}
	tap_is(flowfd_ring_wait(&ring, PATIENCE), 1, "another process posts");
	waitpid(child, &status, 0);
	tap_is(status, 0, "and exits");
	tap_is(next_is(2), 11, "the first post");
	if (fallback) {
		tap_is(next_is(4), 10, "and the second");
		teardown();
		return;
	}
	child = fork();
	if (!child) {
		if (flowfd_ring_attach(&ring, dup(ring.fd)) ||
		    flowfd_ring_wait(&ring, PATIENCE) != 1 || next_is(4) != 10)
			_exit(1);
		_exit(0);
	}
	waitpid(child, &status, 0);
	tap_is(status, 0, "the next consumer gets what the last one has not delivered");
	teardown();
}

static void post_until_killed(void)
{
	for (unsigned int i = 0;; i++) {
		flowfd_ring_post(&ring, i & 1, 1);
		flowfd_ring_post(&ring, 2, 1);
	}
}

/*
 * A process is killed while it posts. Whatever it has pushed is delivered, although the
 * consumer may sleep by then; no item stays silent once it was revived.
 */
static void test_killed(void)
{
	int revived = 0, silent = 0, slept = 0;
	struct flowfd_event event;
	unsigned int random = 1;
	pthread_t thread;
	pid_t child;

	setup(4);
	for (uint64_t i = 0; i < 3; i++)
		flowfd_ring_add_post(&ring, 10 + i);
	for (int i = 0; i < KILLS; i++) {
		child = fork();
		if (!child)
			post_until_killed();
		for (int n = rand_r(&random) % 300; n; n--) {
			if (!flowfd_ring_next(&ring, &event))
				slept += flowfd_ring_wait(&ring, PATIENCE) == 0;
		}
		kill(child, SIGKILL);
		/* Until nothing is posted any more; the process heals as it exits. */
		while (waitpid(child, NULL, WNOHANG) == 0) {
			if (!flowfd_ring_next(&ring, &event))
				flowfd_ring_wait(&ring, FLOWFD_MS(1));
		}
		for (uint32_t item = 0; item < 3; item++)
			revived += flowfd_ring_revive_post(&ring, item);
		while (flowfd_ring_next(&ring, &event))
			;
		if (i % 10)
			continue;
		for (uint32_t item = 0; item < 3; item++) {
			flowfd_ring_post(&ring, item, 1);
			silent += next_is(1) != 10 + (int)item;
		}
		pthread_create(&thread, NULL, post_soon, NULL);
		silent += flowfd_ring_wait(&ring, PATIENCE) != 1;
		pthread_join(thread, NULL);
		silent += next_is(1) != 10;
	}
	tap_is(silent, 0, "processes are killed as they post: no item stays silent");
	tap_is(slept, 0, "and the consumer does not oversleep");
	printf("# %d items were revived\n", revived);
	teardown();
}

static void run_backend(const char *name)
{
	setenv("FLOWFD_BACKEND", name, 1);
	fallback = !strcmp(name, "fallback");
	printf("# %s\n", name);
	test_functions();
	test_sleep();
	test_signals();
	test_processes();
	test_killed();
}

int main(void)
{
	run_backend("fallback");
	if (access(FLOWFD_DEVICE, F_OK) < 0)
		tap_skip("posts with the module", "it is not loaded");
	else
		run_backend("module");
	return tap_done();
}
