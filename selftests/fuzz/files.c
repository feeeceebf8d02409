// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that create, pass, use and close files of every kind, each at one of a few
 * fixed numbers, so that calls of a program meet on the same files.
 */
#include "../sockets.h"
#include "calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

void call_open(const __u32 *a)
{
	place_fd(open("/dev/flowfd", O_RDWR | O_CLOEXEC |
		      (a[1] % 4 ? O_NONBLOCK : 0)), any_file(a[0]));
}

void call_eventfd(const __u32 *a)
{
	place_fd(eventfd(a[1] % 3, EFD_CLOEXEC | EFD_NONBLOCK |
			 (a[1] % 5 ? 0 : EFD_SEMAPHORE)), any_file(a[0]));
}

void call_timer(const __u32 *a)
{
	long ns = 1000 * (1 + a[1] % 1000);
	struct itimerspec often = { { 0, ns }, { 0, ns } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	timerfd_settime(fd, 0, &often, NULL);
	place_fd(fd, any_file(a[0]));
}

/* A terminal has two wait queues. */
void call_terminal(const __u32 *a)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char name[64];

	if (a[1] % 2 && !grantpt(fd) && !unlockpt(fd) &&
	    !ptsname_r(fd, name, sizeof(name)))
		place_fd(open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC),
			 any_file(a[2]));
	place_fd(fd, any_file(a[0]));
}

void call_pipe(const __u32 *a)
{
	int ends[2];

	if (pipe2(ends, O_NONBLOCK | O_CLOEXEC))
		return;
	place_fd(ends[0], any_file(a[0]));
	place_fd(ends[1], any_file(a[1]));
}

void call_sockets(const __u32 *a)
{
	static const int types[] = {
		SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET,
	};
	int ends[2];

	if (socketpair(AF_UNIX, types[a[2] % 3] | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       0, ends))
		return;
	place_fd(ends[0], any_file(a[0]));
	place_fd(ends[1], any_file(a[1]));
}

static int listen_on_loopback(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	listen(fd, 1);
	return fd;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int open_other(__u32 a)
{
	const int flags = O_RDWR | O_NONBLOCK | O_CLOEXEC;
	const int type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

	switch (a % 12) {
	case 0:
		return open("/dev/null", flags);
	case 1:
		return open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	case 2:
		return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	case 3:
		return open_signals();
	case 4:
		return syscall(SYS_userfaultfd, O_NONBLOCK | O_CLOEXEC);
	case 5:
		return syscall(SYS_pidfd_open, getpid(), 0);
	case 6:
		return listen_on_loopback();
	case 7:
		return socket(AF_INET, type, 0);
	case 8:
		return syscall(SYS_memfd_create, "fuzz", 1);
	case 9:
		return open("/dev/flowfd", O_PATH | O_CLOEXEC);
	case 10:
		return open("/dev/ptmx", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	default:
		return socket(AF_PACKET, type, 0);
	}
}

void call_other_file(const __u32 *a)
{
	place_fd(open_other(a[1]), any_file(a[0]));
}

void call_close(const __u32 *a)
{
	close(a[1] % 4 ? any_file(a[0]) : any_fd(a[0] * 2 + 29));
}

void call_dup(const __u32 *a)
{
	dup3(any_fd(a[0]), any_fd(a[1]), O_CLOEXEC);
}

void call_shutdown(const __u32 *a)
{
	shutdown(any_file(a[0]), a[1] % 3);
}

void call_send(const __u32 *a)
{
	int fd = a[2] % 2 ? any_ring(a[1]) : any_fd(a[1]);

	send_descriptor(any_file(a[0]), fd, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void call_receive(const __u32 *a)
{
	int fd = receive_descriptor(any_file(a[0]), MSG_DONTWAIT);

	if (fd >= 0)
		place_fd(fd, any_fd(a[1]));
}

void call_flags(const __u32 *a)
{
	int fd = any_fd(a[0]);

	if (a[1] % 4 == 3)
		fcntl(fd, F_SETOWN, getpid());
	fcntl(fd, F_SETFL, a[1] % 3 ? O_NONBLOCK :
			   a[2] % 2 ? O_ASYNC | O_NONBLOCK : 0);
}

void call_fdinfo(const __u32 *a)
{
	char path[64], text[512];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d",
		 a[1] % 2 ? any_ring(a[0]) : any_file(a[0]));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (read(fd, text, 1 + a[2] % sizeof(text)) > 0)
		;
	close(fd);
}
