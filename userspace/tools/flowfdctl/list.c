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
};

static const struct argp_option options[] = {
	{ "json", JSON, NULL, 0, "Print JSON instead of tables", 0 },
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

static void print_tables(const struct scan *scan, bool watches)
{
	static const char *const counter_headings[] = { "COUNTER", "PID",      "FD",
							"COUNT",   "MAXIMUM",  "RATE",
							"BURST",   "DEFERRED", "TYPE",
							"COMMAND", NULL };
	static const char *const ring_headings[] = { "RING",	"PID",	 "FD",
						     "WATCHES", "POSTS", "MAX",
						     "HEAD",	"TAIL",	 "PENDING",
						     "COMMAND", NULL };
	static const char *const watch_headings[] = { "RING", "FD",	"PINNED",
						      "DATA", "EVENTS", NULL };
	struct table counters = { .headings = counter_headings };
	struct table rings = { .headings = ring_headings };
	struct table watched = { .headings = watch_headings };
	size_t i;

	for (i = 0; i < scan->count; i++) {
		const struct descriptor *d = &scan->descriptor[i];

		if (d->object.kind == COUNTER) {
			add_counter(&counters, d);
			continue;
		}
		add_ring(&rings, d);
		if (watches)
			add_watches(&watched, &d->object);
	}
	table_print(&counters, SIZE_MAX, INT_MAX);
	putchar('\n');
	table_print(&rings, SIZE_MAX, INT_MAX);
	if (watches) {
		putchar('\n');
		table_print(&watched, SIZE_MAX, INT_MAX);
	}
	table_free(&counters);
	table_free(&rings);
	table_free(&watched);
}

static const char *boolean(bool value)
{
	return value ? "true" : "false";
}

static void json_counter(const struct object *counter)
{
	printf(", \"count\": %" PRIu64 ", \"maximum\": ", counter->count);
	if (counter->maximum == UINT64_MAX)
		printf("null");
	else
		printf("%" PRIu64, counter->maximum);
	printf(", \"rate\": %" PRIu32 ", \"burst\": %" PRIu32, counter->rate,
	       counter->capacity);
	printf(", \"deferred\": %s, \"semaphore\": %s", boolean(counter->deferred),
	       boolean(counter->semaphore));
}

static void json_watches(const struct object *ring)
{
	uint32_t i;

	printf(", \"watched\": [");
	for (i = 0; i < ring->listed; i++) {
		const struct watch *watch = &ring->watch[i];

		printf("%s\n   {\"fd\": %d, \"events\": %" PRIu32 ", \"data\": %" PRIu64
		       ", \"pinned\": %s}",
		       i ? "," : "", watch->fd, watch->events, watch->data,
		       boolean(watch->pinned));
	}
	printf("]");
}

static void json_ring(const struct object *ring, bool watches)
{
	printf(", \"max_items\": %" PRIu32 ", \"head\": %" PRIu32 ", \"tail\": %" PRIu32
	       ", \"pending\": %" PRIu32 ", \"busy\": %s, ",
	       ring->max_items, ring->head, ring->tail, object_pending(ring),
	       boolean(ring->busy));
	if (ring->busy)
		printf("\"watches\": null, \"posts\": null");
	else
		printf("\"watches\": %" PRIu32 ", \"posts\": %" PRIu32, ring->watches,
		       ring->posts);
	/* Of several descriptors of a ring, one has the watches. */
	if (watches && !ring->busy && (ring->listed || !ring->watches))
		json_watches(ring);
}

static void json_objects(const struct scan *scan, enum kind kind, bool watches)
{
	const char *separator = "\n";
	size_t i;

	for (i = 0; i < scan->count; i++) {
		const struct descriptor *d = &scan->descriptor[i];

		if (d->object.kind != kind)
			continue;
		printf("%s  {\"id\": %" PRIu64 ", \"pid\": %d, \"fd\": %d, \"command\": ",
		       separator, d->object.id, d->pid, d->fd);
		text_json(stdout, d->command);
		if (kind == COUNTER)
			json_counter(&d->object);
		else
			json_ring(&d->object, watches);
		putchar('}');
		separator = ",\n";
	}
}

/* Written by hand: most JSON libraries cannot write integers of 64 bits. */
static void print_json(const struct scan *scan, bool watches)
{
	printf("{\"format\": \"flowfdctl-list\", \"version\": %d,\n"
	       " \"complete\": %s, \"hidden_processes\": %u,"
	       " \"unknown_descriptors\": %u,\n"
	       " \"counters\": [",
	       FORMAT_VERSION, boolean(scan_is_complete(scan)), scan->hidden,
	       scan->unknown);
	json_objects(scan, COUNTER, watches);
	printf("],\n \"rings\": [");
	json_objects(scan, RING, watches);
	printf("]}\n");
}

int list_main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct scan *scan;
	bool complete;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	scan = scan_all(arguments.watches);
	need_module(scan);
	complete = scan_is_complete(scan);
	if (arguments.json)
		print_json(scan, arguments.watches);
	else
		print_tables(scan, arguments.watches);
	fflush(stdout);
	/* JSON has a field for hidden processes, which are not an error there. */
	if (!arguments.json || !complete)
		scan_remark(scan, stderr, "flowfdctl: ");
	scan_free(scan);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
