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

static bool was_said(const struct server *s, const struct listener *l)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (s->listeners[i].balance == l->balance &&
		    !strcmp(s->listeners[i].address, l->address))
			return true;
	return false;
}

static void add(struct server *s, const struct listener *l)
{
	s->listeners = grow(s->listeners, s->count, sizeof(*l));
	s->listeners[s->count++] = *l;
}

static int balance(const struct server *known, struct listener *l,
		   const struct listener *found, size_t count)
{
	int ret;

	if (listener_is_of_one_worker(l, found, count) ||
	    listener_is_of_one_worker(l, known->listeners, known->count))
		return DISTRIBUTED;
	l->path = listener_open(known, l);
	if (l->path < 0)
		return l->path;
	ret = flowfd_balance(l->path, 0);
	if (ret < 0)
		close(l->path);
	return ret;
}

/* Of one that is open: EBUSY, as it has a balance. With any other error the next look tells. */
static bool is_closed(const struct listener *l)
{
	return flowfd_balance(l->path, 0) == -EBADF;
}

/* Of those that were balanced, also what only the workers still have. */
static void keep_open(struct server *next, const struct server *last, bool say)
{
	size_t i;

	for (i = 0; i < last->count; i++) {
		const struct listener *l = &last->listeners[i];

		if (l->balance < 0)
			continue;
		if (!is_closed(l)) {
			add(next, l);
			continue;
		}
		close(l->balance);
		close(l->path);
		if (say)
			printf("%s: closed\n", l->address);
	}
}

static void tell(const struct server *last, const struct listener *l, bool say)
{
	if (l->balance >= 0 && say)
		printf("%s: balanced\n", l->address);
	if (l->balance < 0 && !was_said(last, l))
		warnx("%s: %s", l->address, why_not(l->balance));
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
	struct listener *found;
	size_t count, i;
	int error;

	next.listeners = NULL;
	next.count = 0;
	keep_open(&next, server, say);
	error = listeners_find(&next, &found, &count);
	for (i = 0; i < count; i++)
		found[i].balance = balance(&next, &found[i], found, count);
	for (i = 0; i < count; i++) {
		/* It was closed meanwhile. */
		if (found[i].balance == -EBADF)
			continue;
		if (!was_said(&next, &found[i]))
			tell(server, &found[i], say);
		add(&next, &found[i]);
	}
	free(found);
	free(server->listeners);
	*server = next;
	return error;
}

bool balances_exist(const struct server *server)
{
	size_t i;

	for (i = 0; i < server->count; i++)
		if (server->listeners[i].balance >= 0)
			return true;
	return false;
}
