// SPDX-License-Identifier: GPL-2.0-only
/* The listening sockets of a process, fetched with pidfd_getfd(2). */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
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

static bool listener_init(struct listener *l, int fd, uint64_t inode)
{
	struct stat status;

	/* Another socket may have the number of the descriptor by now. */
	if (fstat(fd, &status) || status.st_ino != inode || !option(fd, SO_ACCEPTCONN) ||
	    !address_text(l->address, fd))
		return false;
	l->fd = fd;
	l->inode = inode;
	l->reuseport = option(fd, SO_DOMAIN) != AF_UNIX && option(fd, SO_REUSEPORT);
	return true;
}

static bool is_known(const struct listener *listeners, size_t count, uint64_t inode)
{
	while (count--)
		if (listeners[count].inode == inode)
			return true;
	return false;
}

struct inodes {
	uint64_t *inode;
	size_t count;
};

static int inode_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Any user can make the tables long, and a server has many descriptors to look up. */
static void inodes_sort(struct inodes *inodes)
{
	if (inodes->count)
		qsort(inodes->inode, inodes->count, sizeof(uint64_t), inode_compare);
}

static bool inodes_have(const struct inodes *inodes, uint64_t inode)
{
	return inodes->count && bsearch(&inode, inodes->inode, inodes->count,
					sizeof(inode), inode_compare);
}

/* struct listening - what listens in a network namespace, as its two kinds of tables say */
struct listening {
	struct inodes tcp;
	struct inodes unix_domain;
};

/*
 * Whether a descriptor is of a socket that listens. The name of a UNIX socket can have a
 * newline and what looks like another line, with the number of a connection of TCP: a table
 * is only believed of sockets of its kind.
 */
static bool may_listen(const struct listening *listening, pid_t pid, const char *number,
		       uint64_t inode)
{
	bool tcp = inodes_have(&listening->tcp, inode);
	char path[64], protocol[32];
	ssize_t length;

	if (!tcp && !inodes_have(&listening->unix_domain, inode))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, number);
	length = getxattr(path, "system.sockprotoname", protocol, sizeof(protocol));
	return length > 0 && !strncmp(protocol, "UNIX", 4) != tcp;
}

/* A line of /proc/net/tcp. The kernel lists those that listen before all others. */
static bool tcp_inode(const char *line, uint64_t *inode)
{
	unsigned int state;

	return sscanf(line, "%*s %*s %*s %x %*s %*s %*s %*s %*s %" SCNu64, &state,
		      inode) == 2 &&
	       state == TCP_LISTEN;
}

#define UNIX_LISTENS 0x10000

static bool unix_inode(const char *line, uint64_t *inode)
{
	unsigned int flags;

	*inode = 0;
	sscanf(line, "%*s %*s %*s %x %*s %*s %" SCNu64, &flags, inode);
	if (*inode && !(flags & UNIX_LISTENS))
		*inode = 0;
	return true;
}

static int add_inodes(struct inodes *inodes, pid_t pid, const char *name,
		      bool (*parse)(const char *line, uint64_t *inode))
{
	char path[64], *line = NULL;
	size_t size = 0;
	uint64_t inode;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, name);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	/* The first line has the names of the columns. */
	if (getline(&line, &size, file) < 0)
		size = 0;
	while (getline(&line, &size, file) > 0 && parse(line, &inode)) {
		if (!inode)
			continue;
		inodes->inode = grow(inodes->inode, inodes->count, sizeof(inode));
		inodes->inode[inodes->count++] = inode;
	}
	free(line);
	fclose(file);
	return 0;
}

static int find_listening(struct listening *l, pid_t pid)
{
	int error = add_inodes(&l->tcp, pid, "tcp", tcp_inode);

	if (!error)
		error = add_inodes(&l->tcp, pid, "tcp6", tcp_inode);
	if (!error)
		error = add_inodes(&l->unix_domain, pid, "unix", unix_inode);
	inodes_sort(&l->tcp);
	inodes_sort(&l->unix_domain);
	return error;
}

static DIR *open_descriptors(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return opendir(path);
}

/* The number in "socket:[number]", or 0. */
static uint64_t socket_inode(int directory, const char *name)
{
	char text[64];
	ssize_t length = readlinkat(directory, name, text, sizeof(text) - 1);

	if (length < 0)
		return 0;
	text[length] = '\0';
	return strncmp(text, "socket:[", 8) ? 0 : strtoull(text + 8, NULL, 10);
}

/* Returns 1: it is one; 0: it is not; or the negative errno of what could not be fetched. */
static int fetch(const struct server *server, struct listener *l)
{
	int fd = syscall(SYS_pidfd_getfd, server->pidfd, l->fd, 0);

	/* It was closed meanwhile. */
	if (fd < 0)
		return errno == EBADF ? 0 : -errno;
	if (listener_init(l, fd, l->inode) &&
	    (!server->address || !strcmp(server->address, l->address)))
		return 1;
	close(fd);
	return 0;
}

/* Adds numbers and inodes of descriptors that are not known. */
static int find_descriptors(const struct server *server, struct listener **list,
			    size_t *count)
{
	struct listening listening = { 0 };
	int error = find_listening(&listening, server->pid);
	DIR *directory = error ? NULL : open_descriptors(server->pid);
	struct dirent *entry;
	uint64_t inode;

	if (!error && !directory)
		error = -errno;
	while (directory && (entry = readdir(directory))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		inode = socket_inode(dirfd(directory), entry->d_name);
		if (!inode || is_known(server->listeners, server->count, inode) ||
		    is_known(*list, *count, inode) ||
		    !may_listen(&listening, server->pid, entry->d_name, inode))
			continue;
		*list = grow(*list, *count, sizeof(**list));
		(*list)[(*count)++] =
			(struct listener){ .fd = atoi(entry->d_name), .inode = inode };
	}
	if (directory)
		closedir(directory);
	free(listening.tcp.inode);
	free(listening.unix_domain.inode);
	return error;
}

/*
 * listeners_find - those listening sockets of a process that are not known
 * @server: the process, and the listeners that are known
 * @listeners: result; the caller closes their descriptors soon: as long as they are open,
 *	the sockets are
 * @count: their number
 *
 * Other descriptors are not fetched, and none before all were looked at: what the server
 * closes shall be closed then.
 *
 * Return: 0, or the negative errno of what could not be looked at first.
 */
int listeners_find(const struct server *server, struct listener **listeners,
		   size_t *count)
{
	size_t i, found = 0;
	int ret, error;

	*count = 0;
	*listeners = NULL;
	error = find_descriptors(server, listeners, &found);
	for (i = 0; i < found; i++) {
		struct listener l = (*listeners)[i];

		ret = fetch(server, &l);
		if (ret > 0)
			(*listeners)[(*count)++] = l;
		if (ret < 0 && !error)
			error = ret;
	}
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

/* process_has_listener - whether one of a process' descriptors is one of the server's */
bool process_has_listener(pid_t pid, const struct server *server)
{
	DIR *directory = open_descriptors(pid);
	struct dirent *entry;
	bool found = false;
	uint64_t inode;

	while (directory && !found && (entry = readdir(directory))) {
		inode = socket_inode(dirfd(directory), entry->d_name);
		found = inode && is_known(server->listeners, server->count, inode);
	}
	if (directory)
		closedir(directory);
	return found;
}
