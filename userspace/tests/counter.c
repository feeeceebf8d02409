// SPDX-License-Identifier: GPL-2.0-only
/*
 * libflowfd with the module: every function in normal use, and each documented error.
 * The selftests test the kernel beyond that.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/tap.h"

static void test_create(void)
{
	uint64_t value = 0;
	int fd = flowfd_counter_create(5, FLOWFD_SEMAPHORE | FLOWFD_NONBLOCK);

	tap_ok(fd >= 0, "create a semaphore");
	tap_is(fcntl(fd, F_GETFD), FD_CLOEXEC, "close-on-exec");
	tap_is(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK, "non-blocking");
	tap_is(flowfd_read(fd, &value), 0, "read");
	tap_is(value, 1, "one");
	close(fd);

	fd = flowfd_counter_create(UINT64_MAX - 1, FLOWFD_KEEP_ON_EXEC);
	tap_is(fcntl(fd, F_GETFD), 0, "kept on exec");
	tap_is(fcntl(fd, F_GETFL), O_RDWR, "blocking");
	tap_is(flowfd_read(fd, &value), 0, "read");
	tap_ok(value == UINT64_MAX - 1, "highest count");
	tap_is(flowfd_get_maximum(fd, &value), 0, "get maximum");
	tap_ok(value == UINT64_MAX, "none");
	close(fd);

	tap_is(flowfd_counter_create(UINT64_MAX, 0), -EINVAL,
	       "initial count too high");
	tap_is(flowfd_counter_create(0, 1U << 31), -EINVAL, "unknown flag");
}

static void test_create_from(void)
{
	struct flowfd_create_counter counter = {
		.initial = 3,
		.maximum = 10,
		.flags = FLOWFD_NONBLOCK,
		.qos = {.token_capacity = 2, .token_rate = 1000},
	};
	uint64_t value = 0;
	uint32_t capacity = 0;
	uint32_t rate = 0;
	int fd = flowfd_counter_create_from(&counter, sizeof(counter));

	tap_ok(fd >= 0, "create with all settings");
	tap_is(flowfd_get_maximum(fd, &value), 0, "get maximum");
	tap_is(value, 10, "as set");
	tap_is(flowfd_get_bucket(fd, &capacity, &rate), 0, "get bucket");
	tap_is(capacity, 2, "capacity as set");
	tap_is(rate, 1000, "rate as set");
	tap_is(flowfd_write(fd, 7), -EAGAIN, "write to the maximum");
	tap_is(flowfd_write(fd, 6), 0, "write below it");
	tap_is(flowfd_read(fd, &value), 0, "read");
	tap_is(value, 9, "all of it");
	close(fd);

	counter.flags |= FLOWFD_SEMAPHORE;
	tap_is(flowfd_counter_create_from(&counter, sizeof(counter)), -EINVAL,
	       "bucket on a semaphore");
	counter.flags = 0;
	counter.initial = 10;
	tap_is(flowfd_counter_create_from(&counter, sizeof(counter)), -EINVAL,
	       "initial count at the maximum");
	counter.initial = 0;
	counter.reserved = 1;
	tap_is(flowfd_counter_create_from(&counter, sizeof(counter)), -EINVAL,
	       "reserved field");
}

/* As programs compiled with an older or a newer header. */
static void test_sizes(void)
{
	struct {
		struct flowfd_create_counter counter;
		uint64_t more;
	} newer = {.counter.initial = 3};
	struct {
		struct flowfd_create_counter counter;
		char more[1000];
	} future = {.counter.initial = 3};
	struct {
		struct flowfd_query query;
		uint64_t more;
	} answer = {.more = 1};
	int fd = flowfd_counter_create_from(&newer.counter, sizeof(newer));

	tap_ok(fd >= 0, "a longer structure with a zero tail");
	close(fd);
	newer.more = 1;
	tap_is(flowfd_counter_create_from(&newer.counter, sizeof(newer)),
	       -EPROTONOSUPPORT, "a longer structure with something in it");
	fd = flowfd_counter_create_from(&future.counter, sizeof(future));
	tap_ok(fd >= 0, "a much longer structure with a zero tail");
	close(fd);
	future.more[999] = 1;
	tap_is(flowfd_counter_create_from(&future.counter, sizeof(future)),
	       -EPROTONOSUPPORT, "and with something at its end");
	tap_is(flowfd_counter_create_from(&newer.counter, 8), -EINVAL,
	       "a structure that is too short");

	tap_is(flowfd_query(&answer.query, sizeof(answer)), 0, "longer query");
	tap_is(answer.query.abi_version, FLOWFD_ABI_VERSION, "ABI version");
	tap_is(answer.query.token_rate_max, FLOWFD_TOKEN_RATE_MAX,
	       "rate limit");
	tap_is(answer.query.features,
	       FLOWFD_FEATURE_MAXIMUM | FLOWFD_FEATURE_QOS |
	       FLOWFD_FEATURE_RING | FLOWFD_FEATURE_SETUP |
	       FLOWFD_FEATURE_MAPPED | FLOWFD_FEATURE_POSTS |
	       FLOWFD_FEATURE_FLOW | FLOWFD_FEATURE_STATS |
	       FLOWFD_FEATURE_BRIDGE | FLOWFD_FEATURE_BALANCE |
	       FLOWFD_FEATURE_SHARE, "features");
	tap_is(answer.more, 0, "the rest is zero");
	tap_is(flowfd_query(&answer.query, 8), -EINVAL, "query too short");
}

static void test_settings(void)
{
	uint64_t value = 0;
	uint32_t capacity = 1;
	uint32_t rate = 1;
	int semaphore = flowfd_counter_create(0, FLOWFD_SEMAPHORE);
	int fd = flowfd_counter_create(5, FLOWFD_NONBLOCK);

	tap_is(flowfd_set_maximum(fd, 5), -EINVAL, "maximum at the count");
	tap_is(flowfd_set_maximum(fd, 6), 0, "maximum above the count");
	tap_is(flowfd_get_maximum(fd, &value), 0, "get maximum");
	tap_is(value, 6, "as set");
	tap_is(flowfd_get_bucket(fd, &capacity, &rate), 0, "get bucket");
	tap_is(capacity + rate, 0, "none");
	tap_is(flowfd_set_bucket(fd, 7, 8), 0, "set bucket");
	tap_is(flowfd_get_bucket(fd, &capacity, &rate), 0, "get bucket");
	tap_is(capacity, 7, "capacity as set");
	tap_is(rate, 8, "rate as set");
	tap_is(flowfd_set_bucket(fd, 0, 1), -EINVAL, "no capacity");
	tap_is(flowfd_set_bucket(fd, 1, FLOWFD_TOKEN_RATE_MAX + 1), -EINVAL,
	       "rate too high");
	tap_is(flowfd_set_bucket(fd, 0, 0), 0, "no bucket");
	tap_is(flowfd_set_bucket(semaphore, 1, 1), -EINVAL,
	       "bucket on a semaphore");
	close(semaphore);
	close(fd);
}

#define MS 1000000ULL

static bool is_readable(int fd, int timeout)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, timeout) == 1 && poller.revents & POLLIN;
}

static void test_flow(void)
{
	struct flowfd_flow flow = {
		.maximum = 10,
		.read_mark = 4,
		.write_mark = 3,
		.max_delay = 3000 * MS,
		.qos = { .token_capacity = 2, .token_rate = 1000 },
		.overflow = FLOWFD_OVERFLOW_SATURATE,
		.flags = FLOWFD_MAPPED, /* which is not read */
		.count = 7,
		.lost = 7,
	};
	struct {
		struct flowfd_flow flow;
		uint64_t more;
	} longer = { .more = 0 };
	struct flowfd_flow got = { 0 };
	int fd = flowfd_counter_create(0, FLOWFD_NONBLOCK);
	uint64_t value = 0;

	tap_is(flowfd_set_flow(fd, &flow, sizeof(flow)), 0, "set policies");
	flowfd_write(fd, 2);
	tap_is(flowfd_get_flow(fd, &got, sizeof(got)), 0, "get policies");
	tap_is(got.maximum, 10, "maximum");
	tap_is(got.read_mark, 4, "read mark");
	tap_is(got.write_mark, 3, "write mark");
	tap_ok(got.max_delay == 3000 * MS, "maximum delay");
	tap_is(got.qos.token_capacity, 2, "capacity");
	tap_is(got.qos.token_rate, 1000, "rate");
	tap_is(got.overflow, FLOWFD_OVERFLOW_SATURATE, "overflow");
	tap_is(got.flags, 0, "flags");
	tap_is(got.count, 2, "count");
	tap_is(got.lost, 0, "nothing lost");
	tap_ok(!is_readable(fd, 0), "not ready below the mark");
	tap_is(flowfd_write(fd, 20), 0, "a write that can never fit");
	tap_ok(is_readable(fd, 0), "ready at the mark");
	tap_is(flowfd_get_flow(fd, &got, sizeof(got)), 0, "get policies");
	tap_is(got.count, 9, "the counter is saturated");
	tap_is(got.lost, 13, "the rest was lost");
	tap_is(flowfd_read(fd, &value), 0, "read");

	longer.flow = flow;
	tap_is(flowfd_set_flow(fd, &longer.flow, sizeof(longer)), 0,
	       "a longer structure with a zero tail");
	longer.more = 1;
	tap_is(flowfd_set_flow(fd, &longer.flow, sizeof(longer)), -EPROTONOSUPPORT,
	       "and with something in it");
	tap_is(flowfd_get_flow(fd, &longer.flow, sizeof(longer)), 0, "a longer answer");
	tap_is(longer.more, 0, "ends with zero");
	flow.read_mark = 10;
	tap_is(flowfd_set_flow(fd, &flow, sizeof(flow)), -EINVAL, "a mark at the maximum");
	tap_is(flowfd_set_maximum(fd, 4), -EINVAL, "the maximum at a mark");
	tap_is(flowfd_get_flow(fd, &got, sizeof(got)), 0, "get policies");
	tap_is(got.read_mark, 4, "which are as before");
	close(fd);

	fd = flowfd_counter_create(1, FLOWFD_SEMAPHORE);
	flow.read_mark = 2;
	flow.max_delay = 0;
	flow.qos = (struct eventfd_qos){ 0, 0 };
	tap_is(flowfd_set_flow(fd, &flow, sizeof(flow)), -EINVAL, "a semaphore with a mark");
	flow.read_mark = 0;
	tap_is(flowfd_set_flow(fd, &flow, sizeof(flow)), 0, "and without");
	tap_is(flowfd_get_flow(fd, &got, sizeof(got)), 0, "get policies");
	tap_is(got.flags, FLOWFD_SEMAPHORE, "flags");
	close(fd);
}

static void test_stats(void)
{
	struct {
		struct flowfd_counter_stats stats;
		uint64_t more;
	} longer = { .more = 1 };
	struct flowfd_counter_stats stats;
	int fd = flowfd_counter_create(3, FLOWFD_NONBLOCK);
	uint64_t value;

	flowfd_write(fd, 4);
	flowfd_read(fd, &value);
	tap_is(flowfd_read(fd, &value), -EAGAIN, "nothing is left");
	tap_is(flowfd_counter_stats(fd, &stats, sizeof(stats)), 0, "statistics");
	tap_is(stats.produced, 7, "what was added");
	tap_is(stats.writes, 1, "by so many writes");
	tap_is(stats.reads, 1, "and taken");
	tap_is(stats.again, 1, "but once");
	tap_is(stats.highest, 7, "the highest count");
	tap_is(flowfd_counter_stats(fd, &longer.stats, sizeof(longer)), 0,
	       "a longer answer");
	tap_is(longer.stats.produced, 7, "has the same");
	tap_is(longer.more, 0, "and ends with zero");
	close(fd);
}

static void test_transfers(void)
{
	struct flowfd_flow flow = { .maximum = 10, .read_mark = 5 };
	int fd = flowfd_counter_create(0, 0);
	uint64_t value = 42;

	flowfd_set_flow(fd, &flow, sizeof(flow));
	tap_is(flowfd_read_with(fd, &value, 20 * MS, 0), -ETIMEDOUT, "nothing");
	tap_is(flowfd_read_with(fd, &value, 0, FLOWFD_NONBLOCK), -EAGAIN, "nor at once");
	tap_is(flowfd_write_with(fd, 2, 0, 0), 0, "below the mark");
	tap_is(flowfd_read_with(fd, &value, 20 * MS, 0), -ETIMEDOUT, "not ready");
	tap_is(value, 42, "the value stays");
	tap_is(flowfd_read_with(fd, &value, 0, FLOWFD_NONBLOCK), 0, "take what is there");
	tap_is(value, 2, "below the mark");
	tap_is(flowfd_write_with(fd, 1, 0, FLOWFD_URGENT), 0, "urgent");
	tap_is(flowfd_read_with(fd, &value, 0, 0), 0, "is ready");
	tap_is(value, 1, "below the mark");
	tap_is(flowfd_write_with(fd, 9, 0, 0), 0, "fill it");
	tap_is(flowfd_write_with(fd, 1, 20 * MS, 0), -ETIMEDOUT, "no room in time");
	tap_is(flowfd_write_with(fd, 1, 0, FLOWFD_NONBLOCK), -EAGAIN, "nor at once");
	tap_is(flowfd_write_with(fd, 10, 0, 0), -EINVAL, "what can never fit");
	tap_is(flowfd_write_with(fd, 1, 0, 1U << 31), -EINVAL, "unknown flag");
	tap_is(flowfd_read_with(fd, &value, 0, FLOWFD_URGENT), -EINVAL, "of writes");
	close(fd);
	fd = flowfd_counter_create(0, 0);
	flow.max_delay = 30 * MS;
	flowfd_set_flow(fd, &flow, sizeof(flow));
	flowfd_write(fd, 1);
	tap_is(flowfd_read_with(fd, &value, 60000 * MS, 0), 0, "ready after the delay");
	tap_is(value, 1, "below the mark");
	close(fd);
}

/* Many counters through one descriptor of the device. */
static void test_create_on(void)
{
	const struct flowfd_create_counter counter = { .initial = 3, .maximum = 10 };
	const struct flowfd_create_counter wrong = { .initial = 10, .maximum = 10 };
	const struct {
		struct flowfd_create_counter counter;
		uint64_t unknown;
	} newer = { .unknown = 1 };
	int device = flowfd_device_open();
	int fd = flowfd_counter_create_on(device, &counter, sizeof(counter));
	uint64_t value = 0;

	tap_is(fcntl(device, F_GETFD), FD_CLOEXEC, "the device is close-on-exec");
	tap_is(flowfd_read(fd, &value), 0, "read what was created on it");
	tap_is(value, 3, "as set");
	tap_is(flowfd_counter_create_on(fd, &counter, sizeof(counter)), -EPERM,
	       "it creates no others");
	tap_is(flowfd_counter_create_on(device, &wrong, sizeof(wrong)), -EINVAL,
	       "wrong settings");
	tap_is(flowfd_counter_create_on(device, &counter, 8), -EINVAL, "a short size");
	tap_is(flowfd_counter_create_on(device, &newer.counter, sizeof(newer)),
	       -EPROTONOSUPPORT, "a field that the module does not know");
	tap_is(flowfd_counter_create_on(-1, &counter, sizeof(counter)), -EBADF,
	       "no descriptor");
	tap_is(flowfd_counter_create_on(STDIN_FILENO, &counter, sizeof(counter)),
	       -ENOTTY, "another file");
	close(device);
	close(fd);
}

/* What takes two descriptors, and keeps the lower. */
static void test_mapped_number(int lowest)
{
	int fd = flowfd_counter_create(0, FLOWFD_MAPPED);

	tap_is(fd, lowest, "a mapped counter has the lowest number");
	tap_is(fcntl(fd, F_GETFD), FD_CLOEXEC, "and is close-on-exec");
	tap_is(fcntl(lowest + 1, F_GETFD), -1, "it alone");
	close(fd);
	fd = flowfd_counter_create(0, FLOWFD_MAPPED | FLOWFD_KEEP_ON_EXEC | FLOWFD_NONBLOCK);
	tap_is(fd, lowest, "another");
	tap_is(fcntl(fd, F_GETFD), 0, "kept on exec");
	tap_is(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK, "non-blocking");
	close(fd);
}

/*
 * A counter takes one descriptor, the lowest free one, and no second one temporarily. A
 * ring and a mapped counter take two, and keep the lower. A failure leaks none.
 */
static void test_full_table(void)
{
	struct flowfd_ring ring = {.fd = -1};
	int lowest = dup(STDERR_FILENO);
	struct rlimit limit;
	rlim_t all;

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &limit);
	all = limit.rlim_cur;
	limit.rlim_cur = lowest;
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_is(flowfd_counter_create(0, 0), -EMFILE, "no room");
	limit.rlim_cur = lowest + 1;
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_is(flowfd_counter_create(0, 0), lowest, "room for one descriptor");
	close(lowest);
	tap_is(flowfd_ring_create(&ring, 1, 0), -EMFILE, "too few for a ring");
	tap_is(flowfd_counter_create(0, FLOWFD_MAPPED), -EMFILE, "or a mapped counter");
	tap_is(fcntl(lowest, F_GETFD), -1, "nothing is left behind");
	limit.rlim_cur = all;
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_is(flowfd_ring_create(&ring, 1, 0), 0, "room for a ring");
	tap_is(ring.fd, lowest, "which has the lowest number");
	tap_is(fcntl(ring.fd, F_GETFD), FD_CLOEXEC, "and is close-on-exec");
	tap_is(fcntl(lowest + 1, F_GETFD), -1, "it alone");
	flowfd_ring_destroy(&ring);
	tap_is(flowfd_ring_create(&ring, 1, FLOWFD_KEEP_ON_EXEC), 0, "another");
	tap_is(fcntl(ring.fd, F_GETFD), 0, "kept on exec");
	flowfd_ring_destroy(&ring);
	test_mapped_number(lowest);
}

#define BOTH (FLOWFD_PRODUCER | FLOWFD_CONSUMER)

/* In memory and by calls: one count. */
static void test_mapped(void)
{
	const struct flowfd_create_counter settings = {
		.initial = 2,
		.maximum = 10,
		.flags = FLOWFD_MAPPED | FLOWFD_NONBLOCK,
	};
	int fd = flowfd_counter_create_from(&settings, sizeof(settings));
	struct pollfd poller = { .fd = fd, .events = POLLIN | POLLOUT };
	struct flowfd_counter c, producer, consumer;
	uint64_t value = 0;

	tap_is(flowfd_counter_map(&c, fd, BOTH), 0, "map");
	tap_is(flowfd_counter_is_mapped(&c), 1, "it is mapped");
	tap_is(flowfd_counter_map(&producer, fd, FLOWFD_PRODUCER), 0, "map for adds");
	tap_is(flowfd_counter_map(&consumer, fd, FLOWFD_CONSUMER), 0, "map for takes");
	tap_is(flowfd_add(&c, 3), 0, "add");
	tap_is(flowfd_add(&producer, 1), 0, "add by another mapping");
	tap_is(flowfd_write(fd, 1), 0, "write");
	tap_is(flowfd_add(&consumer, 2), 0, "add by who maps for takes");
	tap_is(flowfd_add(&c, 1), -EAGAIN, "to the maximum");
	tap_is(flowfd_add(&c, 10), -EINVAL, "what can never fit");
	tap_ok(poll(&poller, 1, 0) == 1 && poller.revents == POLLIN, "no room to poll");
	tap_is(flowfd_take(&consumer, &value), 0, "take");
	tap_is(value, 9, "all of it");
	tap_ok(poll(&poller, 1, 0) == 1 && poller.revents == POLLOUT, "nothing to poll");
	tap_is(flowfd_take(&c, &value), -EAGAIN, "nothing to take");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "at once, either");
	tap_is(flowfd_add(&c, 5), 0, "add");
	tap_is(flowfd_take(&producer, &value), 0, "take by who maps for adds");
	tap_is(value, 5, "what there is");
	tap_is(flowfd_set_maximum(fd, 3), 0, "a lower maximum");
	tap_is(flowfd_add(&c, 2), 0, "add below it");
	tap_is(flowfd_add(&c, 1), -EAGAIN, "and to it");
	tap_is(flowfd_read(fd, &value), 0, "read");
	tap_is(value, 2, "what was added in memory");
	flowfd_counter_unmap(&c);
	tap_is(flowfd_add(&c, 1), 0, "add after it is unmapped");
	tap_is(flowfd_try_take(&consumer, &value), 0, "and take");
	flowfd_counter_unmap(&producer);
	flowfd_counter_unmap(&consumer);
	close(fd);
	tap_is(flowfd_add(&c, 1), -EBADF, "add to a closed descriptor");
}

static void test_not_mapped(void)
{
	struct flowfd_ring ring = { .fd = -1 };
	struct flowfd_counter c = { .fd = 42 };
	int semaphore = flowfd_counter_create(2, FLOWFD_SEMAPHORE);
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t value = 0;

	tap_is(flowfd_counter_map(&c, fd, BOTH), -ENOTTY, "map an eventfd");
	close(fd);
	tap_is(flowfd_counter_map(&c, fd, BOTH), -EBADF, "map no descriptor");
	fd = epoll_create1(EPOLL_CLOEXEC);
	tap_is(flowfd_counter_map(&c, fd, BOTH), -ENOTTY, "map an epoll");
	close(fd);
	flowfd_ring_create(&ring, 1, 0);
	tap_is(flowfd_counter_map(&c, ring.fd, BOTH), -ENOTTY, "map a ring");
	flowfd_ring_destroy(&ring);
	tap_is(c.fd, 42, "what could not be mapped is as it was");
	tap_is(flowfd_counter_map(&c, semaphore, BOTH), 0, "map a semaphore");
	tap_is(flowfd_counter_is_mapped(&c), 0, "it is not mapped");
	tap_is(flowfd_add(&c, 1), 0, "add");
	tap_is(flowfd_take(&c, &value), 0, "take");
	tap_is(value, 1, "one");
	tap_is(flowfd_try_take(&c, &value), 0, "a second");
	tap_is(flowfd_try_take(&c, &value), 0, "and a third");
	tap_is(flowfd_try_take(&c, &value), -EAGAIN, "without waiting for a fourth");
	close(semaphore);
}

static void test_errno(void)
{
	uint64_t value = 0;
	int result;
	int fd;

	errno = 4711;
	fd = flowfd_counter_create(1, FLOWFD_NONBLOCK);
	flowfd_set_maximum(fd, 1);
	flowfd_set_bucket(fd, 0, 1);
	flowfd_read(fd, &value);
	flowfd_read(fd, &value);
	flowfd_write(fd, UINT64_MAX);
	result = errno;
	tap_is(result, 4711, "no call changes errno");
	close(fd);
}

static void test_bridge(void)
{
	int fd = flowfd_counter_create(0, FLOWFD_NONBLOCK);
	int in = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int out = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd p = {.fd = out, .events = POLLIN};
	uint64_t value = 0;

	errno = 77;
	tap_is(flowfd_bridge(fd, in, FLOWFD_BRIDGE_SOURCE), 0, "bridge a source");
	tap_is(flowfd_write(in, 3), 0, "write to its eventfd");
	tap_is(flowfd_read(fd, &value), 0, "read the counter");
	tap_is(value, 3, "what was written");
	tap_is(flowfd_bridge(fd, in, FLOWFD_BRIDGE_SOURCE), -EBUSY, "another source");
	tap_is(flowfd_bridge(fd, in, FLOWFD_BRIDGE_SINK), -EBUSY,
	       "the same eventfd");
	tap_is(flowfd_bridge(fd, out, FLOWFD_BRIDGE_SINK), 0, "bridge a sink");
	tap_is(flowfd_write(in, 1), 0, "write to the source");
	tap_is(poll(&p, 1, 10000), 1, "the sink is signalled");
	tap_is(flowfd_bridge(fd, -1, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE), 0,
	       "remove it");
	tap_is(flowfd_bridge(fd, -1, FLOWFD_BRIDGE_SINK | FLOWFD_BRIDGE_REMOVE), -ENOENT,
	       "again");
	tap_is(flowfd_bridge(fd, out, 0), -EINVAL, "no flag");
	tap_is(flowfd_bridge(fd, fd, FLOWFD_BRIDGE_SINK), -EINVAL, "no eventfd");
	tap_is(flowfd_bridge(fd, -1, FLOWFD_BRIDGE_SINK), -EBADF, "no descriptor");
	tap_is(flowfd_bridge(in, out, FLOWFD_BRIDGE_SINK), -ENOTTY, "no counter");
	tap_is(errno, 77, "errno is not changed");
	close(fd);
	close(in);
	close(out);
}

int main(void)
{
	if (access(FLOWFD_DEVICE, F_OK) < 0) {
		tap_skip("libflowfd with the module", "it is not loaded");
		return tap_done();
	}
	test_create();
	test_create_from();
	test_bridge();
	test_sizes();
	test_settings();
	test_flow();
	test_stats();
	test_transfers();
	test_create_on();
	test_full_table();
	test_mapped();
	test_not_mapped();
	test_errno();
	return tap_done();
}
