// SPDX-License-Identifier: GPL-2.0-only
/* Tables of text: columns as wide as their widest cell. */
#include <inttypes.h>
#include <string.h>

#include "flowfdctl.h"

/* Spaces between two columns. */
#define GAP 2

static const char *heading(unsigned int column)
{
	if (column < FIELDS)
		return field_infos[column].heading;
	return column == TYPE ? "TYPE" : "COMMAND";
}

static const char *type(const struct object *counter)
{
	if (counter->number[MAPPED])
		return "mapped";
	return counter->number[SEMAPHORE] ? "semaphore" : "count";
}

static bool is_empty(const struct object *object, enum field field)
{
	/* Without a rate there is no bucket. */
	if (field == RATE || field == BURST)
		return !object->number[RATE];
	return !object_has(object, field);
}

static void write_number(char out[ESCAPED_SIZE], const struct object *object,
			 enum field field)
{
	uint64_t number = object->number[field];

	if (field_infos[field].form == POLICY)
		strcpy(out, overflow_names[number]);
	else if (field_infos[field].form == FLAG)
		strcpy(out, number ? "yes" : "-");
	else if (field_infos[field].form == NANOSECONDS)
		text_duration(out, (double)number);
	else
		sprintf(out, "%" PRIu64, number);
}

/* Writes a cell, "-" if an object has nothing there. */
static void write_cell(char out[ESCAPED_SIZE], const struct object *object,
		       unsigned int column)
{
	if (!object)
		strcpy(out, heading(column));
	else if (column == COMMAND)
		text_escape(out, ESCAPED_SIZE, object->command);
	else if (column == TYPE)
		strcpy(out, type(object));
	else if (column == WATCHES && object->number[BUSY])
		strcpy(out, "busy");
	else if (is_empty(object, column))
		strcpy(out, "-");
	else
		write_number(out, object, column);
}

/* Widens columns for a row, or prints it; NULL is the row of headings. */
static void take_row(const struct object *object, const unsigned char *columns,
		     int *widths, bool print)
{
	char cell[ESCAPED_SIZE];
	int length;

	for (; *columns != COLUMNS; columns++, widths++) {
		write_cell(cell, object, *columns);
		length = (int)strlen(cell);
		if (print && columns[1] == COLUMNS)
			puts(cell);
		else if (print)
			printf("%*s%*s", *widths, cell, GAP, "");
		else if (length > *widths)
			*widths = length;
	}
}

/**
 * table_print - print a table of all counters or all rings
 * @list: counters and rings
 * @columns: enum field: first COUNTER_ID or RING_ID; behind the last one, which is not
 *	aligned, COLUMNS. Of UID and FD, the one that the list does not have is left out
 */
void table_print(const struct list *list, const unsigned char *columns)
{
	enum kind kind = field_infos[*columns].kind;
	unsigned char own[COLUMNS + 1];
	int widths[COLUMNS] = { 0 };
	size_t i, count = 0;

	do {
		if (*columns != (list->of_process ? UID : FD))
			own[count++] = *columns;
	} while (*columns++ != COLUMNS);
	for (int print = 0; print < 2; print++) {
		take_row(NULL, own, widths, print);
		for (i = 0; i < list->count; i++)
			if (list->object[i].kind == kind)
				take_row(&list->object[i], own, widths, print);
	}
}
