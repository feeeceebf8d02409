// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every pair of operations at the same time: two threads start together, each waits for
 * a random time, and each does its operation on the same ring, or on a counter or
 * socket that the ring watches. The kernel must not report anything, ring and counter
 * must still work, and everything must be released. Prints the number of rounds of each
 * pair.
 */
#include "ring_user.h"
#include "racers.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct scene {
	struct user_ring ring;
	int device;		/* a reference to the module in every case */
	int counter;		/* watched by the ring */
	int ends[2];		/* of a socket pair; the ring watches the first */
	int epoll;
	void *second_map;
	pid_t child;		/* has its own ring, which watches the same files */
	int rmmod;		/* errno of rmmod */
};

static void do_read(struct scene *s)
{
	__u64 value;

	take(s->counter, &value);
}

static void do_write(struct scene *s)
{
	add(s->counter, 1);
}

static void do_maximum(struct scene *s)
{
	set_maximum(s->counter, 100);
	set_maximum(s->counter, 1000);
}

static void do_bucket(struct scene *s)
{
	set_qos(s->counter, 1, 50000);
	set_qos(s->counter, 0, 0);
}

/* Defers a wakeup to the timer, and returns after that expired. */
static void do_timer(struct scene *s)
{
	set_qos(s->counter, 1, 30000);
	add(s->counter, 1);
	add(s->counter, 1);
	spin_ns(50000);
}

static void do_poll(struct scene *s)
{
	struct pollfd p[] = {
		{ .fd = s->counter, .events = POLLIN | POLLOUT },
		{ .fd = s->ring.fd, .events = POLLIN },
	};

	poll(p, 2, 0);
}

static void do_epoll(struct scene *s)
{
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->ring.fd, &event);
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->counter, &event);
	epoll_wait(s->epoll, &event, 1, 0);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->ring.fd, NULL);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->counter, NULL);
}

/* The first two are there, unless another operation has removed them: the last is new. */
static void do_add(struct scene *s)
{
	ring_add(&s->ring, s->counter, EPOLLIN, 1);
	ring_add(&s->ring, s->ends[0], EPOLLIN, 2);
	ring_add(&s->ring, s->ends[1], EPOLLIN, 4);
}

static void do_modify(struct scene *s)
{
	ring_mod(&s->ring, s->counter, EPOLLIN | EPOLLOUT, 1);
	ring_mod(&s->ring, s->ends[0], EPOLLIN | EPOLLONESHOT, 2);
}

static void do_delete(struct scene *s)
{
	ring_del(&s->ring, s->counter);
	ring_del(&s->ring, s->ends[0]);
	ring_del(&s->ring, s->ends[1]);
}

static void do_wait(struct scene *s)
{
	ring_wait_with(&s->ring, (struct flowfd_ring_wait){
		.min_events = 2, .timeout = 100000, .min_wait = 30000 });
}

static void do_harvest(struct scene *s)
{
	struct ring_event event;

	for (int i = 0; i < 8 && ring_take(&s->ring, &event); i++)
		;
}

static void do_fdinfo(struct scene *s)
{
	ring_watched(s->ring.fd);
	count_of(s->counter);
}

static void do_send(struct scene *s)
{
	send(s->ends[1], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void do_close_counter(struct scene *s)
{
	close(s->counter);
}

static void do_close_socket(struct scene *s)
{
	close(s->ends[0]);
	close(s->ends[1]);
}

static void do_close_ring(struct scene *s)
{
	close(s->ring.fd);
}

static void do_map(struct scene *s)
{
	void *map = mmap(NULL, s->ring.map_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, s->ring.fd, 0);

	if (map != MAP_FAILED)
		munmap(map, s->ring.map_size);
}

static void do_unmap(struct scene *s)
{
	munmap(s->second_map, s->ring.map_size);
}

static void do_exit(struct scene *s)
{
	kill(s->child, SIGKILL);
	waitpid(s->child, NULL, 0);
}

static void do_rmmod(struct scene *s)
{
	s->rmmod = syscall(SYS_delete_module, "flowfd", O_NONBLOCK) ? errno : 0;
}

/* Of some the files cannot be used afterwards; two consumers at a time are not allowed. */
#define EACH_OPERATION(X)                                                        \
	X(read) X(write) X(maximum) X(bucket) X(timer) X(poll) X(epoll)          \
	X(add) X(modify) X(delete) X(wait) X(harvest, true) X(fdinfo) X(send)    \
	X(close_counter, true) X(close_socket) X(close_ring, true)               \
	X(map) X(unmap) X(exit) X(rmmod)

#define OPERATION(name, ...) { #name, do_##name, __VA_ARGS__ },
static const struct operation {
	const char *name;
	operation_run *run;
	bool ends;		/* the files cannot be used afterwards */
} operations[] = { EACH_OPERATION(OPERATION) };

#define OPERATIONS ((int)(sizeof(operations) / sizeof(*operations)))

/* Has its own ring, which watches the same files, and waits until it is killed. */
static void be_child(struct scene *s, int ready)
{
	struct user_ring ring;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ring_open(&ring, 4) || ring_add(&ring, s->counter, EPOLLIN, 1) < 0 ||
	    ring_add(&ring, s->ends[0], EPOLLIN, 2) < 0)
		_exit(1);
	close(ready);
	for (;;)
		ring_wait_with(&ring, (struct flowfd_ring_wait){
			.min_events = 4, .timeout = FLOWFD_RING_FOREVER });
}

/* Returns when the child is ready. */
static bool start_child(struct scene *s)
{
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC))
		return false;
	s->child = fork();
	if (!s->child) {
		close(ready[0]);
		be_child(s, ready[1]);
	}
	close(ready[1]);
	(void)!read(ready[0], &byte, 1);
	close(ready[0]);
	return s->child > 0;
}

static bool scene_open(struct scene *s, bool child)
{
	s->counter = open_counter(CREATED, 1, EFD_NONBLOCK);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->rmmod = -1;
	if (s->counter < 0 || ring_open(&s->ring, 4) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		       s->ends))
		return false;
	s->second_map = mmap(NULL, s->ring.map_size, PROT_READ | PROT_WRITE,
			     MAP_SHARED, s->ring.fd, 0);
	if (s->second_map == MAP_FAILED || (child && !start_child(s)))
		return false;
	return !ring_add(&s->ring, s->counter, EPOLLIN, 1) &&
	       !ring_add(&s->ring, s->ends[0], EPOLLIN, 2);
}

/* A race may have closed some of these: closing them again does nothing. */
static void scene_close(struct scene *s, bool child)
{
	if (child)
		do_exit(s);
	close(s->epoll);
	close(s->counter);
	close(s->ends[0]);
	close(s->ends[1]);
	munmap(s->second_map, s->ring.map_size);
	ring_close(&s->ring);
}

/* 0, or the number of the step that fails. */
static int scene_fails(struct scene *s)
{
	struct ring_event event;
	__u64 value;

	if (set_qos(s->counter, 0, 0) || set_maximum(s->counter, 1000))
		return 1;
	take(s->counter, &value);
	do_delete(s);
	if (ring_watched(s->ring.fd))
		return 2;
	while (ring_take(&s->ring, &event))
		;
	if (ring_add(&s->ring, s->counter, EPOLLIN, 3))
		return 3;
	if (ring_take(&s->ring, &event) || add(s->counter, 1) != 8)
		return 4;
	if (!ring_take(&s->ring, &event) || event.data != 3 ||
	    event.events != EPOLLIN)
		return 5;
	return 0;
}

FIXTURE(races)
{
	struct scene scene;
	struct racers racers;
	long users;
};

FIXTURE_VARIANT(races)
{
	const char *name;
};

#define VARIANT(n, ...) FIXTURE_VARIANT_ADD(races, n) { .name = #n };
EACH_OPERATION(VARIANT)

FIXTURE_SETUP(races)
{
	self->scene.device = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->scene.device);
	/* Not 1: an open device holds more than one reference. */
	self->users = module_users();
	ASSERT_TRUE(racers_start(&self->racers, &self->scene));
}

FIXTURE_TEARDOWN(races)
{
	racers_end(&self->racers);
	close(self->scene.device);
}

TEST_F(races, against_each)
{
	unsigned long rounds = parameter("FLOWFD_RACES", 5), i;
	const struct operation *a = operations, *b;

	while (strcmp(a->name, variant->name))
		a++;
	for (b = a; b < operations + OPERATIONS; b++) {
		bool child = a->run == do_exit || b->run == do_exit;
		struct scene *s = &self->scene;

		for (i = 0; i < rounds; i++) {
			ASSERT_TRUE(scene_open(s, child));
			racers_race(&self->racers, i, a->run, b->run);
			if (a->run == do_rmmod || b->run == do_rmmod)
				EXPECT_EQ(EAGAIN, s->rmmod);
			if (!a->ends && !b->ends)
				EXPECT_EQ(0, scene_fails(s))
					TH_LOG("%s, %s", a->name, b->name);
			scene_close(s, child);
		}
		EXPECT_EQ(self->users, settled_module_users(self->users))
			TH_LOG("%s, %s: in use", a->name, b->name);
		TH_LOG("%s, %s: %lu rounds", a->name, b->name, rounds);
	}
}

TEST_HARNESS_MAIN
