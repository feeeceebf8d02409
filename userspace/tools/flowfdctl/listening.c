// SPDX-License-Identifier: GPL-2.0-only
/* The sockets that listen in a network namespace, by sock_diag(7). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "balance.h"
#include "flowfdctl.h"

static void inet_text(char out[ADDRESS_SIZE], const struct inet_diag_msg *m)
{
	bool six = m->idiag_family == AF_INET6;
	char host[INET6_ADDRSTRLEN], interface[16] = "";

	/* With SO_BINDTODEVICE. */
	if (m->id.idiag_if)
		snprintf(interface, sizeof(interface), "%%%u", m->id.idiag_if);
	inet_ntop(m->idiag_family, m->id.idiag_src, host, sizeof(host));
	snprintf(out, ADDRESS_SIZE, "%s%s%s%s:%u", six ? "[" : "", host, interface,
		 six ? "]" : "", ntohs(m->id.idiag_sport));
}

static void unix_text(char out[ADDRESS_SIZE], const char *name, size_t length)
{
	char path[UNIX_NAME_MAX + 1] = "";
	size_t i;

	if (length > UNIX_NAME_MAX)
		length = UNIX_NAME_MAX;
	memcpy(path, name, length);
	/* A name that is not in the file system begins with a 0 byte, and can have more. */
	for (i = 0; length && !*name && i < length; i++)
		if (!path[i])
			path[i] = '@';
	strcpy(out, "unix:");
	text_escape(out + 5, ADDRESS_SIZE - 5, path);
}

static void unix_name(char out[ADDRESS_SIZE], const struct unix_diag_msg *m, size_t size)
{
	const struct rtattr *a = (const void *)(m + 1);
	size_t left = size - sizeof(*m);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == UNIX_DIAG_NAME) {
			unix_text(out, RTA_DATA(a), RTA_PAYLOAD(a));
			return;
		}
	unix_text(out, "", 0);
}

static void tell(const struct nlmsghdr *header, listening_function *each, void *argument)
{
	const struct inet_diag_msg *inet = NLMSG_DATA(header);
	const struct unix_diag_msg *un = NLMSG_DATA(header);
	char address[ADDRESS_SIZE];

	/* Both begin with the family. */
	if (un->udiag_family == AF_UNIX) {
		unix_name(address, un, NLMSG_PAYLOAD(header, 0));
		each(argument, un->udiag_ino, address);
	} else {
		inet_text(address, inet);
		each(argument, inet->idiag_inode, address);
	}
}

static int receive(int fd, listening_function *each, void *argument)
{
	static _Alignas(struct nlmsghdr) char buffer[32768];

	for (;;) {
		const struct nlmsghdr *h = (const void *)buffer;
		ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
		size_t left = size;

		if (size < 0)
			return -errno;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			/* Both begin with an error, or 0. */
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return *(const int *)NLMSG_DATA(h);
			tell(h, each, argument);
		}
	}
}

static int dump(int fd, void *request, size_t size, listening_function *each,
		void *argument)
{
	struct nlmsghdr header = {
		.nlmsg_len = NLMSG_LENGTH(size),
		.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	struct iovec parts[] = { { &header, sizeof(header) }, { request, size } };

	return writev(fd, parts, 2) < 0 ? -errno : receive(fd, each, argument);
}

static int dump_all(int fd, listening_function *each, void *argument)
{
	struct inet_diag_req_v2 inet = {
		.sdiag_family = AF_INET,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = 1 << TCP_LISTEN,
	};
	struct unix_diag_req un = {
		.sdiag_family = AF_UNIX,
		.udiag_states = 1 << TCP_LISTEN,
		.udiag_show = UDIAG_SHOW_NAME,
	};
	int error = dump(fd, &inet, sizeof(inet), each, argument), next;

	/* Sockets of the others are balanced. */
	inet.sdiag_family = AF_INET6;
	next = dump(fd, &inet, sizeof(inet), each, argument);
	error = error ?: next;
	next = dump(fd, &un, sizeof(un), each, argument);
	error = error ?: next;
	/* ENOENT would mean the process. */
	return error == -ENOENT ? -EPROTONOSUPPORT : error;
}

/* Connected to the kernel: the root of a container could send messages, too. */
static int diag_socket(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int error;

	if (fd >= 0 && !connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)))
		return fd;
	error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

static bool are_same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* This process stays there: nothing else that it does depends on the network. */
static int diag_socket_in(int there, int here)
{
	if (!are_same(there, here) && setns(there, CLONE_NEWNET))
		return -errno;
	return diag_socket();
}

static int diag_socket_of(pid_t pid)
{
	int fd, there, here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	char path[64];

	/* A kernel without network namespaces. */
	if (here < 0 && errno == ENOENT)
		return diag_socket();
	if (here < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	there = open(path, O_RDONLY | O_CLOEXEC);
	fd = there < 0 ? -errno : diag_socket_in(there, here);
	if (there >= 0)
		close(there);
	close(here);
	return fd;
}

/*
 * listening_dump - the sockets of TCP and UNIX that listen
 * @pid: a process in their network namespace
 * @each: called for each, with the number of its inode and its address
 * @argument: for @each
 *
 * Return: 0 or a negative errno; EPROTONOSUPPORT: the kernel has no sock_diag for one of
 * these protocols.
 */
int listening_dump(pid_t pid, listening_function *each, void *argument)
{
	int error, fd = diag_socket_of(pid);

	if (fd < 0)
		return fd;
	error = dump_all(fd, each, argument);
	close(fd);
	return error;
}
