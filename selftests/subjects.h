/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One file of each kind that a ring can watch, for ring_files.c: how to open it, make
 * it ready and drain it.
 */
#ifndef SUBJECTS_H
#define SUBJECTS_H

#include "cgroup.h"
#include "files.h"
#include "selftest.h"
#include "sockets.h"

#include <mqueue.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>

/* A watched file and its other side, which is a file or a process. */
struct subject {
	int fd;
	int other;
	char name[32];
};

static char page[4096];

static inline bool ends_of(struct subject *s, const int ends[2])
{
	s->fd = ends[0];
	s->other = ends[1];
	return true;
}

static inline bool open_tcp(struct subject *s)
{
	int ends[2];

	return !tcp_pair(ends) && ends_of(s, ends);
}

static inline bool open_udp(struct subject *s)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t size = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	s->other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return !bind(s->fd, (void *)&a, size) &&
	       !getsockname(s->fd, (void *)&a, &size) &&
	       !connect(s->other, (void *)&a, size);
}

static inline bool open_unix(struct subject *s, int type)
{
	int ends[2];

	return !socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) &&
	       ends_of(s, ends);
}

static inline bool open_stream(struct subject *s)
{
	return open_unix(s, SOCK_STREAM);
}

static inline bool open_datagram(struct subject *s)
{
	return open_unix(s, SOCK_DGRAM);
}

static inline bool open_packets(struct subject *s)
{
	return open_unix(s, SOCK_SEQPACKET);
}

static inline bool open_pipe_reader(struct subject *s)
{
	int ends[2];

	return !pipe2(ends, O_CLOEXEC) && ends_of(s, ends);
}

static inline bool open_pipe_writer(struct subject *s)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	s->fd = ends[1];
	s->other = ends[0];
	return true;
}

static inline bool open_fifo(struct subject *s)
{
	if (!fifo_make(s->name))
		return false;
	s->fd = open(s->name, O_RDWR | O_CLOEXEC);
	s->other = open(s->name, O_WRONLY | O_CLOEXEC);
	return !unlink(s->name);
}

/* The other side is a second descriptor of the same file. */
static inline bool itself(struct subject *s, int fd)
{
	s->fd = fd;
	s->other = dup(fd);
	return s->other >= 0;
}

static inline bool open_eventfd(struct subject *s)
{
	return itself(s, eventfd(0, EFD_CLOEXEC));
}

static inline bool open_opened(struct subject *s)
{
	return itself(s, open_counter(OPENED, 0, 0));
}

static inline bool open_created(struct subject *s)
{
	return itself(s, open_counter(CREATED, 0, 0));
}

static inline bool open_timer(struct subject *s)
{
	return itself(s, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
}

static inline bool open_inotify(struct subject *s)
{
	strcpy(s->name, "/tmp/dir-XXXXXX");
	if (!mkdtemp(s->name))
		return false;
	s->fd = inotify_init1(IN_CLOEXEC);
	s->other = open(s->name, O_RDONLY | O_CLOEXEC);
	return inotify_add_watch(s->fd, s->name, IN_ATTRIB) >= 0;
}

/* Of a directory. The other side opens it. */
static inline bool open_fanotify(struct subject *s)
{
	strcpy(s->name, "/tmp/dir-XXXXXX");
	if (!mkdtemp(s->name))
		return false;
	s->fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
	s->other = -1;
	return !fanotify_mark(s->fd, FAN_MARK_ADD, FAN_OPEN | FAN_ONDIR, AT_FDCWD, s->name);
}

static struct cgroup group;

/* What happens to a control group without processes. */
static inline bool open_group_events(struct subject *s)
{
	if (!cgroup_make(&group, NULL))
		return false;
	s->fd = cgroup_open_file(&group, "cgroup.events", O_RDONLY | O_CLOEXEC);
	s->other = cgroup_open_file(&group, "cgroup.freeze", O_RDWR | O_CLOEXEC);
	return read(s->fd, page, sizeof(page)) > 0;
}

static inline bool open_fifo_reader(struct subject *s)
{
	if (!fifo_make(s->name))
		return false;
	s->fd = open(s->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	s->other = open(s->name, O_WRONLY | O_CLOEXEC);
	return !unlink(s->name);
}

static inline bool open_queue(struct subject *s)
{
	struct mq_attr attr = { .mq_maxmsg = 8, .mq_msgsize = 8 };
	mqd_t queue;

	snprintf(s->name, sizeof(s->name), "/flowfd-%d", getpid());
	queue = mq_open(s->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attr);
	return queue >= 0 && !mq_unlink(s->name) && itself(s, queue);
}

/* The other side is the process. */
static inline bool open_pidfd(struct subject *s)
{
	s->other = fork();
	if (!s->other) {
		pause();
		_exit(0);
	}
	s->fd = syscall(SYS_pidfd_open, s->other, 0);
	return true;
}

static inline bool open_master(struct subject *s)
{
	return terminal_open(&s->fd, &s->other, 0);
}

static inline bool open_slave(struct subject *s)
{
	return terminal_open(&s->other, &s->fd, 0);
}

static inline bool open_listener(struct subject *s, int family)
{
	s->fd = listener_open(family, SOCK_STREAM, 4);
	s->other = -1;
	return s->fd >= 0;
}

static inline bool open_tcp_listener(struct subject *s)
{
	return open_listener(s, AF_INET);
}

static inline bool open_unix_listener(struct subject *s)
{
	return open_listener(s, AF_UNIX);
}

static inline bool ready_by_write(struct subject *s)
{
	return write(s->other, page, 8) == 8;
}

static inline bool ready_by_count(struct subject *s)
{
	return add(s->other, 1) == 8;
}

static inline bool ready_by_time(struct subject *s)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1 };

	return !timerfd_settime(s->other, 0, &soon, NULL);
}

static inline bool ready_by_change(struct subject *s)
{
	return !fchmod(s->other, 0700);
}

static inline bool ready_by_close(struct subject *s)
{
	int fd = s->other;

	s->other = -1;
	return !close(fd);
}

static inline bool ready_by_freeze(struct subject *s)
{
	char state;

	return pread(s->other, &state, 1, 0) == 1 &&
	       pwrite(s->other, state == '0' ? "1" : "0", 1, 0) == 1;
}

static inline bool ready_by_open(struct subject *s)
{
	return !close(open(s->name, O_RDONLY | O_CLOEXEC));
}

static inline bool ready_by_message(struct subject *s)
{
	return !mq_send(s->other, page, 8, 0);
}

static inline bool ready_by_exit(struct subject *s)
{
	return !kill(s->other, SIGKILL);
}

static inline bool ready_by_connect(struct subject *s)
{
	s->other = connect_to(s->fd);
	return s->other >= 0;
}

/* Data in flight can fill the other end of a connection once more. */
static inline bool ready_by_read(struct subject *s)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	set_nonblock(s->other, true);
	do {
		while (read(s->other, page, sizeof(page)) > 0)
			;
	} while (poll_for(s->fd, POLLOUT, 10) <= 0 && now_ns() < end);
	return true;
}

static inline void drain_by_read(struct subject *s)
{
	set_nonblock(s->fd, true);
	while (read(s->fd, page, sizeof(page)) > 0)
		;
}

static inline void drain_by_write(struct subject *s)
{
	set_nonblock(s->fd, true);
	while (write(s->fd, page, sizeof(page)) > 0)
		;
}

static inline void drain_by_accept(struct subject *s)
{
	close(accept4(s->fd, NULL, NULL, SOCK_CLOEXEC));
	close(s->other);
	s->other = -1;
}

static inline void drain_from_start(struct subject *s)
{
	pread(s->fd, page, sizeof(page), 0);
}

/* Each event has a descriptor of what was opened. */
static inline void drain_by_descriptors(struct subject *s)
{
	struct fanotify_event_metadata event;

	set_nonblock(s->fd, true);
	while (read(s->fd, &event, sizeof(event)) == sizeof(event))
		close(event.fd);
}

static inline void drain_by_receive(struct subject *s)
{
	mq_receive(s->fd, page, sizeof(page), NULL);
}

#endif /* SUBJECTS_H */
