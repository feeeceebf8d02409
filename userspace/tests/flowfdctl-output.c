// SPDX-License-Identifier: GPL-2.0-only
/*
 * What flowfdctl makes of scans: rates and the order of top's rows, and metrics. The scans
 * are made up; the module is not needed.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/output.h"
#include "tests/tap.h"
#include "tools/flowfdctl/top.h"

#define SECOND 1000000000ULL

static struct scan *new_scan(void)
{
	struct scan *scan = mmap(NULL, sizeof(*scan), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (scan == MAP_FAILED)
		abort();
	return scan;
}

/* Adds a descriptor; its counter or ring has all statistics, and each is 0. */
static struct object *add(struct scan *scan, enum kind kind, uint64_t id, pid_t pid)
{
	struct descriptor *d = &scan->descriptor[scan->count];

	*d = (struct descriptor){ .pid = pid, .fd = 5 + (int)scan->count++,
				  .command = "worker", .time = 1 };
	d->object.kind = kind;
	d->object.id = id;
	d->object.maximum = UINT64_MAX;
	for (enum value value = 0; value < VALUES; value++)
		if (value_infos[value].kind == kind && value_is_statistic(value))
			d->object.known |= 1U << value;
	return &d->object;
}

/* The same scan, this much later. */
static struct scan *later(const struct scan *scan, uint64_t ns)
{
	struct scan *next = new_scan();

	next->count = scan->count;
	memcpy(next->descriptor, scan->descriptor,
	       scan->count * sizeof(*scan->descriptor));
	for (size_t i = 0; i < next->count; i++)
		next->descriptor[i].time += ns;
	return next;
}

static const struct row *find(const struct rows *rows, enum kind kind, uint64_t id)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct object *object = &rows->row[i].line.descriptor->object;

		if (object->kind == kind && object->id == id)
			return &rows->row[i];
	}
	abort();
}

static bool has_rate(const struct row *row, enum value value, double wanted)
{
	double error = row->rate[value] - wanted;

	return row->rated & 1U << value && error < 0.001 && error > -0.001;
}

static void test_lines(void)
{
	struct scan *scan = new_scan();
	struct line *lines;
	size_t count;

	add(scan, RING, 7, 10);
	add(scan, COUNTER, 9, 11);
	add(scan, COUNTER, 7, 12);
	add(scan, RING, 7, 13);
	add(scan, COUNTER, 7, 14);
	/* It could have been given to any user. */
	for (size_t i = 0; i < scan->count; i++)
		scan->descriptor[i].uid = 1000;
	add(scan, COUNTER, 9, 99);
	lines = lines_of(scan, &count);
	tap_is(count, 3, "lines of six descriptors");
	tap_is(lines[0].descriptor->pid, 12, "the first descriptor of a counter");
	tap_is(lines[0].descriptors, 2, "which has two");
	tap_is(lines[1].descriptor->object.id, 9, "the next counter");
	tap_is(lines[1].descriptor->pid, 99, "a descriptor of root is its first");
	tap_is(lines[2].descriptor->pid, 10, "the first descriptor of a ring");
	tap_is(lines[2].descriptors, 2, "which has two");
	free(lines);
	scan_free(scan);
}

/* As a scan sorts them. */
static int by_place(const void *left, const void *right)
{
	const struct descriptor *a = left, *b = right;

	return a->pid == b->pid ? a->fd - b->fd : a->pid - b->pid;
}

static void test_rates(void)
{
	struct scan *first = new_scan(), *second;
	struct rows before, rows;
	struct object *object;

	add(first, COUNTER, 1, 10);
	object = add(first, COUNTER, 2, 10);
	object->count = 8;
	object->value[PRODUCED] = 5;
	add(first, COUNTER, 3, 10)->value[WRITES] = 10;
	add(first, COUNTER, 4, 10);
	add(first, COUNTER, 5, 10)->value[PRODUCED] = UINT64_MAX;
	object = add(first, RING, 1, 10);
	object->tail = object->head = UINT32_MAX;
	object->value[PUBLISHED] = UINT64_MAX - 1;
	add(first, RING, 2, 10)->known = 0;
	add(first, COUNTER, 6, 11);
	add(first, COUNTER, 7, 12)->value[HIGHEST] = 2;
	add(first, RING, 3, 13)->value[MOST_PENDING] = 2;
	add(first, RING, 4, 13)->max_items = 4;

	second = later(first, SECOND / 2);
	/* Read later than the others: a scan takes time. */
	second->descriptor[1].time += SECOND / 2;
	object = &second->descriptor[1].object;
	object->count = 3;
	object->value[PRODUCED] += 100000;
	object->value[WRITES] += 100;
	object->value[WAIT_NS] += 500000000;
	object->value[LOST] += 7;
	object->known &= ~(1U << AGAIN);
	second->descriptor[2].object.value[WRITES] = 9;
	second->descriptor[3].fd = 60;
	second->descriptor[4].object.value[PRODUCED] = 10;
	object = &second->descriptor[5].object;
	object->tail = 9;
	object->head = 4;
	object->value[PUBLISHED] = UINT64_MAX;
	object->value[COALESCED] = 3;
	second->descriptor[6].object.tail = 5;
	/* It has another first descriptor now. */
	*add(second, COUNTER, 6, 9) = second->descriptor[7].object;
	second->descriptor[second->count - 1].time += SECOND / 2;
	second->descriptor[8].object.value[HIGHEST] = 1;
	second->descriptor[9].object.value[MOST_PENDING] = 1;
	second->descriptor[10].object.max_items = 5;
	add(second, COUNTER, 99, 10);
	qsort(second->descriptor, second->count, sizeof(*second->descriptor), by_place);

	rows_make(&before, first);
	rows_make(&rows, second);
	rows_compare(&rows, &before);
	tap_ok(has_rate(find(&rows, COUNTER, 1), WRITES, 0), "a counter at rest");
	tap_ok(has_rate(find(&rows, COUNTER, 2), PRODUCED, 100000), "a busy counter");
	tap_ok(has_rate(find(&rows, COUNTER, 2), WRITES, 100), "its writes");
	tap_ok(has_rate(find(&rows, COUNTER, 2), WAIT_NS, 5e8), "time that it waited");
	tap_ok(has_rate(find(&rows, COUNTER, 2), LOST, 7), "what was lost");
	tap_ok(find(&rows, COUNTER, 2)->change == -5, "change of its count");
	tap_ok(!(find(&rows, COUNTER, 2)->rated & 1U << AGAIN), "what is not known");
	tap_ok(!(find(&rows, COUNTER, 2)->rated & 1U << HIGHEST), "a peak has no rate");
	tap_ok(!find(&rows, COUNTER, 3)->known, "another counter: it has less");
	tap_ok(!find(&rows, COUNTER, 4)->known, "another counter: another descriptor");
	tap_ok(find(&rows, COUNTER, 5)->known, "a sum that wraps");
	tap_ok(!(find(&rows, COUNTER, 5)->rated & 1U << PRODUCED), "has no rate");
	tap_ok(!find(&rows, COUNTER, 99)->known, "a new counter");
	tap_is(find(&rows, COUNTER, 6)->line.descriptor->pid, 9, "a counter passed on");
	tap_ok(find(&rows, COUNTER, 6)->known, "is the same");
	tap_ok(!find(&rows, COUNTER, 7)->known, "another counter: its peak is lower");
	tap_ok(find(&rows, RING, 1)->taken == 10, "entries taken, head has wrapped");
	tap_ok(has_rate(find(&rows, RING, 1), PUBLISHED, 2), "entries published");
	tap_ok(has_rate(find(&rows, RING, 1), COALESCED, 6), "coalesced");
	tap_ok(has_rate(find(&rows, RING, 2), PUBLISHED, 10), "of an older module");
	tap_ok(!(find(&rows, RING, 2)->rated & 1U << COALESCED), "that knows no more");
	tap_ok(!find(&rows, RING, 3)->known, "a ring of a module loaded again has less");
	tap_ok(!find(&rows, RING, 4)->known, "or another size");
	rows_free(&before);
	rows_free(&rows);
}

/* Whether rows are in this order: numbers, those of rings first. */
static bool in_order(struct rows *rows, const char *column, bool totals,
		     const uint64_t *wanted)
{
	struct order order = { .totals = totals };
	bool good = true;

	order.column[COUNTER] = column ? column_find(COUNTER, column) : COLUMNS;
	order.column[RING] = column ? column_find(RING, column) : COLUMNS;
	rows_sort(rows, &order);
	for (size_t i = 0; i < rows->count; i++)
		good &= rows->row[i].line.descriptor->object.id == wanted[i];
	for (size_t i = 0; !good && i < rows->count; i++)
		printf("# got %d\n", (int)rows->row[i].line.descriptor->object.id);
	return good;
}

static void test_order(void)
{
	struct scan *first = new_scan(), *second;
	struct rows before, rows;

	for (int i = 0; i < 3; i++)
		add(first, RING, 11 + i, 20 - i);
	for (int i = 0; i < 4; i++)
		add(first, COUNTER, 1 + i, 20 - i);
	first->descriptor[3].object.value[WAKEUPS] = 1000;
	second = later(first, SECOND);
	second->descriptor[1].object.value[PUBLISHED] = 5;
	second->descriptor[2].object.head = 1;
	second->descriptor[0].object.busy = true;
	second->descriptor[2].object.watches = 2;
	second->descriptor[4].object.value[PRODUCED] = 5;
	second->descriptor[5].object.count = 2;
	second->descriptor[5].object.value[WAKEUPS] = 3;
	second->descriptor[6].object.count = 1;
	strcpy(second->descriptor[6].command, "alpha");
	second->descriptor[6].object.value[WAITS] = 1;
	second->descriptor[1].object.value[RING_WAITS] = 1;
	second->descriptor[6].object.maximum = 5;
	/* As after a start: it has no rate yet. */
	second->descriptor[3].fd = 60;
	qsort(second->descriptor, second->count, sizeof(*second->descriptor), by_place);

	rows_make(&before, first);
	rows_make(&rows, second);
	rows_compare(&rows, &before);
	tap_ok(in_order(&rows, NULL, false, (uint64_t[]){ 12, 13, 11, 2, 3, 4, 1 }),
	       "the busiest first");
	tap_ok(in_order(&rows, "COUNT", false, (uint64_t[]){ 12, 13, 11, 3, 4, 2, 1 }),
	       "by a column that rings do not have");
	tap_ok(in_order(&rows, "wakeups", false, (uint64_t[]){ 12, 13, 11, 3, 2, 4, 1 }),
	       "by a rate");
	tap_ok(in_order(&rows, "wakeups", true, (uint64_t[]){ 12, 13, 11, 1, 3, 2, 4 }),
	       "by a total");
	tap_ok(in_order(&rows, "waits/s", false, (uint64_t[]){ 12, 13, 11, 4, 2, 3, 1 }),
	       "by one that both have");
	tap_ok(in_order(&rows, "Command", false, (uint64_t[]){ 12, 13, 11, 4, 2, 3, 1 }),
	       "by name");
	tap_ok(in_order(&rows, "pid", false, (uint64_t[]){ 13, 12, 11, 4, 3, 2, 1 }),
	       "by process");
	tap_ok(in_order(&rows, "watches", false, (uint64_t[]){ 13, 12, 11, 2, 3, 4, 1 }),
	       "one that is not known is last");
	tap_ok(in_order(&rows, "maximum", false, (uint64_t[]){ 12, 13, 11, 4, 2, 3, 1 }),
	       "as is no maximum");
	tap_ok(in_order(&rows, "counter", false, (uint64_t[]){ 12, 13, 11, 1, 2, 3, 4 }),
	       "by number");
	tap_is(column_find(COUNTER, "pending"), COLUMNS, "a column that counters lack");
	tap_is(column_find(RING, ""), COLUMNS, "no name");
	rows_free(&before);
	rows_free(&rows);
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

	columns_head(headings, rows->row[0].line.descriptor->object.kind, false);
	columns_add(&table, &rows->row[0], false);
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

static void print_totals(const void *arg)
{
	const struct rows *rows = arg;
	const char *headings[COLUMNS_MAX];
	struct table table = { .headings = headings };

	columns_head(headings, rows->row[0].line.descriptor->object.kind, true);
	columns_add(&table, &rows->row[0], true);
	table_print(&table, SIZE_MAX, INT_MAX);
	table_free(&table);
}

static void test_columns(void)
{
	static const uint64_t more[VALUES] = { [PRODUCED] = 1000, [WRITES] = 20,
					       [READS] = 19, [WAKEUPS] = 18,
					       [HELD_BACK] = 17, [AGAIN] = 16,
					       [WAITS] = 15, [WAIT_NS] = 1500000,
					       [LOST] = 13, [HIGHEST] = 12 };
	struct scan *first = new_scan(), *second;
	struct rows before, rows;
	struct object *object;

	object = add(first, COUNTER, 3, 10);
	object->count = 7;
	object->maximum = 100;
	object->deferred = true;
	strcpy(first->descriptor[0].command, "a\nb");
	second = later(first, SECOND);
	memcpy(second->descriptor[0].object.value, more, sizeof(more));
	second->descriptor[0].object.count = 5;
	rows_make(&before, first);
	rows_make(&rows, second);
	rows_compare(&rows, &before);
	tap_ok(prints(print_rates, &rows,
		      "COUNTER  PID  FD  FDS  COUNT  CHANGE/S  PRODUCED/S  WRITES/S  READS/S"
		      "  WAKEUPS/S  HELD-BACK/S  AGAIN/S  WAITS/S  WAIT/S  LOST/S  HIGHEST"
		      "  MAXIMUM  DEFERRED  COMMAND\n"
		      "      3   10   5    1      5        -2        1000        20       19"
		      "         18           17       16       15   1.5ms      13       12"
		      "      100       yes  a\\x0ab\n"),
	       "rates of a counter");
	tap_ok(prints(print_totals, &rows,
		      "COUNTER  PID  FD  FDS  COUNT  CHANGE/S  PRODUCED  WRITES  READS"
		      "  WAKEUPS  HELD-BACK  AGAIN  WAITS   WAIT  LOST  HIGHEST  MAXIMUM"
		      "  DEFERRED  COMMAND\n"
		      "      3   10   5    1      5        -2      1000      20     19"
		      "       18         17     16     15  1.5ms    13       12      100"
		      "       yes  a\\x0ab\n"),
	       "totals of a counter");
	tap_ok(prints(print_rates, &before,
		      "COUNTER  PID  FD  FDS  COUNT  CHANGE/S  PRODUCED/S  WRITES/S  READS/S"
		      "  WAKEUPS/S  HELD-BACK/S  AGAIN/S  WAITS/S  WAIT/S  LOST/S  HIGHEST"
		      "  MAXIMUM  DEFERRED  COMMAND\n"
		      "      3   10   5    1      7         -           -         -        -"
		      "          -            -        -        -       -       -        0"
		      "      100       yes  a\\x0ab\n"),
	       "of the first scan");
	rows_free(&before);
	rows_free(&rows);

	first = new_scan();
	object = add(first, RING, 4, 10);
	object->max_items = 10;
	object->busy = true;
	object->tail = 3;
	object->value[PUBLISHED] = 3;
	rows_make(&rows, first);
	tap_ok(prints(print_totals, &rows,
		      "RING  PID  FD  FDS  PUBLISHED  TAKEN/S  COALESCED  WAITS  SLEEPS"
		      "  PENDING  MOST-PENDING  WATCHES  COMMAND\n"
		      "   4   10   5    1          3        -          0      0       0"
		      "        3             0     busy  worker\n"),
	       "totals of a ring");
	rows_free(&rows);
}

static void print_metrics(const void *arg)
{
	const struct scan *scan = arg;
	size_t count;
	struct line *lines = lines_of(scan, &count);

	metrics_print(scan, lines, metrics_limit(lines, count));
	free(lines);
}

static void test_metrics(void)
{
	struct scan *scan = new_scan();
	struct object *object;

	object = add(scan, COUNTER, 3, 10);
	object->count = UINT64_MAX - 1;
	object->known = 1U << PRODUCED | 1U << WAIT_NS | 1U << HIGHEST | 1U << READ_MARK;
	object->value[PRODUCED] = UINT64_MAX;
	object->value[WAIT_NS] = 12000000034;
	object->value[HIGHEST] = 6;
	strcpy(scan->descriptor[0].command, "a\"} 1\n\\\\\n# HELP x");
	object = add(scan, RING, 3, 11);
	object->known = 1U << PUBLISHED;
	object->max_items = 4;
	object->tail = 2;
	object->busy = true;
	scan->hidden = 8;
	scan->unread = 1;

#define A_COUNTER "{id=\"3\",kind=\"counter\",pid=\"10\",comm=\"a\\\"} 1\\\\x0a" \
		  "\\\\\\\\\\\\\\\\\\\\x0a# HELP x\"} "
#define A_RING "{id=\"3\",kind=\"ring\",pid=\"11\",comm=\"worker\"} "
	tap_ok(prints(print_metrics, scan,
		      "# HELP flowfd_objects Counters and rings in these metrics.\n"
		      "# TYPE flowfd_objects gauge\n"
		      "flowfd_objects{kind=\"counter\"} 1\n"
		      "flowfd_objects{kind=\"ring\"} 1\n"
		      "# HELP flowfd_scan_complete Whether nothing was left out; 0: standard"
		      " error said what.\n"
		      "# TYPE flowfd_scan_complete gauge\n"
		      "flowfd_scan_complete 0\n"
		      "# HELP flowfd_scan_hidden_processes Processes that this user may not"
		      " inspect.\n"
		      "# TYPE flowfd_scan_hidden_processes gauge\n"
		      "flowfd_scan_hidden_processes 8\n"
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
	scan_free(scan);
}

/* No user can take the room of another, and root comes first. */
static void test_limit(void)
{
	enum { ROOM = 2048, USERS = 20 };
	struct scan *scan = new_scan();
	unsigned int own[USERS] = { 0 };
	struct line *lines;
	size_t count, kept;

	for (int i = 0; i < 30000; i++) {
		add(scan, COUNTER, i, 10 + i);
		scan->descriptor[i].uid = 100;
	}
	for (int i = 0; i < 100; i++) {
		add(scan, COUNTER, 30000 + i, 1);
		add(scan, COUNTER, 31000 + i, 5)->count = 1;
		scan->descriptor[scan->count - 1].uid = 101;
		add(scan, RING, i, 6);
		scan->descriptor[scan->count - 1].uid = -1;
	}
	lines = lines_of(scan, &count);
	tap_is(count, 30300, "lines of four users");
	kept = metrics_limit(lines, count);
	for (size_t i = 0; i < kept; i++) {
		uid_t uid = lines[i].descriptor->uid;

		own[uid == (uid_t)-1 ? 2 : uid == 0 ? 0 : uid == 101 ? 1 : 3]++;
	}
	tap_is(own[0], 100, "all of root");
	tap_is(own[1], 100, "all of another user");
	tap_is(own[2], 100, "all of set-user-ID programs");
	tap_is(own[3], ROOM / 2 - 100, "half of the room for one that has too many");
	tap_is(lines[0].descriptor->uid, 0, "root's first");
	free(lines);
	scan_free(scan);
}

int main(void)
{
	test_lines();
	test_rates();
	test_order();
	test_columns();
	test_metrics();
	test_limit();
	return tap_done();
}
