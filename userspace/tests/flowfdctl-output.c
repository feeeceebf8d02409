// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables, JSON and metrics that flowfdctl makes of lists. These are made up; the module
 * is not needed.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/output.h"
#include "tests/tap.h"
#include "tools/flowfdctl/flowfdctl.h"

/* Adds a counter or ring that has nothing else, for a test to set more. */
static struct object *add(struct list *list, enum kind kind, uint64_t id, uint64_t uid,
			  pid_t pid)
{
	struct object *object;

	list->object = grow(list->object, list->count, sizeof(*list->object));
	object = &list->object[list->count++];
	*object = (struct object){ .kind = kind, .command = "worker" };
	object_set(object, kind == RING ? RING_ID : COUNTER_ID, id);
	object_set(object, UID, uid);
	object_set(object, PID, pid);
	return object;
}

/* A counter and a ring with a number of each form, and one in a form that is not known. */
static struct list two(void)
{
	struct list list = { .unknown = 1 };
	struct object *object = add(&list, COUNTER, 3, 1000, 10);

	object_set(object, COUNT, UINT64_MAX - 1);
	object_set(object, BURST, 2);
	object_set(object, RATE, 1000);
	object_set(object, DEFERRED, true);
	object_set(object, OVERFLOW, 3);
	object_set(object, PRODUCED, UINT64_MAX);
	object_set(object, WAIT_NS, 12000000034);
	object_set(object, HIGHEST, 6);
	strcpy(object->command, "a\"} 1\n\\\\\n# x");
	object = add(&list, RING, 4, 1000, 11);
	object_set(object, MAX_ITEMS, 4);
	object_set(object, PENDING, 2);
	object_set(object, BUSY, true);
	object_set(object, PUBLISHED, 0);
	return list;
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

static const unsigned char *columns;

static void print_table(const void *list)
{
	table_print(list, columns);
}

static void test_tables(void)
{
	static const unsigned char counters[] = {
		COUNTER_ID, UID,      PID,     FD,   MAXIMUM, RATE,    BURST, DEFERRED,
		OVERFLOW,   PRODUCED, WAIT_NS, TYPE, COMMAND, COLUMNS,
	};
	static const unsigned char rings[] = { RING_ID, UID, PID, FD, WATCHES, POSTS, COMMAND,
					       COLUMNS };
	static const uint64_t types[] = { MAPPED, SEMAPHORE };
	struct list list = two(), none = { .of_process = true };
	struct object *object = add(&list, COUNTER, 123456789, 0, 1);

	object_set(object, MAXIMUM, 10);
	object_set(object, DEFERRED, false);
	object_set(object, BURST, 0);
	object_set(object, RATE, 0);
	columns = counters;
	tap_ok(prints(print_table, &list,
		      "  COUNTER   UID  PID  MAXIMUM  RATE  BURST  DEFERRED  OVERFLOW"
		      "              PRODUCED  WAIT   TYPE  COMMAND\n"
		      "        3  1000   10        -  1000      2       yes      drop"
		      "  18446744073709551615   12s  count  a\"} 1\\x0a\\\\\\\\\\x0a# x\n"
		      "123456789     0    1       10     -      -         -         -"
		      "                     -     -  count  worker\n"),
	       "a table of counters");
	columns = rings;
	tap_ok(prints(print_table, &list,
		      "RING   UID  PID  WATCHES  POSTS  COMMAND\n"
		      "   4  1000   11     busy      -  worker\n"),
	       "of rings");
	tap_ok(prints(print_table, &none, "RING  PID  FD  WATCHES  POSTS  COMMAND\n"),
	       "of the rings of a process that has none");
	columns = (const unsigned char[]){ COUNTER_ID, TYPE, COLUMNS };
	for (int i = 0; i < 2; i++) {
		struct list one = { 0 };

		object_set(add(&one, COUNTER, 1, 0, 1), types[i], true);
		tap_ok(prints(print_table, &one,
			      i ? "COUNTER  TYPE\n      1  semaphore\n" :
				  "COUNTER  TYPE\n      1  mapped\n"),
		       "a type");
		free(one.object);
	}
	free(list.object);
}

static void print_json(const void *list)
{
	json_print(list);
}

static void test_json(void)
{
	struct list list = two(), none = { .of_process = true };

	tap_ok(prints(print_json, &list,
		      "{\"format\": \"flowfdctl-list\", \"version\": 3,\n"
		      " \"complete\": false, \"unknown\": 1,\n"
		      " \"counters\": [\n"
		      "  {\"id\": 3, \"uid\": 1000, \"pid\": 10,"
		      " \"count\": 18446744073709551614, \"maximum\": null,"
		      " \"rate\": 1000, \"burst\": 2, \"deferred\": true,"
		      " \"semaphore\": null, \"mapped\": null,"
		      " \"command\": \"a\\\"} 1\\\\x0a\\\\\\\\\\\\\\\\\\\\x0a# x\","
		      " \"flow\": {\"read_mark\": null, \"write_mark\": null,"
		      " \"max_delay\": null, \"overflow\": \"drop\", \"source\": null,"
		      " \"sink\": null, \"source_waiting\": null},"
		      " \"stats\": {\"produced\": 18446744073709551615, \"writes\": null,"
		      " \"reads\": null, \"wakeups\": null, \"held_back\": null,"
		      " \"again\": null, \"waits\": null, \"wait_ns\": 12000000034,"
		      " \"lost\": null, \"highest\": 6}}],\n"
		      " \"rings\": [\n"
		      "  {\"id\": 4, \"uid\": 1000, \"pid\": 11, \"max_items\": 4,"
		      " \"head\": null, \"tail\": null, \"pending\": 2, \"busy\": true,"
		      " \"watches\": null, \"posts\": null, \"command\": \"worker\","
		      " \"stats\": {\"published\": 0, \"coalesced\": null,"
		      " \"waits\": null, \"sleeps\": null}}]}\n"),
	       "JSON");
	tap_ok(prints(print_json, &none,
		      "{\"format\": \"flowfdctl-list\", \"version\": 3,\n"
		      " \"complete\": true, \"unknown\": 0,\n"
		      " \"counters\": [],\n \"rings\": []}\n"),
	       "JSON of nothing");
	free(list.object);
}

static void print_metrics(const void *list)
{
	metrics_print(list);
}

static void test_metrics(void)
{
	struct list list = two();

	metrics_limit(&list);
#define A_COUNTER "{id=\"3\",kind=\"counter\",uid=\"1000\",pid=\"10\",comm=\"a\\\"} 1\\\\x0a" \
		  "\\\\\\\\\\\\\\\\\\\\x0a# x\"} "
#define A_RING "{id=\"4\",kind=\"ring\",uid=\"1000\",pid=\"11\",comm=\"worker\"} "
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
		      "flowfd_wakeup_deferred" A_COUNTER "1\n"
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
		      "# HELP flowfd_ring_items_max Highest number of watches and posts.\n"
		      "# TYPE flowfd_ring_items_max gauge\n"
		      "flowfd_ring_items_max" A_RING "4\n"
		      "# HELP flowfd_ring_pending Index entries that were not taken yet.\n"
		      "# TYPE flowfd_ring_pending gauge\n"
		      "flowfd_ring_pending" A_RING "2\n"
		      "# HELP flowfd_ring_published_total Index entries that were"
		      " published.\n"
		      "# TYPE flowfd_ring_published_total counter\n"
		      "flowfd_ring_published_total" A_RING "0\n"),
	       "metrics");
	free(list.object);
}

/* No user can take the room of another, and root comes first. */
static void test_limit(void)
{
	enum { ROOM = 2048 };
	unsigned int own[3] = { 0 };
	struct list list = { 0 };

	for (int i = 0; i < 30000; i++)
		add(&list, COUNTER, i, 100, 10 + i);
	for (int i = 0; i < 100; i++) {
		add(&list, COUNTER, 30000 + i, 0, 1);
		add(&list, COUNTER, 31000 + i, 101, 5);
	}
	metrics_limit(&list);
	for (size_t i = 0; i < list.count; i++) {
		uint64_t uid = list.object[i].number[UID];

		own[uid ? uid - 99 : 0]++;
	}
	tap_is(own[0], 100, "all of root");
	tap_is(own[2], 100, "all of another user");
	tap_is(own[1], ROOM / 2 - 100, "half of the room for one that has too many");
	tap_is(list.left_out, 30200 - ROOM / 2 - 100, "the rest is left out");
	tap_is(list.object[0].number[UID], 0, "root's first");
	free(list.object);
}

int main(void)
{
	test_tables();
	test_json();
	test_metrics();
	test_limit();
	return tap_done();
}
