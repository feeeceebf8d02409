// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of a benchmark: collects rows and verdicts, and prints them as
 * aligned text. result.c turns the same table into JSON.
 */
#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct row *table_find(const struct table *table, const char *const *labels)
{
	unsigned int i, j;

	for (i = 0; i < table->rows; i++) {
		for (j = 0; table->labels[j]; j++)
			if (strcmp(table->row[i]->label[j], labels[j]))
				break;
		if (!table->labels[j])
			return table->row[i];
	}
	return NULL;
}

/* Returns the row with these labels; appends it if there is none. */
struct row *table_row(struct table *table, const char *const *labels)
{
	struct row *row = table_find(table, labels);
	unsigned int j;

	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row || table->rows == ROWS_MAX)
		err(EXIT_FAILURE, "%s: row", table->name);
	for (j = 0; table->labels[j]; j++)
		snprintf(row->label[j], sizeof(row->label[j]), "%s", labels[j]);
	table->row[table->rows++] = row;
	return row;
}

/* Adds @from as a ratio to that of @control, round by round, as @to. */
void row_ratios(struct row *row, const struct row *control, unsigned int from,
		unsigned int to)
{
	const struct series *base = &control->series[from];
	const struct series *series = &row->series[from];
	unsigned int i;

	for (i = 0; i < series->count && i < base->count; i++)
		series_add(&row->series[to], series->value[i] / base->value[i]);
}

/* The same for all rows; without @control there are none. */
void table_ratios(struct table *table, const struct row *control, unsigned int from,
		  unsigned int to)
{
	unsigned int i;

	for (i = 0; control && i < table->rows; i++)
		row_ratios(table->row[i], control, from, to);
}

/* Adds a verdict; a @relation of NULL is an effect without a goal. */
struct verdict *table_verdict(struct table *table, double value,
			      const char *relation, double goal,
			      const char *format, ...)
{
	struct verdict *verdict = &table->verdict[table->verdicts];
	va_list args;

	if (table->verdicts == VERDICTS_MAX)
		errx(EXIT_FAILURE, "%s: too many verdicts", table->name);
	table->verdicts++;
	va_start(args, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	va_end(args);
	verdict->value = value;
	verdict->relation = relation;
	verdict->goal = goal;
	return verdict;
}

bool verdict_met(const struct verdict *verdict)
{
	if (!verdict->relation)
		return true;
	if (verdict->relation[0] == '<')
		return verdict->value <= verdict->goal;
	return verdict->value >= verdict->goal;
}

static const char *cell(const struct column *column,
			const struct series *series, char text[64])
{
	if (!series->count)
		return "-";
	if (column->spread && series->count > 1)
		snprintf(text, 64, "%.*f (%.*f..%.*f)", column->digits,
			 series_median(series), column->digits,
			 series_min(series), column->digits,
			 series_max(series));
	else
		snprintf(text, 64, "%.*f", column->digits,
			 series_median(series));
	return text;
}

static int label_width(const struct table *table, unsigned int j)
{
	size_t width = strlen(table->labels[j]);
	unsigned int i;

	for (i = 0; i < table->rows; i++)
		if (strlen(table->row[i]->label[j]) > width)
			width = strlen(table->row[i]->label[j]);
	return (int)width;
}

static int column_width(const struct table *table, unsigned int j)
{
	const struct column *column = &table->columns[j];
	size_t width = strlen(column->title);
	unsigned int i;
	char text[64];

	for (i = 0; i < table->rows; i++) {
		const char *c = cell(column, &table->row[i]->series[j], text);

		if (strlen(c) > width)
			width = strlen(c);
	}
	return (int)width;
}

/* Prints @row, or the titles if it is NULL. Returns the line's length. */
static int print_line(const struct table *table, const struct row *row,
		      FILE *file)
{
	const struct column *column;
	int length = 0;
	unsigned int j;
	char text[64];

	for (j = 0; table->labels[j]; j++)
		length += fprintf(file, "  %-*s", label_width(table, j),
				  row ? row->label[j] : table->labels[j]);
	for (j = 0; table->columns[j].key; j++) {
		column = &table->columns[j];
		length += fprintf(file, "  %*s", column_width(table, j),
				  row ? cell(column, &row->series[j], text)
				      : column->title);
	}
	fputc('\n', file);
	return length;
}

static void print_verdict(const struct verdict *verdict, FILE *file)
{
	fprintf(file, "  %s", verdict->text);
	if (verdict->relation)
		fprintf(file, "; goal %s %g: %s", verdict->relation,
			verdict->goal, verdict_met(verdict) ? "met" : "MISSED");
	fputc('\n', file);
}

void table_print(const struct table *table, FILE *file)
{
	unsigned int i;
	int length;

	fprintf(file, "\n%s - %s\n", table->name, table->title);
	if (table->note)
		fprintf(file, "  (%s)\n", table->note);
	length = print_line(table, NULL, file);
	fprintf(file, "  ");
	while (length-- > 2)
		fputc('-', file);
	fputc('\n', file);
	for (i = 0; i < table->rows; i++)
		print_line(table, table->row[i], file);
	for (i = 0; i < table->verdicts; i++)
		print_verdict(&table->verdict[i], file);
	fflush(file);
}

void table_free(struct table *table)
{
	unsigned int i;

	for (i = 0; i < table->rows; i++) {
		json_decref(table->row[i]->distribution);
		free(table->row[i]);
	}
}
