// SPDX-License-Identifier: GPL-2.0-only
/*
 * A read that cannot store the count takes nothing. The page of its buffer is missing, so
 * userfaultfd can stop it; then the page becomes inaccessible.
 */
#include <linux/userfaultfd.h>
#include <sys/uio.h>

#include "fixtures.h"

struct failing_read {
	pthread_t thread;
	int fd;
	int uffd;
	void *page;
	long result;
};

static void *failing_read_run(void *arg)
{
	struct failing_read *r = arg;

	r->result = result_of(read(r->fd, r->page, sizeof(__u64)));
	return NULL;
}

/* Returns when the read waits for its page. */
static bool failing_read_start(struct failing_read *r, int fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffd_msg message;

	r->fd = fd;
	/* A userfaultfd must be non-blocking to be polled. */
	r->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	r->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (unsigned long)r->page;
	range.range.len = PAGE;
	return r->uffd >= 0 && r->page != MAP_FAILED &&
	       !ioctl(r->uffd, UFFDIO_API, &api) &&
	       !ioctl(r->uffd, UFFDIO_REGISTER, &range) &&
	       !pthread_create(&r->thread, NULL, failing_read_run, r) &&
	       poll_for(r->uffd, POLLIN, PATIENCE_MS) == POLLIN &&
	       read(r->uffd, &message, sizeof(message)) == sizeof(message) &&
	       message.event == UFFD_EVENT_PAGEFAULT;
}

static bool failing_read_end(struct failing_read *r)
{
	if (mprotect(r->page, PAGE, PROT_NONE))
		return false;
	close(r->uffd);		/* the page fault is retried */
	pthread_join(r->thread, NULL);
	munmap(r->page, PAGE);
	return r->result == -EFAULT;
}

/* Neither while it waits for its page, nor when it fails. */
TEST_F(flowfd, takes_nothing)
{
	struct failing_read r;
	__u64 value;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	EXPECT_EQ(3, count_of(self->fd));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	ASSERT_EQ(8, add(self->fd, 6));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(9, count_of(self->fd));
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(9, value);
}

/* Others take what it waits for. */
TEST_F(flowfd, keeps_no_other_waiting)
{
	struct failing_read r;
	__u64 value;

	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(3, value);
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(0, count_of(self->fd));
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
}

TEST(takes_nothing_of_a_semaphore)
{
	int fd = open_counter(CREATED, 3, EFD_SEMAPHORE);
	struct failing_read r;

	ASSERT_LE(0, fd);
	ASSERT_TRUE(failing_read_start(&r, fd));
	EXPECT_EQ(3, count_of(fd));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(3, count_of(fd));
	close(fd);
}

/* A page that is only not there yet is no error. */
TEST_F(flowfd, new_page)
{
	__u64 *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = { page + 1, 8 };

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(8, add(self->fd, 3));
	EXPECT_EQ(8, result_of(read(self->fd, page, 8)));
	EXPECT_EQ(3, *page);
	ASSERT_EQ(0, madvise(page, PAGE, MADV_DONTNEED));
	ASSERT_EQ(8, add(self->fd, 4));
	EXPECT_EQ(8, result_of(readv(self->fd, &v, 1)));
	EXPECT_EQ(4, page[1]);
	munmap(page, PAGE);
}

static void expect_fault(struct __test_metadata *_metadata, int fd, void *buf)
{
	struct iovec v[2] = { { buf, 4 }, { buf, 4 } };

	EXPECT_EQ(-EFAULT, result_of(syscall(SYS_read, fd, buf, 8)));
	EXPECT_EQ(-EFAULT, result_of(readv(fd, v, 2)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(fd, FLOWFD_IOC_COUNTER_READ, buf)));
}

/* Each of them fails at once, also where there is nothing to take and it could sleep. */
TEST_F(flowfd, bad_buffers)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	expect_fault(_metadata, self->fd, NULL);
	expect_fault(_metadata, self->fd, page);
	ASSERT_EQ(8, add(self->fd, 3));
	expect_fault(_metadata, self->fd, NULL);
	expect_fault(_metadata, self->fd, page);
	EXPECT_EQ(3, count_of(self->fd));
	set_nonblock(self->fd, true);
	expect_fault(_metadata, self->fd, page);
	EXPECT_EQ(3, count_of(self->fd));
	munmap(page, PAGE);
}

/* What was in it is there after a read that was interrupted, or found nothing. */
TEST_F(flowfd, buffer_is_unchanged)
{
	__u64 value = 77;

	set_nonblock(self->fd, true);
	EXPECT_EQ(-EAGAIN, result_of(read(self->fd, &value, 8)));
	EXPECT_EQ(77, value);
}

TEST_HARNESS_MAIN
