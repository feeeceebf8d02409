// SPDX-License-Identifier: GPL-2.0-only
/* flowfdctl list: every counter and every ring, as tables or as JSON. */
#include <argp.h>
#include <stdlib.h>

#include "flowfdctl.h"

enum { JSON = 256 };

struct arguments {
	pid_t pid;
	bool json;
	bool flow;
	bool statistics;
};

/* clang-format off */
/* In the place of the user, a process has the descriptor. */
static const unsigned char counter_columns[] = {
	COUNTER_ID, UID, PID, FD, COUNT, MAXIMUM, RATE, BURST, DEFERRED, TYPE, COMMAND,
	COLUMNS,
};

static const unsigned char flow_columns[] = {
	COUNTER_ID, UID, PID, FD, READ_MARK, WRITE_MARK, MAX_DELAY, OVERFLOW, LOST,
	SOURCE, SINK, WAITING, COMMAND, COLUMNS,
};

static const unsigned char counter_statistics[] = {
	COUNTER_ID, UID, PID, FD, PRODUCED, WRITES, READS, WAKEUPS, HELD_BACK, AGAIN, WAITS,
	WAIT_NS, LOST, HIGHEST, COMMAND, COLUMNS,
};

static const unsigned char ring_columns[] = {
	RING_ID, UID, PID, FD, WATCHES, POSTS, MAX_ITEMS, HEAD, TAIL, PENDING, COMMAND,
	COLUMNS,
};

static const unsigned char ring_statistics[] = {
	RING_ID, UID, PID, FD, PUBLISHED, COALESCED, RING_WAITS, SLEEPS, COMMAND, COLUMNS,
};
/* clang-format on */

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "Show what a process has open, also without root", 0 },
	{ "json", JSON, NULL, 0, "Print JSON instead of tables", 0 },
	{ "flow", 'f', NULL, 0, "Show the policies and bridges of counters", 0 },
	{ "stats", 's', NULL, 0, "Show statistics", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'p':
		arguments->pid = parse_pid(state, arg);
		return 0;
	case JSON:
		arguments->json = true;
		return 0;
	case 'f':
		arguments->flow = true;
		return 0;
	case 's':
		arguments->statistics = true;
		return 0;
	default:
		return parse_other(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "List every counter and every ring of this machine, with the process that"
	       " created it; or those that a process has open, with a line for each"
	       " descriptor.",
};

static void print_tables(const struct list *list, const struct arguments *arguments)
{
	table_print(list, counter_columns);
	putchar('\n');
	if (arguments->flow) {
		table_print(list, flow_columns);
		putchar('\n');
	}
	if (arguments->statistics) {
		table_print(list, counter_statistics);
		putchar('\n');
	}
	table_print(list, ring_columns);
	if (arguments->statistics) {
		putchar('\n');
		table_print(list, ring_statistics);
	}
}

int list_main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct list list = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (arguments.pid)
		process_list(&list, arguments.pid);
	else
		kernel_list(&list);
	if (arguments.json)
		json_print(&list);
	else
		print_tables(&list, &arguments);
	return list_end(&list);
}
