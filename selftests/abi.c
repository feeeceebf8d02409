// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ABI: ioctl numbers, layouts, sizes of structures, and the error of each wrong
 * call. Built for 64-bit and 32-bit callers, which must see no difference.
 */
#include <stddef.h>

#include "fixtures.h"
#include "ring_user.h"

/* Structures of a later header, as its callers will send them. */
struct future_create {
	struct flowfd_create_counter known;
	__u64 unknown[2];
};

struct future_query {
	struct flowfd_query known;
	__u64 unknown[2];
};

static unsigned long resized(unsigned long cmd, size_t size)
{
	return (cmd & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       size << _IOC_SIZESHIFT;
}

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

FIXTURE(device)
{
	int fd;
};

FIXTURE_SETUP(device)
{
	self->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(device)
{
	close(self->fd);
}

struct future_ring {
	struct flowfd_create_ring known;
	__u64 unknown[2];
};

/* Callers of either word size create rings with a structure of each size. */
TEST_F(device, ring_of_every_size)
{
	struct future_ring future;
	long fd;

	for (size_t size = 0; size <= sizeof(future); size++) {
		future = (struct future_ring){ .known.max_items = 3 };
		fd = call(self->fd, resized(FLOWFD_IOC_CREATE_RING, size),
			  &future);
		if (size < FLOWFD_CREATE_RING_SIZE_VER0) {
			EXPECT_EQ(-EINVAL, fd);
			continue;
		}
		ASSERT_LE(0, fd);
		EXPECT_EQ(PAGE, future.known.map_size);
		EXPECT_EQ(192, future.known.items_offset);
		EXPECT_EQ(256, future.known.index_offset);
		EXPECT_EQ(4, future.known.index_slots);
		close(fd);
	}
	future.unknown[1] = 1;
	EXPECT_EQ(-E2BIG, call(self->fd, resized(FLOWFD_IOC_CREATE_RING,
						 sizeof(future)), &future));
}

TEST_F(flowfd, ring_calls_of_every_size)
{
	struct flowfd_create_ring create = { .max_items = 2 };
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_ADD, .fd = self->fd,
		.events = EPOLLOUT | EPOLLET,
	};
	struct {
		struct flowfd_ring_control known;
		__u64 unknown;
	} control = { .known = { (uintptr_t)&entry, 1 } };
	struct {
		struct flowfd_ring_wait known;
		__u64 unknown;
	} wait = { 0 };
	long fd = ring_create(&create);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, call(fd, resized(FLOWFD_IOC_RING_CONTROL, 15),
				&control));
	EXPECT_EQ(0, call(fd, resized(FLOWFD_IOC_RING_CONTROL, 24), &control));
	EXPECT_EQ(0, entry.result);
	EXPECT_EQ(1, call(fd, resized(FLOWFD_IOC_RING_CONTROL, 16), &control));
	EXPECT_EQ(-EEXIST, entry.result);
	control.unknown = 1;
	EXPECT_EQ(-E2BIG, call(fd, resized(FLOWFD_IOC_RING_CONTROL, 24),
			       &control));
	control.known.flags = 1;
	EXPECT_EQ(-EINVAL, call(fd, FLOWFD_IOC_RING_CONTROL, &control));

	EXPECT_EQ(-EINVAL, call(fd, resized(FLOWFD_IOC_RING_WAIT, 39), &wait));
	EXPECT_EQ(1, call(fd, resized(FLOWFD_IOC_RING_WAIT, 48), &wait));
	wait.unknown = 1;
	EXPECT_EQ(-E2BIG, call(fd, resized(FLOWFD_IOC_RING_WAIT, 48), &wait));
	EXPECT_EQ(-EFAULT, call(fd, FLOWFD_IOC_RING_WAIT, NULL));
	EXPECT_EQ(-EFAULT, call(fd, FLOWFD_IOC_RING_CONTROL, NULL));

	/*
	 * A ring does not know the requests of a counter, nor a counter those of a
	 * ring.
	 */
	EXPECT_EQ(-ENOTTY, call(fd, EFD_IOC_GET_MAXIMUM, &wait));
	EXPECT_EQ(-ENOTTY, call(self->fd, FLOWFD_IOC_RING_WAIT, &wait));
	EXPECT_EQ(-ENOTTY, call(self->fd, FLOWFD_IOC_RING_CONTROL, &control));
	EXPECT_EQ(-EINVAL, result_of(read(fd, &wait, 7)));
	EXPECT_EQ(-EINVAL, result_of(write(fd, &wait, 8)));
	close(fd);
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

TEST_F(flowfd, bad_pointer)
{
	static const unsigned long all[] = {
		EFD_IOC_SET_MAXIMUM, EFD_IOC_GET_MAXIMUM, EFD_IOC_SET_QOS,
		EFD_IOC_GET_QOS, FLOWFD_IOC_QUERY,
	};
	char *page = page_before_a_hole();

	ASSERT_NE(MAP_FAILED, page);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		EXPECT_EQ(-EFAULT, call(self->fd, all[i], NULL));
		EXPECT_EQ(-EFAULT, call(self->fd, all[i], (void *)-8L));
		EXPECT_EQ(-EFAULT, call(self->fd, all[i], page + PAGE - 4))
			TH_LOG("ioctl %#lx", all[i]);
	}
	EXPECT_EQ(ULLONG_MAX, maximum_of(self->fd));
}

TEST_F(device, bad_pointer)
{
	static const unsigned long all[] = {
		FLOWFD_IOC_CREATE_COUNTER, FLOWFD_IOC_CREATE_RING,
		FLOWFD_IOC_SETUP_COUNTER,
	};
	char *page = page_before_a_hole();

	ASSERT_NE(MAP_FAILED, page);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		EXPECT_EQ(-EFAULT, call(self->fd, all[i], NULL));
		EXPECT_EQ(-EFAULT, call(self->fd, all[i], (void *)-8L));
		EXPECT_EQ(-EFAULT, call(self->fd, all[i], page + PAGE - 4))
			TH_LOG("ioctl %#lx", all[i]);
	}
}

TEST_F(flowfd, read_only_page)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(-EFAULT, call(self->fd, EFD_IOC_GET_MAXIMUM, page));
	EXPECT_EQ(-EFAULT, call(self->fd, EFD_IOC_GET_QOS, page));
	EXPECT_EQ(-EFAULT, call(self->fd, FLOWFD_IOC_QUERY, page));
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

TEST_F(flowfd, query_sizes)
{
	struct future_query future;

	for (size_t size = 0; size <= sizeof(future); size++) {
		unsigned long cmd = resized(FLOWFD_IOC_QUERY, size);

		memset(&future, 0xff, sizeof(future));
		if (size < FLOWFD_QUERY_SIZE_VER0) {
			EXPECT_EQ(-EINVAL, call(self->fd, cmd, &future));
			EXPECT_EQ(UINT_MAX, future.known.abi_version);
			continue;
		}
		ASSERT_EQ(0, call(self->fd, cmd, &future));
		EXPECT_EQ(FLOWFD_ABI_VERSION, future.known.abi_version);
		for (size_t i = 16; i < sizeof(future); i++) {
			EXPECT_EQ(i < size ? 0 : 0xff,
				  ((unsigned char *)&future)[i]);
		}
	}
}

TEST_F(flowfd, query_tail_at_a_bad_address)
{
	char *page = page_before_a_hole();

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(-EFAULT, call(self->fd, resized(FLOWFD_IOC_QUERY, 24),
				page + PAGE - 16));
	EXPECT_EQ(0, call(self->fd, FLOWFD_IOC_QUERY, page + PAGE - 16));
}

TEST_F(device, create_sizes)
{
	struct future_create future = { .known.initial = 5 };

	for (size_t size = 0; size <= sizeof(future); size++) {
		long fd = call(self->fd,
			       resized(FLOWFD_IOC_CREATE_COUNTER, size),
			       &future);

		if (size < FLOWFD_CREATE_COUNTER_SIZE_VER0) {
			EXPECT_EQ(-EINVAL, fd);
			continue;
		}
		ASSERT_LE(0, fd);
		EXPECT_EQ(5, count_of(fd));
		close(fd);
	}
	future.unknown[1] = 1;
	EXPECT_EQ(-E2BIG,
		  call(self->fd, resized(FLOWFD_IOC_CREATE_COUNTER,
					 sizeof(future)), &future));
	future.unknown[1] = 1ULL << 63;
	EXPECT_EQ(-E2BIG,
		  call(self->fd, resized(FLOWFD_IOC_CREATE_COUNTER,
					 sizeof(future)), &future));
	/* Beyond the size that was named nothing is looked at. */
	long fd = call(self->fd, resized(FLOWFD_IOC_CREATE_COUNTER,
					 sizeof(future) - 8), &future);
	EXPECT_LE(0, fd);
	close(fd);
}

TEST_HARNESS_MAIN
