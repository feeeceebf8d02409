// SPDX-License-Identifier: GPL-2.0-only
/* The listening sockets of a process, fetched with pidfd_getfd(2). */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "balance.h"
#include "flowfdctl.h"

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static void unix_text(char out[ADDRESS_SIZE], const struct sockaddr_un *un,
		      socklen_t size)
{
	size_t i, length = size - offsetof(struct sockaddr_un, sun_path);
	char path[sizeof(un->sun_path) + 1] = "";

	/* A path of full length has no 0 byte at its end, but is counted with one. */
	if (length > sizeof(un->sun_path))
		length = sizeof(un->sun_path);
	memcpy(path, un->sun_path, length);
	/* A name that is not in the file system begins with a 0 byte, and can have more. */
	for (i = 0; length && !*un->sun_path && i < length; i++)
		if (!path[i])
			path[i] = '@';
	strcpy(out, "unix:");
	text_escape(out + 5, ADDRESS_SIZE - 5, path);
}

static bool address_text(char out[ADDRESS_SIZE], int fd)
{
	char host[INET6_ADDRSTRLEN];
	union address a = { 0 };
	socklen_t size = sizeof(a);

	if (getsockname(fd, &a.any, &size))
		return false;
	switch (a.any.sa_family) {
	case AF_INET:
		snprintf(out, ADDRESS_SIZE, "%s:%u",
			 inet_ntop(AF_INET, &a.in.sin_addr, host, sizeof(host)),
			 ntohs(a.in.sin_port));
		return true;
	case AF_INET6:
		snprintf(out, ADDRESS_SIZE, "[%s]:%u",
			 inet_ntop(AF_INET6, &a.in6.sin6_addr, host, sizeof(host)),
			 ntohs(a.in6.sin6_port));
		return true;
	case AF_UNIX:
		unix_text(out, &a.un, size);
		return true;
	default:
		return false;
	}
}

static int option(int fd, int name)
{
	int value = 0;

	getsockopt(fd, SOL_SOCKET, name, &value, &(socklen_t){ sizeof(value) });
	return value;
}

static bool listener_init(struct listener *l, int fd, ino_t inode)
{
	if (!option(fd, SO_ACCEPTCONN) || !address_text(l->address, fd))
		return false;
	l->fd = fd;
	l->inode = inode;
	l->reuseport = option(fd, SO_DOMAIN) != AF_UNIX && option(fd, SO_REUSEPORT);
	return true;
}

static bool is_known(const struct listener *listeners, size_t count, ino_t inode)
{
	while (count--)
		if (listeners[count].inode == inode)
			return true;
	return false;
}

static DIR *open_descriptors(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return opendir(path);
}

/* The number in "socket:[number]", or 0. */
static ino_t socket_inode(int directory, const char *name)
{
	char text[64];
	ssize_t length = readlinkat(directory, name, text, sizeof(text) - 1);

	if (length < 0)
		return 0;
	text[length] = '\0';
	return strncmp(text, "socket:[", 8) ? 0 : strtoul(text + 8, NULL, 10);
}

/*
 * listeners_find - the listening sockets of a process
 * @server: the process
 * @listeners: result
 * @count: their number
 *
 * Return: 0, or the negative errno of the first descriptor that could not be fetched.
 */
int listeners_find(const struct server *server, struct listener **listeners,
		   size_t *count)
{
	DIR *directory = open_descriptors(server->pid);
	struct listener *list = NULL;
	struct dirent *entry;
	int fd, error = 0;
	ino_t inode;

	*count = 0;
	if (!directory)
		return -errno;
	while (!error && (entry = readdir(directory))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		inode = socket_inode(dirfd(directory), entry->d_name);
		if (!inode || is_known(list, *count, inode))
			continue;
		fd = syscall(SYS_pidfd_getfd, server->pidfd, atoi(entry->d_name), 0);
		/* The descriptor was closed meanwhile. */
		if (fd < 0 && errno == EBADF)
			continue;
		if (fd < 0) {
			error = -errno;
			continue;
		}
		list = grow(list, *count, sizeof(*list));
		if (listener_init(&list[*count], fd, inode) &&
		    (!server->address || !strcmp(server->address, list[*count].address)))
			++*count;
		else
			close(fd);
	}
	closedir(directory);
	*listeners = list;
	return error;
}

/*
 * listener_is_of_one_worker - whether other sockets of the server have the same address:
 * then the kernel distributes connections to them, and each worker waits for its own
 */
bool listener_is_of_one_worker(const struct listener *l, const struct listener *all,
			       size_t count)
{
	while (l->reuseport && count--)
		if (all[count].inode != l->inode &&
		    !strcmp(all[count].address, l->address))
			return true;
	return false;
}

/* process_has_socket - whether one of a process' descriptors is this socket */
bool process_has_socket(pid_t pid, ino_t inode)
{
	DIR *directory = open_descriptors(pid);
	struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory)))
		found = socket_inode(dirfd(directory), entry->d_name) == inode;
	if (directory)
		closedir(directory);
	return found;
}
