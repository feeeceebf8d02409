// SPDX-License-Identifier: GPL-2.0-only
/* flowfdctl list: every counter and every ring, as tables or as JSON. */
#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>

#include "flowfdctl.h"

/* Version of the JSON format; flowfdctl(1) documents it. */
#define FORMAT_VERSION 2

enum { JSON = 256 };

struct arguments {
	pid_t pid;
	bool json;
	bool flow;
	bool statistics;
};

static const unsigned char counter_columns[] = {
	NUMBER, UID, PID, COUNT, MAXIMUM, RATE, BURST, DEFERRED, TYPE, COMMAND, COLUMNS,
};

static const unsigned char flow_columns[] = {
	NUMBER, UID,	PID,  READ_MARK, WRITE_MARK, MAX_DELAY, OVERFLOW,
	LOST,	SOURCE, SINK, WAITING,	 COMMAND,    COLUMNS,
};

static const unsigned char counter_statistics[] = {
	NUMBER, UID,   PID,	PRODUCED, WRITES,  READS,   WAKEUPS, HELD_BACK,
	AGAIN,	WAITS, WAIT_NS, LOST,	  HIGHEST, COMMAND, COLUMNS,
};

static const unsigned char ring_columns[] = {
	NUMBER, UID,  PID,     WATCHES, POSTS,	 MAX_ITEMS,
	HEAD,	TAIL, PENDING, COMMAND, COLUMNS,
};

static const unsigned char ring_statistics[] = {
	NUMBER, UID, PID, PUBLISHED, COALESCED, RING_WAITS, SLEEPS, COMMAND, COLUMNS,
};

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

/*
 * Prints a table of objects of a kind. The kernel knows who created them, a process by
 * which descriptors it has them.
 */
static void print_objects(const struct list *list, enum kind kind, bool of_process,
			  const unsigned char *columns)
{
	const char *headings[COLUMNS_MAX] = { 0 };
	unsigned char own[COLUMNS_MAX] = { 0 };
	struct table table = { .headings = headings };
	size_t count, i, j;

	for (count = 0; columns[count] != COLUMNS; count++) {
		own[count] = columns[count];
		if (of_process && own[count] <= PID && own[count] >= UID)
			own[count]++;
		headings[count] = column_name(kind, own[count]);
	}
	for (i = 0; i < list->count; i++)
		for (j = 0; j < count && list->object[i].kind == kind; j++)
			column_add(&table, &list->object[i], own[j]);
	table_print(&table);
	table_free(&table);
}

/* One after the other, as each takes memory. */
static void print_tables(const struct list *list, const struct arguments *arguments)
{
	const struct {
		bool wanted;
		enum kind kind;
		const unsigned char *columns;
	} tables[] = {
		{ true, COUNTER, counter_columns },
		{ arguments->flow, COUNTER, flow_columns },
		{ arguments->statistics, COUNTER, counter_statistics },
		{ true, RING, ring_columns },
		{ arguments->statistics, RING, ring_statistics },
	};
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		if (tables[i].wanted && i)
			putchar('\n');
		if (tables[i].wanted)
			print_objects(list, tables[i].kind, arguments->pid,
				      tables[i].columns);
	}
}

static void print_json_objects(const struct list *list, enum kind kind)
{
	const char *separator = "\n  ";
	size_t i;

	for (i = 0; i < list->count; i++) {
		if (list->object[i].kind != kind)
			continue;
		printf("%s{", separator);
		json_object(&list->object[i]);
		putchar('}');
		separator = ",\n  ";
	}
}

static void print_json(const struct list *list)
{
	printf("{\"format\": \"flowfdctl-list\", \"version\": %d,\n ", FORMAT_VERSION);
	json_list(list);
	printf(",\n \"counters\": [");
	print_json_objects(list, COUNTER);
	printf("],\n \"rings\": [");
	print_json_objects(list, RING);
	printf("]}\n");
}

int list_main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct list list = { 0 };
	bool complete;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (arguments.pid)
		process_list(&list, arguments.pid);
	else
		kernel_list(&list);
	complete = list_is_complete(&list);
	if (arguments.json)
		print_json(&list);
	else
		print_tables(&list, &arguments);
	fflush(stdout);
	list_remark(&list);
	list_free(&list);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
