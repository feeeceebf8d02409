// SPDX-License-Identifier: MIT
/*
 * A small HTTP server with one thread: the same connections on epoll, io_uring or
 * the ring of flowfd. README.md describes how it works, and what it lacks.
 *
 *	server [--loop epoll|io_uring|ring|ring-gather] [--port PORT]
 *
 * Prints "listening on port PORT" when it is ready, and ends on SIGTERM or SIGINT.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "loop.h"

/* Milliseconds between attempts to accept while descriptors or memory are exhausted. */
#define RETRY_MS 100

static const struct loop *const loops[] = {
	&loop_epoll,
#ifdef HAVE_LIBURING
	&loop_uring,
#endif
	&loop_ring,
	&loop_gather,
};

STAILQ_HEAD(queue, connection);

/**
 * struct server - the state of the server
 * @loop: the event loop
 * @listener: listening socket
 * @stop: pipe that the signal handler writes to
 * @stopped: a signal came
 * @max_files: all descriptors are below it
 * @connections: by descriptor; memory is kept for the next connection
 * @queue: connections that can run
 * @acceptable: not accepted until EAGAIN since the last event
 * @exhausted: no descriptor or memory for another connection
 */
struct server {
	const struct loop *loop;
	int listener;
	int stop[2];
	bool stopped;
	unsigned int max_files;
	struct connection **connections;
	struct queue queue;
	bool acceptable;
	bool exhausted;
};

/* Write end of the pipe, for the signal handler. */
static int stop_fd;

static void stop(int signal)
{
	int saved = errno;

	(void)signal;
	if (write(stop_fd, "", 1) < 0)
		abort();
	errno = saved;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "server: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		die("memory", strerror(errno));
	return memory;
}

static void catch_signals(struct server *s)
{
	struct sigaction action = { .sa_handler = stop };

	if (pipe2(s->stop, O_NONBLOCK | O_CLOEXEC))
		die("pipe", strerror(errno));
	stop_fd = s->stop[1];
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static void listen_on(struct server *s, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	socklen_t length = sizeof(address);
	int one = 1;

	s->listener =
		socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listener < 0)
		die("socket", strerror(errno));
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Accepted connections inherit this. */
	setsockopt(s->listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(s->listener, (struct sockaddr *)&address, length) ||
	    listen(s->listener, SOMAXCONN) ||
	    getsockname(s->listener, (struct sockaddr *)&address, &length))
		die("listening socket", strerror(errno));
	printf("listening on port %u\n", ntohs(address.sin_port));
	fflush(stdout);
}

static void watch_own_files(struct server *s)
{
	struct loop_file files[] = { { .fd = s->listener },
				     { .fd = s->stop[0] } };

	s->loop->watch(files, 2);
	for (int i = 0; i < 2; i++) {
		if (files[i].error)
			die(s->loop->name, s->loop->strerror(files[i].error));
	}
}

static void enqueue(struct server *s, struct connection *c)
{
	if (c->queued)
		return;
	c->queued = true;
	STAILQ_INSERT_TAIL(&s->queue, c, next);
}

static void close_connection(struct server *s, struct connection *c)
{
	if (s->loop->forget)
		s->loop->forget(c->fd);
	close(c->fd);
	c->open = false;
}

static bool open_connection(struct server *s, int fd)
{
	struct connection **c = &s->connections[fd];

	if (!*c)
		*c = malloc(sizeof(**c));
	if (!*c) {
		close(fd);
		return false;
	}
	connection_init(*c, fd);
	return true;
}

/* Their first event is EPOLLOUT. */
static void watch_connections(struct server *s, struct loop_file *files,
			      unsigned int count)
{
	if (!count)
		return;
	s->loop->watch(files, count);
	for (unsigned int i = 0; i < count; i++) {
		if (!files[i].error)
			continue;
		fprintf(stderr, "server: %s: %s\n", s->loop->name,
			s->loop->strerror(files[i].error));
		close(files[i].fd);
		s->connections[files[i].fd]->open = false;
	}
}

/* Errors of connections that ended before they were accepted. */
static bool is_of_connection(int error)
{
	return error == ECONNABORTED || error == EINTR || error == EPERM ||
	       error == EPROTO;
}

/*
 * Without a free descriptor, connections stay in the listening socket's queue. No
 * event announces a free one, so the server tries again in each turn.
 */
static void accept_connections(struct server *s)
{
	struct loop_file files[LOOP_BATCH];
	unsigned int count = 0;
	int fd;

	s->exhausted = false;
	while (count < LOOP_BATCH) {
		fd = accept4(s->listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			if (open_connection(s, fd))
				files[count++].fd = fd;
			continue;
		}
		if (is_of_connection(errno))
			continue;
		s->acceptable = errno != EAGAIN;
		s->exhausted = s->acceptable;
		break;
	}
	watch_connections(s, files, count);
}

static void note_event(struct server *s, const struct loop_event *event)
{
	struct connection *c;

	if (event->fd == s->listener) {
		s->acceptable = true;
		return;
	}
	if (event->fd == s->stop[0]) {
		s->stopped = true;
		return;
	}
	c = s->connections[event->fd];
	if (event->events & LOOP_LOST)
		connection_abandon(c);
	else
		connection_note(c, event->events);
	enqueue(s, c);
}

/* A connection that goes on is queued again, for the next turn. */
static void run_connections(struct server *s)
{
	struct queue queue = STAILQ_HEAD_INITIALIZER(queue);
	struct connection *c;

	STAILQ_CONCAT(&queue, &s->queue);
	while ((c = STAILQ_FIRST(&queue))) {
		STAILQ_REMOVE_HEAD(&queue, next);
		c->queued = false;
		switch (connection_run(c)) {
		case CONNECTION_WAITS:
			break;
		case CONNECTION_GOES_ON:
			enqueue(s, c);
			break;
		case CONNECTION_IS_OVER:
			close_connection(s, c);
			break;
		}
	}
}

static int timeout(const struct server *s)
{
	if (!STAILQ_EMPTY(&s->queue) || (s->acceptable && !s->exhausted))
		return 0;
	return s->acceptable ? RETRY_MS : -1;
}

/* A turn stores all events first: no connection is closed before that. */
static void serve(struct server *s)
{
	struct loop_event events[LOOP_BATCH];
	int count;

	while (!s->stopped) {
		count = s->loop->wait(events, timeout(s));
		if (count < 0 && count != -EINTR)
			die(s->loop->name, s->loop->strerror(count));
		for (int i = 0; i < count; i++)
			note_event(s, &events[i]);
		if (s->acceptable)
			accept_connections(s);
		run_connections(s);
	}
}

static void open_server(struct server *s, uint16_t port)
{
	struct rlimit limit;
	int error;

	getrlimit(RLIMIT_NOFILE, &limit);
	s->max_files = limit.rlim_cur < INT_MAX ? limit.rlim_cur : INT_MAX;
	s->connections = allocate(s->max_files, sizeof(*s->connections));
	STAILQ_INIT(&s->queue);
	catch_signals(s);
	error = s->loop->open(s->max_files);
	if (error)
		die(s->loop->name, s->loop->strerror(error));
	listen_on(s, port);
	watch_own_files(s);
}

static void close_server(struct server *s)
{
	for (unsigned int fd = 0; fd < s->max_files; fd++) {
		struct connection *c = s->connections[fd];

		if (c && c->open)
			close_connection(s, c);
		free(c);
	}
	s->loop->close();
	close(s->listener);
	free(s->connections);
}

struct options {
	const struct loop *loop;
	uint16_t port;
};

static const struct loop *find_loop(const char *name)
{
	for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++) {
		if (!strcmp(loops[i]->name, name))
			return loops[i];
	}
	return NULL;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;
	unsigned long port;
	char *end;

	switch (key) {
	case 'l':
		options->loop = find_loop(argument);
		if (!options->loop)
			argp_error(state, "--loop %s: not built, or unknown",
				   argument);
		return 0;
	case 'p':
		port = strtoul(argument, &end, 10);
		if (*end || end == argument || port > UINT16_MAX)
			argp_error(state, "--port %s: not a port", argument);
		options->port = port;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option arguments[] = {
		{ "loop", 'l', "LOOP", 0,
		  "epoll (default), io_uring, ring, or ring-gather, which sleeps "
		  "until there are 8 events or 50 microseconds have passed",
		  0 },
		{ "port", 'p', "PORT", 0,
		  "port to listen on (default 8080; 0: any that is free)", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = arguments,
		.parser = parse_option,
		.doc = "Answers HTTP requests on the loopback interface.",
	};
	struct options options = { &loop_epoll, 8080 };
	struct server server = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	server.loop = options.loop;
	open_server(&server, options.port);
	serve(&server);
	close_server(&server);
	return EXIT_SUCCESS;
}
