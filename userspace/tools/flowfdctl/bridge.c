// SPDX-License-Identifier: GPL-2.0-only
/* flowfdctl bridge: makes, removes and shows bridges of counters with eventfds. */
#include <argp.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <flowfd.h>

#include "flowfdctl.h"

/* Version of the JSON format; flowfdctl(1) documents it. */
#define FORMAT_VERSION 1

/* The table names so many descriptors of an eventfd. */
#define SHOWN_MAX 4

enum { JSON = 256, REMOVE };

/**
 * struct arguments - of the command line
 * @json: print JSON
 * @flags: FLOWFD_BRIDGE_*; without an end, the bridges are shown
 * @given: length of @target
 * @target: the counter, and the eventfd
 */
struct arguments {
	bool json;
	unsigned int flags;
	unsigned int given;
	struct target target[2];
};

static const struct argp_option options[] = {
	{ "json", JSON, NULL, 0, "Print JSON instead of a table", 0 },
	{ "remove", REMOVE, NULL, 0, "Remove the source or the sink of a counter", 0 },
	{ 0 },
};

/* Parses a decimal number that ends before @end. */
static bool take_number(const char **text, char end, int *number)
{
	size_t digits = strspn(*text, "0123456789");
	unsigned long value = strtoul(*text, NULL, 10);

	if (!digits || digits > 10 || (*text)[digits] != end || value > INT_MAX)
		return false;
	*number = (int)value;
	*text += digits + 1;
	return true;
}

static void add_target(struct argp_state *state, const char *arg)
{
	struct arguments *arguments = state->input;
	struct target *target = &arguments->target[arguments->given];
	const char *text = arg;

	if (arguments->given == sizeof(arguments->target) / sizeof(*target))
		argp_error(state, "%s: one counter and one eventfd make a bridge", arg);
	if (!take_number(&text, ':', &target->pid) || !target->pid ||
	    !take_number(&text, '\0', &target->fd))
		argp_error(state, "'%s': not a descriptor, PID:FD", arg);
	arguments->given++;
}

static void add_argument(struct argp_state *state, const char *arg)
{
	struct arguments *arguments = state->input;

	if (arguments->flags & ~FLOWFD_BRIDGE_REMOVE)
		add_target(state, arg);
	else if (!strcmp(arg, "source"))
		arguments->flags |= FLOWFD_BRIDGE_SOURCE;
	else if (!strcmp(arg, "sink"))
		arguments->flags |= FLOWFD_BRIDGE_SINK;
	else
		argp_error(state, "%s: neither 'source' nor 'sink'", arg);
}

static void check(struct argp_state *state, const struct arguments *arguments)
{
	bool removes = arguments->flags & FLOWFD_BRIDGE_REMOVE;
	bool shows = !(arguments->flags & ~FLOWFD_BRIDGE_REMOVE);

	if (shows && removes)
		argp_error(state, "--remove needs 'source' or 'sink', and a counter");
	if (!shows && arguments->json)
		argp_error(state, "--json is for showing bridges");
	if (!shows && removes && arguments->given != 1)
		argp_error(state, "--remove needs a counter, PID:FD, and no eventfd");
	if (!shows && !removes && arguments->given != 2)
		argp_error(state, "a counter and an eventfd are needed: PID:FD PID:FD");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case JSON:
		arguments->json = true;
		return 0;
	case REMOVE:
		arguments->flags |= FLOWFD_BRIDGE_REMOVE;
		return 0;
	case ARGP_KEY_ARG:
		add_argument(state, arg);
		return 0;
	case ARGP_KEY_END:
		check(state, arguments);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "\nsource COUNTER EVENTFD\nsink COUNTER EVENTFD\n"
		    "--remove source COUNTER\n--remove sink COUNTER",
	.doc = "Show the bridges of counters with eventfds, make one or remove one."
	       "\vCOUNTER and EVENTFD are descriptors of running processes, as PID:FD."
	       " A source is an eventfd that feeds the counter, a sink one that the"
	       " counter signals. Taking a descriptor of another user's process needs"
	       " root.\n"
	       "\n"
	       "Example:\n"
	       "  flowfdctl bridge source 712:5 815:23",
};

/* Returns the first descriptor of an eventfd; they are sorted by number. */
static const struct eventfd *find_eventfd(const struct scan *scan, uint64_t id)
{
	size_t low = 0, high = scan->eventfds;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scan->eventfd[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return &scan->eventfd[low];
}

static bool is_descriptor_of(const struct scan *scan, const struct eventfd *eventfd,
			     uint64_t id)
{
	return eventfd < scan->eventfd + scan->eventfds && eventfd->id == id;
}

static const char *end_name(enum value end)
{
	return end == SOURCE ? "source" : "sink";
}

/* The descriptors of an eventfd in one cell: the first of them, and whether there are more. */
static void add_descriptors(struct table *table, const struct scan *scan, uint64_t id)
{
	const struct eventfd *eventfd = find_eventfd(scan, id);
	char text[SHOWN_MAX * 32 + 8] = "-", *end = text;
	unsigned int shown = 0;

	for (; is_descriptor_of(scan, eventfd, id); eventfd++) {
		if (shown++ == SHOWN_MAX) {
			strcpy(end, ",...");
			break;
		}
		end += sprintf(end, "%s%d:%d", end == text ? "" : ",", eventfd->pid,
			       eventfd->fd);
	}
	table_add(table, "%s", text);
}

static void add_bridge(struct table *table, const struct scan *scan,
		       const struct descriptor *d, enum value end)
{
	const struct object *counter = &d->object;
	char command[ESCAPED_SIZE];

	text_escape(command, sizeof(command), d->command);
	table_add(table, "%" PRIu64, counter->id);
	table_add(table, "%d", d->pid);
	table_add(table, "%d", d->fd);
	table_add(table, "%s", end_name(end));
	table_add(table, "%" PRIu64, counter->value[end]);
	add_descriptors(table, scan, counter->value[end]);
	if (end == SOURCE && value_is_known(counter, WAITING))
		table_add(table, "%" PRIu64, counter->value[WAITING]);
	else
		table_add(table, "-");
	table_add(table, "%s", command);
}

static void json_bridge(const struct scan *scan, const struct descriptor *d,
			enum value end)
{
	const struct object *counter = &d->object;
	const struct eventfd *eventfd = find_eventfd(scan, counter->value[end]);
	const char *separator = "";

	printf("{\"counter\": %" PRIu64 ", \"pid\": %d, \"fd\": %d, \"command\": ",
	       counter->id, d->pid, d->fd);
	text_json(stdout, d->command);
	printf(", \"end\": \"%s\", \"waiting\": ", end_name(end));
	if (end == SOURCE && value_is_known(counter, WAITING))
		printf("%" PRIu64, counter->value[WAITING]);
	else
		printf("null");
	printf(", \"eventfd\": %" PRIu64 ",\n   \"eventfd_descriptors\": [",
	       counter->value[end]);
	for (; is_descriptor_of(scan, eventfd, counter->value[end]); eventfd++) {
		printf("%s{\"pid\": %d, \"fd\": %d, \"command\": ", separator,
		       eventfd->pid, eventfd->fd);
		text_json(stdout, eventfd->command);
		putchar('}');
		separator = ", ";
	}
	printf("]}");
}

static void print_table(const struct scan *scan, const struct line *lines, size_t count)
{
	static const char *const headings[] = { "COUNTER", "PID",     "FD",
						"END",	   "EVENTFD", "DESCRIPTORS",
						"WAITING", "COMMAND", NULL };
	struct table table = { .headings = headings };
	size_t i;

	for (i = 0; i < count; i++) {
		const struct descriptor *d = lines[i].descriptor;

		if (value_is_known(&d->object, SOURCE))
			add_bridge(&table, scan, d, SOURCE);
		if (value_is_known(&d->object, SINK))
			add_bridge(&table, scan, d, SINK);
	}
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

static void print_json(const struct scan *scan, const struct line *lines, size_t count)
{
	const char *separator = "\n  ";
	enum value end;
	size_t i;

	printf("{\"format\": \"flowfdctl-bridge\", \"version\": %d,\n ", FORMAT_VERSION);
	json_scan(scan);
	printf(",\n \"bridges\": [");
	for (i = 0; i < count; i++) {
		for (end = SOURCE; end <= SINK; end++) {
			if (!value_is_known(&lines[i].descriptor->object, end))
				continue;
			printf("%s", separator);
			json_bridge(scan, lines[i].descriptor, end);
			separator = ",\n  ";
		}
	}
	printf("]}\n");
}

static int show(bool json)
{
	struct scan *scan = scan_all(SCAN_EVENTFDS);
	bool complete = scan_is_complete(scan);
	struct line *lines;
	size_t count;

	need_module(scan);
	lines = lines_of(scan, &count);
	if (json)
		print_json(scan, lines, count);
	else
		print_table(scan, lines, count);
	fflush(stdout);
	if (!json || !complete)
		scan_remark(scan, stderr, "flowfdctl: ");
	free(lines);
	scan_free(scan);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}

int bridge_main(int argc, char **argv)
{
	struct arguments arguments = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (!(arguments.flags & ~FLOWFD_BRIDGE_REMOVE))
		return show(arguments.json);
	return connect_targets(&arguments.target[0], &arguments.target[1],
			       arguments.flags);
}
