// SPDX-License-Identifier: MIT
/*
 * Replaces a counter. Its descriptor gets another open file description, so other
 * references to the counter would be left behind. The module counts references: a
 * counter is replaced only if the descriptor is the only one. Then
 *
 *   1. the counter gets a second descriptor, the shim's, and the first descriptor
 *      the eventfd;
 *   2. epolls that watch the first descriptor watch the eventfd, too;
 *   3. the counter must have no reference but the shim's. Otherwise a thread found it
 *      before 1 and is about to wait: everything is undone;
 *   4. nothing can change the counter any more: its count goes to the eventfd, and
 *      the counter is closed, which ends its watches.
 *
 * To undo: the first descriptor gets the counter back, and the counter gets the count
 * and the current watches of the eventfd.
 *
 * A thread that begins to wait for the eventfd between 1 and the undoing in 3 can be
 * left behind. That window is 10 ms, and needs another thread that did the same just
 * before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <linux/flowfd.h>
#include <linux/kcmp.h>
#include <linux/time_types.h>

#include "preload/context.h"
#include "preload/fdinfo.h"
#include "preload/log.h"
#include "preload/next.h"
#include "preload/replace.h"

#define WAITS 10
/* Of what a semaphore has, at once. */
#define TAKES 100000

/* Of the names for the call that takes 64 bits of seconds on every machine. */
#ifdef SYS_clock_nanosleep_time64
#define SYS_SLEEP SYS_clock_nanosleep_time64
#else
#define SYS_SLEEP SYS_clock_nanosleep
#endif

static void sleep_1ms(void)
{
	struct __kernel_timespec time = { .tv_nsec = 1000000 };

	next_call(SYS_SLEEP, CLOCK_MONOTONIC, 0, (long)&time, 0);
}

static bool is_counter(int fd, struct event_state *state)
{
	return event_state(fd, state) && state->counter;
}

/*
 * Waits until no other thread is in a call on the counter. Calls that do not sleep end
 * soon. State is read once more then: a call could end between the reads of the count
 * and of the references.
 */
static bool settle(int fd, struct event_state *state)
{
	for (int i = 0; i < WAITS; i++) {
		if (i)
			sleep_1ms();
		if (!is_counter(fd, state))
			return false;
		if (state->references != 1)
			continue;
		if (!is_counter(fd, state))
			return false;
		if (state->references == 1)
			return true;
	}
	return false;
}

/*
 * Serializes threads. The owner is a process ID: a child of fork(2), made while a
 * thread of its parent held the lock, takes it after a while. A child of vfork(2)
 * shares the lock with its parent, and waits like any thread.
 */
static _Atomic int owner;

static bool lock(void)
{
	int own = getpid();
	int seen = 0;

	for (int i = 0; i < 100 * WAITS; i++) {
		seen = 0;
		if (atomic_compare_exchange_strong(&owner, &seen, own))
			return true;
		sleep_1ms();
	}
	return seen != own && atomic_compare_exchange_strong(&owner, &seen, own);
}

/* Only our own. */
static void unlock(void)
{
	int own = getpid();

	atomic_compare_exchange_strong(&owner, &own, 0);
}

/*
 * A ring cannot exchange a watched file and keep its events. The descriptor of an
 * epoll's watch can be that of a file which is closed here and open elsewhere: then
 * epoll lets the counter be added. Of two watches of one descriptor number it is not
 * known which one is the counter's.
 */
static bool can_follow(int fd, const struct watch *watch, const void *none)
{
	struct epoll_event event = { 0 };
	long ret;

	(void)none;
	if (watch->ring || watch->again)
		return false;
	ret = next_call(SYS_epoll_ctl, watch->watcher, EPOLL_CTL_ADD, fd, (long)&event);
	if (ret == 0)
		next_call(SYS_epoll_ctl, watch->watcher, EPOLL_CTL_DEL, fd, (long)&event);
	return ret == -EEXIST;
}

static bool add_watch(int fd, const struct watch *watch, const void *none)
{
	struct epoll_event event = {
		.events = watch->events,
		.data.u64 = watch->data,
	};
	long ret;

	(void)none;
	ret = next_call(SYS_epoll_ctl, watch->watcher, EPOLL_CTL_ADD, fd, (long)&event);
	/* The list of watches also reaches those that were just added. */
	return ret == 0 || ret == -EEXIST;
}

/* Tells watches of an eventfd from those of a counter with the same descriptor. */
struct identity {
	uint64_t inode;
	uint64_t device;
};

static bool identify(int fd, struct identity *identity)
{
	struct statx status;
	const long arguments[6] = { fd, (long)"", AT_EMPTY_PATH, STATX_INO,
				    (long)&status };
	int saved = errno;
	long ret = next_syscall(SYS_statx, arguments);

	errno = saved;
	if (ret < 0)
		return false;
	identity->inode = status.stx_ino;
	identity->device = (uint64_t)status.stx_dev_major << 20 | status.stx_dev_minor;
	return true;
}

/* The program may have added or changed the watch of the eventfd. */
static bool return_watch(int fd, const struct watch *watch, const void *argument)
{
	const struct identity *real = argument;
	struct epoll_event event = {
		.events = watch->events,
		.data.u64 = watch->data,
	};

	if (watch->inode == real->inode && watch->device == real->device &&
	    next_call(SYS_epoll_ctl, watch->watcher, EPOLL_CTL_ADD, fd, (long)&event) ==
		    -EEXIST)
		next_call(SYS_epoll_ctl, watch->watcher, EPOLL_CTL_MOD, fd, (long)&event);
	return true;
}

static void add_count(int fd, uint64_t count)
{
	if (count)
		next_call(SYS_write, fd, (long)&count, sizeof(count), 0);
}

/* By kcmp(2) if it can be: that takes no descriptor, of which none may be left. */
static bool is_same(int fd, int real)
{
	const long thread = next_call(SYS_gettid, 0, 0, 0, 0);
	const long arguments[6] = { thread, thread, KCMP_FILE, fd, real };
	struct event_state state;
	struct event_state own;
	int saved = errno;
	long order = next_syscall(SYS_kcmp, arguments);

	errno = saved;
	if (order >= 0)
		return order == 0;
	return event_state(fd, &state) && event_state(real, &own) && !state.counter &&
	       state.id == own.id;
}

/* What is there, or 1 of a semaphore; 0: nothing. Does not wait. */
static uint64_t take_count(int real)
{
	uint64_t count = 0;
	const struct iovec iovec = { .iov_base = &count, .iov_len = sizeof(count) };
	const long arguments[6] = { real, (long)&iovec, 1, -1, -1, RWF_NOWAIT };
	int saved = errno;

	next_syscall(SYS_preadv2, arguments);
	errno = saved;
	return count;
}

/* It must find room. A maximum that it reaches cannot be set again. */
static void return_count(int counter, uint64_t count)
{
	const uint64_t none = UINT64_MAX;
	uint64_t maximum = none;

	next_call(SYS_ioctl, counter, EFD_IOC_GET_MAXIMUM, (long)&maximum, 0);
	next_call(SYS_ioctl, counter, EFD_IOC_SET_MAXIMUM, (long)&none, 0);
	add_count(counter, count);
	next_call(SYS_ioctl, counter, EFD_IOC_SET_MAXIMUM, (long)&maximum, 0);
}

/*
 * The number is the counter's again, but a thread that began to write before can
 * still add to the eventfd: it is emptied for a while. Of a semaphore that takes a
 * call for each, so not for ever.
 */
static void return_counts(int counter, int real)
{
	for (int i = 0; i < WAITS; i++) {
		uint64_t sum = 0;
		uint64_t count;

		if (i)
			sleep_1ms();
		for (int j = 0; j < TAKES && (count = take_count(real)); j++)
			sum += count;
		if (sum)
			return_count(counter, sum);
	}
}

/* The watches of the eventfd end when it is closed. */
static void put_back(int fd, int counter, int real, long cloexec)
{
	struct identity identity;

	if (!is_same(fd, real))
		return; /* closed by the program, or another file */
	next_call(SYS_dup3, counter, fd, cloexec, 0);
	return_counts(counter, real);
	if (identify(real, &identity))
		watch_each(fd, return_watch, &identity);
}

static int make_eventfd(int fd, const struct event_state *state)
{
	long flags = next_call(SYS_fcntl, fd, F_GETFL, 0, 0);

	return next_call(SYS_eventfd2, 0,
			 EFD_CLOEXEC | (flags & O_NONBLOCK ? EFD_NONBLOCK : 0) |
				 (state->semaphore ? EFD_SEMAPHORE : 0),
			 0, 0);
}

/* At any time the program can close @fd, and the number become another file's. */
static bool is_still(int fd, uint64_t id)
{
	struct event_state state;

	return is_counter(fd, &state) && state.id == id;
}

#define NO_DESCRIPTOR "too few descriptors are left"

/* Returns NULL, or why the counter stays. Both other descriptors are closed. */
static const char *exchange(int fd, int counter, int real, uint64_t id)
{
	long cloexec = next_call(SYS_fcntl, fd, F_GETFD, 0, 0) & FD_CLOEXEC ? O_CLOEXEC :
									      0;
	const char *why = NULL;
	struct event_state state;

	if (!is_still(counter, id) || !is_still(fd, id)) {
		why = fdinfo_unread(counter) ? NO_DESCRIPTOR : "it was closed";
	} else if (next_call(SYS_dup3, real, fd, cloexec, 0) < 0) {
		why = NO_DESCRIPTOR;
	} else if (!watch_each(fd, add_watch, NULL)) {
		why = "an epoll would lose it";
		put_back(fd, counter, real, cloexec);
	} else if (!settle(counter, &state)) {
		why = "it is in use elsewhere";
		put_back(fd, counter, real, cloexec);
	} else {
		add_count(real, state.count);
	}
	next_call(SYS_close, real, 0, 0, 0);
	next_call(SYS_close, counter, 0, 0, 0);
	return why;
}

static const char *replace(int fd, struct event_state *state)
{
	int counter;
	int real;

	if (!settle(fd, state))
		return "it is in use elsewhere";
	if (!watch_each(fd, can_follow, NULL))
		return "a ring or a second watch of its number would lose it";
	real = make_eventfd(fd, state);
	if (real < 0)
		return NO_DESCRIPTOR;
	counter = next_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0, 0);
	if (counter < 0) {
		next_call(SYS_close, real, 0, 0, 0);
		return NO_DESCRIPTOR;
	}
	return exchange(fd, counter, real, state->id);
}

#define REAL  "now a real eventfd"
#define STAYS "stays a counter"

static void report(const struct context *context, int fd, const char *taker,
		   const char *what, const char *why)
{
	struct line line;

	if (!log_wanted(context))
		return;
	line_begin(&line);
	line_text(&line, "fd ");
	line_number(&line, fd);
	line_text(&line, " for ");
	line_text(&line, taker);
	line_text(&line, ": ");
	line_text(&line, what);
	if (why) {
		line_text(&line, ", ");
		line_text(&line, why);
		line_text(&line, "; see --keep-eventfd");
	}
	line_end(&line, context);
}

/* The caller holds the lock. */
static enum replaced replace_known(const struct context *context, int fd,
				   const char *taker)
{
	struct event_state state;
	const char *why;

	if (!event_state(fd, &state)) {
		if (fdinfo_unread(fd))
			report(context, fd, taker, "unknown",
			       "/proc is missing or no descriptor is left");
		return REPLACED_NONE;
	}
	if (!state.counter)
		return REPLACED_REAL;
	why = replace(fd, &state);
	report(context, fd, taker, why ? STAYS : REAL, why);
	return why ? REPLACED_STAYS : REPLACED_REAL;
}

enum replaced replace_counter(int fd, const char *taker)
{
	const struct context *context = context_get();
	enum replaced replaced;

	if (!context)
		return REPLACED_NONE;
	if (!lock()) {
		report(context, fd, taker, STAYS, "another thread replaces one");
		return REPLACED_STAYS;
	}
	replaced = replace_known(context, fd, taker);
	unlock();
	return replaced;
}

void replace_unread(const char *taker)
{
	const struct context *context = context_get();
	struct line line;

	if (!context || !log_wanted(context))
		return;
	line_begin(&line);
	line_text(&line, "for ");
	line_text(&line, taker);
	line_text(&line, ": descriptors cannot be read; see --keep-eventfd");
	line_end(&line, context);
}
