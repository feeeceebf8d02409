// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl balance: wakes the workers of a running server in turn, until it is ended, or
 * the server ends. Of each socket it keeps a descriptor of the balance and one by O_PATH,
 * neither of which keeps the socket open. It counts only if that is asked for: as long as
 * it does, each system call of the machine pays for it.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "balance.h"
#include "flowfdctl.h"

#define LOOK_NS 5000000000ULL /* between two looks for sockets and workers */

enum { JSON = 256, ONCE };

/* With an interval, in seconds, it counts and prints tables. */
struct session {
	double interval;
	bool once;
	bool json;
	struct server server;
	struct workers workers;
	int last_error;
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "The server: a process whose children are workers", 0 },
	{ "listen", 'l', "ADDRESS", 0,
	  "Only this socket: 127.0.0.1:80, [::]:80, unix:/run/server.sock", 0 },
	{ "once", ONCE, NULL, 0, "Change nothing, and print one table", 0 },
	{ "interval", 'i', "S", 0, "Print a table every S seconds, 0.1 to 86400", 0 },
	{ "json", JSON, NULL, 0, "Print a JSON object instead of each table", 0 },
	{ 0 },
};

/* In seconds. */
static double parse_interval(struct argp_state *state, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	/* strtod() also accepts nan and 0x. */
	if (!*text || *end || text[strspn(text, "0123456789.")] || value < 0.1 ||
	    value > 86400)
		argp_error(state, "--interval '%s': not a number from 0.1 to 86400",
			   text);
	return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct session *s = state->input;

	switch (key) {
	case 'p':
		s->server.pid = parse_pid(state, arg);
		return 0;
	case 'l':
		s->server.address = arg;
		return 0;
	case 'i':
		s->interval = parse_interval(state, arg);
		return 0;
	case ONCE:
		s->once = true;
		return 0;
	case JSON:
		s->json = true;
		return 0;
	case ARGP_KEY_END:
		if (!s->server.pid)
			argp_error(state, "--pid is missing: the process of a server");
		if (s->once && !s->interval)
			s->interval = 5;
		if (s->json && !s->interval)
			argp_error(state, "--json needs --interval or --once");
		return 0;
	default:
		return parse_other(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Wake the workers of a running server in turn, so that each accepts a"
	       " similar number of connections, until this command ends."
	       "\vTo see whether you need it: flowfdctl balance --pid PID --once",
};

static const char *look_error(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return "only a user who may trace it may balance its sockets: run this as"
		       " root, with CAP_SYS_PTRACE, and CAP_SYS_ADMIN if it has a network"
		       " namespace of its own";
	case -EPROTONOSUPPORT:
		return "the kernel does not tell which sockets listen: it needs its modules"
		       " tcp_diag and unix_diag";
	case -E2BIG:
		return "it has more listening sockets than the 1,024 that are balanced";
	default:
		return strerror(-error);
	}
}

/* Each error is told once, though it comes again at each look. Others are balanced. */
static void look(struct session *s, bool first)
{
	struct server *server = &s->server;
	int error = 0;

	if (!s->once)
		error = balances_update(server, !s->interval);
	else if (first)
		error = listeners_find(server);
	/* A server that ends just now has no descriptors, which is no news. */
	if (!first && (error == -ESRCH || error == -ENOENT))
		error = s->last_error;
	if (error && error != s->last_error)
		warnx("process %d: %s", server->pid, look_error(error));
	s->last_error = error;
	fflush(stdout);
}

static void first_look(struct session *s)
{
	struct server *server = &s->server;
	size_t i;

	look(s, true);
	if (!server->count && !s->last_error)
		errx(EXIT_FAILURE,
		     "process %d has no listening socket of TCP or UNIX in its network"
		     " namespace%s%s",
		     server->pid, server->address ? " with the address " : "",
		     server->address ?: "");
	for (i = 0; i < server->count && server->listeners[i].balance < 0; i++)
		;
	/* Each has said why. */
	if (i == server->count)
		exit(EXIT_FAILURE);
	/* Not before, as counting has a price. */
	if (s->interval)
		workers_find(&s->workers, server);
}

static void print_json(const struct session *s, const struct workers *workers,
		       const char *state)
{
	const char *separator = "";
	size_t i;

	printf("{\"balance\": 1, \"state\": \"%s\", \"listeners\": [", state);
	for (i = 0; i < s->server.count; i++) {
		if (s->server.listeners[i].balance < 0)
			continue;
		printf("%s", separator);
		text_json(stdout, s->server.listeners[i].address);
		separator = ", ";
	}
	printf("], \"workers\": [");
	for (i = 0; i < workers->count; i++)
		printf("%s{\"pid\": %d, \"accepted\": %" PRIu64 "}", i ? ", " : "",
		       workers->worker[i].pid, workers->worker[i].accepted);
	puts("]}");
}

static void print_table(const struct workers *workers, const char *state)
{
	uint64_t sum = 0, most = 0;
	size_t i;

	for (i = 0; i < workers->count; i++) {
		sum += workers->worker[i].accepted;
		if (workers->worker[i].accepted > most)
			most = workers->worker[i].accepted;
	}
	printf("%s: %" PRIu64 " connections, %zu workers", state, sum, workers->count);
	if (sum)
		printf(", most over mean %.2f", (double)most * workers->count / sum);
	puts("");
	for (i = 0; i < workers->count; i++)
		printf("%10d %10" PRIu64 "\n", workers->worker[i].pid,
		       workers->worker[i].accepted);
}

static void report(struct session *s)
{
	const char *state = s->once ? "not balanced" : "balanced";
	struct workers workers;

	workers_count(&s->workers);
	workers = s->workers;
	/* Who accepted nothing and has workers is their parent, and no worker; it is first. */
	if (workers.count > 1 && workers.worker->pid == s->server.pid &&
	    !workers.worker->accepted) {
		workers.worker++;
		workers.count--;
	}
	if (s->json)
		print_json(s, &workers, state);
	else
		print_table(&workers, state);
	fflush(stdout);
	workers_reset(&s->workers);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns whether the server ended. */
static bool wait_until(const struct session *s, uint64_t due)
{
	struct pollfd server = { s->server.pidfd, POLLIN, 0 };
	uint64_t now = now_ns(), left = due > now ? due - now : 0;
	struct timespec time = { left / 1000000000, left % 1000000000 };

	return ppoll(&server, 1, &time, NULL) > 0;
}

static void run(struct session *s)
{
	uint64_t interval = s->interval * 1e9, now = now_ns();
	uint64_t next = now + LOOK_NS, table = interval ? now + interval : UINT64_MAX;
	bool ended;

	do {
		ended = wait_until(s, next < table ? next : table);
		now = now_ns();
		if (!ended && now >= next) {
			look(s, false);
			if (interval)
				workers_find(&s->workers, &s->server);
			next = now_ns() + LOOK_NS;
		}
		if (interval && (ended || now >= table)) {
			report(s);
			table = now + interval;
			ended |= s->once;
		}
	} while (!ended);
}

int balance_main(int argc, char **argv)
{
	struct session s = { 0 };
	struct rlimit limit;

	argp_parse(&argp, argc, argv, 0, NULL, &s);
	/* Each thread of a server has a descriptor here, and each socket two. */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (s.interval && !workers_open())
		return EXIT_FAILURE;
	s.server.pidfd = syscall(SYS_pidfd_open, s.server.pid, 0);
	if (s.server.pidfd < 0)
		err(EXIT_FAILURE, "process %d", s.server.pid);
	first_look(&s);
	run(&s);
	return EXIT_SUCCESS;
}
