// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ABI: ioctl numbers, layouts, sizes of structures, and the error of each wrong
 * call. Built for 64-bit and 32-bit callers, which must see no difference.
 */
#include <stddef.h>

#include "fixtures.h"
#include "ring_user.h"

static long call(int fd, unsigned long cmd, void *arg)
{
	return result_of(syscall(SYS_ioctl, fd, cmd, arg));
}

/* EFD_IOC_*: the numbers of the patches that proposed them. */
TEST(numbers)
{
	EXPECT_EQ(0x40084a00, EFD_IOC_SET_MAXIMUM);
	EXPECT_EQ(0x80084a01, EFD_IOC_GET_MAXIMUM);
	EXPECT_EQ(0x40084500, EFD_IOC_SET_QOS);
	EXPECT_EQ(0x80084500, EFD_IOC_GET_QOS);
	EXPECT_EQ(0x80104a10, FLOWFD_IOC_QUERY);
	EXPECT_EQ(0x40204a11, FLOWFD_IOC_CREATE_COUNTER);
	EXPECT_EQ(0xc0184a12, FLOWFD_IOC_CREATE_RING);
	EXPECT_EQ(0x40104a13, FLOWFD_IOC_RING_CONTROL);
	EXPECT_EQ(0x40284a14, FLOWFD_IOC_RING_WAIT);
	EXPECT_EQ(0x40204a15, FLOWFD_IOC_SETUP_COUNTER);
	EXPECT_EQ(0x80184a16, FLOWFD_IOC_RING_INFO);
	EXPECT_EQ(0x4a17, FLOWFD_IOC_COUNTER_NOTIFY);
	EXPECT_EQ(0x4a19, FLOWFD_IOC_COUNTER_ID);
	EXPECT_EQ(0x80504a1e, FLOWFD_IOC_COUNTER_STATS);
	EXPECT_EQ(0x80204a1f, FLOWFD_IOC_RING_STATS);
	EXPECT_EQ(0x40084a20, FLOWFD_IOC_COUNTER_BRIDGE);
	EXPECT_EQ(0xc0204a22, FLOWFD_IOC_SHARE);
	EXPECT_EQ(0x40204a23, FLOWFD_IOC_OPEN);
}

TEST(layouts)
{
	EXPECT_EQ(8, sizeof(struct eventfd_qos));
	EXPECT_EQ(0, offsetof(struct eventfd_qos, token_capacity));
	EXPECT_EQ(4, offsetof(struct eventfd_qos, token_rate));

	EXPECT_EQ(16, sizeof(struct flowfd_query));
	EXPECT_EQ(0, offsetof(struct flowfd_query, abi_version));
	EXPECT_EQ(4, offsetof(struct flowfd_query, token_rate_max));
	EXPECT_EQ(8, offsetof(struct flowfd_query, features));

	EXPECT_EQ(32, sizeof(struct flowfd_create_counter));
	EXPECT_EQ(0, offsetof(struct flowfd_create_counter, initial));
	EXPECT_EQ(8, offsetof(struct flowfd_create_counter, maximum));
	EXPECT_EQ(16, offsetof(struct flowfd_create_counter, flags));
	EXPECT_EQ(20, offsetof(struct flowfd_create_counter, reserved));
	EXPECT_EQ(24, offsetof(struct flowfd_create_counter, qos));

	EXPECT_EQ(80, sizeof(struct flowfd_counter_stats));
}

TEST(layouts_of_a_bridge)
{
	EXPECT_EQ(8, sizeof(struct flowfd_bridge));
	EXPECT_EQ(0, offsetof(struct flowfd_bridge, eventfd));
	EXPECT_EQ(4, offsetof(struct flowfd_bridge, flags));
}

TEST(layouts_of_a_mapped_counter)
{
	EXPECT_EQ(40, sizeof(struct flowfd_counter_header));
	EXPECT_EQ(8, offsetof(struct flowfd_counter_header, page_size));
	EXPECT_EQ(12, offsetof(struct flowfd_counter_header, flags));
	EXPECT_EQ(16, offsetof(struct flowfd_counter_header, maximum));
	EXPECT_EQ(24, offsetof(struct flowfd_counter_header, closes));
	EXPECT_EQ(32, offsetof(struct flowfd_counter_header, id));
	EXPECT_EQ(8, sizeof(struct flowfd_counter_producer));
	EXPECT_EQ(16, sizeof(struct flowfd_counter_consumer));
	EXPECT_EQ(8, offsetof(struct flowfd_counter_consumer, armed));
}

TEST(layouts_of_the_ring)
{
	EXPECT_EQ(24, sizeof(struct flowfd_create_ring));
	EXPECT_EQ(8, offsetof(struct flowfd_create_ring, map_size));
	EXPECT_EQ(20, offsetof(struct flowfd_create_ring, index_slots));

	EXPECT_EQ(192, sizeof(struct flowfd_ring_header));
	EXPECT_EQ(16, offsetof(struct flowfd_ring_header, map_size));
	EXPECT_EQ(32, offsetof(struct flowfd_ring_header, flags));
	EXPECT_EQ(64, offsetof(struct flowfd_ring_header, head));
	EXPECT_EQ(68, offsetof(struct flowfd_ring_header, taken));
	EXPECT_EQ(128, offsetof(struct flowfd_ring_header, posted));
	EXPECT_EQ(132, offsetof(struct flowfd_ring_header, armed));

	EXPECT_EQ(16, sizeof(struct flowfd_ring_item));
	EXPECT_EQ(4, offsetof(struct flowfd_ring_item, queued));
	EXPECT_EQ(8, offsetof(struct flowfd_ring_item, data));

	EXPECT_EQ(24, sizeof(struct flowfd_ring_entry));
	EXPECT_EQ(12, offsetof(struct flowfd_ring_entry, result));
	EXPECT_EQ(16, offsetof(struct flowfd_ring_entry, data));
	EXPECT_EQ(16, sizeof(struct flowfd_ring_control));
	EXPECT_EQ(8, offsetof(struct flowfd_ring_control, count));

	EXPECT_EQ(40, sizeof(struct flowfd_ring_wait));
	EXPECT_EQ(16, offsetof(struct flowfd_ring_wait, sigmask));
	EXPECT_EQ(24, offsetof(struct flowfd_ring_wait, sigmask_size));
	EXPECT_EQ(36, offsetof(struct flowfd_ring_wait, reserved));
}

/* By literal numbers, as a program without this header would call. */
TEST_F(flowfd, numbers_work)
{
	__u64 maximum = 10;
	__u32 qos[2] = { 3, 50 };

	EXPECT_EQ(0, call(self->fd, 0x40084a00, &maximum));
	maximum = 0;
	EXPECT_EQ(0, call(self->fd, 0x80084a01, &maximum));
	EXPECT_EQ(10, maximum);
	EXPECT_EQ(0, call(self->fd, 0x40084500, qos));
	memset(qos, 0, sizeof(qos));
	EXPECT_EQ(0, call(self->fd, 0x80084500, qos));
	EXPECT_EQ(3, qos[0]);
	EXPECT_EQ(50, qos[1]);
}

TEST_F(flowfd, unknown_ioctl)
{
	const unsigned long unknown[] = {
		_IOR('J', 0, __u64),		/* wrong direction */
		_IOW('J', 1, __u64),
		_IOWR('J', 0, __u64),
		_IO('J', 0),
		_IO('J', 0x11),
		_IOW('J', 0, __u32),		/* wrong size */
		_IOW('K', 0, __u64),		/* wrong type */
		_IOW('J', 2, __u64),		/* wrong number */
		_IOW('J', 0x0f, struct flowfd_create_counter),
		_IOW('J', 0x12, struct flowfd_create_counter),
		_IOR('J', 0x11, struct flowfd_create_counter),
		_IOWR('J', 0x11, struct flowfd_create_counter),
		_IOW('J', 0x10, struct flowfd_query),
		_IOW('J', 0x1e, struct flowfd_counter_stats),
		_IOW('E', 1, struct eventfd_qos),
		_IOWR('E', 0, struct eventfd_qos),
		0,
		0xffffffff,
		0x5401,				/* TCGETS */
	};
	__u64 buffer[8] = { 100 };

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		EXPECT_EQ(-ENOTTY, call(self->fd, unknown[i], buffer))
			TH_LOG("ioctl %#lx", unknown[i]);
	}
	EXPECT_EQ(ULLONG_MAX, maximum_of(self->fd));
}

TEST_F(flowfd, query)
{
	struct flowfd_query query = { 0 };

	ASSERT_EQ(0, call(self->fd, FLOWFD_IOC_QUERY, &query));
	EXPECT_EQ(FLOWFD_ABI_VERSION, query.abi_version);
	EXPECT_EQ(1000000000, query.token_rate_max);
	EXPECT_EQ(FLOWFD_FEATURE_MAXIMUM | FLOWFD_FEATURE_QOS |
		  FLOWFD_FEATURE_RING | FLOWFD_FEATURE_SETUP |
		  FLOWFD_FEATURE_MAPPED | FLOWFD_FEATURE_POSTS |
		  FLOWFD_FEATURE_FLOW | FLOWFD_FEATURE_STATS |
		  FLOWFD_FEATURE_BRIDGE | FLOWFD_FEATURE_BALANCE |
		  FLOWFD_FEATURE_SHARE,
		  query.features);
}

/* A ring does not know the requests of a counter, nor a counter those of a ring. */
TEST_F(flowfd, requests_of_others)
{
	struct flowfd_create_ring create = { .max_items = 2 };
	__u64 buffer[8] = { 0 };
	long fd = ring_create(&create);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOTTY, call(fd, EFD_IOC_GET_MAXIMUM, buffer));
	EXPECT_EQ(-ENOTTY, call(fd, FLOWFD_IOC_GET_FLOW, buffer));
	EXPECT_EQ(-ENOTTY, call(fd, FLOWFD_IOC_SET_FLOW, buffer));
	EXPECT_EQ(-ENOTTY, call(self->fd, FLOWFD_IOC_RING_WAIT, buffer));
	EXPECT_EQ(-ENOTTY, call(self->fd, FLOWFD_IOC_RING_CONTROL, buffer));
	EXPECT_EQ(-ENOTTY, call(self->fd, FLOWFD_IOC_RING_STATS, buffer));
	EXPECT_EQ(-EINVAL, result_of(read(fd, buffer, 7)));
	EXPECT_EQ(-EINVAL, result_of(write(fd, buffer, 8)));
	buffer[1] = 1ULL << 32;		/* flags */
	EXPECT_EQ(-EINVAL, call(fd, FLOWFD_IOC_RING_CONTROL, buffer));
	close(fd);
}

enum target { COUNTER, DEVICE_FILE, RING_FILE };

/*
 * Requests with a structure. @least: its size in the first version of the ABI, or 0 if it
 * cannot grow. @argument: one with which it succeeds, or NULL if there is only an answer.
 */
static const struct request {
	unsigned long cmd;
	const char *name;
	size_t least;
	enum target target;
	bool answers;
	const void *argument;
} requests[] = {
#define REQUEST(cmd, ...) { cmd, #cmd, __VA_ARGS__ }
#define ARGUMENT(...) &(const __VA_ARGS__)
	REQUEST(EFD_IOC_SET_MAXIMUM, 0, COUNTER, false, ARGUMENT(__u64){ 10 }),
	REQUEST(EFD_IOC_GET_MAXIMUM, 0, COUNTER, true),
	REQUEST(EFD_IOC_SET_QOS, 0, COUNTER, false, ARGUMENT(struct eventfd_qos){ 1, 1 }),
	REQUEST(EFD_IOC_GET_QOS, 0, COUNTER, true),
	REQUEST(FLOWFD_IOC_QUERY, FLOWFD_QUERY_SIZE_VER0, COUNTER, true),
	REQUEST(FLOWFD_IOC_SET_FLOW, FLOWFD_FLOW_SIZE_VER0, COUNTER, false,
		ARGUMENT(struct flowfd_flow){ .maximum = 1000 }),
	REQUEST(FLOWFD_IOC_GET_FLOW, FLOWFD_FLOW_SIZE_VER0, COUNTER, true),
	REQUEST(FLOWFD_IOC_COUNTER_WRITE, FLOWFD_TRANSFER_SIZE_VER0, COUNTER, false,
		ARGUMENT(struct flowfd_transfer){ .value = 5 }),
	REQUEST(FLOWFD_IOC_COUNTER_READ, FLOWFD_TRANSFER_SIZE_VER0, COUNTER, true,
		ARGUMENT(struct flowfd_transfer){ .value = 5 }),
	REQUEST(FLOWFD_IOC_COUNTER_STATS, FLOWFD_COUNTER_STATS_SIZE_VER0, COUNTER, true),
	REQUEST(FLOWFD_IOC_CREATE_COUNTER, FLOWFD_CREATE_COUNTER_SIZE_VER0, DEVICE_FILE,
		false, ARGUMENT(struct flowfd_create_counter){ .initial = 5 }),
	REQUEST(FLOWFD_IOC_SETUP_COUNTER, FLOWFD_CREATE_COUNTER_SIZE_VER0, DEVICE_FILE,
		false, ARGUMENT(struct flowfd_create_counter){ .initial = 5 }),
	REQUEST(FLOWFD_IOC_CREATE_RING, FLOWFD_CREATE_RING_SIZE_VER0, DEVICE_FILE, true,
		ARGUMENT(struct flowfd_create_ring){ .max_items = 3 }),
	REQUEST(FLOWFD_IOC_RING_CONTROL, FLOWFD_RING_CONTROL_SIZE_VER0, RING_FILE, false,
		ARGUMENT(struct flowfd_ring_control){ 0 }),
	REQUEST(FLOWFD_IOC_RING_WAIT, FLOWFD_RING_WAIT_SIZE_VER0, RING_FILE, false,
		ARGUMENT(struct flowfd_ring_wait){ 0 }),
	REQUEST(FLOWFD_IOC_RING_INFO, FLOWFD_CREATE_RING_SIZE_VER0, RING_FILE, true),
	REQUEST(FLOWFD_IOC_RING_STATS, FLOWFD_RING_STATS_SIZE_VER0, RING_FILE, true),
};

static int target_open(enum target target)
{
	struct flowfd_create_ring args = { .max_items = 2 };

	switch (target) {
	case COUNTER:
		return open_counter(CREATED, 3, EFD_NONBLOCK);
	case DEVICE_FILE:
		return open(DEVICE, O_RDWR | O_CLOEXEC);
	default:
		return ring_create(&args);
	}
}

/*
 * What a request does: its result, or 0 for a descriptor, and the counter afterwards.
 * Without padding: outcomes are compared as bytes.
 */
struct outcome {
	__s64 result;
	__u64 count;
	__u64 maximum;
	struct eventfd_qos qos;
};

static struct outcome outcome_of(long result, int fd)
{
	return (struct outcome){ result, count_of(fd), maximum_of(fd), qos_of(fd) };
}

/* With a descriptor that nobody has used. A request that fails changes nothing. */
static struct outcome make_request(struct __test_metadata *_metadata,
				   const struct request *r, size_t size, void *arg)
{
	int fd = target_open(r->target);
	struct outcome before = outcome_of(0, fd), outcome;
	long result;

	EXPECT_LE(0, fd);
	result = call(fd, resized(r->cmd, size), arg);
	outcome = outcome_of(result, fd);
	if (result < 0) {
		before.result = result;
		EXPECT_EQ(0, memcmp(&before, &outcome, sizeof(before)))
			TH_LOG("%s", r->name);
	}
	if (result > 0) {
		if (r->cmd == FLOWFD_IOC_CREATE_COUNTER)
			EXPECT_EQ(5, count_of(result));
		close(result);
		outcome.result = 0;
	}
	close(fd);
	return outcome;
}

#define EXPECT_RESULT(expected, r, size, arg) \
	EXPECT_EQ(expected, make_request(_metadata, r, size, arg).result) \
		TH_LOG("%s of %zu bytes", (r)->name, (size_t)(size))

/* What is longer than the structure that is known. */
#define TAIL 16
#define LONGEST (FLOWFD_COUNTER_STATS_SIZE_VER0 + TAIL)

static void prepare(const struct request *r, unsigned char *bytes, size_t size)
{
	memset(bytes, r->argument ? 0 : 0xff, size);
	if (r->argument)
		memcpy(bytes, r->argument, _IOC_SIZE(r->cmd));
}

/* A longer structure does what the known one does; the end of an answer is zeroed. */
static void expect_sizes(struct __test_metadata *_metadata, const struct request *r)
{
	unsigned char bytes[LONGEST], before[LONGEST], known[LONGEST];
	struct outcome exact, outcome;

	prepare(r, known, sizeof(known));
	exact = make_request(_metadata, r, r->least, known);
	EXPECT_EQ(0, exact.result) TH_LOG("%s", r->name);
	for (size_t size = 0; size <= r->least + TAIL; size++) {
		prepare(r, bytes, sizeof(bytes));
		memcpy(before, bytes, sizeof(bytes));
		outcome = make_request(_metadata, r, size, bytes);
		if (size < r->least) {
			EXPECT_EQ(-EINVAL, outcome.result) TH_LOG("%s", r->name);
			EXPECT_EQ(0, memcmp(before, bytes, sizeof(bytes)));
			continue;
		}
		EXPECT_EQ(0, memcmp(&exact, &outcome, sizeof(exact)))
			TH_LOG("%s of %zu bytes: %lld", r->name, size, outcome.result);
		EXPECT_EQ(0, memcmp(known, bytes, r->least))
			TH_LOG("%s of %zu bytes", r->name, size);
		for (size_t i = r->least; i < sizeof(bytes); i++)
			EXPECT_EQ(i < size ? 0 : before[i], bytes[i]);
	}
	if (!r->argument)
		return;
	for (int bit = 0; bit < 8; bit += 7) {
		prepare(r, bytes, sizeof(bytes));
		bytes[r->least + TAIL - 1] = 1 << bit;
		EXPECT_RESULT(-E2BIG, r, r->least + TAIL, bytes);
		/* Beyond the size that was named nothing is looked at. */
		EXPECT_RESULT(0, r, r->least + TAIL - 8, bytes);
	}
}

TEST(sizes)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		if (requests[i].least)
			expect_sizes(_metadata, &requests[i]);
	}
}

TEST(bad_pointers)
{
	char *page = page_before_a_hole();

	ASSERT_NE(MAP_FAILED, page);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		const struct request *r = &requests[i];
		size_t size = _IOC_SIZE(r->cmd);
		unsigned char *at = (unsigned char *)page + PAGE - size;

		EXPECT_RESULT(-EFAULT, r, size, NULL);
		EXPECT_RESULT(-EFAULT, r, size, (void *)-8L);
		EXPECT_RESULT(-EFAULT, r, size, page + PAGE - 4);
		prepare(r, at, size);
		EXPECT_RESULT(0, r, size, at);
		if (r->least)
			EXPECT_RESULT(-EFAULT, r, size + 8, at);
		prepare(r, at, size);
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ));
		EXPECT_RESULT(r->answers ? -EFAULT : 0, r, size, at);
		ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
	}
}

TEST_HARNESS_MAIN
