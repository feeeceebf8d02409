// SPDX-License-Identifier: GPL-2.0-only
/*
 * A ring without the module, point by point: a post at each point of a wait, a turn of
 * the consumer at each point of a post, and a poster that ends at each point. Afterwards
 * nothing is lost, and the next post wakes. A file that is changed or removed during a
 * wait has no event afterwards.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <flowfd.h>

#include "lib/watches.h"
#include "tests/steps.h"
#include "tests/tap.h"

#define POSTS 2
/* And a file, and one that has its place. */
#define ITEMS (POSTS + 2)
#define PAGE 4096

static struct flowfd_ring ring;
static int outer;
static unsigned int posted;
static unsigned int taken;

static void post_first(void)
{
	posted |= 1;
	flowfd_ring_post(&ring, 0, 1);
}

static void post_second(void)
{
	posted |= 2;
	flowfd_ring_post(&ring, 1, 1);
}

static void take_all(void)
{
	struct flowfd_event event;

	while (flowfd_ring_next(&ring, &event))
		taken |= 1U << event.data;
}

static void wait_at_once(void)
{
	flowfd_ring_wait(&ring, 0);
}

/* As after a poll. */
static void consume(void)
{
	wait_at_once();
	take_all();
}

static bool is_readable(void)
{
	struct pollfd poller = { .fd = ring.fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

static bool has_edge(void)
{
	struct epoll_event event;

	return epoll_wait(outer, &event, 1, 0) == 1;
}

static void begin(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	if (flowfd_ring_create(&ring, ITEMS, FLOWFD_FALLBACK))
		abort();
	steps_watch(0, ring.header, ring.map_size);
	steps_watch(1, ring.watches, PAGE);
	outer = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(outer, EPOLL_CTL_ADD, ring.fd, &event);
	for (uint64_t i = 0; i < POSTS; i++)
		flowfd_ring_add_post(&ring, i);
	posted = 0;
	taken = 0;
}

static void end(void)
{
	close(outer);
	flowfd_ring_destroy(&ring);
}

/* What is posted and not taken can be seen; then all is taken, and the next post wakes. */
static bool is_good(void)
{
	if (posted & ~taken && !is_readable())
		return false;
	consume();
	if (posted & ~taken)
		return false;
	/* One more turn finds nothing, and the consumer would sleep. */
	consume();
	has_edge();
	if (is_readable())
		return false;
	flowfd_ring_post(&ring, 1, 1);
	return is_readable() && has_edge();
}

/* A poster that ends can leave its own item silent, but no other one. */
static bool next_wakes(void)
{
	bool readable;

	post_second();
	readable = is_readable();
	consume();
	return readable && taken & 2;
}

/* If nothing happens, @run ends at that point. */
static void check(const char *what, void (*prepare)(void), void (*run)(void),
		  void (*happen)(void), bool (*is_right)(void))
{
	int point = 0, wrong = 0;
	bool more;

	do {
		begin();
		prepare();
		if (happen)
			more = steps_run(run, happen, point++);
		else
			more = steps_kill(run, point++);
		if (!is_right() && wrong++ < 3)
			printf("# at point %d\n", point - 1);
		end();
	} while (more);
	printf("# %d points\n", point - 1);
	tap_ok(point > 3, "point by point");
	tap_is(wrong, 0, what);
}

/*
 * The consumer takes the post that is under way, and would sleep again. Another poster
 * announces that it rings, and ends before it does: it has no doorbell.
 */
static void take_and_post_without_doorbell(void)
{
	struct flowfd_ring deaf;

	consume();
	consume();
	deaf = ring;
	deaf.doorbell = -1;
	flowfd_ring_post(&deaf, 0, 1);
}

/* The data of a file, and after it was changed or another was added. */
#define BEFORE 2
#define AFTER 3

static int file;
static int other;
static bool is_changed;

/* The wait holds the lock at some points: a thread that changes a file would wait. */
static bool is_locked(void)
{
	if (pthread_mutex_trylock(&ring.watches->lock))
		return true;
	pthread_mutex_unlock(&ring.watches->lock);
	return false;
}

/* From now on there are no events but errors. */
static void change(void)
{
	is_changed = !is_locked() && !flowfd_ring_mod(&ring, file, EPOLLET, AFTER);
}

static void replace(void)
{
	is_changed = !is_locked() && !flowfd_ring_del(&ring, file) &&
		     !flowfd_ring_add(&ring, other, EPOLLIN | EPOLLET, AFTER);
}

static void check_changed(const char *what, void (*happen)(void))
{
	int point = 0, wrong = 0, changed = 0;
	bool happened;

	do {
		begin();
		file = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
		other = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		flowfd_ring_add(&ring, file, EPOLLIN | EPOLLET, BEFORE);
		is_changed = false;
		happened = steps_run(wait_at_once, happen, point++);
		changed += is_changed;
		take_all();
		wrong += taken != (is_changed ? 0 : 1U << BEFORE);
		close(file);
		close(other);
		end();
	} while (happened);
	printf("# %d points, changed at %d of them\n", point - 1, changed);
	tap_ok(changed > 3, "it is changed at some");
	tap_is(wrong, 0, what);
}

static void nothing(void)
{
}

/* The doorbell is readable, and there is nothing to take. */
static void rung(void)
{
	flowfd_ring_post(&ring, 0, 1);
	take_all();
	taken = 0;
}

int main(void)
{
	setenv("FLOWFD_BACKEND", "fallback", 1);
#ifdef STEPS_UNAVAILABLE
	tap_skip("posts step by step", STEPS_UNAVAILABLE);
	return tap_done();
#endif
	check("a post during a wait", nothing, wait_at_once, post_first, is_good);
	check("a post during a wait that drains", rung, wait_at_once, post_first, is_good);
	check("a post during a turn", post_second, consume, post_first, is_good);
	check("a turn during a post", nothing, post_first, consume, is_good);
	check("a turn during a post after another", rung, post_first, consume, is_good);
	check("a post during a post", nothing, post_first, post_second, is_good);
	check_changed("a file is changed during a wait", change);
	check_changed("a file is removed during a wait, and another added", replace);
	check("a poster that ends", nothing, post_first, NULL, next_wakes);
	check("a poster that ends after a turn", rung, post_first, NULL, next_wakes);
	/* While one poster is late, another ends: it is the next post that wakes. */
	check("a poster that ends during a post", nothing, post_first,
	      take_and_post_without_doorbell, next_wakes);
	return tap_done();
}
