/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sockets for tests: TCP connections over loopback, and passing descriptors over UNIX
 * sockets.
 */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* A listening socket of loopback, and its address; -1: no loopback. */
static inline int tcp_listener(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (void *)address, size) || listen(fd, 4) ||
	    getsockname(fd, (void *)address, &size)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline int tcp_pair(int ends[2])
{
	struct sockaddr_in address;
	int listener = tcp_listener(&address);

	if (listener < 0)
		return -1;
	ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(ends[1], (void *)&address, sizeof(address)))
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
