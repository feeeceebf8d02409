// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metrics that flowfdctl makes of lists. These are made up; the module is not needed.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/output.h"
#include "tests/tap.h"
#include "tools/flowfdctl/flowfdctl.h"

/* Adds a counter or ring that has all statistics, each of which is 0. */
static struct object *add(struct list *list, enum kind kind, uint64_t id, pid_t pid)
{
	struct object *object;

	list->object = grow(list->object, list->count, sizeof(*list->object));
	object = &list->object[list->count++];
	*object = (struct object){ .kind = kind, .id = id, .pid = pid, .fd = -1,
				   .uid = 1000, .command = "worker" };
	if (kind == COUNTER)
		object->maximum = UINT64_MAX;
	for (enum value value = 0; value < VALUES; value++)
		if (value_infos[value].kind == kind && value_is_statistic(value))
			object->known |= 1U << value;
	return object;
}

static void set(struct list *list, size_t i, enum value value, uint64_t number)
{
	*object_value(&list->object[i], value) = number;
}

static bool prints(void (*print)(const void *), const void *arg, const char *wanted)
{
	const char *text = output_of(print, arg);

	if (!strcmp(text, wanted))
		return true;
	for (; *text; text = strchr(text, '\n') + 1)
		printf("# got %.*s\n", (int)strcspn(text, "\n"), text);
	return false;
}

static void print_metrics(const void *arg)
{
	const struct list *list = arg;

	metrics_print(list, metrics_limit(list->object, list->count));
}

static void test_metrics(void)
{
	struct list list = { 0 };
	struct object *object;

	object = add(&list, COUNTER, 3, 10);
	object->count = UINT64_MAX - 1;
	object->known = 1U << PRODUCED | 1U << WAIT_NS | 1U << HIGHEST | 1U << READ_MARK;
	set(&list, 0, PRODUCED, UINT64_MAX);
	set(&list, 0, WAIT_NS, 12000000034);
	set(&list, 0, HIGHEST, 6);
	strcpy(object->command, "a\"} 1\n\\\\\n# x");
	object = add(&list, RING, 3, 11);
	object->known = 1U << PUBLISHED;
	object->max_items = 4;
	object->tail = 2;
	object->busy = true;
	list.unknown = 1;

#define A_COUNTER "{id=\"3\",kind=\"counter\",uid=\"1000\",pid=\"10\",comm=\"a\\\"} 1\\\\x0a" \
		  "\\\\\\\\\\\\\\\\\\\\x0a# x\"} "
#define A_RING "{id=\"3\",kind=\"ring\",uid=\"1000\",pid=\"11\",comm=\"worker\"} "
	tap_ok(prints(print_metrics, &list,
		      "# HELP flowfd_objects Counters and rings in these metrics.\n"
		      "# TYPE flowfd_objects gauge\n"
		      "flowfd_objects{kind=\"counter\"} 1\n"
		      "flowfd_objects{kind=\"ring\"} 1\n"
		      "# HELP flowfd_scan_complete Whether nothing was left out; 0: standard"
		      " error said what.\n"
		      "# TYPE flowfd_scan_complete gauge\n"
		      "flowfd_scan_complete 0\n"
		      "# HELP flowfd_value Count of a counter.\n"
		      "# TYPE flowfd_value gauge\n"
		      "flowfd_value" A_COUNTER "18446744073709551614\n"
		      "# HELP flowfd_wakeup_deferred Whether a wakeup waits for a"
		      " token.\n"
		      "# TYPE flowfd_wakeup_deferred gauge\n"
		      "flowfd_wakeup_deferred" A_COUNTER "0\n"
		      "# HELP flowfd_ring_pending Index entries that were not taken yet.\n"
		      "# TYPE flowfd_ring_pending gauge\n"
		      "flowfd_ring_pending" A_RING "2\n"
		      "# HELP flowfd_ring_items_max Highest number of watches and posts.\n"
		      "# TYPE flowfd_ring_items_max gauge\n"
		      "flowfd_ring_items_max" A_RING "4\n"
		      "# HELP flowfd_produced_total Sum of the initial count and all"
		      " that was added, also in memory.\n"
		      "# TYPE flowfd_produced_total counter\n"
		      "flowfd_produced_total" A_COUNTER "18446744073709551615\n"
		      "# HELP flowfd_wait_seconds_total How long writers slept for"
		      " room.\n"
		      "# TYPE flowfd_wait_seconds_total counter\n"
		      "flowfd_wait_seconds_total" A_COUNTER "12.000000034\n"
		      "# HELP flowfd_highest Highest count.\n"
		      "# TYPE flowfd_highest gauge\n"
		      "flowfd_highest" A_COUNTER "6\n"
		      "# HELP flowfd_ring_published_total Index entries that were"
		      " published.\n"
		      "# TYPE flowfd_ring_published_total counter\n"
		      "flowfd_ring_published_total" A_RING "0\n"),
	       "metrics");
	list_free(&list);
}

/* No user can take the room of another, and root comes first. */
static void test_limit(void)
{
	enum { ROOM = 2048 };
	unsigned int own[3] = { 0 };
	struct list list = { 0 };
	size_t kept;

	for (int i = 0; i < 30000; i++)
		add(&list, COUNTER, i, 10 + i)->uid = 100;
	for (int i = 0; i < 100; i++) {
		add(&list, COUNTER, 30000 + i, 1)->uid = 0;
		add(&list, COUNTER, 31000 + i, 5)->uid = 101;
	}
	kept = metrics_limit(list.object, list.count);
	for (size_t i = 0; i < kept; i++)
		own[list.object[i].uid ? list.object[i].uid - 99 : 0]++;
	tap_is(own[0], 100, "all of root");
	tap_is(own[2], 100, "all of another user");
	tap_is(own[1], ROOM / 2 - 100, "half of the room for one that has too many");
	tap_is(list.object[0].uid, 0, "root's first");
	list_free(&list);
}

int main(void)
{
	test_metrics();
	test_limit();
	return tap_done();
}
