// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl balance: wakes the workers of a running server in turn, until it is ended, or
 * the server ends. It keeps descriptors of the balances, not of the sockets: so the
 * server's sockets close when the server closes them.
 */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <flowfd.h>

#include "balance.h"
#include "flowfdctl.h"

#define INTERVAL_MAX	 86400.0
#define INTERVAL_DEFAULT 5.0

enum { JSON = 256, ONCE };

struct arguments {
	pid_t pid;
	const char *address;
	double interval;
	bool once;
	bool json;
};

/* What ends the program, and when the next table is due. */
struct session {
	struct arguments a;
	struct listener *listeners;
	size_t count;
	int *balances;
	size_t balanced;
	struct workers workers;
	bool counts;
	struct pollfd ends[2];
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "The server: a process whose children are workers", 0 },
	{ "listen", 'l', "ADDRESS", 0,
	  "Only this socket: 127.0.0.1:80, [::]:80, unix:/run/server.sock", 0 },
	{ "once", ONCE, NULL, 0, "Change nothing: report for one interval", 0 },
	{ "interval", 'i', "S", 0, "Print a table every S seconds, 0.1 to 86400 (5)", 0 },
	{ "json", JSON, NULL, 0, "Print a JSON object instead of each table", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'p':
		a->pid = parse_pid(state, arg);
		return 0;
	case 'l':
		a->address = arg;
		return 0;
	case 'i':
		a->interval = parse_interval(state, arg, INTERVAL_MAX);
		return 0;
	case ONCE:
		a->once = true;
		return 0;
	case JSON:
		a->json = true;
		return 0;
	case ARGP_KEY_END:
		if (!a->pid)
			argp_error(state, "--pid is missing: the process of a server");
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

static const char *balance_error(int error)
{
	switch (error) {
	case -EBUSY:
		return "it is balanced already, by another process";
	case -EOPNOTSUPP:
		return "this kernel wakes waiters in another way; nothing was changed";
	default:
		return module_error(error);
	}
}

static void find_listeners(struct session *s)
{
	struct listener *all;
	size_t count, i;

	count = listeners_find(s->ends[0].fd, s->a.pid, s->a.address, &all);
	if (!count)
		errx(EXIT_FAILURE,
		     "process %d has no listening socket of TCP or UNIX%s%s", s->a.pid,
		     s->a.address ? " with the address " : "", s->a.address ?: "");
	for (i = 0; i < count; i++) {
		if (!s->a.once && listener_is_of_one_worker(&all[i], all, count)) {
			if (!i || strcmp(all[i].address, all[i - 1].address))
				warnx("%s has SO_REUSEPORT, and a socket for each worker:"
				      " the kernel distributes its connections already",
				      all[i].address);
			close(all[i].fd);
			continue;
		}
		s->listeners = grow(s->listeners, s->count, sizeof(*all));
		s->listeners[s->count++] = all[i];
	}
	free(all);
	if (!s->count)
		errx(EXIT_FAILURE, "there is nothing to balance");
}

/* Also closes this process' descriptors of the sockets. */
static void balance_all(struct session *s)
{
	size_t i;
	int fd;

	for (i = 0; i < s->count; i++) {
		if (!s->a.once) {
			fd = flowfd_balance(s->listeners[i].fd, 0);
			if (fd < 0)
				errx(EXIT_FAILURE, "%s: %s", s->listeners[i].address,
				     balance_error(fd));
			s->balances = grow(s->balances, s->balanced, sizeof(int));
			s->balances[s->balanced++] = fd;
		}
		close(s->listeners[i].fd);
	}
}

/* A process that accepted nothing and has workers is their parent, and no worker. */
static bool is_worker(const struct session *s, const struct worker *w)
{
	return w->accepted || w->pid != s->a.pid || s->workers.count == 1;
}

static void print_json(const struct session *s, const char *state)
{
	const char *separator = "";
	size_t i;

	printf("{\"balance\": 1, \"state\": \"%s\", \"listeners\": [", state);
	for (i = 0; i < s->count; i++) {
		printf("%s", separator);
		text_json(stdout, s->listeners[i].address);
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
	workers_update(&s->workers, s->a.pid, s->listeners, s->count);
	if (s->a.json)
		print_json(s, state);
	else
		print_table(s, state);
	fflush(stdout);
	workers_reset(&s->workers);
}

/* Returns whether the server ended, or this program is to. */
static bool wait_interval(const struct session *s)
{
	struct pollfd ends[2] = { s->ends[0], s->ends[1] };

	return poll(ends, 2, s->counts ? s->a.interval * 1000 : -1) > 0;
}

static int signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int balance_main(int argc, char **argv)
{
	struct session s = { .a.interval = INTERVAL_DEFAULT };
	const char *state;
	bool ended;

	argp_parse(&argp, argc, argv, 0, NULL, &s.a);
	s.ends[0] = (struct pollfd){ syscall(SYS_pidfd_open, s.a.pid, 0), POLLIN, 0 };
	if (s.ends[0].fd < 0)
		err(EXIT_FAILURE, "process %d", s.a.pid);
	s.counts = workers_open();
	if (!s.counts && (s.a.once || s.a.json))
		return EXIT_FAILURE;
	find_listeners(&s);
	if (s.counts)
		workers_update(&s.workers, s.a.pid, s.listeners, s.count);
	balance_all(&s);
	/* Last: until now a signal ends the program, whatever it waits for. */
	s.ends[1] = (struct pollfd){ signals(), POLLIN, 0 };
	state = s.a.once ? "not balanced" : "balanced";
	do {
		ended = wait_interval(&s);
		if (s.counts)
			report(&s, state);
	} while (!ended && !s.a.once);
	return EXIT_SUCCESS;
}
