// SPDX-License-Identifier: GPL-2.0-only
/* flowfdctl list: every counter and every ring, as tables or as JSON. */
#include <argp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "flowfdctl.h"

/* Version of the JSON format; flowfdctl(1) documents it. */
#define FORMAT_VERSION 1

enum { JSON = 256 };

struct arguments {
	bool json;
	bool watches;
	bool flow;
	bool statistics;
};

/* Values to show beside each other. */
struct columns {
	enum value value[VALUES];
	size_t count;
};

static const struct argp_option options[] = {
	{ "json", JSON, NULL, 0, "Print JSON instead of tables", 0 },
	{ "flow", 'f', NULL, 0, "Show the policies and bridges of counters", 0 },
	{ "stats", 's', NULL, 0, "Show statistics", 0 },
	{ "watches", 'w', NULL, 0, "Show each file that a ring watches", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case JSON:
		arguments->json = true;
		return 0;
	case 'f':
		arguments->flow = true;
		return 0;
	case 's':
		arguments->statistics = true;
		return 0;
	case 'w':
		arguments->watches = true;
		return 0;
	default:
		return parse_other(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "List every counter and every ring that a process of this"
	       " machine has open, with a line for each descriptor.",
};

static void add_number(struct table *table, uint64_t value, bool is_there)
{
	if (is_there)
		table_add(table, "%" PRIu64, value);
	else
		table_add(table, "-");
}

static void add_holder(struct table *table, const struct descriptor *d)
{
	table_add(table, "%" PRIu64, d->object.id);
	table_add(table, "%d", d->pid);
	table_add(table, "%d", d->fd);
}

static void add_command(struct table *table, const struct descriptor *d)
{
	char command[ESCAPED_SIZE];

	text_escape(command, sizeof(command), d->command);
	table_add(table, "%s", command);
}

static void add_counter(struct table *table, const struct descriptor *d)
{
	const struct object *counter = &d->object;

	add_holder(table, d);
	table_add(table, "%" PRIu64, counter->count);
	add_number(table, counter->maximum, counter->maximum != UINT64_MAX);
	add_number(table, counter->rate, counter->rate);
	add_number(table, counter->capacity, counter->rate);
	table_add(table, counter->deferred ? "yes" : "-");
	table_add(table, counter->semaphore ? "semaphore" : "count");
	add_command(table, d);
}

static void add_ring(struct table *table, const struct descriptor *d)
{
	const struct object *ring = &d->object;

	add_holder(table, d);
	if (ring->busy)
		table_add(table, "busy");
	else
		table_add(table, "%" PRIu32, ring->watches);
	add_number(table, ring->posts, !ring->busy);
	table_add(table, "%" PRIu32, ring->max_items);
	table_add(table, "%" PRIu32, ring->head);
	table_add(table, "%" PRIu32, ring->tail);
	table_add(table, "%" PRIu32, object_pending(ring));
	add_command(table, d);
}

static void add_watches(struct table *table, const struct object *ring)
{
	char events[EVENTS_SIZE];
	uint32_t i;

	for (i = 0; i < ring->listed; i++) {
		const struct watch *watch = &ring->watch[i];

		text_events(events, watch->events);
		table_add(table, "%" PRIu64, ring->id);
		table_add(table, "%d", watch->fd);
		table_add(table, watch->pinned ? "yes" : "-");
		table_add(table, "%#" PRIx64, watch->data);
		table_add(table, "%s", events);
	}
}

static void add_value(struct table *table, const struct object *object, enum value value)
{
	uint64_t number = object->value[value];
	char duration[DURATION_SIZE];

	if (!value_is_known(object, value)) {
		table_add(table, "-");
	} else if (value == OVERFLOW) {
		table_add(table, "%s", overflow_name(number));
	} else if (value == MAX_DELAY || value == WAIT_NS) {
		text_duration(duration, (double)number);
		table_add(table, "%s", duration);
	} else {
		table_add(table, "%" PRIu64, number);
	}
}

static void add_values(struct table *table, const struct descriptor *d,
		       const struct columns *columns)
{
	size_t i;

	add_holder(table, d);
	for (i = 0; i < columns->count; i++)
		add_value(table, &d->object, columns->value[i]);
	add_command(table, d);
}

/* Prints a table of objects of a kind, with some of their values. */
static void print_values(const struct scan *scan, enum kind kind,
			 const struct columns *columns)
{
	const char *headings[COLUMNS_MAX] = { kind == RING ? "RING" : "COUNTER", "PID",
					      "FD" };
	struct table table = { .headings = headings };
	size_t i;

	for (i = 0; i < columns->count; i++)
		headings[3 + i] = value_infos[columns->value[i]].heading;
	headings[3 + i] = "COMMAND";
	for (i = 0; i < scan->count; i++)
		if (scan->descriptor[i].object.kind == kind)
			add_values(&table, &scan->descriptor[i], columns);
	putchar('\n');
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

static void print_flow(const struct scan *scan)
{
	static const struct columns columns = {
		{ READ_MARK, WRITE_MARK, MAX_DELAY, OVERFLOW, LOST, SOURCE, SINK,
		  WAITING },
		8,
	};

	print_values(scan, COUNTER, &columns);
}

static void print_statistics(const struct scan *scan, enum kind kind)
{
	struct columns columns = { .count = 0 };
	enum value value;

	for (value = 0; value < VALUES; value++)
		if (value_infos[value].kind == kind && value_is_statistic(value))
			columns.value[columns.count++] = value;
	print_values(scan, kind, &columns);
}

static void print_watches(const struct scan *scan)
{
	static const char *const headings[] = { "RING", "FD",	  "PINNED",
						"DATA", "EVENTS", NULL };
	struct table table = { .headings = headings };
	size_t i;

	for (i = 0; i < scan->count; i++)
		if (scan->descriptor[i].object.kind == RING)
			add_watches(&table, &scan->descriptor[i].object);
	putchar('\n');
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

static void print_objects(const struct scan *scan, enum kind kind)
{
	static const char *const counter_headings[] = { "COUNTER", "PID",      "FD",
							"COUNT",   "MAXIMUM",  "RATE",
							"BURST",   "DEFERRED", "TYPE",
							"COMMAND", NULL };
	static const char *const ring_headings[] = { "RING",	"PID",	 "FD",
						     "WATCHES", "POSTS", "MAX",
						     "HEAD",	"TAIL",	 "PENDING",
						     "COMMAND", NULL };
	struct table table = {
		.headings = kind == RING ? ring_headings : counter_headings,
	};
	size_t i;

	for (i = 0; i < scan->count; i++) {
		if (scan->descriptor[i].object.kind != kind)
			continue;
		if (kind == RING)
			add_ring(&table, &scan->descriptor[i]);
		else
			add_counter(&table, &scan->descriptor[i]);
	}
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

/* One after the other, as each takes memory. */
static void print_tables(const struct scan *scan, const struct arguments *arguments)
{
	print_objects(scan, COUNTER);
	if (arguments->flow)
		print_flow(scan);
	if (arguments->statistics)
		print_statistics(scan, COUNTER);
	putchar('\n');
	print_objects(scan, RING);
	if (arguments->statistics)
		print_statistics(scan, RING);
	if (arguments->watches)
		print_watches(scan);
}

/* Written by hand: most JSON libraries cannot write integers of 64 bits. */
static void print_json_objects(const struct scan *scan, enum kind kind, bool watches)
{
	const char *separator = "\n  ";
	size_t i;

	for (i = 0; i < scan->count; i++) {
		if (scan->descriptor[i].object.kind != kind)
			continue;
		printf("%s{", separator);
		json_object(&scan->descriptor[i], watches);
		putchar('}');
		separator = ",\n  ";
	}
}

static void print_json(const struct scan *scan, bool watches)
{
	printf("{\"format\": \"flowfdctl-list\", \"version\": %d,\n ", FORMAT_VERSION);
	json_scan(scan);
	printf(",\n \"counters\": [");
	print_json_objects(scan, COUNTER, watches);
	printf("],\n \"rings\": [");
	print_json_objects(scan, RING, watches);
	printf("]}\n");
}

int list_main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct scan *scan;
	bool complete;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	scan = scan_all(arguments.watches ? SCAN_WATCHES : 0);
	need_module(scan);
	complete = scan_is_complete(scan);
	if (arguments.json)
		print_json(scan, arguments.watches);
	else
		print_tables(scan, &arguments);
	fflush(stdout);
	/* JSON has a field for hidden processes, which are not an error there. */
	if (!arguments.json || !complete)
		scan_remark(scan, stderr, "flowfdctl: ");
	scan_free(scan);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
