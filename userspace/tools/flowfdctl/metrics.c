// SPDX-License-Identifier: GPL-2.0-only
/*
 * flowfdctl --prometheus: metrics in the text format of Prometheus, for the textfile
 * collector of its node_exporter.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

/* Any user can have counters, and a series for each: this bounds what they cost. */
#define OBJECTS_MAX 2048

/* Metrics beside the enum values. */
static const struct gauge {
	enum kind kind;
	enum column column;
	const char *name;
	const char *help;
} gauges[] = {
	{ COUNTER, COUNT, "value", "Count of a counter." },
	{ COUNTER, MAXIMUM, "maximum", "The count stays below it." },
	{ COUNTER, DEFERRED, "wakeup_deferred", "Whether a wakeup waits for a token." },
	{ RING, PENDING, "pending", "Index entries that were not taken yet." },
	{ RING, MAX_ITEMS, "items_max", "Highest number of watches and posts." },
	{ RING, WATCHES, "watches", "Files that are watched." },
	{ RING, POSTS, "posts", "Items without a file." },
};

/* comm is what tables show: printable ASCII, which JSON and labels escape alike. */
static void print_labels(const struct object *object)
{
	char command[ESCAPED_SIZE];

	text_escape(command, sizeof(command), object->command);
	printf("{id=\"%" PRIu64 "\",kind=\"%s\",uid=\"%u\",pid=\"%d\",comm=", object->id,
	       object->kind == RING ? "ring" : "counter", object->uid, object->pid);
	text_json(stdout, command);
	putchar('}');
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/*
 * Prints a metric of all objects that have it, with @type behind its name. What no object
 * has, as the module is older, is left out.
 */
static void print_metric(const struct gauge *metric, const char *type,
			 const struct object *objects, size_t count)
{
	bool printed = false;
	uint64_t number;
	char name[80];
	size_t i;

	snprintf(name, sizeof(name), "flowfd_%s%s%s", metric->kind == RING ? "ring_" : "",
		 metric->name, strcmp(type, "counter") ? "" : "_total");
	for (i = 0; i < count; i++) {
		if (objects[i].kind != metric->kind ||
		    !column_number(&objects[i], metric->column, &number))
			continue;
		if (!printed)
			print_head(name, type, metric->help);
		printed = true;
		printf("%s", name);
		print_labels(&objects[i]);
		if (metric->column == (enum column)WAIT_NS)
			printf(" %" PRIu64 ".%09" PRIu64 "\n", number / 1000000000,
			       number % 1000000000);
		else
			printf(" %" PRIu64 "\n", number);
	}
}

/*
 * The names of statistics are those of fdinfo. Programs that check metrics dislike names
 * with "counter" in them, or with "count" at the end.
 */
static void print_value(enum value value, const struct object *objects, size_t count)
{
	const struct value_info *info = &value_infos[value];
	const struct gauge metric = {
		.kind = info->kind,
		.column = (enum column)value,
		.name = value == WAIT_NS ? "wait_seconds" : info->field,
		.help = info->help,
	};

	if (info->help)
		print_metric(&metric, info->role == TOTAL ? "counter" : "gauge", objects,
			     count);
}

static void print_list(const struct list *list, size_t count)
{
	unsigned int number[2] = { 0, 0 };
	size_t i;

	for (i = 0; i < count; i++)
		number[list->object[i].kind]++;
	print_head("flowfd_objects", "gauge", "Counters and rings in these metrics.");
	printf("flowfd_objects{kind=\"counter\"} %u\nflowfd_objects{kind=\"ring\"} %u\n",
	       number[COUNTER], number[RING]);
	print_head("flowfd_scan_complete", "gauge",
		   "Whether nothing was left out; 0: standard error said what.");
	printf("flowfd_scan_complete %d\n", list_is_complete(list));
}

/* By user, root first. */
static int compare_users(const void *left, const void *right)
{
	const struct object *a = left, *b = right;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* Half is first come, first served; the rest is for users with less than a 16th. */
static bool has_room(size_t all, size_t own)
{
	return all < OBJECTS_MAX / 2 || (all < OBJECTS_MAX && own < OBJECTS_MAX / 16);
}

/**
 * metrics_limit - keep as many objects as are printed
 * @objects: objects; those that are kept are put first
 * @count: how many there are
 *
 * One user may fill half of the room, and any other a sixteenth. Returns their number.
 */
size_t metrics_limit(struct object *objects, size_t count)
{
	size_t i, kept = 0, own = 0;
	uid_t uid = 0;

	if (count)
		qsort(objects, count, sizeof(*objects), compare_users);
	for (i = 0; i < count; i++) {
		if (objects[i].uid != uid)
			own = 0;
		uid = objects[i].uid;
		if (!has_room(kept, own))
			continue;
		own++;
		objects[kept++] = objects[i];
	}
	return kept;
}

/* metrics_print - print all metrics of the first objects, and what a list lacks */
void metrics_print(const struct list *list, size_t count)
{
	enum value value;
	size_t i;

	print_list(list, count);
	for (i = 0; i < sizeof(gauges) / sizeof(*gauges); i++)
		print_metric(&gauges[i], "gauge", list->object, count);
	for (value = 0; value < VALUES; value++)
		print_value(value, list->object, count);
}

static const struct argp argp = {
	.parser = parse_other,
	.doc = "Print metrics for the textfile collector of node_exporter."
	       "\vExample:\n"
	       "  mkdir -p /var/lib/flowfdctl && cd /var/lib/flowfdctl || exit\n"
	       "  flowfdctl --prometheus > new\n"
	       "  case $? in 0 | 2)\n"
	       "      mv -T new /var/lib/prometheus/node-exporter/flowfd.prom ;;\n"
	       "  esac",
};

int prometheus_main(int argc, char **argv)
{
	struct list list = { 0 };
	size_t kept;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	kernel_list(&list);
	kept = metrics_limit(list.object, list.count);
	list.left_out = list.count - kept;
	metrics_print(&list, kept);
	fflush(stdout);
	list_remark(&list);
	list_free(&list);
	return list_is_complete(&list) ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
