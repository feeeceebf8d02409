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

static void print_labels(const struct object *object)
{
	const uint64_t *number = object->number;
	bool ring = object->kind == RING;

	printf("{id=\"%" PRIu64 "\",kind=\"%s\",uid=\"%" PRIu64 "\",pid=\"%" PRIu64
	       "\",comm=",
	       number[ring ? RING_ID : COUNTER_ID], ring ? "ring" : "counter",
	       number[UID], number[PID]);
	text_command(object->command);
	putchar('}');
}

static void print_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const char *type(const char *metric)
{
	return strstr(metric, "_total") ? "counter" : "gauge";
}

/*
 * Prints a metric of all objects that have it. What no object has, as the module is older,
 * is left out. Programs that check metrics dislike names with "counter" in them, or with
 * "count" at the end.
 */
static void print_metric(const struct list *list, enum field field)
{
	const struct object *objects = list->object;
	const struct field_info *info = &field_infos[field];
	bool printed = false;
	size_t i;

	for (i = 0; i < list->count; i++) {
		uint64_t number = objects[i].number[field];

		if (!object_has(&objects[i], field))
			continue;
		if (!printed)
			print_head(info->metric, type(info->metric), info->help);
		printed = true;
		printf("%s", info->metric);
		print_labels(&objects[i]);
		if (info->form == NANOSECONDS)
			printf(" %" PRIu64 ".%09" PRIu64 "\n", number / 1000000000,
			       number % 1000000000);
		else
			printf(" %" PRIu64 "\n", number);
	}
}

static void print_list(const struct list *list)
{
	unsigned int number[] = { [COUNTER] = 0, [RING] = 0 };
	size_t i;

	for (i = 0; i < list->count; i++)
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
	static const enum field order[] = { UID, RING_ID, COUNTER_ID };
	const struct object *a = left, *b = right;
	int result = 0;
	size_t i;

	for (i = 0; !result && i < sizeof(order) / sizeof(*order); i++)
		result = (a->number[order[i]] > b->number[order[i]]) -
			 (a->number[order[i]] < b->number[order[i]]);
	return result;
}

/* Half is first come, first served; the rest is for users with less than a 16th. */
static bool has_room(size_t all, size_t own)
{
	return all < OBJECTS_MAX / 2 || (all < OBJECTS_MAX && own < OBJECTS_MAX / 16);
}

/*
 * metrics_limit - leave as many objects in a list as are printed
 *
 * One user may fill half of the room, and any other a sixteenth.
 */
void metrics_limit(struct list *list)
{
	struct object *objects = list->object;
	size_t i, kept = 0, own = 0;
	uint64_t uid = 0;

	if (list->count)
		qsort(objects, list->count, sizeof(*objects), compare_users);
	for (i = 0; i < list->count; i++) {
		if (objects[i].number[UID] != uid)
			own = 0;
		uid = objects[i].number[UID];
		if (!has_room(kept, own))
			continue;
		own++;
		objects[kept++] = objects[i];
	}
	list->left_out = list->count - kept;
	list->count = kept;
}

/* metrics_print - print all metrics of a list, and whether it is complete */
void metrics_print(const struct list *list)
{
	enum field field;

	print_list(list);
	for (field = 0; field < FIELDS; field++)
		if (field_infos[field].metric)
			print_metric(list, field);
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

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	kernel_list(&list);
	metrics_limit(&list);
	metrics_print(&list);
	return list_end(&list);
}
