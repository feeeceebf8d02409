// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ways for threads to signal one that sleeps.
 */
#include <err.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"

/* Without the module, as a program with one consumer opens it. */
void open_in_memory(struct flowfd_counter *counter, uint32_t capacity, uint32_t rate)
{
	const struct flowfd_create_counter args = {
		.maximum = NO_MAXIMUM,
		.qos.token_capacity = capacity,
		.qos.token_rate = rate,
	};
	int error = flowfd_counter_open(counter, &args, sizeof(args),
					FLOWFD_FALLBACK | FLOWFD_ONE_CONSUMER);

	if (error)
		errx(EXIT_FAILURE, "a counter in memory: %s", flowfd_strerror(error));
}

static void open_post(struct end *end)
{
	int item = flowfd_ring_create(&end->ring, 64, FLOWFD_FALLBACK);

	if (!item)
		item = flowfd_ring_add_post(&end->ring, 1);
	if (item < 0)
		errx(EXIT_FAILURE, "a post: %s", flowfd_ring_strerror(item));
	end->item = (uint32_t)item;
}

static void open_descriptor(const struct channel *channel, struct end *end)
{
	const struct subject subject = {
		.flowfd = channel->is & MODULE,
		.maximum = NO_MAXIMUM,
	};

	end->memory = channel->is & MEMORY;
	if (end->memory) {
		open_in_memory(&end->counter, 0, 0);
		end->fd = end->counter.fd;
	} else {
		end->fd = subject_open(&subject, 0,
				       end->awake || channel->is & EPOLL ? FLOWFD_NONBLOCK :
									   0);
	}
}

/* If @awake, taking never sleeps. */
struct end *channel_open(const struct channel *channel, bool awake)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct end *end = new_lines(sizeof(*end));

	end->awake = awake;
	end->ep = -1;
	if (channel->is & POST)
		open_post(end);
	else if (!(channel->is & FUTEX))
		open_descriptor(channel, end);
	if (!(channel->is & EPOLL))
		return end;
	end->ep = epoll_create1(EPOLL_CLOEXEC);
	if (end->ep < 0 || epoll_ctl(end->ep, EPOLL_CTL_ADD, end->fd, &event))
		err(EXIT_FAILURE, "epoll");
	return end;
}

void channel_close(const struct channel *channel, struct end *end)
{
	if (end->ep >= 0)
		close(end->ep);
	if (channel->is & POST)
		flowfd_ring_destroy(&end->ring);
	else if (channel->is & MEMORY)
		flowfd_counter_close(&end->counter);
	else if (!(channel->is & FUTEX))
		close(end->fd);
	free(end);
}

/* ---- an eventfd or a counter, with a system call for each signal ---- */

static void write_signal(struct end *end, unsigned long count)
{
	uint64_t one = 1;

	calls_made += count;
	while (count--)
		if (write(end->fd, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "signal: write");
}

static bool read_signal(struct end *end)
{
	uint64_t value;

	calls_made++;
	return read(end->fd, &value, sizeof(value)) == sizeof(value);
}

static void read_turns(void *arg, unsigned long count)
{
	const struct end *end = arg;
	uint64_t value = 1;

	while (count--)
		if (write(end->fd, &value, sizeof(value)) != sizeof(value) ||
		    read(end->fd, &value, sizeof(value)) != sizeof(value))
			err(EXIT_FAILURE, "signal: write and read");
}

const struct channel channel_eventfd = {
	"eventfd", 0, write_signal, read_signal, read_turns,
};
const struct channel channel_flowfd = {
	"flowfd", MODULE, write_signal, read_signal, read_turns,
};

/* ---- a counter in memory ---- */

static void add_signal(struct end *end, unsigned long count)
{
	while (count--)
		if (flowfd_add(&end->counter, 1))
			errx(EXIT_FAILURE, "signal: add");
}

static bool take_signal(struct end *end)
{
	uint64_t value;

	if (end->awake)
		return !flowfd_try_take(&end->counter, &value);
	if (flowfd_take(&end->counter, &value))
		errx(EXIT_FAILURE, "signal: take");
	return true;
}

static void take_turns(void *arg, unsigned long count)
{
	const struct end *end = arg;
	uint64_t value;

	while (count--)
		if (flowfd_add(&end->counter, 1) || flowfd_take(&end->counter, &value))
			errx(EXIT_FAILURE, "signal: add and take");
}

const struct channel channel_memory = {
	"in memory", MEMORY, add_signal, take_signal, take_turns,
};

/* ---- a post of a ring ---- */

static void post_signal(struct end *end, unsigned long count)
{
	while (count--)
		if (flowfd_ring_post(&end->ring, end->item, 1))
			errx(EXIT_FAILURE, "signal: post");
}

static bool post_take(struct end *end)
{
	struct flowfd_event event;
	int result;

	while (!flowfd_ring_next(&end->ring, &event)) {
		if (end->awake)
			return false;
		result = flowfd_ring_wait(&end->ring, FLOWFD_RING_FOREVER);
		if (result < 0 && result != -EINTR)
			errx(EXIT_FAILURE, "signal: %s", flowfd_strerror(result));
	}
	return true;
}

static void post_turns(void *arg, unsigned long count)
{
	struct end *end = arg;
	struct flowfd_event event;

	while (count--)
		if (flowfd_ring_post(&end->ring, end->item, 1) ||
		    !flowfd_ring_next(&end->ring, &event))
			errx(EXIT_FAILURE, "signal: post and harvest");
}

const struct channel channel_post = {
	"post", POST, post_signal, post_take, post_turns,
};

/* ---- a semaphore in one word, of one process: nothing can poll it ---- */

#define WAITER 1U
#define ONE    2U

static void futex(struct end *end, int operation, unsigned int value)
{
	calls_made++;
	if (syscall(SYS_futex, &end->word, operation | FUTEX_PRIVATE_FLAG, value, NULL) < 0 &&
	    errno != EAGAIN && errno != EINTR)
		err(EXIT_FAILURE, "futex");
}

/* The thread that clears the flag wakes, so that others do not as well. */
static inline void up(struct end *end)
{
	unsigned int word = end->word;

	while (!atomic_compare_exchange_weak(&end->word, &word, (word + ONE) & ~WAITER))
		;
	if (word & WAITER)
		futex(end, FUTEX_WAKE, 1);
}

static inline bool down(struct end *end)
{
	unsigned int nothing;

	while (atomic_exchange(&end->word, 0) < ONE) {
		if (end->awake)
			return false;
		nothing = 0;
		if (atomic_compare_exchange_strong(&end->word, &nothing, WAITER))
			futex(end, FUTEX_WAIT, WAITER);
	}
	return true;
}

static void futex_signal(struct end *end, unsigned long count)
{
	while (count--)
		up(end);
}

static bool futex_take(struct end *end)
{
	return down(end);
}

static void futex_turns(void *arg, unsigned long count)
{
	while (count--) {
		up(arg);
		down(arg);
	}
}

const struct channel channel_futex = {
	"futex", FUTEX, futex_signal, futex_take, futex_turns,
};

/*
 * ---- an event loop that sleeps in epoll_wait(2): an eventfd or a counter, which is
 * edge-triggered and never read, or a counter that is taken in memory ----
 */

static bool loop_take(struct end *end)
{
	struct epoll_event event;
	uint64_t value;
	bool found;

	calls_made++;
	if (epoll_wait(end->ep, &event, 1, end->awake ? 0 : -1) != 1)
		return false;
	if (!end->memory)
		return true;
	found = !flowfd_try_take(&end->counter, &value);
	/* As FLOWFD_ONE_CONSUMER promises; the module has no use for it. */
	while (settings.fallback && !flowfd_try_take(&end->counter, &value))
		;
	return found;
}

static void loop_turns(void *arg, unsigned long count)
{
	const struct end *end = arg;
	struct epoll_event event;
	uint64_t one = 1;

	while (count--)
		if (write(end->fd, &one, sizeof(one)) != sizeof(one) ||
		    epoll_wait(end->ep, &event, 1, 0) != 1)
			err(EXIT_FAILURE, "loop: write and epoll_wait");
}

const struct channel channel_epoll_eventfd = {
	"eventfd, epoll", EPOLL, write_signal, loop_take, loop_turns,
};
const struct channel channel_epoll_flowfd = {
	"flowfd, epoll", EPOLL | MODULE, write_signal, loop_take, loop_turns,
};
const struct channel channel_epoll_memory = {
	"memory, epoll", EPOLL | MEMORY, add_signal, loop_take, NULL,
};
