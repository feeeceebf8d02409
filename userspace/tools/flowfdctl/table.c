// SPDX-License-Identifier: GPL-2.0-only
/* Text in columns, as wide as their longest cell; the last one is not aligned. */
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
	va_list args;
	int length;

	if (table->count == table->capacity) {
		table->capacity = table->capacity ? 2 * table->capacity : 64;
		table->cells = reallocarray(table->cells, table->capacity,
					    sizeof(*table->cells));
		if (!table->cells)
			err(EXIT_FAILURE, "table");
	}
	va_start(args, format);
	length = vasprintf(&table->cells[table->count], format, args);
	va_end(args);
	if (length < 0)
		err(EXIT_FAILURE, "table");
	table->count++;
}

size_t table_rows(const struct table *table)
{
	return table->count / columns(table);
}

static int column_width(const struct table *table, size_t column, size_t rows)
{
	size_t width = strlen(table->headings[column]);
	size_t row, length;

	for (row = 0; row < rows; row++) {
		length = strlen(table->cells[row * columns(table) + column]);
		if (length > width)
			width = length;
	}
	return (int)width;
}

/* Only the last cell is cut: what is left of a number would look like another one. */
static void print_row(const char *const *cell, const int *widths, size_t count, int room)
{
	size_t i;

	for (i = 0; i < count - 1 && room >= widths[i]; i++) {
		printf("%*s", widths[i], cell[i]);
		room -= widths[i];
		if (room <= GAP)
			break;
		printf("%*s", GAP, "");
		room -= GAP;
	}
	if (i == count - 1)
		printf("%.*s", room, cell[i]);
	putchar('\n');
}

/**
 * table_print - print a table
 * @table: table, of COLUMNS_MAX columns at most
 * @rows: how many to print at most; a line says how many are left out
 * @width: of the output in characters; columns that do not fit are left out
 */
void table_print(const struct table *table, size_t rows, int width)
{
	size_t all = table_rows(table), count = columns(table), i;
	int widths[COLUMNS_MAX];

	if (rows > all)
		rows = all;
	for (i = 0; i < count; i++)
		widths[i] = column_width(table, i, rows);
	print_row(table->headings, widths, count, width);
	for (i = 0; i < rows; i++)
		print_row((const char *const *)table->cells + i * count, widths, count,
			  width);
	if (rows < all)
		printf("and %zu more\n", all - rows);
}

void table_free(struct table *table)
{
	size_t i;

	for (i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->count = table->capacity = 0;
}
