// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl top: shows the busiest rings and counters at intervals. A line is an
 * object, whichever processes have it open; rates are differences between two scans.
 */
#include <argp.h>
#include <err.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "flowfdctl.h"

#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 3600.0
#define COUNT_MAX    1000000000

struct arguments {
	double interval;
	unsigned long count;
};

static const struct argp_option options[] = {
	{ "interval", 'i', "S", 0, "Scan every S seconds, 0.1 to 3600 (1)", 0 },
	{ "count", 'n', "N", 0, "Print N tables and exit", 0 },
	{ 0 },
};

static double parse_interval(struct argp_state *state, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	/* strtod() also accepts nan and 0x. */
	if (!*text || *end || text[strspn(text, "0123456789.")] || value < INTERVAL_MIN ||
	    value > INTERVAL_MAX)
		argp_error(state, "--interval '%s': not a number from %g to %g", text,
			   INTERVAL_MIN, INTERVAL_MAX);
	return value;
}

static unsigned long parse_count(struct argp_state *state, const char *text)
{
	unsigned long value = strtoul(text, NULL, 10);

	if (!*text || text[strspn(text, "0123456789")] || !value || value > COUNT_MAX)
		argp_error(state, "--count '%s': not a number from 1 to %d", text,
			   COUNT_MAX);
	return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'i':
		arguments->interval = parse_interval(state, arg);
		return 0;
	case 'n':
		arguments->count = parse_count(state, arg);
		return 0;
	default:
		return parse_other(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Show the activity of rings and counters once a second: on a terminal"
	       " in place, otherwise one table after another."
	       "\vEnds after --count tables, or on Ctrl-C.",
};

/**
 * struct row - an object in the table
 * @descriptor: the first of its descriptors
 * @descriptors: how many it has
 * @known: the scan before had it, so there are rates
 * @rate: entries of a ring, or change of a count, per second
 * @taken: entries of a ring that its consumer took, per second
 */
struct row {
	const struct descriptor *descriptor;
	unsigned int descriptors;
	bool known;
	double rate;
	double taken;
};

struct look {
	struct scan *scan;
	double time;
	struct row *lines;
	size_t count;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int compare_ids(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	const struct object *x = &a->descriptor->object;
	const struct object *y = &b->descriptor->object;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	/* Both are in one array, sorted by process and descriptor. */
	return (a->descriptor > b->descriptor) - (a->descriptor < b->descriptor);
}

static bool is_same(const struct row *a, const struct row *b)
{
	return a->descriptor->object.kind == b->descriptor->object.kind &&
	       a->descriptor->object.id == b->descriptor->object.id;
}

/* One line for each object, by kind and id. */
static void take_look(struct look *look)
{
	size_t i;

	look->time = now();
	look->scan = scan_all(0);
	look->count = 0;
	look->lines = calloc(look->scan->count + 1, sizeof(*look->lines));
	if (!look->lines)
		err(EXIT_FAILURE, "lines");
	for (i = 0; i < look->scan->count; i++)
		look->lines[i].descriptor = &look->scan->descriptor[i];
	qsort(look->lines, look->scan->count, sizeof(*look->lines), compare_ids);
	for (i = 0; i < look->scan->count; i++) {
		if (!look->count ||
		    !is_same(&look->lines[look->count - 1], &look->lines[i]))
			look->lines[look->count++] = look->lines[i];
		look->lines[look->count - 1].descriptors++;
	}
}

static void look_free(struct look *look)
{
	scan_free(look->scan);
	free(look->lines);
}

/*
 * The id of a counter is used again after its end: if the first descriptor is another
 * one, the counter is assumed to be another one, too.
 */
static bool is_continued(const struct row *line, const struct row *before)
{
	const struct descriptor *a = line->descriptor, *b = before->descriptor;

	return a->object.kind == RING || (a->pid == b->pid && a->fd == b->fd);
}

static void compute(struct row *line, const struct row *before, double seconds)
{
	const struct object *a = &line->descriptor->object;
	const struct object *b = &before->descriptor->object;

	line->known = true;
	if (a->kind == RING) {
		line->rate = (uint32_t)(a->tail - b->tail) / seconds;
		line->taken = (uint32_t)(a->head - b->head) / seconds;
	} else {
		line->rate = ((double)a->count - (double)b->count) / seconds;
	}
}

/* Both are sorted alike, so one pass finds the objects that were there before. */
static void compare_looks(struct look *look, const struct look *before)
{
	double seconds = look->time - before->time;
	size_t i, j = 0;

	for (i = 0; i < look->count; i++) {
		struct row *line = &look->lines[i];
		const struct object *a = &line->descriptor->object;

		for (; j < before->count; j++) {
			const struct object *b = &before->lines[j].descriptor->object;

			if (b->kind > a->kind || (b->kind == a->kind && b->id >= a->id))
				break;
		}
		if (j < before->count && is_same(line, &before->lines[j]) &&
		    is_continued(line, &before->lines[j]))
			compute(line, &before->lines[j], seconds);
	}
}

static double magnitude(double value)
{
	return value < 0 ? -value : value;
}

/* Sorts rings before counters, then the busiest first, then by id. */
static int compare_rates(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	double x = magnitude(a->rate), y = magnitude(b->rate);

	if (a->descriptor->object.kind != b->descriptor->object.kind)
		return a->descriptor->object.kind == RING ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	return compare_ids(left, right);
}

static void add_rate(struct table *table, const struct row *line, double rate)
{
	if (line->known)
		table_add(table, "%.0f", rate);
	else
		table_add(table, "-");
}

static void add_holder(struct table *table, const struct row *line)
{
	const struct descriptor *d = line->descriptor;
	char command[ESCAPED_SIZE];

	text_escape(command, sizeof(command), d->command);
	table_add(table, "%u", line->descriptors);
	table_add(table, "%d", d->pid);
	table_add(table, "%d", d->fd);
	table_add(table, "%s", command);
}

static void add_ring(struct table *table, const struct row *line)
{
	const struct object *ring = &line->descriptor->object;

	table_add(table, "%" PRIu64, ring->id);
	add_rate(table, line, line->rate);
	add_rate(table, line, line->taken);
	table_add(table, "%" PRIu32, object_pending(ring));
	if (ring->busy)
		table_add(table, "busy");
	else
		table_add(table, "%" PRIu32, ring->watches);
	add_holder(table, line);
}

static void add_counter(struct table *table, const struct row *line)
{
	const struct object *counter = &line->descriptor->object;

	table_add(table, "%" PRIu64, counter->id);
	table_add(table, "%" PRIu64, counter->count);
	if (line->known)
		table_add(table, "%+.0f", line->rate);
	else
		table_add(table, "-");
	if (counter->maximum == UINT64_MAX)
		table_add(table, "-");
	else
		table_add(table, "%" PRIu64, counter->maximum);
	table_add(table, counter->deferred ? "yes" : "-");
	add_holder(table, line);
}

/* The room for output: on a terminal tables are cut, elsewhere not. */
struct screen {
	bool terminal;
	size_t rows;
	int width;
};

static struct screen find_screen(void)
{
	struct screen screen = { .rows = SIZE_MAX, .width = INT_MAX };
	const char *term = getenv("TERM");
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return screen;
	screen.terminal = true;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return screen;
	/* Title, two headings, two lines for rows left out, an empty line, the cursor. */
	screen.rows = size.ws_row > 8 ? size.ws_row - 7 : 1;
	screen.width = size.ws_col;
	return screen;
}

/*
 * Returns the number of lines behind the title. The time is UTC without libc, whose
 * gmtime_r(3) looks up /etc/localtime too: any user can block that.
 */
static size_t print_title(const struct look *look)
{
	unsigned int clock = (unsigned int)(time(NULL) % (24 * 60 * 60));

	printf("%02u:%02u:%02u UTC, flowfd on this machine\n", clock / 3600,
	       clock / 60 % 60, clock % 60);
	return scan_remark(look->scan, stdout, "");
}

static void print_look(const struct look *look)
{
	static const char *const ring_headings[] = { "RING",	"ENTRIES/S", "TAKEN/S",
						     "PENDING", "WATCHES",   "FDS",
						     "PID",	"FD",	     "COMMAND",
						     NULL };
	static const char *const counter_headings[] = { "COUNTER", "COUNT",    "CHANGE/S",
							"MAXIMUM", "DEFERRED", "FDS",
							"PID",	   "FD",       "COMMAND",
							NULL };
	struct table rings = { .headings = ring_headings };
	struct table counters = { .headings = counter_headings };
	struct screen screen = find_screen();
	size_t rows, remarks, i;

	if (screen.terminal)
		printf("\033[H\033[J");
	remarks = print_title(look);
	screen.rows = screen.rows > remarks ? screen.rows - remarks : 1;
	for (i = 0; i < look->count; i++) {
		if (look->lines[i].descriptor->object.kind == RING)
			add_ring(&rings, &look->lines[i]);
		else
			add_counter(&counters, &look->lines[i]);
	}
	/* Rings get half of the screen, or all that counters leave. */
	rows = screen.rows / 2;
	if (table_rows(&counters) < screen.rows - rows)
		rows = screen.rows - table_rows(&counters);
	if (table_rows(&rings) < rows)
		rows = table_rows(&rings);
	table_print(&rings, rows, screen.width);
	putchar('\n');
	table_print(&counters, screen.rows - rows, screen.width);
	if (!screen.terminal)
		putchar('\n');
	table_free(&rings);
	table_free(&counters);
}

static void pause_for(double seconds)
{
	struct timespec time = { .tv_sec = (time_t)seconds };

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL);
}

int top_main(int argc, char **argv)
{
	struct arguments arguments = { .interval = 1 };
	struct look before, look;
	bool complete = true;
	unsigned long i;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	take_look(&before);
	need_module(before.scan);
	for (i = 0; !arguments.count || i < arguments.count; i++) {
		pause_for(arguments.interval);
		take_look(&look);
		compare_looks(&look, &before);
		qsort(look.lines, look.count, sizeof(*look.lines), compare_rates);
		print_look(&look);
		complete &= scan_is_complete(look.scan);
		if (fflush(stdout))
			break;
		/* The next scan is compared by id. */
		qsort(look.lines, look.count, sizeof(*look.lines), compare_ids);
		look_free(&before);
		before = look;
	}
	look_free(&before);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
