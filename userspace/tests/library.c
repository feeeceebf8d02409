// SPDX-License-Identifier: GPL-2.0-only
/*
 * libflowfd without counters and rings: without the module, and on other descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <flowfd.h>

#include "tests/tap.h"

/* An errno that the library would not set. */
#define ERRNO_BEFORE 4711

static bool module_loaded(void)
{
	return access(FLOWFD_DEVICE, F_OK) == 0;
}

static void test_create(void)
{
	struct flowfd_create_counter counter = {.maximum = 10};
	const struct flowfd_key key = { .id = 1 };
	struct flowfd_query query;
	struct flowfd_ring ring;

	if (module_loaded()) {
		tap_skip("create without the module", "the module is loaded");
		return;
	}
	tap_is(flowfd_counter_create(0, 0), -ENODEV, "create");
	tap_is(flowfd_counter_create_from(&counter, sizeof(counter)), -ENODEV,
	       "create from a structure");
	tap_is(flowfd_query(&query, sizeof(query)), -ENODEV, "query");
	tap_is(flowfd_ring_create(&ring, 1, 0), -ENODEV, "create a ring");
	tap_is(flowfd_open_shared(&key, 0), -ENODEV, "open by a key");
}

static void test_sizes(void)
{
	static union {
		struct flowfd_create_counter counter;
		struct flowfd_query query;
		struct flowfd_flow flow;
		struct flowfd_counter_stats stats;
		struct flowfd_ring_stats ring_stats;
		char bytes[1 << 14];
	} big;
	const struct flowfd_ring no_ring = {.fd = -1};

	tap_is(flowfd_counter_create_from(&big.counter, sizeof(big)), -EINVAL,
	       "a structure larger than an ioctl takes");
	tap_is(flowfd_query(&big.query, sizeof(big)), -EINVAL,
	       "a query larger than an ioctl takes");
	tap_is(flowfd_set_flow(-1, &big.flow, sizeof(big)), -EINVAL,
	       "policies larger than an ioctl takes");
	tap_is(flowfd_get_flow(-1, &big.flow, sizeof(big)), -EINVAL, "to get, too");
	tap_is(flowfd_set_flow(-1, &big.flow, FLOWFD_FLOW_SIZE_VER0 - 8), -EINVAL,
	       "policies shorter than any version has them");
	tap_is(flowfd_get_flow(-1, &big.flow, FLOWFD_FLOW_SIZE_VER0 - 8), -EINVAL,
	       "to get, too");
	tap_is(flowfd_counter_stats(-1, &big.stats, sizeof(big)), -EINVAL,
	       "statistics larger than an ioctl takes");
	tap_is(flowfd_counter_stats(-1, &big.stats, FLOWFD_COUNTER_STATS_SIZE_VER0 - 8),
	       -EINVAL, "statistics shorter than any version has them");
	tap_is(flowfd_ring_stats(&no_ring, &big.ring_stats, sizeof(big)), -EINVAL,
	       "the same of a ring");
	tap_is(flowfd_ring_stats(&no_ring, &big.ring_stats,
				 FLOWFD_RING_STATS_SIZE_VER0 - 8),
	       -EINVAL, "and again");
}

static void test_settings(int fd, int wanted, const char *kind)
{
	uint64_t maximum;
	uint32_t capacity;
	uint32_t rate;
	struct flowfd_flow flow = { .count = 42 };
	struct flowfd_counter_stats stats = { .writes = 42 };
	struct flowfd_key key = { .id = 42 };
	uint64_t value = 42;

	printf("# %s\n", kind);
	tap_is(flowfd_set_maximum(fd, 10), wanted, "set maximum");
	tap_is(flowfd_get_maximum(fd, &maximum), wanted, "get maximum");
	tap_is(flowfd_set_bucket(fd, 1, 1), wanted, "set bucket");
	tap_is(flowfd_get_bucket(fd, &capacity, &rate), wanted, "get bucket");
	tap_is(flowfd_set_flow(fd, &flow, sizeof(flow)), wanted, "set policies");
	tap_is(flowfd_get_flow(fd, &flow, sizeof(flow)), wanted, "get policies");
	tap_is(flow.count, 42, "which stay");
	tap_is(flowfd_counter_stats(fd, &stats, sizeof(stats)), wanted, "statistics");
	tap_is(stats.writes, 42, "which stay, too");
	tap_is(flowfd_write_with(fd, 1, 0, 0), wanted, "a write with a timeout");
	tap_is(flowfd_read_with(fd, &value, 0, 0), wanted, "a read with a timeout");
	tap_is(value, 42, "which takes nothing");
	tap_is(flowfd_share(fd, &key), wanted, "a key");
	tap_is(key.id, 42, "which stays as it was");
}

static void test_other_files(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	int ends[2];

	test_settings(-1, -EBADF, "no descriptor");
	test_settings(fd, -ENOTTY, "an eventfd");
	close(fd);
	test_settings(fd, -EBADF, "a closed descriptor");
	if (pipe(ends) < 0)
		return;
	test_settings(ends[0], -ENOTTY, "a pipe");
	close(ends[0]);
	close(ends[1]);
}

static void test_no_ring(void)
{
	struct flowfd_ring ring = {.fd = eventfd(0, EFD_CLOEXEC)};
	struct flowfd_ring other = {.fd = 42};
	struct flowfd_ring_wait args = {.timeout = 0};
	struct flowfd_ring_stats stats;

	tap_is(flowfd_ring_attach(&other, -1), -EBADF, "attach no descriptor");
	tap_is(flowfd_ring_attach(&other, ring.fd), -ENOTTY, "attach no ring");
	tap_is(other.fd, 42, "what could not be attached is as it was");
	tap_is(flowfd_ring_add(&ring, 0, 0, 0), -ENOTTY, "add to no ring");
	tap_is(flowfd_ring_add_pinned(&ring, 0, 0, 0), -ENOTTY, "nor pinned");
	tap_is(flowfd_ring_del_data(&ring, 0), -ENOTTY, "nor removed by data");
	tap_is(flowfd_ring_wait(&ring, 0), -ENOTTY, "wait for no ring");
	tap_is(flowfd_ring_stats(&ring, &stats, sizeof(stats)), -ENOTTY,
	       "statistics of no ring");
	tap_is(flowfd_ring_wait_with(&ring, &args, 1 << 14), -EINVAL,
	       "arguments larger than an ioctl takes");
	close(ring.fd);
}

static void test_short_transfers(void)
{
	uint64_t value = 42;
	int ends[2];

	if (pipe2(ends, O_NONBLOCK) < 0)
		return;
	tap_is(write(ends[1], "abc", 3), 3, "three bytes in a pipe");
	tap_is(flowfd_read(ends[0], &value), -EIO, "read three bytes");
	tap_is(value, 42, "a failed read leaves the value alone");
	tap_is(flowfd_read(ends[0], &value), -EAGAIN, "read an empty pipe");
	close(ends[1]);
	tap_is(flowfd_read(ends[0], &value), -EIO, "read at end of file");
	tap_is(flowfd_write(ends[0], 1), -EBADF, "write to a reading end");
	tap_is(flowfd_write(-1, 1), -EBADF, "write to no descriptor");
	tap_is(flowfd_read(-1, &value), -EBADF, "read from no descriptor");
	close(ends[0]);
}

/* What a text must say, of which errno's own words would say something else. */
static void test_texts(void)
{
	static const struct {
		const char *(*text)(int error);
		int error;
		const char *says;
	} texts[] = {
		{ flowfd_strerror, ENODEV, "modprobe flowfd" },
		{ flowfd_strerror, ENODEV, "flowfd-dkms" },
		{ flowfd_strerror, EACCES, FLOWFD_DEVICE },
		{ flowfd_strerror, EPROTONOSUPPORT, "module is too old" },
		{ flowfd_strerror, EPROTONOSUPPORT, FLOWFD_VERSION },
		{ flowfd_strerror, EOPNOTSUPP, "modprobe flowfd" },
		{ flowfd_strerror, ETIMEDOUT, "time for the call" },
		{ flowfd_strerror, EINVAL, "below the maximum" },
		{ flowfd_strerror, ENOMEM, "RLIMIT_MEMLOCK" },
		{ flowfd_strerror, ENOTTY, "flowfd_add()" },
		{ flowfd_strerror, EIO, "not a counter" },
		{ flowfd_strerror, ENOENT, "key" },
		{ flowfd_flow_strerror, EINVAL, "max_delay" },
		{ flowfd_flow_strerror, EPERM, "FLOWFD_SEAL" },
		{ flowfd_flow_strerror, ENOTTY, "FLOWFD_HAS_FLOW" },
		{ flowfd_flow_strerror, EOPNOTSUPP, "only the flowfd module" },
		{ flowfd_flow_strerror, EPROTONOSUPPORT, "module is too old" },
		{ flowfd_flow_strerror, ENOMEM, "RLIMIT_MEMLOCK" },
		{ flowfd_bridge_strerror, EINVAL, "eventfd(2)" },
		{ flowfd_bridge_strerror, EBADF, "not open for writing" },
		{ flowfd_bridge_strerror, EBUSY, "such a bridge already" },
		{ flowfd_bridge_strerror, ENOENT, "no such bridge" },
		{ flowfd_bridge_strerror, ENOTTY, "FLOWFD_FEATURE_BRIDGE" },
		{ flowfd_bridge_strerror, ENOMEM, "RLIMIT_MEMLOCK" },
		{ flowfd_ring_strerror, EINVAL, "EPOLLET" },
		{ flowfd_ring_strerror, EPERM, "regular file" },
		{ flowfd_ring_strerror, ELOOP, "an epoll" },
		{ flowfd_ring_strerror, EOPNOTSUPP, "two wait queues" },
		{ flowfd_ring_strerror, EEXIST, "flowfd_ring_mod()" },
		{ flowfd_ring_strerror, ENOENT, "nothing with this data" },
		{ flowfd_ring_strerror, ENOSPC, "max_items" },
		{ flowfd_ring_strerror, EBADF, "flowfd_ring_del_data" },
		{ flowfd_ring_strerror, ENOTTY, "not a ring" },
		{ flowfd_ring_strerror, ENOMEM, "RLIMIT_MEMLOCK" },
		{ flowfd_ring_strerror, ENODEV, "modprobe flowfd" },
	};
	/* Of these there is nothing else to say. */
	static const struct {
		const char *(*text)(int error);
		int error;
	} others[] = {
		{ flowfd_strerror, EBADF },	  { flowfd_strerror, 0 },
		{ flowfd_flow_strerror, EINTR },  { flowfd_bridge_strerror, EINTR },
		{ flowfd_ring_strerror, EINTR },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		tap_ok(strstr(texts[i].text(-texts[i].error), texts[i].says), texts[i].says);
		tap_is(strcmp(texts[i].text(texts[i].error), texts[i].text(-texts[i].error)),
		       0, "a positive number is the same error");
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		tap_is(strcmp(others[i].text(-others[i].error), strerror(others[i].error)), 0,
		       "as strerror()");
	tap_is(strcmp(flowfd_version(), FLOWFD_VERSION), 0, "version");
}

static void test_times(void)
{
	int milliseconds = 5000;

	tap_is(FLOWFD_MS(50), 50000000, "FLOWFD_MS");
	tap_ok(FLOWFD_MS(milliseconds) == 5000000000ULL, "beyond 32 bits");
	tap_ok(FLOWFD_SEC(3600) == 3600000000000ULL, "FLOWFD_SEC");
	tap_is(FLOWFD_SEC(0.25), 250000000, "parts of a second");
	tap_ok(FLOWFD_SEC(1 + 1) == FLOWFD_MS(1999 + 1), "of an expression");
}

/* Printing may change errno, so all calls come first. */
static void test_errno(void)
{
	struct flowfd_create_counter counter = {.initial = 1, .maximum = 1};
	struct flowfd_flow flow = { 0 };
	struct flowfd_query query;
	struct flowfd_counter_stats stats;
	struct flowfd_ring_stats ring_stats;
	const struct flowfd_ring no_ring = {.fd = -1};
	struct flowfd_ring ring;
	uint64_t value;
	uint32_t word;
	int fd = eventfd(1, EFD_NONBLOCK);
	int result;

	errno = ERRNO_BEFORE;
	flowfd_counter_create(UINT64_MAX, 0);
	flowfd_counter_create_from(&counter, sizeof(counter));
	flowfd_query(&query, sizeof(query));
	flowfd_ring_create(&ring, 0, 0);
	flowfd_ring_attach(&ring, fd);
	flowfd_set_maximum(fd, 10);
	flowfd_get_maximum(-1, &value);
	flowfd_set_bucket(fd, 1, 1);
	flowfd_get_bucket(-1, &word, &word);
	flowfd_write(-1, 1);
	flowfd_read(fd, &value);
	flowfd_read(fd, &value);
	flowfd_set_flow(fd, &flow, sizeof(flow));
	flowfd_get_flow(-1, &flow, sizeof(flow));
	flowfd_write_with(fd, 1, 1, 0);
	flowfd_read_with(-1, &value, 1, 0);
	flowfd_counter_stats(fd, &stats, sizeof(stats));
	flowfd_ring_stats(&no_ring, &ring_stats, sizeof(ring_stats));
	result = errno;
	tap_is(result, ERRNO_BEFORE, "no call changes errno");
	close(fd);
}

static void *create_while_cancelled(void *unused)
{
	int fd;

	pthread_cancel(pthread_self());
	fd = flowfd_counter_create(0, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (fd >= 0)
		close(fd);
	return unused;
}

/* A descriptor would leak. */
static void test_cancellation(void)
{
	pthread_t thread;
	void *result;

	pthread_create(&thread, NULL, create_while_cancelled, NULL);
	pthread_join(thread, &result);
	tap_ok(result != PTHREAD_CANCELED, "creating is no cancellation point");
}

int main(void)
{
	test_create();
	test_cancellation();
	test_sizes();
	test_other_files();
	test_no_ring();
	test_short_transfers();
	test_errno();
	test_texts();
	test_times();
	return tap_done();
}
