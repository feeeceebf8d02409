// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user without privileges takes all the resources that a user can get: descriptors,
 * rings, watches, timers, wakeups. The kernel must refuse it at its limits, another
 * user must make progress meanwhile, and everything must be released when the attacker
 * ends.
 */
#include "attack_user.h"
#include "sockets.h"

#include <liburing.h>
#include <linux/aio_abi.h>
#include <sched.h>

/* Creates counters until no descriptor is left. */
static int take_descriptors(void)
{
	int fd;

	do {
		fd = open_counter(CREATED, 0, EFD_NONBLOCK);
	} while (fd >= 0);
	return fd == -EMFILE ? 0 : 1;
}

ATTACK(descriptors, take_descriptors)

/* Gets as many pages as RLIMIT_MEMLOCK allows and no more, nor by a user namespace. */
static int take_rings(void)
{
	struct flowfd_create_ring args = { .max_items = 1 };
	__u32 pages = 0;
	long fd;

	while ((fd = ring_create(&args)) >= 0)
		pages += args.map_size / PAGE;
	if (fd != -ENOMEM || pages != LOCKED_PAGES)
		return 1;
	/* Root of a user namespace has no CAP_IPC_LOCK in the initial one. */
	if (unshare(CLONE_NEWUSER))
		return 0;
	return ring_create(&args) == -ENOMEM ? 0 : 2;
}

ATTACK(rings, take_rings)

/*
 * As many watches as there are descriptors, all of one file, so that one write wakes
 * all.
 */
static int take_watches(void)
{
	struct flowfd_create_ring args = {
		.max_items = DESCRIPTORS,
	};
	struct user_ring r = { .fd = ring_create(&args) };
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), fd;
	__u32 watches = 0;

	while ((fd = dup(event)) >= 0) {
		if (ring_add(&r, fd, EPOLLIN, 0) != FLOWFD_RING_PINNED)
			return 1;
		watches++;
	}
	dprintf(1, "# %u watches of one file\n", watches);
	for (int i = 0; i < 100; i++)
		add(event, 1);
	return watches < DESCRIPTORS - 100;
}

ATTACK(watches, take_watches)

/*
 * Buckets of every rate, each with a reader and a writer that never stops. Only a write
 * arms a timer, and only one that is not armed, so that there are no more expiries than
 * writes.
 */
static int storm_timers(void)
{
	static const __u32 rates[] = {
		1, 1000, 100000, 10000000, FLOWFD_TOKEN_RATE_MAX,
	};
	int ep = epoll_create1(EPOLL_CLOEXEC), fds[50];
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	for (int i = 0; i < 50; i++) {
		fds[i] = open_counter(CREATED, 0, EFD_NONBLOCK);
		if (set_qos(fds[i], 1, rates[i % 5]) ||
		    epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event))
			return 1;
	}
	begun(0);
	for (int i = 0;; i = (i + 1) % 50) {
		add(fds[i], 1);
		epoll_wait(ep, &event, 1, 0);
	}
}

ATTACK(timers, storm_timers)

/* The same page of the memory very often, and all of it gone by one call: in us. */
static __u64 time_to_replace_mappings(int fd, int n)
{
	long size = sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, n * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 start;

	for (int i = 0; i < n; i++)
		mmap(area + i * size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, size);
	start = now_ns();
	mmap(area, n * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return (now_ns() - start) / 1000;
}

/* Likewise for descriptors. */
static __u64 time_to_close_copies(int fd, int n)
{
	__u64 start;

	for (int i = 0; i < n; i++)
		fcntl(fd, F_DUPFD, fd + 1);
	start = now_ns();
	syscall(SYS_close_range, fd + 1, ~0U, 0);
	return (now_ns() - start) / 1000;
}

/* A process with both that ends: until its parent knows. */
static __u64 time_to_end(int fd, int n)
{
	int status, ends[2];
	pid_t child;
	__u64 start;

	if (pipe(ends))
		return ~0ULL;
	child = fork();
	if (!child) {
		for (int i = 0; i < n; i++) {
			mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, sysconf(_SC_PAGESIZE));
			dup(fd);
		}
		(void)!write(ends[1], "", 1);
		pause();
	}
	(void)!read(ends[0], &status, 1);
	start = now_ns();
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	start = now_ns() - start;
	close(ends[0]);
	close(ends[1]);
	return start / 1000;
}

/*
 * A mapped counter with a count, many pollers, and many mappings and descriptors. Their
 * end must cost the sum, not the product.
 */
static int heal_often(void)
{
	static __u64 (*const ends[])(int fd, int n) = {
		time_to_replace_mappings, time_to_close_copies, time_to_end,
	};
	const int pollers = 3000, copies = 900;
	struct flowfd_create_counter args = { .flags = FLOWFD_MAPPED, .initial = 1 };
	struct epoll_event watched = { .events = EPOLLIN };
	__u64 alone[3], all;
	/* Above all other descriptors. */
	int fd = fcntl(create_counter(&args), F_DUPFD, pollers + 50);

	for (int i = 0; i < 3; i++)
		alone[i] = ends[i](fd, copies);
	for (int i = 0; i < pollers; i++) {
		int ep = epoll_create1(EPOLL_CLOEXEC);

		if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &watched))
			return 1;
	}
	for (int i = 0; i < 3; i++) {
		all = ends[i](fd, copies);
		dprintf(1, "# %llu us, with %d pollers %llu us\n", alone[i], pollers,
			all);
		if (all > 4 * alone[i] + 20000)
			return 2 + i;
	}
	return 0;
}

ATTACK(mappings, heal_often)

static struct user_ring storm_ring;

/* Clears the flags of queued items at once, so that each event fills a new slot. */
static void *never_queued(void *arg)
{
	for (;;) {
		for (__u32 i = 0; i < 8; i++)
			storm_ring.items[i].queued = 0;
		storm_ring.header->head++;
	}
	return NULL;
}

/* A wakeup that returns to its source, by way of AIO and io_uring. */
static bool close_the_circle(int event)
{
	static struct io_uring uring;
	struct iocb poll = {
		.aio_fildes = storm_ring.fd,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = event,
	};
	struct iocb *list[] = { &poll };
	aio_context_t context = 0;
	bool closed = false;

	if (!syscall(SYS_io_setup, 64, &context))
		closed = syscall(SYS_io_submit, context, 1, list) == 1;
	if (!io_uring_queue_init(64, &uring, 0) &&
	    !io_uring_register_eventfd(&uring, event)) {
		io_uring_prep_poll_multishot(io_uring_get_sqe(&uring),
					     storm_ring.fd, POLLIN);
		closed = io_uring_submit(&uring) == 1;
	}
	return closed;
}

static int storm_wakeups(void)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), ends[2];
	struct epoll_event watched = { .events = EPOLLIN | EPOLLET };
	int outer = epoll_create1(0), inner = epoll_create1(0);
	pthread_t thread;

	if (ring_open(&storm_ring, 8) || pipe2(ends, O_NONBLOCK) ||
	    ring_add(&storm_ring, event, EPOLLIN, 1) < 0 ||
	    ring_add(&storm_ring, ends[0], EPOLLIN, 2) < 0)
		return 1;
	/* Rings do not watch epolls, which ends such a chain. */
	if (epoll_ctl(inner, EPOLL_CTL_ADD, storm_ring.fd, &watched) ||
	    epoll_ctl(outer, EPOLL_CTL_ADD, inner, &watched) ||
	    ring_add(&storm_ring, outer, EPOLLIN, 3) != -ELOOP)
		return 2;
	if (!close_the_circle(event))
		return 3;
	if (pthread_create(&thread, NULL, never_queued, NULL))
		return 4;
	begun(0);
	for (;;) {
		(void)!write(ends[1], "x", 1);
		epoll_wait(outer, &watched, 1, 0);
	}
}

ATTACK(wakeups, storm_wakeups)

/*
 * Rings and counters in flight over sockets that the rings watch, with no other
 * reference. The garbage collector of UNIX sockets does not know rings, so watches must
 * not hold a socket in flight.
 */
static int send_cycles(void)
{
	struct flowfd_create_ring args = { .max_items = 4 };

	for (int i = 0; i < 100; i++) {
		int ends[2], ring = ring_create(&args), counter;
		struct user_ring r = { .fd = ring };

		counter = open_counter(CREATED, 0, 0);
		if (ring < 0 || counter < 0 ||
		    socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
		    ring_add(&r, ends[0], EPOLLIN, 1) ||
		    ring_add(&r, ends[1], EPOLLIN, 2) ||
		    ring_add(&r, counter, EPOLLIN, 3))
			return 1;
		if (!send_descriptor(ends[0], ring, 0) ||
		    !send_descriptor(ends[1], counter, 0) ||
		    !send_descriptor(ends[1], ends[1], 0) ||
		    !send_descriptor(ends[0], ends[0], 0))
			return 2;
		close(ring);
		close(counter);
		close(ends[0]);
		close(ends[1]);
	}
	return 0;
}

/* They must be released while the attacker still runs. */
TEST_F(attack, cycles)
{
	__u64 end = ms_from_now(3 * PATIENCE_MS);

	ASSERT_EQ(0, start_attack(self, send_cycles));
	EXPECT_LT(0, work(ATTACK_MS));
	while (module_users() != self->users && now_ns() < end) {
		/* Closing a UNIX socket starts the garbage collector. */
		close(socket(AF_UNIX, SOCK_STREAM, 0));
		sleep_ms(10);
	}
	EXPECT_EQ(self->users, module_users());
}

/* Processes that are killed in the middle of everything, again and again. */
static int die_often(void)
{
	begun(0);
	for (;;) {
		pid_t child = fork();

		if (!child) {
			int counter = open_counter(OPENED, 0, 0);
			struct user_ring r = { .fd = -1 };

			alarm(1);
			set_maximum(counter, 2);
			if (!ring_open(&r, 4))
				ring_add(&r, counter, EPOLLIN, 1);
			if (!fork())
				ring_wait_ms(&r, 4, 50);
			else
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

ATTACK(deaths, die_often)

TEST_HARNESS_MAIN
