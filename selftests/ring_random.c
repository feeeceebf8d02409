// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random calls from several threads, on a few rings and files that are replaced under
 * their numbers. The results do not matter: the kernel must not report anything, and in
 * the end everything must be released. Mainly for the debug kernels.
 */
#include "ring_user.h"
#include "sockets.h"

#include <sys/timerfd.h>
#include <sys/wait.h>

#define THREADS 4
#define FILES 8
#define RINGS 2
#define ITEMS 6		/* fewer than files, so that rings are full at times */

/* Files are at these numbers, out of the way of new descriptors, or are closed. */
#define FILE_BASE 300
#define RING_BASE 400

struct actor {
	pthread_t thread;
	unsigned int random;
	int epoll;
	int stop;
};

static unsigned int pick(struct actor *a, unsigned int n)
{
	return rand_r(&a->random) / 7 % n;
}

static int any_file(struct actor *a)
{
	return FILE_BASE + pick(a, FILES);
}

static int any_ring(struct actor *a)
{
	return RING_BASE + pick(a, RINGS);
}

static void place(int fd, int at)
{
	dup3(fd, at, O_CLOEXEC);
	close(fd);
}

static int open_timer(void)
{
	struct itimerspec often = { { 0, 300000 }, { 0, 300000 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	timerfd_settime(fd, 0, &often, NULL);
	return fd;
}

static void replace_file(struct actor *a)
{
	int at = any_file(a), other = any_file(a), ends[2];

	switch (pick(a, 8)) {
	case 0:
		close(at);
		break;
	case 1:
		place(open_counter(OPENED, 0, EFD_NONBLOCK), at);
		break;
	case 2:
		place(open_counter(CREATED, 0, EFD_NONBLOCK), at);
		break;
	case 3:
		place(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), at);
		break;
	case 4:
		place(open_timer(), at);
		break;
	case 5:
		place(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), at);
		break;
	case 6:
		if (pipe2(ends, O_NONBLOCK | O_CLOEXEC))
			break;
		place(ends[0], at);
		place(ends[1], other);
		break;
	default:
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
			       SOCK_CLOEXEC, 0, ends))
			break;
		place(ends[0], at);
		place(ends[1], other);
	}
}

static void replace_ring(struct actor *a)
{
	struct flowfd_create_ring args = { .max_items = ITEMS };

	place(ring_create(&args), any_ring(a));
}

static void change_ring(struct actor *a)
{
	static const __u32 events[] = {
		EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT,
		EPOLLIN | EPOLLONESHOT, EPOLLIN | EPOLLOUT | EPOLLONESHOT,
	};
	struct flowfd_ring_entry entries[3] = { 0 };

	for (int i = 0; i < 3; i++) {
		entries[i].op = 1 + pick(a, 5);
		entries[i].fd = any_file(a);
		if (entries[i].op == FLOWFD_RING_DEL)
			continue;
		entries[i].data = i;
		if (entries[i].op == FLOWFD_RING_DEL_DATA)
			entries[i].fd = -1;
		else
			entries[i].events = EPOLLET | events[pick(a, 5)];
	}
	ring_control(any_ring(a), entries, 1 + pick(a, 3));
}

/* Also reads empty files and parts of what was written. */
static void use_file(struct actor *a)
{
	char bytes[8] = { 1 };
	int fd = any_file(a);

	if (pick(a, 2))
		(void)!write(fd, bytes, 8);
	else
		(void)!read(fd, bytes, 8);
}

/* Several threads harvest at the same time, which consumers must not do. */
static void harvest(struct actor *a)
{
	int fd = any_ring(a);
	struct user_ring r = { .fd = fd, .map_size = PAGE, .mask = 7 };
	struct ring_event event;
	char *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return;
	r.header = (void *)map;
	if (r.header->magic == FLOWFD_RING_MAGIC) {
		r.items = (void *)(map + r.header->items_offset);
		r.index = (void *)(map + r.header->index_offset);
		for (int i = 0; i < 20 && ring_take(&r, &event); i++)
			;
	}
	munmap(map, PAGE);
}

static void wait_for_ring(struct actor *a)
{
	struct flowfd_ring_wait args = {
		.min_events = pick(a, 4),
		.timeout = pick(a, 500000),
		.min_wait = pick(a, 2) ? pick(a, 100000) : 0,
	};

	ioctl(any_ring(a), FLOWFD_IOC_RING_WAIT, &args);
}

static void poll_ring(struct actor *a)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct epoll_event taken[RINGS];

	if (pick(a, 2))
		epoll_ctl(a->epoll, EPOLL_CTL_ADD, any_ring(a), &event);
	else
		epoll_wait(a->epoll, taken, RINGS, 0);
}

static void pass_on(struct actor *a)
{
	int fd = pick(a, 2) ? any_ring(a) : any_file(a);

	send_descriptor(any_file(a), fd, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void *act(void *arg)
{
	struct actor *a = arg;

	while (!__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
		switch (pick(a, 16)) {
		case 0:
		case 1:
			replace_file(a);
			break;
		case 2:
			if (!pick(a, 8))
				replace_ring(a);
			break;
		case 3:
			shutdown(any_file(a), SHUT_RDWR);
			break;
		case 4:
			pass_on(a);
			break;
		case 5:
			wait_for_ring(a);
			break;
		case 6:
			poll_ring(a);
			break;
		case 7:
			ring_watched(any_ring(a));
			break;
		case 8:
		case 9:
			harvest(a);
			break;
		case 10:
		case 11:
		case 12:
			change_ring(a);
			break;
		default:
			use_file(a);
		}
	}
	return NULL;
}

static void run_actors(__u64 end)
{
	struct actor actors[THREADS] = { 0 };

	for (int i = 0; i < THREADS; i++) {
		actors[i].random = end + i;
		actors[i].epoll = epoll_create1(EPOLL_CLOEXEC);
		if (pthread_create(&actors[i].thread, NULL, act, &actors[i]))
			_exit(1);
	}
	sleep_until_ns(end);
	for (int i = 0; i < THREADS; i++) {
		actors[i].stop = 1;
		pthread_join(actors[i].thread, NULL);
	}
}

/* In a child, whose exit closes everything. */
TEST(all_goes_in_the_end)
{
	__u64 end = now_ns() + stress_ns();
	long users = module_users();
	int status;
	pid_t child;

	ASSERT_LE(0, users);
	child = fork();
	if (!child) {
		signal(SIGPIPE, SIG_IGN);
		run_actors(end);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(users, settled_module_users(users));
}

TEST_HARNESS_MAIN
