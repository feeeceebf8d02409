// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listening sockets of a process. They are opened with O_PATH: a descriptor of the
 * server's own, by pidfd_getfd(2), would keep the socket open, and a server can have
 * replaced the socket meanwhile by a file whose close waits for the server (FUSE). The
 * open itself waits for such a file only where rules of audit(8) are loaded.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balance.h"
#include "flowfdctl.h"

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

static bool is_known(const struct server *server, uint64_t inode)
{
	size_t i;

	for (i = 0; i < server->count; i++)
		if (server->listeners[i].inode == inode)
			return true;
	return false;
}

/* A descriptor of a socket. */
struct descriptor {
	uint64_t inode;
	int number;
};

struct descriptors {
	struct descriptor *descriptor;
	size_t count;
};

static int compare_inodes(const void *a, const void *b)
{
	const struct descriptor *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Sorted, as any user can make the list of what listens long. */
static int read_descriptors(struct descriptors *d, pid_t pid)
{
	DIR *directory = open_descriptors(pid);
	struct dirent *entry;
	uint64_t inode;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		inode = socket_inode(dirfd(directory), entry->d_name);
		if (!inode)
			continue;
		d->descriptor = grow(d->descriptor, d->count, sizeof(*d->descriptor));
		d->descriptor[d->count++] =
			(struct descriptor){ inode, atoi(entry->d_name) };
	}
	closedir(directory);
	if (d->count)
		qsort(d->descriptor, d->count, sizeof(*d->descriptor), compare_inodes);
	return 0;
}

struct search {
	const struct server *server;
	struct descriptors descriptors;
	struct listener *found;
	size_t count;
	bool too_many;
};

static void add_if_of_server(void *argument, uint64_t inode, const char *address)
{
	struct descriptor *d, key = { .inode = inode };
	struct search *s = argument;
	const struct server *server = s->server;
	struct listener *l;
	size_t i;

	d = bsearch(&key, s->descriptors.descriptor, s->descriptors.count, sizeof(key),
		    compare_inodes);
	if (!d || is_known(server, inode) ||
	    (server->address && strcmp(server->address, address)))
		return;
	/* A table that changes meanwhile can have it twice. */
	for (i = 0; i < s->count; i++)
		if (s->found[i].inode == inode)
			return;
	if (server->count + s->count == LISTENERS_MAX) {
		s->too_many = true;
		return;
	}
	s->found = grow(s->found, s->count, sizeof(*s->found));
	l = &s->found[s->count++];
	l->number = d->number;
	l->inode = inode;
	strcpy(l->address, address);
}

/*
 * listeners_find - those listening sockets of a process that are not known
 * @server: the process, and the listeners that are known
 * @listeners: result, to be freed
 * @count: their number
 *
 * Return: 0, or a negative errno; E2BIG: there are more than LISTENERS_MAX.
 */
int listeners_find(const struct server *server, struct listener **listeners,
		   size_t *count)
{
	struct search s = { .server = server };
	int error = read_descriptors(&s.descriptors, server->pid);

	if (s.descriptors.count)
		error = listening_dump(server, add_if_of_server, &s);
	free(s.descriptors.descriptor);
	*listeners = s.found;
	*count = s.count;
	return error ?: s.too_many ? -E2BIG : 0;
}

/*
 * listener_open - open a socket with O_PATH
 *
 * Return: a descriptor, or a negative errno; EBADF: the server has closed the socket.
 */
int listener_open(const struct server *server, const struct listener *l)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", server->pid, l->number);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? -EBADF : -errno;
	/* Another file may have the number of the descriptor by now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (socket_inode(AT_FDCWD, path) == l->inode)
		return fd;
	close(fd);
	return -EBADF;
}

/*
 * listener_is_of_one_worker - whether other sockets of the server have the same address,
 * by SO_REUSEPORT: then the kernel distributes connections to them, and each worker waits
 * for its own
 */
bool listener_is_of_one_worker(const struct listener *l, const struct listener *all,
			       size_t count)
{
	/* Another socket may have had the name, and may be open still. */
	if (!strncmp(l->address, "unix:", 5))
		return false;
	while (count--)
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
		found = inode && is_known(server, inode);
	}
	if (directory)
		closedir(directory);
	return found;
}
