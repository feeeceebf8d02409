// SPDX-License-Identifier: GPL-2.0-only
/*
 * The buffers of read and write: too short, too long, in segments, not mapped. The
 * result and the count must be those of an eventfd that gets the same buffers. Where
 * flowfd promises more, that is tested.
 */
#include <sys/uio.h>

#include "fixtures.h"

FIXTURE(pair)
{
	int fd[2];	/* an eventfd, and a counter of flowfd */
};

FIXTURE_VARIANT(pair)
{
	enum origin origin;
};

FIXTURE_VARIANT_ADD(pair, flowfd_device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(pair, flowfd_created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(pair, flowfd_mapped) { .origin = MAPPED };

FIXTURE_SETUP(pair)
{
	self->fd[0] = open_counter(EVENTFD, 0, EFD_NONBLOCK);
	self->fd[1] = open_counter(variant->origin, 0, EFD_NONBLOCK);
	ASSERT_LE(0, self->fd[0]);
	ASSERT_LE(0, self->fd[1]);
}

FIXTURE_TEARDOWN(pair)
{
	close(self->fd[0]);
	close(self->fd[1]);
}

TEST_F(pair, write_sizes)
{
	__u64 values[4] = { 3, 5, 7, 11 };

	for (size_t size = 0; size <= sizeof(values); size++) {
		long expected = result_of(write(self->fd[0], values, size));

		EXPECT_EQ(expected, result_of(write(self->fd[1], values, size)))
			TH_LOG("size %zu", size);
		EXPECT_EQ(count_of(self->fd[0]), count_of(self->fd[1]));
	}
	EXPECT_NE(0, count_of(self->fd[1]));
}

TEST_F(pair, read_sizes)
{
	for (size_t size = 0; size <= 24; size++) {
		__u64 values[2][3] = { 0 };
		long expected;

		ASSERT_EQ(8, add(self->fd[0], 9));
		ASSERT_EQ(8, add(self->fd[1], 9));
		expected = result_of(read(self->fd[0], values[0], size));
		EXPECT_EQ(expected,
			  result_of(read(self->fd[1], values[1], size)))
			TH_LOG("size %zu", size);
		EXPECT_EQ(0, memcmp(values[0], values[1], sizeof(values[0])));
		EXPECT_EQ(count_of(self->fd[0]), count_of(self->fd[1]));
	}
}

/* Each way to cut 16 bytes into two or three segments. */
static int segments(struct iovec *v, __u64 *memory, int first, int second)
{
	char *bytes = (char *)memory;

	v[0] = (struct iovec){ bytes, first };
	v[1] = (struct iovec){ bytes + first, second };
	v[2] = (struct iovec){ bytes + first + second, 16 - first - second };
	return 3;
}

TEST_F(pair, writev_segments)
{
	for (int first = 0; first <= 16; first += 4) {
		for (int second = 0; first + second <= 16; second += 4) {
			__u64 memory[2] = { 3, 4 };
			struct iovec v[3];
			int n = segments(v, memory, first, second);
			long expected = result_of(writev(self->fd[0], v, n));

			EXPECT_EQ(expected,
				  result_of(writev(self->fd[1], v, n)))
				TH_LOG("%d + %d", first, second);
			EXPECT_EQ(count_of(self->fd[0]), count_of(self->fd[1]));
		}
	}
}

TEST_F(pair, readv_segments)
{
	for (int first = 0; first <= 16; first += 4) {
		for (int second = 0; first + second <= 16; second += 4) {
			__u64 memory[2][2] = { 0 };
			struct iovec v[3];
			long expected;

			add(self->fd[0], 9);
			add(self->fd[1], 9);
			segments(v, memory[0], first, second);
			expected = result_of(readv(self->fd[0], v, 3));
			segments(v, memory[1], first, second);
			EXPECT_EQ(expected,
				  result_of(readv(self->fd[1], v, 3)))
				TH_LOG("%d + %d", first, second);
			EXPECT_EQ(0, memcmp(memory[0], memory[1], 16));
			EXPECT_EQ(count_of(self->fd[0]), count_of(self->fd[1]));
		}
	}
}

/*
 * The second value does not fit. How much of the first is accepted depends on the
 * kernel.
 */
TEST_F(pair, writev_that_fits_in_part)
{
	__u64 memory[2] = { 4, ULLONG_MAX - 4 };
	struct iovec v[2] = { { &memory[0], 8 }, { &memory[1], 8 } };
	long expected = result_of(writev(self->fd[0], v, 2));

	EXPECT_EQ(expected, result_of(writev(self->fd[1], v, 2)));
	EXPECT_EQ(count_of(self->fd[0]), count_of(self->fd[1]));
}

TEST_F(pair, no_position)
{
	__u64 value = 1;

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(8, add(self->fd[i], 5));
	}
	EXPECT_EQ(result_of(lseek(self->fd[0], 0, SEEK_CUR)),
		  result_of(lseek(self->fd[1], 0, SEEK_CUR)));
	EXPECT_EQ(result_of(lseek(self->fd[0], 8, SEEK_SET)),
		  result_of(lseek(self->fd[1], 8, SEEK_SET)));
	EXPECT_EQ(result_of(lseek(self->fd[0], 0, SEEK_END)),
		  result_of(lseek(self->fd[1], 0, SEEK_END)));
	EXPECT_EQ(result_of(pread(self->fd[0], &value, 8, 0)),
		  result_of(pread(self->fd[1], &value, 8, 0)));
	EXPECT_EQ(result_of(pwrite(self->fd[0], &value, 8, 8)),
		  result_of(pwrite(self->fd[1], &value, 8, 8)));
	EXPECT_EQ(count_of(self->fd[0]), count_of(self->fd[1]));
}

/* Other system calls on the descriptor also return what they return on an eventfd. */
TEST_F(pair, other_calls)
{
	EXPECT_EQ(result_of(ftruncate(self->fd[0], 0)),
		  result_of(ftruncate(self->fd[1], 0)));
	EXPECT_EQ(result_of(fsync(self->fd[0])), result_of(fsync(self->fd[1])));
	if (variant->origin != MAPPED) {
		EXPECT_EQ(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->fd[0], 0),
			  mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->fd[1], 0));
	}
	EXPECT_EQ(result_of(splice(self->fd[0], NULL, -1, NULL, 8, 0)),
		  result_of(splice(self->fd[1], NULL, -1, NULL, 8, 0)));
}

TEST_F(pair, bad_write_pointer)
{
	char *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	ASSERT_NE(MAP_FAILED, none);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(-EFAULT, result_of(write(self->fd[i], none, 8)));
		EXPECT_EQ(-EFAULT, result_of(syscall(SYS_write, self->fd[i], NULL, 8)));
		EXPECT_EQ(0, count_of(self->fd[i]));
	}
}

TEST_F(pair, read_without_waiting)
{
	__u64 value = 0;
	struct iovec v = { &value, 8 };

	for (int i = 0; i < 2; i++) {
		set_nonblock(self->fd[i], false);
		EXPECT_EQ(-EAGAIN, result_of(preadv2(self->fd[i], &v, 1, -1,
						     RWF_NOWAIT)));
		ASSERT_EQ(8, add(self->fd[i], 6));
		EXPECT_EQ(8, result_of(preadv2(self->fd[i], &v, 1, -1,
					       RWF_NOWAIT)));
		EXPECT_EQ(6, value);
	}
}

/* An eventfd has no write_iter and refuses the flag; flowfd honours it. */
TEST_F(flowfd, write_without_waiting)
{
	__u64 value = 1;
	struct iovec v = { &value, 8 };

	ASSERT_EQ(0, set_maximum(self->fd, 3));
	EXPECT_EQ(8, result_of(pwritev2(self->fd, &v, 1, -1, RWF_NOWAIT)));
	EXPECT_EQ(8, result_of(pwritev2(self->fd, &v, 1, -1, RWF_NOWAIT)));
	EXPECT_EQ(-EAGAIN,
		  result_of(pwritev2(self->fd, &v, 1, -1, RWF_NOWAIT)));
	EXPECT_EQ(2, count_of(self->fd));
}

/* An eventfd loses the count in this case. */
TEST_F(flowfd, failed_read_loses_nothing)
{
	void *constant = mmap(NULL, PAGE, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	char *page = page_before_a_hole();
	__u64 value;

	ASSERT_NE(MAP_FAILED, constant);
	ASSERT_NE(MAP_FAILED, none);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(8, add(self->fd, 5));
	EXPECT_EQ(-EFAULT, result_of(syscall(SYS_read, self->fd, NULL, 8)));
	EXPECT_EQ(-EFAULT, result_of(read(self->fd, constant, 8)));
	EXPECT_EQ(-EFAULT, result_of(read(self->fd, none, 8)));
	/* Only half of it can be stored. */
	EXPECT_EQ(-EFAULT, result_of(read(self->fd, page + PAGE - 4, 8)));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(5, value);
}

TEST_HARNESS_MAIN
