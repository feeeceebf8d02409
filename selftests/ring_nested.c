// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pollers that call back when the ring wakes them: io_uring and Linux AIO, which
 * signal eventfds that the ring itself watches.
 */
#include "ring_user.h"

#include <liburing.h>
#include <linux/aio_abi.h>

FIXTURE(nested)
{
	struct user_ring ring;
	int pipe[2];
	int event;
};

FIXTURE_SETUP(nested)
{
	ASSERT_EQ(0, ring_open(&self->ring, 8));
	ASSERT_EQ(0, pipe2(self->pipe, O_NONBLOCK | O_CLOEXEC));
	self->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ASSERT_EQ(0, ring_add(&self->ring, self->pipe[0], EPOLLIN, 1));
	ASSERT_LE(0, ring_add(&self->ring, self->event, EPOLLIN, 2));
}

FIXTURE_TEARDOWN(nested)
{
	ring_close(&self->ring);
	close(self->pipe[0]);
	close(self->pipe[1]);
	close(self->event);
}

/* A macro, because it returns from the test. */
#define NEED_URING(uring)                                       \
	do {                                                    \
		int err = io_uring_queue_init(64, uring, 0);    \
								\
		if (err == -EPERM || err == -ENOSYS)            \
			SKIP(return, "no io_uring");            \
		ASSERT_EQ(0, err);                              \
	} while (0)

/* Each time there is something new, though io_uring keeps the poll itself. */
TEST_F(nested, multishot_poll_goes_on)
{
	struct __kernel_timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct io_uring uring;
	struct io_uring_cqe *cqe;

	NEED_URING(&uring);
	io_uring_prep_poll_multishot(io_uring_get_sqe(&uring), self->ring.fd,
				     POLLIN);
	ASSERT_EQ(1, io_uring_submit(&uring));
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(1, write(self->pipe[1], "x", 1));
		ASSERT_EQ(0, io_uring_wait_cqe_timeout(&uring, &cqe, &patience))
		{
			TH_LOG("no completion of event %d", i);
		}
		EXPECT_TRUE(cqe->res & POLLIN);
		ASSERT_TRUE(cqe->flags & IORING_CQE_F_MORE);
		io_uring_cqe_seen(&uring, cqe);
		EXPECT_EQ(EPOLLIN, ring_take_only(&self->ring));
		/* One event may complete more than once. */
		while (!io_uring_peek_cqe(&uring, &cqe))
			io_uring_cqe_seen(&uring, cqe);
	}
	io_uring_queue_exit(&uring);
}

/*
 * An io_uring that signals @event with each completion polls a file that @event wakes. Returns
 * how often the poll completes until all is quiet, 50 at most.
 */
static int completions_of_own_making(struct io_uring *uring, int event, int polled,
				     struct user_ring *harvested)
{
	struct __kernel_timespec quiet = { .tv_nsec = QUIET_MS * 1000000 };
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct ring_event taken;
	int polls = 0;

	io_uring_register_eventfd(uring, event);
	io_uring_prep_poll_multishot(io_uring_get_sqe(uring), polled, POLLIN);
	io_uring_submit(uring);
	/* Its completion signals the eventfd. */
	sqe = io_uring_get_sqe(uring);
	io_uring_prep_nop(sqe);
	sqe->user_data = 1;
	io_uring_submit(uring);
	while (polls < 50 && !io_uring_wait_cqe_timeout(uring, &cqe, &quiet)) {
		bool is_poll = !cqe->user_data;

		polls += is_poll;
		io_uring_cqe_seen(uring, cqe);
		/* Not after the other one: the poll would look too late, and find nothing. */
		while (is_poll && harvested && ring_take(harvested, &taken))
			;
	}
	return polls;
}

/* What the eventfd does itself, and an epoll around it: the poll does not go on by itself. */
TEST_F(nested, io_uring_does_not_wake_itself)
{
	struct io_uring uring;
	int polled[3] = { self->event, epoll_on(self->event, EPOLLIN | EPOLLET),
			  self->ring.fd };

	for (size_t i = 0; i < ARRAY_SIZE(polled); i++) {
		NEED_URING(&uring);
		EXPECT_EQ(1, completions_of_own_making(&uring, self->event, polled[i], NULL))
		{
			TH_LOG("file %zu", i);
		}
		io_uring_queue_exit(&uring);
		EXPECT_EQ(8, take(self->event, &(__u64){ 0 }));
		while (ring_take(&self->ring, &(struct ring_event){ 0 }))
			;
	}
	close(polled[1]);
}

/*
 * Nor if the program harvests: the signal of a completion comes before that, and finds the event
 * in the index. An eventfd and an epoll end the poll there; a ring keeps it.
 */
TEST_F(nested, io_uring_does_not_wake_itself_by_harvests)
{
	struct __kernel_timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct io_uring_cqe *cqe;
	struct io_uring uring;

	NEED_URING(&uring);
	EXPECT_EQ(1, completions_of_own_making(&uring, self->event, self->ring.fd,
					       &self->ring));
	ASSERT_EQ(1, write(self->pipe[1], "x", 1));
	ASSERT_EQ(0, io_uring_wait_cqe_timeout(&uring, &cqe, &patience));
	EXPECT_TRUE(cqe->flags & IORING_CQE_F_MORE);
	io_uring_queue_exit(&uring);
}

/*
 * The pipe wakes the ring, which has AIO poll the ring in a work item and complete, which
 * signals the eventfd, which wakes the ring, which an epoll polls as well. AIO finds nothing
 * if the event is taken before it looks.
 */
TEST_F(nested, aio_signals_a_watched_eventfd)
{
	struct iocb poll = {
		.aio_fildes = self->ring.fd,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = self->event,
	};
	struct iocb *list[] = { &poll };
	int ep = epoll_on(self->ring.fd, EPOLLIN);
	aio_context_t context = 0;
	struct ring_event event;
	struct io_event done;
	__u64 value;

	if (syscall(SYS_io_setup, 8, &context))
		SKIP(return, "no AIO");
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(1, syscall(SYS_io_submit, context, 1, list));
		ASSERT_EQ(1, write(self->pipe[1], "x", 1));
		ASSERT_EQ(2, ring_wait_ms(&self->ring, 2, PATIENCE_MS));
		ASSERT_TRUE(ring_take(&self->ring, &event));
		ASSERT_EQ(1, event.data);
		ASSERT_TRUE(ring_take(&self->ring, &event));
		ASSERT_EQ(2, event.data);
		ASSERT_EQ(8, take(self->event, &value));
		ASSERT_EQ(1, syscall(SYS_io_getevents, context, 1, 1, &done,
				     NULL));
		while (ring_take(&self->ring, &event))
			;
	}
	syscall(SYS_io_destroy, context);
	close(ep);
}

TEST_HARNESS_MAIN
