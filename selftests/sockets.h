/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets for tests: listeners and connections to them, and passing descriptors over UNIX
 * sockets.
 */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Of loopback, or of a name that the kernel chooses (autobind); or -errno. */
static inline int listener_open(int family, int type, int backlog)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(family, type | SOCK_CLOEXEC, 0), err;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	err = family == AF_UNIX ? bind(fd, (void *)&un, sizeof(un.sun_family)) :
				  bind(fd, (void *)&in, sizeof(in));
	if (err || listen(fd, backlog)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* A connection to a listening socket, or -errno. */
static inline int connect_to(int listener)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int type, fd, err;

	getsockname(listener, (void *)&address, &size);
	getsockopt(listener, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof(type) });
	fd = socket(address.ss_family, type | SOCK_CLOEXEC, 0);
	if (connect(fd, (void *)&address, size)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* And its address; -1: no loopback. */
static inline int tcp_listener(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = listener_open(AF_INET, SOCK_STREAM, 4);

	return fd >= 0 && !getsockname(fd, (void *)address, &size) ? fd : -1;
}

static inline int tcp_pair(int ends[2])
{
	int listener = listener_open(AF_INET, SOCK_STREAM, 4);

	if (listener < 0)
		return -1;
	ends[1] = connect_to(listener);
	if (ends[1] < 0)
		return -1;
	ends[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return ends[0] < 0 ? -1 : 0;
}

union descriptor_message {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* @flags: of sendmsg(2) and recvmsg(2). */
static inline bool send_descriptor(int socket, int fd, int flags)
{
	union descriptor_message control = { 0 };
	char byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr message = { .msg_iov = &v,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, flags) == 1;
}

/* -1: no descriptor arrived. */
static inline int receive_descriptor(int socket, int flags)
{
	union descriptor_message control = { 0 };
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr message = { .msg_iov = &v,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags) == 1 &&
	    CMSG_FIRSTHDR(&message) &&
	    CMSG_FIRSTHDR(&message)->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

#endif /* SOCKETS_H */
