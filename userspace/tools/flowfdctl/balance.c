// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl balance: wakes the workers of a running server in turn, until it is ended, or
 * the server ends. Of each socket it keeps a descriptor of the balance and one by O_PATH,
 * neither of which keeps the socket open: that closes when the server closes it. It counts
 * only if that is asked for: as long as it does, each system call of the machine pays for it.
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

#define INTERVAL_DEFAULT 5.0
#define LOOK_NS		 5000000000ULL /* between two looks for sockets and workers */

enum { JSON = 256, ONCE };

struct arguments {
	double interval;
	bool once;
	bool json;
};

/* If it counts, it prints tables. */
struct session {
	struct arguments a;
	struct server server;
	struct workers workers;
	bool counts;
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
		s->a.interval = parse_interval(state, arg);
		return 0;
	case ONCE:
		s->a.once = true;
		return 0;
	case JSON:
		s->a.json = true;
		return 0;
	case ARGP_KEY_END:
		if (!s->server.pid)
			argp_error(state, "--pid is missing: the process of a server");
		if (s->a.once && !s->a.interval)
			s->a.interval = INTERVAL_DEFAULT;
		if (s->a.json && !s->a.interval)
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

/* Once for each error, which comes again at each look. Others are balanced. */
static void tell_error(struct session *s, int error)
{
	if (error && error != s->last_error)
		warnx("process %d: %s", s->server.pid, look_error(error));
	s->last_error = error;
}

static void first_look(struct session *s)
{
	struct server *server = &s->server;
	int error = s->a.once ? listeners_find(server) :
				balances_update(server, !s->counts);
	size_t i;

	tell_error(s, error);
	if (error && !server->count)
		exit(EXIT_FAILURE);
	if (!server->count)
		errx(EXIT_FAILURE,
		     "process %d has no listening socket of TCP or UNIX in its network"
		     " namespace%s%s",
		     server->pid, server->address ? " with the address " : "",
		     server->address ?: "");
	/* Each has said why. */
	for (i = 0; server->listeners[i].balance < 0; i++)
		if (i == server->count - 1)
			exit(EXIT_FAILURE);
	if (s->counts)
		workers_find(&s->workers, server);
	fflush(stdout);
}

/* A server that ends just now has no descriptors, which is no news. */
static void look_again(struct session *s)
{
	int error = s->a.once ? 0 : balances_update(&s->server, !s->counts);

	if (error != -ESRCH && error != -ENOENT)
		tell_error(s, error);
	if (s->counts)
		workers_find(&s->workers, &s->server);
	fflush(stdout);
}

/* A process that accepted nothing and has workers is their parent, and no worker. */
static bool is_worker(const struct session *s, const struct worker *w)
{
	return w->accepted || w->pid != s->server.pid || s->workers.count == 1;
}

static void print_json(const struct session *s, const char *state)
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
	separator = "";
	for (i = 0; i < s->workers.count; i++) {
		const struct worker *w = &s->workers.worker[i];

		if (!is_worker(s, w))
			continue;
		printf("%s{\"pid\": %d, \"accepted\": %" PRIu64 "}", separator, w->pid,
		       w->accepted);
		separator = ", ";
	}
	puts("]}");
}

static void print_table(const struct session *s, const char *state)
{
	uint64_t sum = 0, most = 0;
	size_t i, workers = 0;

	for (i = 0; i < s->workers.count; i++) {
		const struct worker *w = &s->workers.worker[i];

		if (!is_worker(s, w))
			continue;
		workers++;
		sum += w->accepted;
		if (w->accepted > most)
			most = w->accepted;
	}
	printf("%s: %" PRIu64 " connections, %zu workers", state, sum, workers);
	if (sum)
		printf(", most over mean %.2f", (double)most * workers / sum);
	puts("");
	for (i = 0; i < s->workers.count; i++)
		if (is_worker(s, &s->workers.worker[i]))
			printf("%10d %10" PRIu64 "\n", s->workers.worker[i].pid,
			       s->workers.worker[i].accepted);
}

static void report(struct session *s, const char *state)
{
	workers_count(&s->workers);
	if (s->a.json)
		print_json(s, state);
	else
		print_table(s, state);
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
	struct timespec left = { 0 };
	uint64_t now = now_ns();

	if (due > now)
		left = (struct timespec){ (due - now) / 1000000000,
					  (due - now) % 1000000000 };
	return ppoll(&server, 1, &left, NULL) > 0;
}

static void run(struct session *s)
{
	const char *state = s->a.once ? "not balanced" : "balanced";
	uint64_t interval = s->a.interval * 1e9, now = now_ns();
	uint64_t look = now + LOOK_NS, table = s->counts ? now + interval : UINT64_MAX;
	bool ended;

	do {
		ended = wait_until(s, look < table ? look : table);
		now = now_ns();
		if (!ended && now >= look) {
			look_again(s);
			look = now_ns() + LOOK_NS;
		}
		if (s->counts && (ended || now >= table)) {
			report(s, state);
			table = now + interval;
			ended |= s->a.once;
		}
	} while (!ended);
}

/* Each thread of a server has a descriptor here, and each socket two. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int balance_main(int argc, char **argv)
{
	struct session s = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &s);
	allow_descriptors();
	s.counts = s.a.interval > 0;
	if (s.counts && !workers_open())
		return EXIT_FAILURE;
	s.server.pidfd = syscall(SYS_pidfd_open, s.server.pid, 0);
	if (s.server.pidfd < 0)
		err(EXIT_FAILURE, "process %d", s.server.pid);
	first_look(&s);
	run(&s);
	return EXIT_SUCCESS;
}
