// SPDX-License-Identifier: GPL-2.0-only
/* The columns of top: their names, what is in them, and the order of rows by them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

/* The last column is not aligned; those on the right may not fit on a terminal. */
static const unsigned char columns[][COLUMNS_MAX] = {
	[COUNTER] = { NUMBER, PID,     DESCRIPTOR, DESCRIPTORS, COUNT,	 CHANGE, PRODUCED,
		      WRITES, READS,   WAKEUPS,	   HELD_BACK,	AGAIN,	 WAITS,	 WAIT_NS,
		      LOST,   HIGHEST, MAXIMUM,	   DEFERRED,	COMMAND, COLUMNS },
	[RING] = { NUMBER, PID, DESCRIPTOR, DESCRIPTORS, PUBLISHED, TAKEN, COALESCED,
		   RING_WAITS, SLEEPS, PENDING, MOST_PENDING, WATCHES, COMMAND, COLUMNS },
};

/* Those that are the busiest first. */
static const unsigned char busiest[][2] = {
	[COUNTER] = { PRODUCED, CHANGE },
	[RING] = { PUBLISHED, TAKEN },
};

/* Whether a column can show a rate or a total. */
static bool is_total(unsigned int column)
{
	return column < VALUES && value_infos[column].role == TOTAL;
}

static bool is_rate(unsigned int column, bool totals)
{
	return column == CHANGE || column == TAKEN || (is_total(column) && !totals);
}

/* Without the "/S" of a rate. */
static const char *column_name(enum kind kind, unsigned int column)
{
	static const char *const names[] = {
		[COUNT - VALUES] = "COUNT",	[CHANGE - VALUES] = "CHANGE",
		[MAXIMUM - VALUES] = "MAXIMUM", [DEFERRED - VALUES] = "DEFERRED",
		[TAKEN - VALUES] = "TAKEN",	[PENDING - VALUES] = "PENDING",
		[WATCHES - VALUES] = "WATCHES", [DESCRIPTORS - VALUES] = "FDS",
		[PID - VALUES] = "PID",		[DESCRIPTOR - VALUES] = "FD",
		[COMMAND - VALUES] = "COMMAND",
	};

	if (column == NUMBER)
		return kind == RING ? "RING" : "COUNTER";
	return column < VALUES ? value_infos[column].heading : names[column - VALUES];
}

/* column_find - by its name, in any case, with or without "/s"; COLUMNS: there is none */
unsigned int column_find(enum kind kind, const char *name)
{
	const unsigned char *column = columns[kind];
	size_t length = strlen(name);

	if (length > 2 && !strcasecmp(name + length - 2, "/s"))
		length -= 2;
	for (; *column != COLUMNS; column++) {
		const char *own = column_name(kind, *column);

		if (strlen(own) == length && !strncasecmp(own, name, length))
			break;
	}
	return *column;
}

/**
 * columns_head - make the headings of a table
 * @headings: are filled in, with NULL at the end
 * @kind: of the rows in the table
 * @totals: show totals, not rates
 */
void columns_head(const char *headings[COLUMNS_MAX], enum kind kind, bool totals)
{
	/* Twice as long as the longest name. */
	static char names[2][COLUMNS_MAX][32];
	size_t i;

	for (i = 0; columns[kind][i] != COLUMNS; i++) {
		unsigned int column = columns[kind][i];

		snprintf(names[kind][i], sizeof(names[kind][i]), "%s%s",
			 column_name(kind, column), is_rate(column, totals) ? "/S" : "");
		headings[i] = names[kind][i];
	}
	headings[i] = NULL;
}

/* Returns whether a column of a row has a number, and what it is. */
static bool find_rate(const struct row *row, unsigned int column, double *rate)
{
	if (column == CHANGE)
		*rate = row->change;
	else if (column == TAKEN)
		*rate = row->taken;
	else
		*rate = row->rate[column];
	return column < VALUES ? row->rated & 1U << column : row->known;
}

static bool find_number(const struct row *row, unsigned int column, uint64_t *number)
{
	const struct descriptor *d = row->line.descriptor;
	const struct object *object = &d->object;

	if (column < VALUES) {
		*number = object->value[column];
		return value_is_known(object, column);
	}
	switch (column) {
	case NUMBER:
		*number = object->id;
		return true;
	case COUNT:
		*number = object->count;
		return true;
	case MAXIMUM:
		*number = object->maximum;
		return object->maximum != UINT64_MAX;
	case DEFERRED:
		*number = object->deferred;
		return true;
	case PENDING:
		*number = object_pending(object);
		return true;
	case WATCHES:
		*number = object->watches;
		return !object->busy;
	case DESCRIPTORS:
		*number = row->line.descriptors;
		return true;
	case PID:
		*number = (uint64_t)d->pid;
		return true;
	default:
		*number = (uint64_t)d->fd;
		return true;
	}
}

static void add_rate(struct table *table, const struct row *row, unsigned int column)
{
	char duration[DURATION_SIZE];
	double rate;

	if (!find_rate(row, column, &rate)) {
		table_add(table, "-");
	} else if (column == WAIT_NS) {
		text_duration(duration, rate);
		table_add(table, "%s", duration);
	} else {
		table_add(table, column == CHANGE ? "%+.0f" : "%.0f", rate);
	}
}

static void add_number(struct table *table, const struct row *row, unsigned int column)
{
	char duration[DURATION_SIZE];
	uint64_t number;

	if (!find_number(row, column, &number)) {
		table_add(table, column == WATCHES ? "busy" : "-");
	} else if (column == DEFERRED) {
		table_add(table, number ? "yes" : "-");
	} else if (column == WAIT_NS) {
		text_duration(duration, (double)number);
		table_add(table, "%s", duration);
	} else {
		table_add(table, "%" PRIu64, number);
	}
}

/* columns_add - append a row to a table with the headings of its kind */
void columns_add(struct table *table, const struct row *row, bool totals)
{
	const struct descriptor *d = row->line.descriptor;
	const unsigned char *column = columns[d->object.kind];
	char command[ESCAPED_SIZE];

	for (; *column != COLUMNS; column++) {
		if (*column == COMMAND) {
			text_escape(command, sizeof(command), d->command);
			table_add(table, "%s", command);
		} else if (is_rate(*column, totals)) {
			add_rate(table, row, *column);
		} else {
			add_number(table, row, *column);
		}
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

	if (find_rate(a, column, &rate))
		x = magnitude(rate);
	if (find_rate(b, column, &rate))
		y = magnitude(rate);
	return (x < y) - (x > y);
}

static int compare_numbers(const struct row *a, const struct row *b, unsigned int column)
{
	uint64_t x, y;
	bool x_known = find_number(a, column, &x), y_known = find_number(b, column, &y);

	if (!x_known || !y_known)
		return y_known - x_known;
	/* Names of things, not amounts. */
	if (column == NUMBER || column == PID || column == DESCRIPTOR)
		return (x > y) - (x < y);
	return (x < y) - (x > y);
}

static int compare_columns(const struct row *a, const struct row *b, unsigned int column,
			   bool totals)
{
	if (column == COLUMNS)
		return 0;
	if (column == COMMAND)
		return strcmp(a->line.descriptor->command, b->line.descriptor->command);
	if (is_rate(column, totals))
		return compare_rates(a, b, column);
	return compare_numbers(a, b, column);
}

/* Rings come before counters. */
static int compare(const void *left, const void *right, void *arg)
{
	const struct row *a = left, *b = right;
	const struct order *order = arg;
	enum kind kind = a->line.descriptor->object.kind;
	int result = 0;
	size_t i;

	if (kind != b->line.descriptor->object.kind)
		return kind == RING ? -1 : 1;
	result = compare_columns(a, b, order->column[kind], order->totals);
	for (i = 0; !result && i < 2; i++)
		result = compare_columns(a, b, busiest[kind][i], order->totals);
	return result ? result : line_compare(&a->line, &b->line);
}

void rows_sort(struct rows *rows, const struct order *order)
{
	qsort_r(rows->row, rows->count, sizeof(*rows->row), compare, (void *)order);
}
