// SPDX-License-Identifier: GPL-2.0-only
/*
 * A read that fails while it stores the count, with other operations meanwhile. The
 * page of the buffer is missing, so userfaultfd can stop the read after it took the
 * count; then the page becomes inaccessible. This is how user space can make the count
 * equal to the maximum.
 */
#include <linux/userfaultfd.h>

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

/* Returns when the read has taken the count and waits for its page. */
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

TEST_F(flowfd, given_back)
{
	struct failing_read r;

	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	EXPECT_EQ(0, count_of(self->fd));
	ASSERT_EQ(8, add(self->fd, 4));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(7, count_of(self->fd));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
}

TEST_F(flowfd, overflow_is_an_error_of_poll)
{
	struct failing_read r;
	__u64 value;

	set_nonblock(self->fd, true);
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_TRUE(failing_read_end(&r));

	EXPECT_EQ(10, count_of(self->fd));
	EXPECT_EQ(POLLIN | POLLERR, poll_now(self->fd));
	EXPECT_EQ(-EAGAIN, add(self->fd, 1));
	EXPECT_EQ(-EAGAIN, add(self->fd, 0));
	EXPECT_EQ(-EINVAL, set_maximum(self->fd, 10));
	ASSERT_EQ(8, take(self->fd, &value));
	EXPECT_EQ(10, value);
	EXPECT_EQ(POLLOUT, poll_now(self->fd));
	EXPECT_EQ(8, add(self->fd, 9));
}

TEST_F(flowfd, overflow_ends_with_a_higher_maximum)
{
	struct failing_read r;

	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_EQ(8, add(self->fd, 9));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_EQ(8, add(self->fd, 1));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(POLLIN | POLLERR, poll_now(self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 12));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->fd));
	EXPECT_EQ(10, count_of(self->fd));
}

/* Without a maximum, overflow is at ULLONG_MAX, as in an eventfd. */
TEST_F(flowfd, overflow_without_a_maximum)
{
	struct failing_read r;

	ASSERT_EQ(8, add(self->fd, ULLONG_MAX - 1));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_EQ(8, add(self->fd, 5));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(ULLONG_MAX, count_of(self->fd));
	EXPECT_EQ(POLLIN | POLLERR, poll_now(self->fd));
}

/* Meanwhile the maximum is lowered to less than what is given back. */
TEST_F(flowfd, given_back_to_a_lower_maximum)
{
	struct failing_read r;

	ASSERT_EQ(8, add(self->fd, 50));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_EQ(0, set_maximum(self->fd, 10));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(10, count_of(self->fd));
	EXPECT_EQ(POLLIN | POLLERR, poll_now(self->fd));
}

/* A count that is given back wakes other readers. */
TEST_F(flowfd, given_back_to_another_reader)
{
	struct failing_read r;
	struct call reader;

	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_TRUE(start_read(&reader, self->fd));
	ASSERT_TRUE(failing_read_end(&r));
	ASSERT_TRUE(call_join(&reader));
	EXPECT_EQ(8, reader.result);
	EXPECT_EQ(3, reader.value);
}

TEST_F(flowfd, given_back_is_an_edge)
{
	int ep = epoll_on(self->fd, EPOLLIN | EPOLLET);
	struct failing_read r;

	ASSERT_EQ(8, add(self->fd, 3));
	ASSERT_EQ(EPOLLIN, epoll_take(ep, 0));
	ASSERT_TRUE(failing_read_start(&r, self->fd));
	ASSERT_EQ(0, epoll_take(ep, 0));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(EPOLLIN, epoll_take(ep, PATIENCE_MS));
	close(ep);
}

TEST(given_back_to_a_semaphore)
{
	int fd = open_counter(CREATED, 3, EFD_SEMAPHORE);
	struct failing_read r;

	ASSERT_LE(0, fd);
	ASSERT_TRUE(failing_read_start(&r, fd));
	EXPECT_EQ(2, count_of(fd));
	ASSERT_TRUE(failing_read_end(&r));
	EXPECT_EQ(3, count_of(fd));
	close(fd);
}

TEST_HARNESS_MAIN
