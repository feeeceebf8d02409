// SPDX-License-Identifier: GPL-2.0-only
/* Metrics of counters and rings, in the text format of Prometheus. */
#include <inttypes.h>
#include <stdlib.h>

#include "flowfdctl.h"

/* Any user can have counters, and a series for each: this bounds what they cost. */
#define LINES_MAX 2048

/**
 * struct metric - what is printed of each counter or ring that has it
 * @kind: of the objects that have it
 * @name: without the prefix of the kind
 * @type: counter or gauge
 * @help: what it is
 * @unit: of the number: 1, or nanoseconds in a second
 * @find: returns whether an object has it, and the number
 * @value: for @find
 */
struct metric {
	enum kind kind;
	const char *name;
	const char *type;
	const char *help;
	uint64_t unit;
	bool (*find)(const struct object *object, enum value value, uint64_t *number);
	enum value value;
};

static bool find_value(const struct object *object, enum value value, uint64_t *number)
{
	*number = object->value[value];
	return value_is_known(object, value);
}

static bool find_count(const struct object *object, enum value value, uint64_t *number)
{
	(void)value;
	*number = object->count;
	return true;
}

static bool find_maximum(const struct object *object, enum value value, uint64_t *number)
{
	(void)value;
	*number = object->maximum;
	return object->maximum != UINT64_MAX;
}

static bool find_deferred(const struct object *object, enum value value, uint64_t *number)
{
	(void)value;
	*number = object->deferred;
	return true;
}

static bool find_pending(const struct object *object, enum value value, uint64_t *number)
{
	(void)value;
	*number = object_pending(object);
	return true;
}

static bool find_max_items(const struct object *object, enum value value,
			   uint64_t *number)
{
	(void)value;
	*number = object->max_items;
	return true;
}

static bool find_watches(const struct object *object, enum value value, uint64_t *number)
{
	(void)value;
	*number = object->watches;
	return !object->busy;
}

static bool find_posts(const struct object *object, enum value value, uint64_t *number)
{
	(void)value;
	*number = object->posts;
	return !object->busy;
}

static const struct metric metrics[] = {
	{ COUNTER, "value", "gauge", "Count of a counter.", 1, find_count, 0 },
	{ COUNTER, "maximum", "gauge", "The count stays below it.", 1, find_maximum, 0 },
	{ COUNTER, "wakeup_deferred", "gauge", "Whether a wakeup waits for a token.", 1,
	  find_deferred, 0 },
	{ RING, "pending", "gauge", "Index entries that were not taken yet.", 1,
	  find_pending, 0 },
	{ RING, "items_max", "gauge", "Highest number of watches and posts.", 1,
	  find_max_items, 0 },
	{ RING, "watches", "gauge", "Files that are watched.", 1, find_watches, 0 },
	{ RING, "posts", "gauge", "Items without a file.", 1, find_posts, 0 },
};

/* comm is what tables show: printable ASCII, so no name can end a label or a line. */
static void print_labels(const struct descriptor *d)
{
	char command[ESCAPED_SIZE];

	text_escape(command, sizeof(command), d->command);
	printf("{id=\"%" PRIu64 "\",kind=\"%s\",pid=\"%d\",comm=", d->object.id,
	       d->object.kind == RING ? "ring" : "counter", d->pid);
	text_label(stdout, command);
	putchar('}');
}

static void print_number(uint64_t number, uint64_t unit)
{
	if (unit == 1)
		printf(" %" PRIu64 "\n", number);
	else
		printf(" %" PRIu64 ".%09" PRIu64 "\n", number / unit, number % unit);
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/*
 * The names of statistics are those in fdinfo. A metric that no object has, as the module
 * is older, is left out. Programs that check metrics dislike names with "counter" in them,
 * or with "count" at the end.
 */
static void print_metric(const struct metric *metric, const struct line *lines,
			 size_t count)
{
	bool printed = false;
	uint64_t number;
	char name[80];
	size_t i;

	snprintf(name, sizeof(name), "flowfd_%s%s", metric->kind == RING ? "ring_" : "",
		 metric->name);
	for (i = 0; i < count; i++) {
		const struct descriptor *d = lines[i].descriptor;

		if (d->object.kind != metric->kind ||
		    !metric->find(&d->object, metric->value, &number))
			continue;
		if (!printed)
			print_head(name, metric->type, metric->help);
		printed = true;
		printf("%s", name);
		print_labels(d);
		print_number(number, metric->unit);
	}
}

static void print_value(enum value value, const struct line *lines, size_t count)
{
	const struct value_info *info = &value_infos[value];
	char name[64];
	struct metric metric = {
		.kind = info->kind,
		.name = name,
		.type = info->role == TOTAL ? "counter" : "gauge",
		.help = info->help,
		.unit = value == WAIT_NS ? 1000000000 : 1,
		.find = find_value,
		.value = value,
	};

	if (!info->help)
		return;
	snprintf(name, sizeof(name), "%s%s",
		 value == WAIT_NS ? "wait_seconds" : info->field,
		 info->role == TOTAL ? "_total" : "");
	print_metric(&metric, lines, count);
}

static void print_scan(const struct scan *scan, const struct line *lines, size_t count)
{
	unsigned int number[2] = { 0, 0 };
	size_t i;

	for (i = 0; i < count; i++)
		number[lines[i].descriptor->object.kind]++;
	print_head("flowfd_objects", "gauge", "Counters and rings in these metrics.");
	printf("flowfd_objects{kind=\"counter\"} %u\nflowfd_objects{kind=\"ring\"} %u\n",
	       number[COUNTER], number[RING]);
	print_head("flowfd_scan_complete", "gauge",
		   "Whether nothing was left out; 0: standard error said what.");
	printf("flowfd_scan_complete %d\n", scan_is_complete(scan));
	print_head("flowfd_scan_hidden_processes", "gauge",
		   "Processes that this user may not inspect.");
	printf("flowfd_scan_hidden_processes %u\n", scan->hidden);
}

/* By user, root first. */
static int compare_users(const void *left, const void *right)
{
	const struct line *a = left, *b = right;

	if (a->descriptor->uid != b->descriptor->uid)
		return a->descriptor->uid < b->descriptor->uid ? -1 : 1;
	return line_compare(a, b);
}

/**
 * metrics_limit - keep as many lines as are printed
 * @lines: lines; those that are kept are put first
 * @count: how many there are
 *
 * One user may fill half of the room, and any other a sixteenth. Returns their number.
 */
size_t metrics_limit(struct line *lines, size_t count)
{
	size_t i, kept = 0, own = 0;
	uid_t uid = 0;

	qsort(lines, count, sizeof(*lines), compare_users);
	for (i = 0; i < count; i++) {
		if (lines[i].descriptor->uid != uid)
			own = 0;
		uid = lines[i].descriptor->uid;
		if (!has_room(kept, own, LINES_MAX))
			continue;
		own++;
		lines[kept++] = lines[i];
	}
	return kept;
}

/* metrics_print - print all metrics of lines, and what is missing in their scan */
void metrics_print(const struct scan *scan, const struct line *lines, size_t count)
{
	enum value value;
	size_t i;

	print_scan(scan, lines, count);
	for (i = 0; i < sizeof(metrics) / sizeof(*metrics); i++)
		print_metric(&metrics[i], lines, count);
	for (value = 0; value < VALUES; value++)
		print_value(value, lines, count);
}
