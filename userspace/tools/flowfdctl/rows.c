// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rows of top: rates, which are differences between two lists, its columns, and the
 * order of rows.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

/* The last column is not aligned; those on the right may not fit on a terminal. */
static const unsigned char columns[][COLUMNS_MAX] = {
	[COUNTER] = { NUMBER, UID, PID, COUNT, CHANGE, PRODUCED, WRITES, READS, WAKEUPS,
		      HELD_BACK, AGAIN, WAITS, WAIT_NS, LOST, HIGHEST, MAXIMUM, DEFERRED,
		      COMMAND, COLUMNS },
	[RING] = { NUMBER, UID, PID, PUBLISHED, TAKEN, COALESCED, RING_WAITS, SLEEPS,
		   PENDING, WATCHES, COMMAND, COLUMNS },
};

/* By these rates, one after the other, rows are sorted. */
static const unsigned char busiest[][2] = {
	[COUNTER] = { PRODUCED, CHANGE },
	[RING] = { PUBLISHED, TAKEN },
};

/* Both lists are in the order of the kernel: counters and then rings, by number. */
static int compare_objects(const struct object *a, const struct object *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* Whether a number that only grows is less. (The sum that a counter produced can wrap.) */
static bool has_less(const struct object *now, const struct object *before)
{
	enum value value;
	uint64_t a, b;

	for (value = 0; value < VALUES; value++)
		if (value_infos[value].kind == now->kind && value_is_statistic(value) &&
		    value != PRODUCED && object_has(now, value, &a) &&
		    object_has(before, value, &b) && a < b)
			return true;
	return false;
}

/*
 * The number of a counter is used again after its end, that of a ring when the module was
 * loaded again. It is another one if another process made it, or if it has less.
 */
static bool is_same(const struct object *now, const struct object *before)
{
	return now->pid == before->pid && now->uid == before->uid &&
	       !strcmp(now->command, before->command) && !has_less(now, before) &&
	       (now->kind == COUNTER || now->max_items == before->max_items);
}

/**
 * rows_make - make a row for each object
 * @now: the kernel's list
 * @before: the same at the update before
 *
 * Returns rows that the caller must free, and that point into both.
 */
struct row *rows_make(const struct list *now, const struct list *before)
{
	struct row *rows = calloc(now->count + 1, sizeof(*rows));
	size_t i, j = 0;

	if (!rows)
		err(EXIT_FAILURE, "rows");
	for (i = 0; i < now->count; i++) {
		const struct object *object = rows[i].now = &now->object[i];

		while (j < before->count &&
		       compare_objects(&before->object[j], object) < 0)
			j++;
		if (j < before->count && !compare_objects(&before->object[j], object) &&
		    is_same(object, &before->object[j]))
			rows[i].before = &before->object[j];
	}
	return rows;
}

/* Returns whether an object has changed in a column that shows changes, and how much. */
static bool find_change(const struct object *a, const struct object *b,
			unsigned int column, double *change)
{
	uint64_t x, y;

	if (column == CHANGE) {
		*change = (double)a->count - (double)b->count;
		return true;
	}
	if (column == TAKEN) {
		*change = a->head - b->head;
		return true;
	}
	if (!object_has(a, column, &x) || !object_has(b, column, &y) || x < y)
		return false;
	*change = (double)(x - y);
	return true;
}

/* row_rate - returns whether a column that shows a rate has one, and what it is */
bool row_rate(const struct row *row, unsigned int column, double *rate)
{
	const struct object *a = row->now, *b = row->before;

	*rate = 0;
	if (!b || a->time <= b->time || !find_change(a, b, column, rate))
		return false;
	*rate /= (double)(a->time - b->time) / 1e9;
	return true;
}

static bool is_rate(unsigned int column)
{
	return column == CHANGE || column == TAKEN ||
	       (column < VALUES && value_infos[column].role == TOTAL);
}

/**
 * columns_head - make the headings of a table
 * @headings: are filled in, with NULL at the end
 * @kind: of the rows in the table
 */
void columns_head(const char *headings[COLUMNS_MAX], enum kind kind)
{
	/* Twice as long as the longest name. */
	static char names[2][COLUMNS_MAX][32];
	size_t i;

	for (i = 0; columns[kind][i] != COLUMNS; i++) {
		unsigned int column = columns[kind][i];

		snprintf(names[kind][i], sizeof(names[kind][i]), "%s%s",
			 column_name(kind, column), is_rate(column) ? "/S" : "");
		headings[i] = names[kind][i];
	}
	headings[i] = NULL;
}

static void add_rate(struct table *table, const struct row *row, unsigned int column)
{
	char duration[DURATION_SIZE];
	double rate;

	if (!row_rate(row, column, &rate)) {
		table_add(table, "-");
	} else if (column == WAIT_NS) {
		text_duration(duration, rate);
		table_add(table, "%s", duration);
	} else {
		table_add(table, column == CHANGE ? "%+.0f" : "%.0f", rate);
	}
}

/* columns_add - append a row to a table with the headings of its kind */
void columns_add(struct table *table, const struct row *row)
{
	const unsigned char *column = columns[row->now->kind];

	for (; *column != COLUMNS; column++) {
		if (is_rate(*column))
			add_rate(table, row, *column);
		else
			column_add(table, row->now, *column);
	}
}

static double magnitude(double value)
{
	return value < 0 ? -value : value;
}

/* The highest first; what is not known last. */
static int compare_rates(const struct row *a, const struct row *b, unsigned int column)
{
	double x = -1, y = -1, rate;

	if (row_rate(a, column, &rate))
		x = magnitude(rate);
	if (row_rate(b, column, &rate))
		y = magnitude(rate);
	return (x < y) - (x > y);
}

/* Rings come before counters, the busiest first. */
static int compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	enum kind kind = a->now->kind;
	int result = 0;
	size_t i;

	if (kind != b->now->kind)
		return kind == RING ? -1 : 1;
	for (i = 0; !result && i < 2; i++)
		result = compare_rates(a, b, busiest[kind][i]);
	return result ? result : (a->now > b->now) - (a->now < b->now);
}

void rows_sort(struct row *rows, size_t count)
{
	qsort(rows, count, sizeof(*rows), compare);
}
