// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creating counters: which settings are accepted, and that closing and failing give
 * back descriptors, ids and references to the module.
 */
#include "ring_user.h"

TEST(create_with_everything)
{
	struct flowfd_create_counter args = {
		.initial = 5,
		.maximum = 77,
		.flags = FLOWFD_NONBLOCK,
		.qos = { 3, 1000 },
	};
	struct eventfd_qos qos;
	int fd = create_counter(&args);

	ASSERT_LE(0, fd);
	EXPECT_EQ(5, count_of(fd));
	EXPECT_EQ(77, maximum_of(fd));
	ASSERT_EQ(0, ioctl(fd, EFD_IOC_GET_QOS, &qos));
	EXPECT_EQ(3, qos.token_capacity);
	EXPECT_EQ(1000, qos.token_rate);
	EXPECT_EQ(-EAGAIN, add(fd, 72));
	EXPECT_EQ(8, add(fd, 71));
	close(fd);
}

static long try_create(struct flowfd_create_counter args)
{
	long fd = create_counter(&args);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

#define CREATE(...) try_create((struct flowfd_create_counter){ __VA_ARGS__ })

TEST(create_checks_everything)
{
	const __u32 top = FLOWFD_TOKEN_RATE_MAX;

	EXPECT_EQ(0, CREATE(.initial = 0));
	EXPECT_EQ(0, CREATE(.initial = ULLONG_MAX - 1));
	EXPECT_EQ(0, CREATE(.initial = 4, .maximum = 5));
	EXPECT_EQ(0, CREATE(.maximum = 1));
	EXPECT_EQ(0, CREATE(.maximum = ULLONG_MAX));
	EXPECT_EQ(0, CREATE(.qos = { 1, top }));
	EXPECT_EQ(0, CREATE(.qos = { 7, 0 }));
	EXPECT_EQ(0, CREATE(.flags = FLOWFD_SEMAPHORE, .maximum = 5));

	EXPECT_EQ(-EINVAL, CREATE(.initial = ULLONG_MAX));
	EXPECT_EQ(-EINVAL, CREATE(.initial = 5, .maximum = 5));
	EXPECT_EQ(-EINVAL, CREATE(.initial = 6, .maximum = 5));
	EXPECT_EQ(-EINVAL, CREATE(.initial = ULLONG_MAX, .maximum = ULLONG_MAX));
	EXPECT_EQ(-EINVAL, CREATE(.reserved = 1));
	EXPECT_EQ(-EINVAL, CREATE(.qos = { 1, top + 1 }));
	EXPECT_EQ(-EINVAL, CREATE(.qos = { 0, 1 }));
	EXPECT_EQ(-EINVAL, CREATE(.flags = FLOWFD_SEMAPHORE, .qos = { 1, 1 }));
	EXPECT_EQ(-EINVAL, CREATE(.flags = FLOWFD_SEMAPHORE, .qos = { 1, 0 }));
	for (int bit = 4; bit < 32; bit++) {
		EXPECT_EQ(-EINVAL, CREATE(.flags = 1U << bit));
	}
}

/* Ids are allocated lowest first, so a leaked one shows as a higher next one. */
static int next_id(void)
{
	int fd = open_counter(CREATED, 0, 0);
	int id = id_of(fd);

	close(fd);
	return id;
}

TEST(full_descriptor_table_leaks_nothing)
{
	struct flowfd_create_counter args = { 0 };
	struct flowfd_create_ring ring = { .max_items = 8 };
	struct rlimit limit = { 64, 64 };
	long before = module_users();
	int device = open_counter(OPENED, 0, 0);
	int id = next_id();
	long users = module_users();
	int fd;

	ASSERT_LE(0, device);
	ASSERT_LE(0, id);
	ASSERT_LT(0, users);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0)
		;
	for (int i = 0; i < 1000; i++) {
		ASSERT_EQ(-EMFILE, result_of(ioctl(device,
						   FLOWFD_IOC_CREATE_COUNTER,
						   &args)));
		ASSERT_EQ(-EMFILE, result_of(ioctl(device,
						   FLOWFD_IOC_CREATE_RING,
						   &ring)));
		ASSERT_EQ(-1, open(DEVICE, O_RDWR));
		ASSERT_EQ(EMFILE, errno);
	}
	for (fd = 3; fd < 64; fd++) {
		if (fd != device)
			close(fd);
	}
	EXPECT_EQ(users, module_users());
	EXPECT_EQ(id, next_id());
	close(device);
	EXPECT_EQ(before, module_users());
}

TEST(closing_gives_everything_back)
{
	unsigned long rounds = parameter("FLOWFD_CREATES", 5000);
	struct flowfd_create_counter bad[] = {
		{ .flags = 1U << 31 },
		{ .initial = 5, .maximum = 5 },
		{ .qos = { 0, 1 } },
	};
	int device = open_counter(OPENED, 0, 0);
	int id = next_id();
	long users = module_users();

	ASSERT_LE(0, device);
	for (unsigned long i = 0; i < rounds; i++) {
		struct flowfd_create_counter args = {
			.initial = i % 2,
			.qos = { i % 3, i % 3 * 10 },
		};
		int fd = ioctl(device, FLOWFD_IOC_CREATE_COUNTER, &args);

		ASSERT_LE(0, fd);
		add(fd, 1);
		close(fd);
		ASSERT_GT(0, ioctl(device, FLOWFD_IOC_CREATE_COUNTER,
				   &bad[i % ARRAY_SIZE(bad)]));
		ASSERT_GT(0, ioctl(device, FLOWFD_IOC_CREATE_COUNTER, NULL));
	}
	EXPECT_EQ(users, module_users());
	EXPECT_EQ(id, next_id());
	close(device);
}

TEST(ids_are_reused)
{
	int id = next_id(), fds[20];

	for (int i = 0; i < 20; i++) {
		fds[i] = open_counter(i % 2 ? OPENED : CREATED, 0, 0);
		EXPECT_LE(0, id_of(fds[i]));
		for (int j = 0; j < i; j++) {
			EXPECT_NE(id_of(fds[j]), id_of(fds[i]));
		}
	}
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	EXPECT_EQ(id, next_id());
}

TEST_HARNESS_MAIN
