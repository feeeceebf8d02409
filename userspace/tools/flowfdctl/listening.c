// SPDX-License-Identifier: GPL-2.0-only
/* The sockets that listen in a network namespace, by sock_diag(7). */
#include <arpa/inet.h>
#include <errno.h>
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

/* A path of full length has a 0 byte at its end, too. */
#define UNIX_NAME_MAX 109

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

static void unix_text(char out[ADDRESS_SIZE], const struct unix_diag_msg *m, size_t size)
{
	const struct rtattr *a = (const void *)(m + 1);
	size_t left = size - sizeof(*m), length = 0, i;
	char path[UNIX_NAME_MAX + 1] = "";
	bool abstract;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == UNIX_DIAG_NAME) {
			length = RTA_PAYLOAD(a);
			if (length > UNIX_NAME_MAX)
				length = UNIX_NAME_MAX;
			memcpy(path, RTA_DATA(a), length);
		}
	/* A name that is not in the file system begins with a 0 byte, and can have more. */
	abstract = !*path;
	for (i = 0; abstract && i < length; i++)
		if (!path[i])
			path[i] = '@';
	strcpy(out, "unix:");
	text_escape(out + 5, ADDRESS_SIZE - 5, path);
}

static void tell(const struct nlmsghdr *header, struct search *search)
{
	const struct inet_diag_msg *inet = NLMSG_DATA(header);
	const struct unix_diag_msg *un = NLMSG_DATA(header);
	char address[ADDRESS_SIZE];

	/* Both begin with the family. */
	if (un->udiag_family == AF_UNIX) {
		unix_text(address, un, NLMSG_PAYLOAD(header, 0));
		listener_found(search, un->udiag_ino, address);
	} else {
		inet_text(address, inet);
		listener_found(search, inet->idiag_inode, address);
	}
}

static int receive(int fd, struct search *search)
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
			tell(h, search);
		}
	}
}

static int dump(int fd, void *request, size_t size, struct search *search)
{
	struct nlmsghdr header = {
		.nlmsg_len = NLMSG_LENGTH(size),
		.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	struct iovec parts[] = { { &header, sizeof(header) }, { request, size } };

	return writev(fd, parts, 2) < 0 ? -errno : receive(fd, search);
}

static int dump_all(int fd, struct search *search)
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
	int error = dump(fd, &inet, sizeof(inet), search), next;

	/* Sockets of the others are balanced. */
	inet.sdiag_family = AF_INET6;
	next = dump(fd, &inet, sizeof(inet), search);
	error = error ?: next;
	next = dump(fd, &un, sizeof(un), search);
	error = error ?: next;
	/* ENOENT would mean the process. */
	return error == -ENOENT ? -EPROTONOSUPPORT : error;
}

/* This process stays there: nothing else that it does depends on the network. */
static int enter_namespace(const struct server *server)
{
	struct stat here, there;
	char path[64];

	/* A kernel without network namespaces. */
	if (stat("/proc/self/ns/net", &here))
		return errno == ENOENT ? 0 : -errno;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", server->pid);
	if (stat(path, &there))
		return -errno;
	if (here.st_dev == there.st_dev && here.st_ino == there.st_ino)
		return 0;
	return setns(server->pidfd, CLONE_NEWNET) ? -errno : 0;
}

/*
 * listening_dump - the sockets of TCP and UNIX that listen
 * @server: a process in their network namespace
 * @search: for listener_found(), which is called for each
 *
 * Return: 0 or a negative errno; EPROTONOSUPPORT: the kernel has no sock_diag for one of
 * these protocols.
 */
int listening_dump(const struct server *server, struct search *search)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd, error = enter_namespace(server);

	if (error)
		return error;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return -errno;
	/* Connected to the kernel: the root of a container could send messages, too. */
	error = connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) ?
			-errno :
			dump_all(fd, search);
	close(fd);
	return error;
}
