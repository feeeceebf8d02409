// SPDX-License-Identifier: GPL-2.0-only
/* flowfdctl top: the busiest rings and counters at intervals, as tables or as JSON. */
#include <argp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "flowfdctl.h"

/* Version of the JSON format; flowfdctl(1) documents it. */
#define FORMAT_VERSION 2

#define INTERVAL_MAX 3600.0
#define COUNT_MAX    1000000000

enum { JSON = 256 };

struct arguments {
	double interval;
	unsigned long count;
	bool json;
};

static const struct argp_option options[] = {
	{ "interval", 'i', "S", 0, "Read the list every S seconds, 0.1 to 3600 (1)", 0 },
	{ "count", 'n', "N", 0, "Print N times and exit", 0 },
	{ "json", JSON, NULL, 0, "Print a JSON object instead of tables", 0 },
	{ 0 },
};

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
		arguments->interval = parse_interval(state, arg, INTERVAL_MAX);
		return 0;
	case 'n':
		arguments->count = parse_count(state, arg);
		return 0;
	case JSON:
		arguments->json = true;
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
	       "\vEnds after --count updates, or on Ctrl-C.\n"
	       "\n"
	       "Example:\n"
	       "  flowfdctl top --json | jq '.counters[] | [.id, .rates.writes]'",
};

/* The room for output: on a terminal it is limited, elsewhere not. */
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

/* An update: the rows of both kinds are sorted together, rings first. */
struct update {
	struct list now;
	struct list before;
	struct row *rows;
	double interval;
};

/* Returns the number of lines behind the title. */
static size_t print_title(const struct list *list)
{
	unsigned int clock = (unsigned int)(time(NULL) % (24 * 60 * 60));

	printf("%02u:%02u:%02u UTC, flowfd on this machine\n", clock / 3600,
	       clock / 60 % 60, clock % 60);
	return list_remark(list, stdout, "");
}

static void print_tables(const struct update *update)
{
	const char *headings[2][COLUMNS_MAX];
	struct table tables[2] = {
		[COUNTER] = { .headings = headings[COUNTER] },
		[RING] = { .headings = headings[RING] },
	};
	struct screen screen = find_screen();
	size_t most, remarks, i, count[2] = { 0, 0 };

	if (screen.terminal)
		printf("\033[H\033[J");
	remarks = print_title(&update->now);
	screen.rows = screen.rows > remarks ? screen.rows - remarks : 1;
	columns_head(headings[COUNTER], COUNTER);
	columns_head(headings[RING], RING);
	for (i = 0; i < update->now.count; i++)
		columns_add(&tables[update->rows[i].now->kind], &update->rows[i]);
	count[COUNTER] = table_rows(&tables[COUNTER]);
	count[RING] = table_rows(&tables[RING]);
	/* Rings get half of the screen, or all that counters leave. */
	most = screen.rows / 2;
	if (count[COUNTER] < screen.rows - most)
		most = screen.rows - count[COUNTER];
	if (count[RING] < most)
		most = count[RING];
	table_print(&tables[RING], most, screen.width);
	putchar('\n');
	table_print(&tables[COUNTER], screen.rows - most, screen.width);
	if (!screen.terminal)
		putchar('\n');
	table_free(&tables[COUNTER]);
	table_free(&tables[RING]);
}

static void json_rate(const struct row *row, unsigned int column, const char *name)
{
	double rate;

	if (row_rate(row, column, &rate))
		printf("\"%s\": %.3f", name, rate);
	else
		printf("\"%s\": null", name);
}

static void json_row(const struct row *row)
{
	const struct object *object = row->now;
	enum value value;

	json_object(object);
	printf(", \"read_ns\": %" PRIu64 ", \"rates\": {", object->time);
	if (object->kind == RING)
		json_rate(row, TAKEN, "taken");
	else
		json_rate(row, CHANGE, "count");
	for (value = 0; value < VALUES; value++) {
		if (value_infos[value].kind != object->kind ||
		    value_infos[value].role != TOTAL)
			continue;
		printf(", ");
		json_rate(row, value, value_infos[value].field);
	}
	putchar('}');
}

static void print_kind(const struct update *update, enum kind kind)
{
	const char *separator = "";
	size_t i;

	for (i = 0; i < update->now.count; i++) {
		if (update->rows[i].now->kind != kind)
			continue;
		printf("%s{", separator);
		json_row(&update->rows[i]);
		putchar('}');
		separator = ", ";
	}
}

/* In one line, so that a program can read line by line. */
static void print_json(const struct update *update)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	printf("{\"format\": \"flowfdctl-top\", \"version\": %d, \"time\": %lld.%03ld,"
	       " \"interval\": %.3f, ",
	       FORMAT_VERSION, (long long)now.tv_sec, now.tv_nsec / 1000000,
	       update->interval);
	json_list(&update->now);
	printf(", \"counters\": [");
	print_kind(update, COUNTER);
	printf("], \"rings\": [");
	print_kind(update, RING);
	printf("]}\n");
}

/* Returns whether the list was complete. */
static bool print_update(struct update *update, bool json)
{
	bool complete = list_is_complete(&update->now);

	update->rows = rows_make(&update->now, &update->before);
	rows_sort(update->rows, update->now.count);
	if (json) {
		print_json(update);
		list_remark(&update->now, stderr, "flowfdctl: ");
	} else {
		print_tables(update);
	}
	free(update->rows);
	return complete;
}

int top_main(int argc, char **argv)
{
	struct arguments arguments = { .interval = 1 };
	struct update update = { .rows = NULL };
	uint64_t start, before;
	bool complete = true;
	unsigned long i;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	before = now_ns();
	kernel_list(&update.before);
	for (i = 0; !arguments.count || i < arguments.count; i++) {
		usleep((useconds_t)(arguments.interval * 1e6));
		start = now_ns();
		kernel_list(&update.now);
		update.interval = (double)(start - before) / 1e9;
		complete &= print_update(&update, arguments.json);
		list_free(&update.before);
		update.before = update.now;
		update.now = (struct list){ 0 };
		before = start;
		if (fflush(stdout))
			break;
	}
	list_free(&update.before);
	return complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
