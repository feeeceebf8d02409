// SPDX-License-Identifier: GPL-2.0-only
/*
 * Passes each tracepoint of the module, in an order that guest-trace.sh knows.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <flowfd.h>

static void check(int ret, const char *what)
{
	if (ret < 0)
		errx(EXIT_FAILURE, "%s: %s", what, flowfd_strerror(ret));
}

static void set_flow(int fd, uint64_t read_mark, uint32_t rate)
{
	const struct flowfd_flow flow = {
		.read_mark = read_mark,
		.qos = { rate ? 1 : 0, rate },
	};

	check(flowfd_set_flow(fd, &flow, sizeof(flow)), "policies");
}

static void take(int fd)
{
	uint64_t value;

	check(flowfd_read(fd, &value), "read");
}

/* Somebody polls, so readers are woken, or not yet. */
static void use_counter(int fd)
{
	/* For a token. wakers.bt prints each second, and loses what happens meanwhile. */
	const struct timespec half = { .tv_nsec = 500000000 };
	struct epoll_event event = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	check(flowfd_write(fd, 3), "write");
	take(fd);
	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
		err(EXIT_FAILURE, "epoll");
	check(flowfd_write(fd, 1), "write");
	take(fd);
	set_flow(fd, 4, 0);
	check(flowfd_write(fd, 2), "below the mark");
	check(flowfd_write_with(fd, 1, 0, FLOWFD_URGENT), "urgent");
	check(flowfd_read_with(fd, &(uint64_t){ 0 }, 0, 0), "read");
	set_flow(fd, 0, 4);
	check(flowfd_write(fd, 1), "with a token");
	check(flowfd_write(fd, 1), "without one");
	nanosleep(&half, NULL);
	take(fd);
	set_flow(fd, 0, 0);
	close(ep);
}

static void use_ring(int fd)
{
	struct flowfd_event event;
	struct flowfd_ring ring;

	check(flowfd_ring_create(&ring, 4, 0), "ring");
	check(flowfd_ring_add(&ring, fd, EPOLLIN | EPOLLET, 0), "add");
	check(flowfd_write(fd, 1), "write");
	check(flowfd_write(fd, 1), "write");
	check(flowfd_ring_wait(&ring, 0), "wait");
	while (flowfd_ring_next(&ring, &event))
		;
	check(flowfd_ring_wait(&ring, FLOWFD_MS(5)), "wait");
	flowfd_ring_destroy(&ring);
}

int main(void)
{
	int fd = flowfd_counter_create(0, 0);

	check(fd, "counter");
	use_counter(fd);
	use_ring(fd);
	close(fd);
	return EXIT_SUCCESS;
}
