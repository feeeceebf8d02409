// SPDX-License-Identifier: GPL-2.0-only
/*
 * The balances of a server. A server may open and close listening sockets at any time, so
 * balances_update() is called again and again.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <flowfd.h>

#include "balance.h"
#include "flowfdctl.h"

/* An error of this program's: it has asked for no balance. */
#define DISTRIBUTED (-EALREADY)

static const char *why_not(int error)
{
	switch (error) {
	case DISTRIBUTED:
		return "it has SO_REUSEPORT, and a socket for each worker:"
		       " the kernel distributes its connections already";
	case -EBUSY:
		return "it is balanced already, by another process";
	case -EINVAL:
		return "only listening sockets of TCP and UNIX can be balanced";
	case -EOPNOTSUPP:
		return "this kernel wakes waiters in another way; nothing was changed";
	default:
		return module_error(error);
	}
}

static bool was_said(const struct server *s, const char *address, int error)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (s->listeners[i].balance == error &&
		    !strcmp(s->listeners[i].address, address))
			return true;
	return false;
}

/*
 * Whether other sockets of the server have the same address, by SO_REUSEPORT: then the
 * kernel distributes connections to them, and each worker waits for its own.
 */
static bool is_of_one_worker(const struct server *s, const struct listener *l)
{
	size_t i;

	/* Another socket may have had the name, and may be open still. */
	if (!strncmp(l->address, "unix:", 5))
		return false;
	for (i = 0; i < s->count; i++)
		if (s->listeners[i].inode != l->inode &&
		    !strcmp(s->listeners[i].address, l->address))
			return true;
	return false;
}

static int balance(const struct server *s, struct listener *l)
{
	int ret;

	if (is_of_one_worker(s, l))
		return DISTRIBUTED;
	l->path = listener_open(s, l);
	if (l->path < 0)
		return l->path;
	ret = flowfd_balance(l->path, 0);
	if (ret < 0)
		close(l->path);
	return ret;
}

/* Of those that were balanced, also what only the workers still have. */
static void keep_open(struct server *next, const struct server *last, bool say)
{
	size_t i;

	for (i = 0; i < last->count; i++) {
		const struct listener *l = &last->listeners[i];

		if (l->balance < 0)
			continue;
		/* EBUSY, as it has a balance; with any other error the next look tells. */
		if (flowfd_balance(l->path, 0) != -EBADF) {
			listener_add(next, l);
			continue;
		}
		close(l->balance);
		close(l->path);
		if (say)
			printf("%s: closed\n", l->address);
	}
}

/*
 * balances_update - balance what can be, and forget what is closed
 * @server: its listeners are what was found the last time; none at first
 * @say: print what begins and ends
 *
 * Why a socket has no balance is said once on standard error, however often it is tried.
 *
 * Return: 0, or a negative errno: the server's descriptors cannot be looked at.
 */
int balances_update(struct server *server, bool say)
{
	struct server next = *server;
	size_t i, kept;
	int error, ret;

	next.listeners = NULL;
	next.count = 0;
	keep_open(&next, server, say);
	kept = next.count;
	error = listeners_find(&next);
	for (i = kept; i < next.count; i++) {
		struct listener *l = &next.listeners[i];

		ret = balance(&next, l);
		/* It was closed meanwhile. */
		if (ret == -EBADF)
			continue;
		if (ret >= 0 && say)
			printf("%s: balanced\n", l->address);
		if (ret < 0 && !was_said(&next, l->address, ret) &&
		    !was_said(server, l->address, ret))
			warnx("%s: %s", l->address, why_not(ret));
		l->balance = ret;
		next.listeners[kept++] = *l;
	}
	next.count = kept;
	free(server->listeners);
	*server = next;
	return error;
}
