// SPDX-License-Identifier: GPL-2.0-only
/* Tables of text: columns as wide as their widest cell. */
#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

/* Spaces between two columns. */
#define GAP 2

static size_t columns(const struct table *table)
{
	size_t count = 0;

	while (table->headings[count])
		count++;
	return count;
}

/* table_add - append a cell; a row has as many cells as there are headings */
void table_add(struct table *table, const char *format, ...)
{
	size_t room, length = 0;
	va_list args;

	do {
		if (length >= table->capacity - table->length) {
			table->capacity = 2 * (table->capacity + length) + 512;
			table->text = realloc(table->text, table->capacity);
		}
		if (!table->text)
			err(EXIT_FAILURE, "table");
		room = table->capacity - table->length;
		va_start(args, format);
		length = (size_t)vsnprintf(table->text + table->length, room, format,
					   args);
		va_end(args);
	} while (length >= room);
	table->length += length + 1;
	table->cells++;
}

static void find_widths(const struct table *table, size_t rows, size_t count, int *widths)
{
	const char *cell = table->text;
	size_t i, length;

	for (i = 0; i < count; i++)
		widths[i] = (int)strlen(table->headings[i]);
	for (i = 0; i < rows * count; i++) {
		length = strlen(cell);
		if ((int)length > widths[i % count])
			widths[i % count] = (int)length;
		cell += length + 1;
	}
}

static void print_row(const char *const *cell, const int *widths, size_t count)
{
	size_t i;

	for (i = 0; i < count - 1; i++)
		printf("%*s%*s", widths[i], cell[i], GAP, "");
	puts(cell[i]);
}

/* table_print - print a table of COLUMNS_MAX columns at most */
void table_print(const struct table *table)
{
	size_t count = columns(table), rows = table->cells / count, row, i;
	const char *cells[COLUMNS_MAX], *cell = table->text;
	int widths[COLUMNS_MAX] = { 0 };

	find_widths(table, rows, count, widths);
	print_row(table->headings, widths, count);
	for (row = 0; row < rows; row++) {
		for (i = 0; i < count; i++) {
			cells[i] = cell;
			cell += strlen(cell) + 1;
		}
		print_row(cells, widths, count);
	}
}

void table_free(struct table *table)
{
	free(table->text);
	table->text = NULL;
	table->length = table->capacity = table->cells = 0;
}
