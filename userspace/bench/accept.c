// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a balance costs those who connect: workers sleep in epoll_wait(2), and each
 * connection wakes one of them.
 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <flowfd.h>

#include "bench.h"

#define WORKERS 8

/** struct server - workers that accept; what is written to @end ends them */
struct server {
	int listener;
	int end;
	pthread_t worker[WORKERS];
};

static void failed(const char *what)
{
	err(EXIT_FAILURE, "accept: %s", what);
}

/* Closes each connection, which tells its client. */
static void *work(void *arg)
{
	const struct server *s = arg;
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE,
				     .data.fd = s->listener };
	struct epoll_event end = { .events = EPOLLIN, .data.fd = s->end };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, s->listener, &event) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, s->end, &end))
		failed("epoll");
	while (epoll_wait(epoll, &event, 1, -1) == 1 && event.data.fd == s->listener)
		close(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
	close(epoll);
	return NULL;
}

static void connect_and_wait(void *arg, unsigned long n)
{
	const struct server *s = arg;
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	char byte;
	int fd;

	if (getsockname(s->listener, (struct sockaddr *)&address, &size))
		failed("getsockname");
	while (n--) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			failed("socket");
		if (connect(fd, (struct sockaddr *)&address, size) || read(fd, &byte, 1))
			failed("connect");
		close(fd);
	}
}

static void server_open(struct server *s)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	unsigned int i;

	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	s->end = eventfd(0, EFD_CLOEXEC);
	if (s->listener < 0 || s->end < 0)
		failed("socket");
	if (bind(s->listener, (const struct sockaddr *)&any, sizeof(any.sun_family)) ||
	    listen(s->listener, 16))
		failed("listen");
	for (i = 0; i < WORKERS; i++)
		thread_start(&s->worker[i], work, s);
}

static void server_close(struct server *s)
{
	unsigned int i;

	eventfd_write(s->end, 1);
	for (i = 0; i < WORKERS; i++)
		pthread_join(s->worker[i], NULL);
	close(s->end);
	close(s->listener);
}

static void measure(struct table *table, unsigned int number)
{
	struct server server;
	int balance = -1;

	server_open(&server);
	if (number) {
		balance = flowfd_balance(server.listener, 0);
		if (balance < 0)
			errx(EXIT_FAILURE, "accept: %s", flowfd_strerror(balance));
	}
	table_add(table, 0, clock_loop(connect_and_wait, &server),
		  number ? "balanced" : "as they are");
	server_close(&server);
	if (number)
		close(balance);
}

const struct bench bench_accept = {
	.name = "accept",
	.title = "a connection to one of 8 workers that sleep (EPOLLEXCLUSIVE)",
	.labels = { "workers" },
	.columns = { { "cost", "cost", 1, 0 }, { "ratio", "ratio", 3, 1 } },
	.control = { "as they are" },
	.cases = 2,
	.measure = measure,
};
