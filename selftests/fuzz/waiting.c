// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that wait, register callbacks, or disturb waiting threads: poll, epoll, AIO,
 * io_uring, signals, fork.
 */
#include "calls.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <linux/aio_abi.h>
#include <linux/sched.h>
#include <liburing.h>

void call_poll(const __u32 *a)
{
	struct pollfd fds[2] = {
		{ .fd = any_fd(a[0]), .events = POLLIN | POLLOUT },
		{ .fd = any_ring(a[1]), .events = POLLIN },
	};

	if (a[2] % 2)
		fds[0].events = any_events(a[2] / 2);
	poll(fds, 2, a[3] % 4 ? 0 : 1 + a[3] / 4 % 16);
}

void call_epoll(const __u32 *a)
{
	place_fd(epoll_create1(EPOLL_CLOEXEC), any_epoll(a[0]));
}

void call_epoll_add(const __u32 *a)
{
	static const int ops[] = {
		EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL,
	};
	struct epoll_event event = { .events = any_events(a[2]) |
					       (a[3] % 2 ? EPOLLET : 0) };

	epoll_ctl(any_epoll(a[0]), ops[a[3] / 2 % 4],
		  a[1] % 2 ? any_ring(a[1] / 2) : any_fd(a[1] / 2), &event);
}

void call_epoll_wait(const __u32 *a)
{
	struct epoll_event events[4];

	epoll_wait(any_epoll(a[0]), events, 4, a[1] % 4 ? 0 : 1 + a[1] / 4 % 16);
}

static aio_context_t context;

/* Signals an eventfd or counter from the wakeup of the polled file. */
void call_aio_poll(const __u32 *a)
{
	struct iocb iocb = {
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_fildes = a[0] % 2 ? any_ring(a[0] / 2) : any_fd(a[0] / 2),
		.aio_buf = any_events(a[1]),
		.aio_flags = a[3] % 2 ? IOCB_FLAG_RESFD : 0,
		.aio_resfd = any_file(a[2]),
	};
	struct iocb *list = &iocb;

	if (!context)
		syscall(SYS_io_setup, 8, &context);
	syscall(SYS_io_submit, context, 1, &list);
}

/* One io_uring for all threads: its user side is not thread-safe. */
static pthread_mutex_t uring_lock = PTHREAD_MUTEX_INITIALIZER;
static struct io_uring uring;
static bool has_uring;

static struct io_uring_sqe *uring_begin(void)
{
	pthread_mutex_lock(&uring_lock);
	if (!has_uring)
		has_uring = !io_uring_queue_init(16, &uring, 0);
	return has_uring ? io_uring_get_sqe(&uring) : NULL;
}

static void uring_end(void)
{
	struct io_uring_cqe *cqe;

	if (has_uring) {
		io_uring_submit(&uring);
		while (!io_uring_peek_cqe(&uring, &cqe))
			io_uring_cqe_seen(&uring, cqe);
	}
	pthread_mutex_unlock(&uring_lock);
}

void call_uring_poll(const __u32 *a)
{
	int fd = a[0] % 2 ? any_ring(a[0] / 2) : any_fd(a[0] / 2);
	struct io_uring_sqe *sqe = uring_begin();

	if (sqe && a[2] % 2)
		io_uring_prep_poll_multishot(sqe, fd, any_events(a[1]));
	else if (sqe)
		io_uring_prep_poll_add(sqe, fd, any_events(a[1]));
	uring_end();
}

void call_uring_transfer(const __u32 *a)
{
	static __u64 space[2];
	struct io_uring_sqe *sqe = uring_begin();

	space[0] = any_value(a[2]);
	if (sqe && a[1] % 2)
		io_uring_prep_write(sqe, any_file(a[0]), &space[0], 8, 0);
	else if (sqe)
		io_uring_prep_read(sqe, any_file(a[0]), &space[1], 8, 0);
	uring_end();
}

void call_uring_wait(const __u32 *a)
{
	struct io_uring_sqe *sqe = uring_begin();

	/* Cancels everything, or only takes completions. */
	if (sqe && a[0] % 2)
		io_uring_prep_cancel(sqe, NULL, IORING_ASYNC_CANCEL_ANY);
	else if (sqe)
		io_uring_prep_nop(sqe);
	uring_end();
}

void waiting_clear(void)
{
	if (context)
		syscall(SYS_io_destroy, context);
	context = 0;
	if (has_uring)
		io_uring_queue_exit(&uring);
	has_uring = false;
}

void call_pause(const __u32 *a)
{
	struct timespec t = { 0, 1000 * (1 + a[0] % 3000) };

	nanosleep(&t, NULL);
}

/* Any thread may get it. */
void call_signal(const __u32 *a)
{
	kill(getpid(), SIGUSR1);
}

/*
 * A child inherits all descriptors and mappings, uses some and exits. Without what
 * fork(3) does for other threads.
 */
void call_fork(const __u32 *a)
{
	/* The order of its arguments depends on the architecture, clone3's does not. */
	struct clone_args how = { .exit_signal = SIGCHLD };
	pid_t child = syscall(SYS_clone3, &how, sizeof(how));

	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		if (a[0] % 2)
			call_close(a + 1);
		if (a[0] / 2 % 2)
			call_scribble(a);
		if (a[0] / 4 % 2)
			call_control(a);
		if (a[0] / 8 % 2)
			call_pause(a + 1);
		_exit(0);
	}
	if (child > 0 && a[2] % 2)
		waitpid(child, NULL, 0);
}
