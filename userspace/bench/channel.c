// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ways to signal one that sleeps.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"

static void open_in_memory(const struct channel *channel, struct end *end)
{
	const struct flowfd_create_counter args = {
		.maximum = channel->subject.maximum,
		.qos.token_capacity = channel->subject.capacity,
		.qos.token_rate = channel->subject.rate,
	};
	int error = flowfd_counter_open(&end->counter, &args, sizeof(args),
					FLOWFD_FALLBACK | channel->options);

	if (error)
		errx(EXIT_FAILURE, "a counter in memory: %s", flowfd_strerror(error));
	end->in = end->counter.fd;
}

/* With a post, or a file. */
static void open_ring(struct end *end, bool post)
{
	int item = flowfd_ring_create(&end->ring, 64, FLOWFD_FALLBACK);

	if (!item)
		item = post ? flowfd_ring_add_post(&end->ring, 1) :
			      flowfd_ring_add(&end->ring, end->in, EPOLLIN | EPOLLET, 1);
	if (item < 0)
		errx(EXIT_FAILURE, "a ring: %s", flowfd_ring_strerror(item));
	end->item = (uint32_t)item;
}

/* What epoll(7) tells of @fd is edge-triggered. */
int epoll_open(int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
		err(EXIT_FAILURE, "epoll");
	return ep;
}

bool channel_without(const struct channel *channel)
{
	return !channel->subject.flowfd && channel->loop != RING;
}

/*
 * In memory that processes share, and that shares no cache line with other data. If
 * @awake, taking never sleeps.
 */
struct end *channel_open(const struct channel *channel, bool awake)
{
	const unsigned int flags = awake || channel->loop ? FLOWFD_NONBLOCK : 0;
	struct end *end = mmap(NULL, sizeof(*end), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pair[2] = { -1, -1 };

	if (end == MAP_FAILED || (channel->kind == PIPE && pipe2(pair, O_CLOEXEC)) ||
	    (channel->kind == DATAGRAM &&
	     socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair)))
		err(EXIT_FAILURE, "%s", channel->name);
	if (channel->kind == DESCRIPTOR)
		pair[0] = pair[1] = subject_open(&channel->subject, 0, flags);
	end->awake = awake;
	end->in = pair[0];
	end->out = pair[1];
	end->ep = -1;
	end->futex = channel->kind == FUTEX ? FUTEX_PRIVATE_FLAG : 0;
	if (channel->kind == IN_MEMORY)
		open_in_memory(channel, end);
	if (channel->loop == EPOLL)
		end->ep = epoll_open(end->in);
	if (channel->kind == POST || channel->loop == RING)
		open_ring(end, channel->kind == POST);
	return end;
}

/* Each process has its own counter; the rest is inherited. */
struct end *channel_import(const struct channel *channel, struct end *end)
{
	int fds[FLOWFD_EXPORT_MAX];
	struct end *own;
	int count;

	if (channel->kind != IN_MEMORY)
		return end;
	count = flowfd_counter_export(&end->counter, fds);
	own = calloc(1, sizeof(*own));
	if (!own || count < 0 || flowfd_counter_import(&own->counter, fds, count))
		errx(EXIT_FAILURE, "a counter of another process");
	return own;
}

void channel_close(const struct channel *channel, struct end *end)
{
	if (end->ep >= 0)
		close(end->ep);
	if (channel->kind == POST || channel->loop == RING)
		flowfd_ring_destroy(&end->ring);
	if (channel->kind == IN_MEMORY)
		flowfd_counter_close(&end->counter);
	else if (end->in >= 0)
		close(end->in);
	if (end->out >= 0 && end->out != end->in)
		close(end->out);
	munmap(end, sizeof(*end));
}

/* ---- an eventfd or a counter, with a system call for each signal ---- */

static void write_signal(struct end *end, unsigned long count)
{
	uint64_t one = 1;

	calls_made += count;
	while (count--)
		if (write(end->out, &one, sizeof(one)) != sizeof(one))
			err(EXIT_FAILURE, "signal: write");
}

static uint64_t read_signal(struct end *end)
{
	uint64_t value;

	calls_made++;
	return read(end->in, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

#define STOCK	.subject = { .maximum = NO_MAXIMUM }
#define COUNTER .subject = { .flowfd = true, .maximum = NO_MAXIMUM }
#define BUCKET	.subject = { true, NO_MAXIMUM, CAPACITY, RATE }
#define CALLS	.signal = write_signal, .take = read_signal

const struct channel channel_eventfd = { .name = "eventfd", STOCK, CALLS };
const struct channel channel_flowfd = { .name = "flowfd", COUNTER, CALLS };
const struct channel channel_bucket = { .name = "flowfd", BUCKET, CALLS };
const struct channel channel_pipe = { .name = "pipe", .kind = PIPE, CALLS };
const struct channel channel_datagram = {
	.name = "Unix datagram", .kind = DATAGRAM, CALLS,
};

/* ---- a counter in memory ---- */

static void add_signal(struct end *end, unsigned long count)
{
	while (count--)
		if (flowfd_add(&end->counter, 1))
			errx(EXIT_FAILURE, "signal: add");
}

static uint64_t take_signal(struct end *end)
{
	uint64_t value;

	if (end->awake)
		return flowfd_try_take(&end->counter, &value) ? 0 : value;
	if (flowfd_take(&end->counter, &value))
		errx(EXIT_FAILURE, "signal: take");
	return value;
}

#define IN_TURN	     .kind = IN_MEMORY, .signal = add_signal, .take = take_signal
#define ONE_CONSUMER .options = FLOWFD_ONE_CONSUMER

const struct channel channel_memory = {
	.name = "in memory", IN_TURN, STOCK, ONE_CONSUMER,
};
const struct channel channel_memory_bucket = {
	.name = "in memory", IN_TURN, ONE_CONSUMER,
	.subject = { false, NO_MAXIMUM, CAPACITY, RATE },
};
const struct channel channel_by_default = { .name = "in memory", IN_TURN, STOCK };
const struct channel channel_one_consumer = {
	.name = "one consumer", IN_TURN, STOCK, ONE_CONSUMER,
};
const struct channel channel_no_poll = {
	.name = "nobody polls", IN_TURN, STOCK, .options = FLOWFD_NO_POLL,
};

/* ---- a ring, with a post or a file ---- */

static void post_signal(struct end *end, unsigned long count)
{
	while (count--)
		if (flowfd_ring_post(&end->ring, end->item, 1))
			errx(EXIT_FAILURE, "signal: post");
}

static uint64_t ring_take(struct end *end)
{
	struct flowfd_event event;
	int result;

	while (!flowfd_ring_next(&end->ring, &event)) {
		if (end->awake)
			return 0;
		result = flowfd_ring_wait(&end->ring, FLOWFD_RING_FOREVER);
		if (result < 0 && result != -EINTR)
			errx(EXIT_FAILURE, "signal: %s", flowfd_strerror(result));
	}
	return 1;
}

const struct channel channel_post = {
	.name = "post", .kind = POST, .signal = post_signal, .take = ring_take,
};
const struct channel channel_ring_eventfd = {
	.name = "eventfd, ring", .loop = RING, STOCK, .signal = write_signal,
	.take = ring_take,
};

/* ---- a semaphore in one word: nothing can poll it ---- */

#define WAITER 1U
#define ONE    2U

static void futex(struct end *end, int operation, unsigned int value)
{
	calls_made++;
	if (syscall(SYS_futex, &end->word, operation | end->futex, value, NULL) < 0 &&
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

static inline uint64_t down(struct end *end)
{
	unsigned int nothing;

	while (atomic_exchange(&end->word, 0) < ONE) {
		if (end->awake)
			return 0;
		nothing = 0;
		if (atomic_compare_exchange_strong(&end->word, &nothing, WAITER))
			futex(end, FUTEX_WAIT, WAITER);
	}
	return 1;
}

static void futex_signal(struct end *end, unsigned long count)
{
	while (count--)
		up(end);
}

void futex_turns(void *end, unsigned long count)
{
	while (count--) {
		up(end);
		down(end);
	}
}

#define WORD .name = "futex", .signal = futex_signal, .take = down

const struct channel channel_futex = { WORD, .kind = FUTEX };
const struct channel channel_shared_futex = { WORD, .kind = SHARED_FUTEX };

/*
 * ---- an event loop that sleeps in epoll_wait(2): an eventfd or a counter, which is
 * edge-triggered and never read, or a counter that is taken in memory ----
 */

static uint64_t wait_in_epoll(struct end *end)
{
	struct epoll_event event;

	calls_made++;
	return epoll_wait(end->ep, &event, 1, end->awake ? 0 : -1) == 1;
}

static uint64_t take_in_epoll(struct end *end)
{
	uint64_t value, more;

	if (!wait_in_epoll(end) || flowfd_try_take(&end->counter, &value))
		return 0;
	/* As FLOWFD_ONE_CONSUMER promises; the module has no use for it. */
	while (settings.fallback && !flowfd_try_take(&end->counter, &more))
		value += more;
	return value;
}

#define EDGES .loop = EPOLL, .signal = write_signal, .take = wait_in_epoll

const struct channel channel_epoll_eventfd = { .name = "eventfd, epoll", STOCK, EDGES };
const struct channel channel_epoll_flowfd = { .name = "flowfd, epoll", COUNTER, EDGES };
const struct channel channel_epoll_memory = {
	.name = "memory, epoll", .kind = IN_MEMORY, .loop = EPOLL, STOCK, ONE_CONSUMER,
	.signal = add_signal, .take = take_in_epoll,
};
