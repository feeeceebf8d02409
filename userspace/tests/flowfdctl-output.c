// SPDX-License-Identifier: GPL-2.0-only
/*
 * What flowfdctl makes of lists: rates and the order of top's rows, and metrics. The lists
 * are made up; the module is not needed.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/output.h"
#include "tests/tap.h"
#include "tools/flowfdctl/flowfdctl.h"

#define SECOND 1000000000ULL

/* An update of top, as made of two lists. */
struct rows {
	struct list list;
	struct row *row;
};

/* Adds a counter or ring that has all statistics, each of which is 0. */
static struct object *add(struct list *list, enum kind kind, uint64_t id, pid_t pid)
{
	struct object *object;

	list->object = grow(list->object, list->count, sizeof(*list->object));
	object = &list->object[list->count++];
	*object = (struct object){ .kind = kind, .id = id, .pid = pid, .fd = -1,
				   .uid = 1000, .command = "worker", .time = 1 };
	if (kind == COUNTER)
		object->maximum = UINT64_MAX;
	for (enum value value = 0; value < VALUES; value++)
		if (value_infos[value].kind == kind && value_is_statistic(value))
			object->known |= 1U << value;
	return object;
}

/* The same list, this much later. */
static struct list later(const struct list *list, uint64_t ns)
{
	struct list next = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		next.object = grow(next.object, i, sizeof(*next.object));
		next.object[next.count] = list->object[i];
		next.object[next.count++].time += ns;
	}
	return next;
}

static void set(struct list *list, size_t i, enum value value, uint64_t number)
{
	*object_value(&list->object[i], value) = number;
}

static struct rows make(struct list list, const struct list *before)
{
	static const struct list none;

	return (struct rows){ list, rows_make(&list, before ? before : &none) };
}

static void rows_free(struct rows *rows)
{
	list_free(&rows->list);
	free(rows->row);
}

static const struct row *find(const struct rows *rows, enum kind kind, uint64_t id)
{
	for (size_t i = 0; i < rows->list.count; i++)
		if (rows->row[i].now->kind == kind && rows->row[i].now->id == id)
			return &rows->row[i];
	abort();
}

static bool has_rate(const struct row *row, unsigned int column, double wanted)
{
	double rate;

	return row_rate(row, column, &rate) && rate - wanted < 0.001 &&
	       wanted - rate < 0.001;
}

static bool has_none(const struct row *row, unsigned int column)
{
	double rate;

	return !row_rate(row, column, &rate);
}

static void test_rates(void)
{
	struct list first = { 0 }, second;
	struct rows rows;
	struct object *object;

	add(&first, COUNTER, 1, 10);
	add(&first, COUNTER, 2, 10)->count = 8;
	set(&first, 1, PRODUCED, 5);
	add(&first, COUNTER, 3, 10);
	set(&first, 2, WRITES, 10);
	add(&first, COUNTER, 4, 10);
	add(&first, COUNTER, 5, 10);
	set(&first, 4, PRODUCED, UINT64_MAX);
	add(&first, COUNTER, 7, 12);
	set(&first, 5, HIGHEST, 2);
	object = add(&first, RING, 1, 10);
	object->tail = object->head = UINT32_MAX;
	set(&first, 6, PUBLISHED, UINT64_MAX - 1);
	add(&first, RING, 2, 10)->known = 0;
	add(&first, RING, 3, 13);
	set(&first, 8, SLEEPS, 2);
	add(&first, RING, 4, 13)->max_items = 4;

	second = later(&first, SECOND / 2);
	/* Read later than the others: a list takes time. */
	object = &second.object[1];
	object->time += SECOND / 2;
	object->count = 3;
	object->values[PRODUCED] += 100000;
	object->values[WRITES] += 100;
	object->values[WAIT_NS] += 500000000;
	object->values[LOST] += 7;
	object->known &= ~(1U << AGAIN);
	set(&second, 2, WRITES, 9);
	second.object[3].pid = 11;
	set(&second, 4, PRODUCED, 10);
	set(&second, 5, HIGHEST, 1);
	second.object[6].tail = 9;
	second.object[6].head = 4;
	set(&second, 6, PUBLISHED, UINT64_MAX);
	set(&second, 6, COALESCED, 3);
	second.object[7].tail = 5;
	set(&second, 8, SLEEPS, 1);
	second.object[9].max_items = 5;
	add(&second, RING, 99, 10);

	rows = make(second, &first);
	tap_ok(has_rate(find(&rows, COUNTER, 1), WRITES, 0), "a counter at rest");
	tap_ok(has_rate(find(&rows, COUNTER, 2), PRODUCED, 100000), "a busy counter");
	tap_ok(has_rate(find(&rows, COUNTER, 2), WRITES, 100), "its writes");
	tap_ok(has_rate(find(&rows, COUNTER, 2), WAIT_NS, 5e8), "time that it waited");
	tap_ok(has_rate(find(&rows, COUNTER, 2), LOST, 7), "what was lost");
	tap_ok(has_rate(find(&rows, COUNTER, 2), CHANGE, -5), "change of its count");
	tap_ok(has_none(find(&rows, COUNTER, 2), AGAIN), "what is not known");
	tap_ok(!find(&rows, COUNTER, 3)->before, "another counter: it has less");
	tap_ok(!find(&rows, COUNTER, 4)->before, "another counter: of another process");
	tap_ok(find(&rows, COUNTER, 5)->before, "a sum that wraps");
	tap_ok(has_none(find(&rows, COUNTER, 5), PRODUCED), "has no rate");
	tap_ok(!find(&rows, COUNTER, 7)->before, "another counter: its peak is lower");
	tap_ok(has_rate(find(&rows, RING, 1), TAKEN, 10), "entries taken, head has wrapped");
	tap_ok(has_rate(find(&rows, RING, 1), PUBLISHED, 2), "entries published");
	tap_ok(has_rate(find(&rows, RING, 1), COALESCED, 6), "coalesced");
	tap_ok(has_none(find(&rows, RING, 2), PUBLISHED), "of an older module");
	tap_ok(!find(&rows, RING, 3)->before, "a ring of a module loaded again has less");
	tap_ok(!find(&rows, RING, 4)->before, "or another size");
	tap_ok(has_none(find(&rows, RING, 99), PUBLISHED), "a new ring");
	rows_free(&rows);
	list_free(&first);
}

/* Whether rows are in this order: numbers, those of rings first. */
static bool in_order(struct rows *rows, const uint64_t *wanted)
{
	bool good = true;

	rows_sort(rows->row, rows->list.count);
	for (size_t i = 0; i < rows->list.count; i++)
		good &= rows->row[i].now->id == wanted[i];
	for (size_t i = 0; !good && i < rows->list.count; i++)
		printf("# got %d\n", (int)rows->row[i].now->id);
	return good;
}

static void test_order(void)
{
	struct list first = { 0 }, second;
	struct rows rows;

	for (int i = 0; i < 4; i++)
		add(&first, COUNTER, 1 + i, 20 - i);
	for (int i = 0; i < 3; i++)
		add(&first, RING, 11 + i, 20 - i);
	second = later(&first, SECOND);
	set(&second, 1, PRODUCED, 5);
	second.object[2].count = 2;
	second.object[3].count = 1;
	set(&second, 5, PUBLISHED, 5);
	second.object[6].head = 1;
	/* As after a start: it has no rate yet. */
	second.object[0].uid = 0;

	rows = make(second, &first);
	tap_ok(in_order(&rows, (uint64_t[]){ 12, 13, 11, 2, 3, 4, 1 }),
	       "the busiest first");
	rows_free(&rows);
	list_free(&first);
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

static void print_rates(const void *arg)
{
	const struct rows *rows = arg;
	const char *headings[COLUMNS_MAX];
	struct table table = { .headings = headings };

	columns_head(headings, rows->row[0].now->kind);
	columns_add(&table, &rows->row[0]);
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

#define RATES "COUNTER   UID  PID  COUNT  CHANGE/S  PRODUCED/S  WRITES/S  READS/S"    \
	      "  WAKEUPS/S  HELD-BACK/S  AGAIN/S  WAITS/S  WAIT/S  LOST/S  HIGHEST" \
	      "  MAXIMUM  DEFERRED  COMMAND\n"

static void test_columns(void)
{
	static const uint64_t more[COUNTER_VALUES] = {
		[PRODUCED] = 1000, [WRITES] = 20,   [READS] = 19,
		[WAKEUPS] = 18,	   [HELD_BACK] = 17, [AGAIN] = 16,
		[WAITS] = 15,	   [WAIT_NS] = 1500000, [LOST] = 13,
		[HIGHEST] = 12,
	};
	struct list first = { 0 }, ring = { 0 }, second;
	struct rows before, rows;
	struct object *object;

	object = add(&first, COUNTER, 3, 10);
	object->count = 7;
	object->maximum = 100;
	object->deferred = true;
	strcpy(object->command, "a\nb");
	second = later(&first, SECOND);
	memcpy(second.object[0].values, more, sizeof(more));
	second.object[0].count = 5;
	before = make(first, NULL);
	rows = make(second, &first);
	tap_ok(prints(print_rates, &rows, RATES
		      "      3  1000   10      5        -2        1000        20       19"
		      "         18           17       16       15   1.5ms      13       12"
		      "      100       yes  a\\x0ab\n"),
	       "rates of a counter");
	tap_ok(prints(print_rates, &before, RATES
		      "      3  1000   10      7         -           -         -        -"
		      "          -            -        -        -       -       -        0"
		      "      100       yes  a\\x0ab\n"),
	       "of the first list");
	rows_free(&rows);
	rows_free(&before);

	object = add(&ring, RING, 4, 10);
	object->max_items = 10;
	object->busy = true;
	object->tail = 3;
	set(&ring, 0, PUBLISHED, 3);
	rows = make(ring, NULL);
	tap_ok(prints(print_rates, &rows,
		      "RING   UID  PID  PUBLISHED/S  TAKEN/S  COALESCED/S  WAITS/S  SLEEPS/S"
		      "  PENDING  WATCHES  COMMAND\n"
		      "   4  1000   10            -        -            -        -         -"
		      "        3     busy  worker\n"),
	       "a new ring");
	rows_free(&rows);
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
	test_rates();
	test_order();
	test_columns();
	test_metrics();
	test_limit();
	return tap_done();
}
