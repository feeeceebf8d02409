// SPDX-License-Identifier: GPL-2.0-only
/*
 * FLOWFD_IOC_SETUP_COUNTER: which settings it makes, when it fails, and which
 * descriptors may create.
 */
#include <sys/uio.h>

#include "fixtures.h"
#include "sockets.h"

static long setup(int fd, struct flowfd_create_counter args)
{
	return result_of(ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &args));
}

#define SETUP(fd, ...) setup(fd, (struct flowfd_create_counter){ __VA_ARGS__ })

static long try_create_counter(int fd)
{
	struct flowfd_create_counter args = { 0 };
	long created = result_of(ioctl(fd, FLOWFD_IOC_CREATE_COUNTER, &args));

	if (created >= 0)
		close(created);
	return created < 0 ? created : 0;
}

static long try_create_ring(int fd)
{
	struct flowfd_create_ring args = { .max_items = 1 };
	long created = result_of(ioctl(fd, FLOWFD_IOC_CREATE_RING, &args));

	if (created >= 0)
		close(created);
	return created < 0 ? created : 0;
}

FIXTURE(opened)
{
	int fd;
};

FIXTURE_SETUP(opened)
{
	self->fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(opened)
{
	close(self->fd);
}

TEST_F(opened, gives_all_settings)
{
	struct eventfd_qos qos;
	__u64 value;

	ASSERT_EQ(0, SETUP(self->fd, .initial = 5, .maximum = 77,
			   .qos = { 3, 1000 }));
	EXPECT_EQ(5, count_of(self->fd));
	EXPECT_EQ(77, maximum_of(self->fd));
	ASSERT_EQ(0, ioctl(self->fd, EFD_IOC_GET_QOS, &qos));
	EXPECT_EQ(3, qos.token_capacity);
	EXPECT_EQ(1000, qos.token_rate);
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	EXPECT_EQ(-EAGAIN, add(self->fd, 72));
	EXPECT_EQ(8, add(self->fd, 71));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(76, value);
}

TEST_F(opened, makes_a_semaphore)
{
	__u64 value;

	ASSERT_EQ(0, SETUP(self->fd, .initial = 2, .flags = FLOWFD_SEMAPHORE));
	EXPECT_EQ(1, fdinfo_number(self->fd, "eventfd-semaphore", 10));
	EXPECT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(1, value);
	EXPECT_EQ(1, count_of(self->fd));
	EXPECT_EQ(-EINVAL, set_qos(self->fd, 1, 1));
}

/* Zero means "as eventfd" here, too. */
TEST_F(opened, changes_nothing_with_zeros)
{
	ASSERT_EQ(0, SETUP(self->fd, 0));
	EXPECT_EQ(0, count_of(self->fd));
	EXPECT_EQ(ULLONG_MAX, maximum_of(self->fd));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(0, set_qos(self->fd, 1, 1000));
}

TEST_F(opened, once)
{
	ASSERT_EQ(0, SETUP(self->fd, .maximum = 10));
	EXPECT_EQ(-EBUSY, SETUP(self->fd, .maximum = 20));
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	EXPECT_EQ(-EBUSY, SETUP(self->fd, 0));
	EXPECT_EQ(ULLONG_MAX, maximum_of(self->fd));
}

TEST(not_on_a_created_one)
{
	int fd = open_counter(CREATED, 0, 0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, SETUP(fd, 0));
	close(fd);
}

TEST_F(opened, not_with_a_count)
{
	__u64 value;

	ASSERT_EQ(8, add(self->fd, 1));
	EXPECT_EQ(-EBUSY, SETUP(self->fd, .initial = 7));
	EXPECT_EQ(1, count_of(self->fd));
	EXPECT_EQ(0, try_create_counter(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(0, SETUP(self->fd, .initial = 7));
}

TEST_F(opened, not_with_settings)
{
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(-EBUSY, SETUP(self->fd, 0));
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	ASSERT_EQ(0, set_qos(self->fd, 1, 1000));
	EXPECT_EQ(-EBUSY, SETUP(self->fd, 0));
	ASSERT_EQ(0, set_qos(self->fd, 1, 0));
	EXPECT_EQ(-EBUSY, SETUP(self->fd, 0));
	ASSERT_EQ(0, set_qos(self->fd, 0, 0));
	EXPECT_EQ(0, SETUP(self->fd, 0));
}

TEST_F(opened, checks_everything)
{
	const __u32 top = FLOWFD_TOKEN_RATE_MAX;
	struct {
		struct flowfd_create_counter known;
		__u64 unknown;
	} longer = { .unknown = 1 };

	EXPECT_EQ(-EINVAL, SETUP(self->fd, .flags = FLOWFD_NONBLOCK));
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .flags = FLOWFD_KEEP_ON_EXEC));
	for (int bit = 4; bit < 32; bit++) {
		EXPECT_EQ(-EINVAL, SETUP(self->fd, .flags = 1U << bit));
	}
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .initial = ULLONG_MAX));
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .initial = 5, .maximum = 5));
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .reserved = 1));
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .qos = { 1, top + 1 }));
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .qos = { 0, 1 }));
	EXPECT_EQ(-EINVAL, SETUP(self->fd, .flags = FLOWFD_SEMAPHORE,
				 .qos = { 1, 0 }));
	EXPECT_EQ(-EFAULT, result_of(ioctl(self->fd, FLOWFD_IOC_SETUP_COUNTER, NULL)));
	EXPECT_EQ(-E2BIG, result_of(ioctl(self->fd, resized(FLOWFD_IOC_SETUP_COUNTER,
							    sizeof(longer)),
					  &longer)));
	/* None of these counted as the setup. */
	EXPECT_EQ(0, try_create_counter(self->fd));
	EXPECT_EQ(0, SETUP(self->fd, .initial = ULLONG_MAX - 1));
}

TEST_F(opened, wakes_a_sleeping_reader)
{
	struct call reader;

	set_nonblock(self->fd, false);
	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_EQ(0, SETUP(self->fd, .initial = 5, .qos = { 1, 1 }));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(5, reader.value);
}

TEST_F(opened, is_an_edge)
{
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLET);

	EXPECT_EQ(0, epoll_take(ep, 0));
	ASSERT_EQ(0, SETUP(self->fd, .initial = 5));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, 0));
	close(ep);
}

struct race {
	pthread_barrier_t begin;
	int fd;
};

static void *race_run(void *arg)
{
	struct race *race = arg;

	pthread_barrier_wait(&race->begin);
	return (void *)SETUP(race->fd, .initial = 1);
}

/* Of several at the same time, one succeeds. */
TEST(at_once)
{
	unsigned long rounds = parameter("FLOWFD_SETUPS", 500);
	struct race race;
	pthread_t thread;
	void *theirs;
	long ours;

	ASSERT_EQ(0, pthread_barrier_init(&race.begin, NULL, 2));
	while (rounds--) {
		race.fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, race.fd);
		ASSERT_EQ(0, pthread_create(&thread, NULL, race_run, &race));
		ours = (long)race_run(&race);
		pthread_join(thread, &theirs);
		ASSERT_EQ(-EBUSY, ours + (long)theirs);
		ASSERT_EQ(1, count_of(race.fd));
		close(race.fd);
	}
}

static void expect_no_factory(struct __test_metadata *_metadata, int fd)
{
	struct flowfd_query query = { 0 };
	int sockets[2], passed;

	EXPECT_EQ(-EPERM, try_create_counter(fd));
	EXPECT_EQ(-EPERM, try_create_ring(fd));
	EXPECT_EQ(0, ioctl(fd, FLOWFD_IOC_QUERY, &query));
	EXPECT_TRUE(query.features & FLOWFD_FEATURE_SETUP);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
	ASSERT_TRUE(send_descriptor(sockets[0], fd, 0));
	passed = receive_descriptor(sockets[1], 0);
	ASSERT_LE(0, passed);
	EXPECT_EQ(-EPERM, try_create_counter(passed));
	EXPECT_EQ(-EPERM, try_create_ring(passed));
	close(passed);
	close(sockets[0]);
	close(sockets[1]);
}

TEST_F(opened, creates_until_it_is_set_up)
{
	EXPECT_EQ(0, try_create_counter(self->fd));
	EXPECT_EQ(0, try_create_ring(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	EXPECT_EQ(0, try_create_counter(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, ULLONG_MAX));
	ASSERT_EQ(0, SETUP(self->fd, 0));
	expect_no_factory(_metadata, self->fd);
}

TEST_F(opened, what_it_creates_creates_nothing)
{
	struct flowfd_create_counter counter = { 0 };
	struct flowfd_create_ring ring = { .max_items = 1 };
	int fd = ioctl(self->fd, FLOWFD_IOC_CREATE_COUNTER, &counter);

	ASSERT_LE(0, fd);
	expect_no_factory(_metadata, fd);
	close(fd);
	fd = ioctl(self->fd, FLOWFD_IOC_CREATE_RING, &ring);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EPERM, try_create_counter(fd));
	EXPECT_EQ(-EPERM, try_create_ring(fd));
	EXPECT_EQ(-ENOTTY, SETUP(fd, 0));
	close(fd);
}

/* An opened counter has a path and can be opened again, a created one has none. */
TEST_F(opened, opened_again_through_proc)
{
	int created = open_counter(CREATED, 0, 0), again;
	char path[64];

	ASSERT_LE(0, created);
	ASSERT_EQ(0, SETUP(self->fd, .initial = 3));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, again);
	EXPECT_EQ(0, count_of(again));
	EXPECT_EQ(0, try_create_counter(again));
	close(again);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", created);
	EXPECT_EQ(-ENXIO, result_of(open(path, O_RDWR | O_CLOEXEC)));
	close(created);
}

TEST_HARNESS_MAIN
