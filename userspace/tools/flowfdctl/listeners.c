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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balance.h"
#include "flowfdctl.h"

/* process_has_ended - once it is true, the number of the process may be another's */
bool process_has_ended(int pidfd)
{
	return poll(&(struct pollfd){ pidfd, POLLIN, 0 }, 1, 0) > 0;
}

/*
 * process_numbers - the numbers of a process' descriptors or threads
 * @pid: the process
 * @directory: "fd" or "task"
 * @numbers: result, to be freed
 *
 * Return: how many there are, or a negative errno.
 */
ssize_t process_numbers(pid_t pid, const char *directory, int **numbers)
{
	struct dirent *entry;
	size_t count = 0;
	char path[64];
	DIR *d;

	*numbers = grow(NULL, 0, sizeof(**numbers));
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, directory);
	d = opendir(path);
	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		*numbers = grow(*numbers, count, sizeof(**numbers));
		(*numbers)[count++] = atoi(entry->d_name);
	}
	closedir(d);
	return count;
}

/* The number in "socket:[number]", or 0. */
static uint64_t socket_inode(pid_t pid, int number)
{
	char path[64], text[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	length = readlink(path, text, sizeof(text) - 1);
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

struct search {
	struct server *server;
	struct descriptor *descriptor;
	size_t count;
	bool too_many;
};

static int compare_inodes(const void *a, const void *b)
{
	const struct descriptor *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Sorted, as any user can make the list of what listens long. */
static int read_descriptors(struct search *s)
{
	int *numbers;
	ssize_t i, count = process_numbers(s->server->pid, "fd", &numbers);

	for (i = 0; i < count; i++) {
		uint64_t inode = socket_inode(s->server->pid, numbers[i]);

		if (!inode)
			continue;
		s->descriptor = grow(s->descriptor, s->count, sizeof(*s->descriptor));
		s->descriptor[s->count++] = (struct descriptor){ inode, numbers[i] };
	}
	free(numbers);
	if (s->count)
		qsort(s->descriptor, s->count, sizeof(*s->descriptor), compare_inodes);
	return count < 0 ? count : 0;
}

/* listener_add - add a socket to those of a server */
void listener_add(struct server *server, const struct listener *l)
{
	server->listeners = grow(server->listeners, server->count, sizeof(*l));
	server->listeners[server->count++] = *l;
}

/* listener_found - add a socket that listens, if it is the server's and is looked for */
void listener_found(struct search *s, uint64_t inode, const char *address)
{
	struct descriptor *d, key = { .inode = inode };
	struct server *server = s->server;
	struct listener l = { .inode = inode };

	d = bsearch(&key, s->descriptor, s->count, sizeof(key), compare_inodes);
	/* A table that changes meanwhile can have it twice. */
	if (!d || is_known(server, inode) ||
	    (server->address && strcmp(server->address, address)))
		return;
	if (server->count == LISTENERS_MAX) {
		s->too_many = true;
		return;
	}
	l.number = d->number;
	strcpy(l.address, address);
	listener_add(server, &l);
}

/*
 * listeners_find - add those listening sockets of a process that are not known
 * @server: the process, and the listeners that are known
 *
 * Return: 0, or a negative errno; E2BIG: there are more than LISTENERS_MAX.
 */
int listeners_find(struct server *server)
{
	struct search s = { .server = server };
	int error = read_descriptors(&s);

	if (s.count)
		error = listening_dump(server, &s);
	free(s.descriptor);
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
	/* Another file may have the number by now, or another process that of the server. */
	if (socket_inode(getpid(), fd) == l->inode && !process_has_ended(server->pidfd))
		return fd;
	close(fd);
	return -EBADF;
}

/* process_has_listener - whether one of a process' descriptors is one of the server's */
bool process_has_listener(pid_t pid, const struct server *server)
{
	int *numbers;
	ssize_t i, count = process_numbers(pid, "fd", &numbers);
	bool found = false;

	for (i = 0; i < count && !found; i++)
		found = is_known(server, socket_inode(pid, numbers[i]));
	free(numbers);
	return found;
}
