// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hands eventfds to the kernel while descriptors run out, under flowfd-run
 * --maximum 100: whether one is replaced or not, its count and its watches stay.
 * Prints TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/flowfd.h>

#include "tests/programs/starve.h"
#include "tests/tap.h"

enum { MAXIMUM = 100, COUNT = 5 };

static aio_context_t aio;
static int file;
static int replaced, stayed, late;

static bool submit(int fd)
{
	static char byte;
	struct iocb iocb = {
		.aio_fildes = file,
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = (uintptr_t)&byte,
		.aio_nbytes = 1,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = fd,
	};
	struct iocb *list[] = {&iocb};
	struct io_event event;

	if (syscall(SYS_io_submit, aio, 1, list) != 1)
		return false;
	syscall(SYS_io_getevents, aio, 1, 1, &event, NULL);
	return true;
}

static long wait_one(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 1000) == 1 ? (long)event.data.u64 :
							 -1;
}

static uint64_t take(int fd, bool semaphore)
{
	uint64_t sum = 0;
	eventfd_t value;

	while (eventfd_read(fd, &value) == 0) {
		sum += value;
		if (!semaphore)
			break;
	}
	return sum;
}

/* With @openings of files, or @limit more descriptors; -1: as many as wanted. */
static void hand_over(int openings, int limit, bool semaphore)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7};
	int fd = eventfd(COUNT, EFD_NONBLOCK | (semaphore ? EFD_SEMAPHORE : 0));
	int epoll = epoll_create1(0);
	int next = dup(fd);
	struct rlimit all, few;
	uint64_t wanted = COUNT;
	uint64_t maximum = 0;
	bool done;

	close(next);
	getrlimit(RLIMIT_NOFILE, &all);
	few = all;
	if (limit >= 0)
		few.rlim_cur = next + limit;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);

	starve_begin();
	starve_late = true;
	setrlimit(RLIMIT_NOFILE, &few);
	starve_after = openings;
	done = submit(fd);
	starve_after = -1;
	setrlimit(RLIMIT_NOFILE, &all);

	printf("# %d openings, %d descriptors: %s%s\n", openings, limit,
	       done ? "replaced" : "stays", starve_late ? "" : ", written late");
	wanted += done + !starve_late;
	late += !starve_late;
	replaced += done;
	stayed += !done;
	starve_late = false;
	tap_is(wait_one(epoll), 7, "it is watched");
	tap_is(take(fd, semaphore), wanted, "its count");
	eventfd_write(fd, 1);
	tap_is(wait_one(epoll), 7, "is watched still");
	if (!done) {
		ioctl(fd, EFD_IOC_GET_MAXIMUM, &maximum);
		tap_is(maximum, MAXIMUM, "its maximum");
	}
	close(epoll);
	close(fd);
}

int main(int argc, char **argv)
{
	(void)argc;
	alarm(100);
	file = open(argv[0], O_RDONLY | O_CLOEXEC);
	if (syscall(SYS_io_setup, 8, &aio) < 0) {
		perror("io_setup");
		return EXIT_FAILURE;
	}
	for (int i = 0; i < 16; i++)
		hand_over(i, -1, i % 2);
	for (int i = 0; i <= 6; i++)
		hand_over(-1, i, false);
	tap_ok(replaced && stayed && late, "some were replaced, some undone");
	return tap_done();
}
