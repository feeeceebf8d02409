// SPDX-License-Identifier: GPL-2.0-only
/*
 * clients ADDRESS WARM CONNECTIONS RATE [REQUESTS BUSY_MS]: clients of an HTTP server whose
 * answer to / is the number of the process that gave it. ADDRESS is a port of 127.0.0.1, or
 * the path of a UNIX socket.
 *
 * First WARM connections are made and forgotten. Then there are RATE connections a second,
 * each with one request. They stay open if there are to be REQUESTS: so many follow, RATE a
 * second, on all connections in turn. Meanwhile, each second, the worker of some connection
 * is stopped for BUSY_MS: it is as good as busy with a request of that connection.
 *
 * Prints as JSON how many connections each worker has accepted, and the microseconds from
 * when a connection or a request was due until its answer.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 100000
#define REQUESTS_MAX	1000000
#define WORKERS_MAX	64
#define BUSY_EVERY_NS	1000000000
#define PATIENCE_NS	100000000000

struct connection {
	int fd;
	bool waits;
	uint64_t due;
	unsigned int length;
	pid_t worker;
	char answer[1024];
};

struct phase {
	unsigned long count;
	unsigned long answers;
	unsigned long skipped;
	double *us;
};

static struct connection *connections;
static int ep;
static const char *address;
static unsigned long rate;
static struct {
	pid_t pid;
	uint64_t until, next, ns;
} busy;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int connect_to_server(void)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(atoi(address)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	bool local = *address == '/';
	int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(un.sun_path, address, sizeof(un.sun_path) - 1);
	if (fd < 0 || (local ? connect(fd, (struct sockaddr *)&un, sizeof(un)) :
			       connect(fd, (struct sockaddr *)&in, sizeof(in))))
		err(EXIT_FAILURE, "connect %s", address);
	return fd;
}

static void request(struct connection *c, uint64_t due)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

	c->due = due;
	c->waits = true;
	c->length = 0;
	if (send(c->fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		err(EXIT_FAILURE, "send");
}

static void open_connection(struct connection *c, uint64_t due)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	c->fd = connect_to_server();
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &event))
		err(EXIT_FAILURE, "epoll_ctl");
	request(c, due);
}

/* The body of an answer is a number and a newline. */
static bool is_complete(struct connection *c)
{
	const char *body;

	c->answer[c->length] = '\0';
	body = strstr(c->answer, "\r\n\r\n");
	if (!body || !body[4] || c->answer[c->length - 1] != '\n')
		return false;
	c->worker = atoi(body + 4);
	if (strncmp(c->answer, "HTTP/1.1 200 ", 13) || c->worker <= 0)
		errx(EXIT_FAILURE, "an answer: %s", c->answer);
	return true;
}

static void receive(struct connection *c, struct phase *phase, bool keep)
{
	ssize_t got = recv(c->fd, c->answer + c->length,
			   sizeof(c->answer) - 1 - c->length, 0);

	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0)
		err(EXIT_FAILURE, "recv: %zd", got);
	c->length += got;
	if (!c->waits || !is_complete(c))
		return;
	c->waits = false;
	phase->us[phase->answers++] = (double)(now() - c->due) / 1e3;
	if (!keep)
		close(c->fd);
}

static void keep_busy(const struct connection *held, unsigned long count)
{
	static unsigned int seed = 1;
	uint64_t time = now();

	if (busy.pid && time >= busy.until) {
		kill(busy.pid, SIGCONT);
		busy.pid = 0;
	}
	if (!count || !busy.ns || time < busy.next)
		return;
	busy.pid = held[rand_r(&seed) % count].worker;
	kill(busy.pid, SIGSTOP);
	busy.until = time + busy.ns;
	busy.next = time + BUSY_EVERY_NS;
}

/* A connection, or the next request on one of @held that does not wait for an answer. */
static void act(struct phase *phase, unsigned long turn, unsigned long held, uint64_t due)
{
	struct connection *c = &connections[held ? turn % held : turn];

	if (!held)
		open_connection(c, due);
	else if (!c->waits)
		request(c, due);
	else
		phase->skipped++;
}

static void run(struct phase *phase, unsigned long held, bool keep)
{
	uint64_t start = now(), due = start, answered = start;
	struct epoll_event events[64];
	unsigned long turn = 0;
	int i, found;

	while (phase->answers + phase->skipped < phase->count) {
		if (turn < phase->count && now() >= due) {
			act(phase, turn++, held, due);
			due = start + turn * 1000000000 / rate;
		}
		keep_busy(connections, held);
		found = epoll_wait(ep, events, 64,
				   turn < phase->count && now() >= due ? 0 : 1);
		for (i = 0; i < found; i++)
			receive(events[i].data.ptr, phase, keep);
		if (found)
			answered = now();
		if (now() - answered > PATIENCE_NS)
			errx(EXIT_FAILURE, "%lu of %lu answers", phase->answers,
			     phase->count);
	}
	busy.until = 0;
	keep_busy(connections, 0);
}

static void begin(struct phase *phase, unsigned long count)
{
	*phase = (struct phase){ .count = count };
	phase->us = calloc(count + 1, sizeof(double));
	if (!phase->us)
		err(EXIT_FAILURE, "memory");
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void print_phase(const char *name, const struct phase *phase)
{
	qsort(phase->us, phase->answers, sizeof(double), compare);
	printf(", \"%s\": {\"count\": %lu, \"p50\": %.0f, \"p99\": %.0f, \"max\": %.0f}",
	       name, phase->answers, phase->us[phase->answers / 2],
	       phase->us[phase->answers * 99 / 100], phase->us[phase->answers - 1]);
}

static void print_workers(unsigned long count)
{
	struct {
		pid_t pid;
		unsigned long accepted;
	} workers[WORKERS_MAX] = { 0 };
	unsigned long i, j, all = 0;

	for (i = 0; i < count; i++) {
		for (j = 0; j < all && workers[j].pid != connections[i].worker; j++)
			;
		if (j == WORKERS_MAX)
			errx(EXIT_FAILURE, "more than %d workers", WORKERS_MAX);
		if (j == all)
			workers[all++].pid = connections[i].worker;
		workers[j].accepted++;
	}
	printf("{\"workers\": {");
	for (i = 0; i < all; i++)
		printf("%s\"%d\": %lu", i ? ", " : "", workers[i].pid,
		       workers[i].accepted);
	printf("}");
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!*text || *end || value > max)
		errx(EXIT_FAILURE, "%s: not a number up to %lu", text, max);
	return value;
}

int main(int argc, char **argv)
{
	unsigned long warm, count, requests;
	struct phase phase;

	if (argc != 5 && argc != 7)
		errx(EXIT_FAILURE, "ADDRESS WARM CONNECTIONS RATE [REQUESTS BUSY_MS]");
	address = argv[1];
	warm = number(argv[2], CONNECTIONS_MAX);
	count = number(argv[3], CONNECTIONS_MAX);
	rate = number(argv[4], 100000);
	requests = argc == 7 ? number(argv[5], REQUESTS_MAX) : 0;
	if (!count || !rate)
		errx(EXIT_FAILURE, "0 connections");
	connections = calloc(warm > count ? warm : count, sizeof(*connections));
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (!connections || ep < 0)
		err(EXIT_FAILURE, "epoll_create1");
	prctl(PR_SET_TIMERSLACK, 1);
	begin(&phase, warm);
	run(&phase, 0, false);
	begin(&phase, count);
	run(&phase, 0, requests);
	print_workers(count);
	print_phase("connections", &phase);
	if (requests) {
		busy.ns = number(argv[6], 400) * 1000000;
		begin(&phase, requests);
		run(&phase, count, true);
		print_phase("requests", &phase);
	}
	puts("}");
	return EXIT_SUCCESS;
}
