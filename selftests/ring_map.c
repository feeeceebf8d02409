// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a ring: its layout, the ways to map it, and how long it lives.
 * ring_charge.c tests to whom it is charged.
 */
#include "ring_user.h"

static long try_create(struct flowfd_create_ring args)
{
	long fd = ring_create(&args);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST(sizes)
{
	/* With 184, the slots end with a page, but for the extra one that stays 0. */
	static const __u32 sizes[] = { 1, 2, 3, 4, 5, 63, 64, 65, 184, 1000,
				       4096, 100000, FLOWFD_RING_ITEMS_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct user_ring r;
		__u32 slots = 1;

		while (slots < sizes[i])
			slots *= 2;
		ASSERT_EQ(0, ring_open(&r, sizes[i]));
		EXPECT_EQ(FLOWFD_RING_MAGIC, r.header->magic);
		EXPECT_EQ(FLOWFD_RING_VERSION, r.header->version);
		EXPECT_EQ(192, r.header->header_size);
		EXPECT_EQ(sizes[i], r.header->max_items);
		EXPECT_EQ(r.map_size, r.header->map_size);
		EXPECT_EQ(192, r.header->items_offset);
		EXPECT_EQ((char *)r.index - (char *)r.header,
			  r.header->index_offset);
		EXPECT_EQ(slots, r.header->index_slots);
		EXPECT_EQ(0, r.header->flags);
		EXPECT_EQ(0, r.header->head);
		EXPECT_LE(192 + sizes[i] * 16, r.header->index_offset);
		EXPECT_LE(r.header->index_offset + slots * 4 + 4, r.map_size);
		EXPECT_EQ(0, r.index[slots]);
		for (__u32 j = 0; j < slots; j++) {
			ASSERT_EQ(0, r.index[j]);
		}
		ring_close(&r);
	}
}

TEST(wrong_sizes)
{
	EXPECT_EQ(0, try_create((struct flowfd_create_ring){ .max_items = 1 }));
	EXPECT_EQ(-EINVAL, try_create((struct flowfd_create_ring){ 0 }));
	EXPECT_EQ(-EINVAL, try_create((struct flowfd_create_ring){
		.max_items = FLOWFD_RING_ITEMS_MAX + 1 }));
	EXPECT_EQ(-EINVAL, try_create((struct flowfd_create_ring){
		.max_items = UINT_MAX }));
	for (int bit = 0; bit < 32; bit++) {
		EXPECT_EQ(1U << bit == FLOWFD_KEEP_ON_EXEC ? 0 : -EINVAL,
			  try_create((struct flowfd_create_ring){
				.max_items = 1, .flags = 1U << bit }));
	}
}

TEST(close_on_exec)
{
	struct flowfd_create_ring args = { .max_items = 1 };
	int fd = ring_create(&args);

	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	close(fd);
	args.flags = FLOWFD_KEEP_ON_EXEC;
	fd = ring_create(&args);
	EXPECT_EQ(0, fcntl(fd, F_GETFD));
	close(fd);
}

TEST(a_ring_answers_and_creates_nothing)
{
	struct flowfd_create_ring args = { .max_items = 1 };
	struct flowfd_create_counter counter = { 0 };
	struct flowfd_query query = { 0 };
	int fd = ring_create(&args);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, ioctl(fd, FLOWFD_IOC_QUERY, &query));
	EXPECT_TRUE(query.features & FLOWFD_FEATURE_RING);
	EXPECT_EQ(-EPERM, result_of(ioctl(fd, FLOWFD_IOC_CREATE_RING, &args)));
	EXPECT_EQ(-EPERM, result_of(ioctl(fd, FLOWFD_IOC_CREATE_COUNTER,
					  &counter)));
	close(fd);
}

static long try_map(int fd, size_t size, int prot, int flags, off_t offset)
{
	void *map = mmap(NULL, size, prot, flags, fd, offset);

	if (map == MAP_FAILED)
		return -errno;
	munmap(map, size);
	return 0;
}

TEST(ways_to_map)
{
	struct flowfd_create_ring args = { .max_items = 1000 };
	int fd = ring_create(&args);
	size_t size = args.map_size;

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, try_map(fd, size, PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	EXPECT_EQ(0, try_map(fd, size, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, try_map(fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, try_map(fd, PAGE, PROT_READ, MAP_SHARED, size - PAGE));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, 0));
	EXPECT_EQ(-EINVAL, try_map(fd, size + PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EINVAL, try_map(fd, size, PROT_READ, MAP_SHARED, PAGE));
	EXPECT_EQ(-EINVAL, try_map(fd, PAGE, PROT_READ, MAP_SHARED, size));
	EXPECT_GT(0, try_map(fd, PAGE, PROT_READ, MAP_SHARED, LONG_MAX & ~(PAGE - 1)));
	close(fd);
}

/* The descriptor can be closed; the ring goes on with its mapping. */
TEST(mapping_outlives_the_descriptor)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct user_ring r;

	ASSERT_EQ(0, ring_open(&r, 1000));
	ASSERT_LE(0, ring_add(&r, event, EPOLLIN, 1));
	close(r.fd);
	add(event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	munmap(r.header, r.map_size);
	add(event, 1);
	close(event);
}

TEST(unmapped_in_parts)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct user_ring r;

	/* With pages of any size, the second has only items that are not used. */
	ASSERT_EQ(0, ring_open(&r, 1000 * (PAGE / 4096)));
	ASSERT_LE(0, ring_add(&r, event, EPOLLIN, 1));
	ASSERT_EQ(0, munmap((char *)r.header + PAGE, PAGE));
	add(event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	close(r.fd);
	ASSERT_EQ(0, munmap(r.header, PAGE));
	add(event, 1);
	EXPECT_EQ(1, *(volatile __u32 *)&r.index[1]);
	ASSERT_EQ(0, munmap((char *)r.header + 2 * PAGE, r.map_size - 2 * PAGE));
	add(event, 1);
	close(event);
}

TEST(moved)
{
	int event = eventfd(0, EFD_CLOEXEC);
	size_t index, items;
	struct user_ring r;
	char *there;

	ASSERT_EQ(0, ring_open(&r, 1000));
	ASSERT_LE(0, ring_add(&r, event, EPOLLIN, 1));
	items = (char *)r.items - (char *)r.header;
	index = (char *)r.index - (char *)r.header;
	EXPECT_EQ(MAP_FAILED, mremap(r.header, r.map_size, r.map_size * 2,
				     MREMAP_MAYMOVE));
	there = mmap(NULL, r.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	ASSERT_EQ(there, mremap(r.header, r.map_size, r.map_size,
				MREMAP_MAYMOVE | MREMAP_FIXED, there));
	r.header = (void *)there;
	r.items = (void *)(there + items);
	r.index = (void *)(there + index);
	add(event, 1);
	EXPECT_EQ(EPOLLIN, ring_take_only(&r));
	ring_close(&r);
	close(event);
}

/* Anyone with the descriptor can write this memory, so it must not be executable. */
TEST(never_executable)
{
	struct flowfd_create_ring args = { .max_items = 10 };
	int fd = ring_create(&args);
	void *map;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EPERM, try_map(fd, args.map_size, PROT_READ | PROT_EXEC,
				  MAP_SHARED, 0));
	map = mmap(NULL, args.map_size, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mprotect(map, args.map_size, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(0, mprotect(map, args.map_size, PROT_READ | PROT_WRITE));
	munmap(map, args.map_size);
	close(fd);
}

/* The layout as the kernel reports it, whatever is in the header. */
TEST(layout_by_descriptor)
{
	struct flowfd_create_ring args = { .max_items = 1000 }, info;
	struct { struct flowfd_create_ring info; __u64 more; } longer;
	int fd = ring_create(&args);
	struct user_ring r;

	ASSERT_EQ(0, ring_map(&r, fd));
	memset(r.header, 0xff, 64);
	memset(&info, 0xee, sizeof(info));
	ASSERT_EQ(0, ioctl(fd, FLOWFD_IOC_RING_INFO, &info));
	EXPECT_EQ(0, memcmp(&info, &args, sizeof(info)));
	memset(&longer, 0xee, sizeof(longer));
	ASSERT_EQ(0, ioctl(fd, _IOR('J', 0x16, longer), &longer));
	EXPECT_EQ(0, memcmp(&longer.info, &args, sizeof(args)));
	EXPECT_EQ(0, longer.more);
	EXPECT_EQ(-EINVAL, result_of(ioctl(fd, _IOR('J', 0x16, __u64), &info)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, FLOWFD_IOC_RING_INFO, 8)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, _IOR('J', 0x16, longer), 8)));
	ring_close(&r);
	fd = open_counter(CREATED, 0, 0);
	EXPECT_EQ(-ENOTTY, result_of(ioctl(fd, FLOWFD_IOC_RING_INFO, &info)));
	close(fd);
}

TEST_HARNESS_MAIN
