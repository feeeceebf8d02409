// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of a benchmark: collects figures, compares them with those of the control,
 * and prints them as aligned text. result.c turns the same table into JSON.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static int compare(const void *left, const void *right)
{
	const double *a = left;
	const double *b = right;

	return (*a > *b) - (*a < *b);
}

void series_add(struct series *series, double value)
{
	if (series->count < ROUNDS_MAX)
		series->value[series->count++] = value;
}

double series_median(const struct series *series)
{
	struct series sorted = *series;
	unsigned int n = series->count;

	if (!n)
		return 0;
	qsort(sorted.value, n, sizeof(*sorted.value), compare);
	return (sorted.value[(n - 1) / 2] + sorted.value[n / 2]) / 2;
}

/* Sorts @values; returns the one that has @permille of them before it. */
double samples_quantile(double *values, size_t count, unsigned int permille)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count * permille / 1000];
}

/* The row with these labels, of which NULL is any; NULL: there is none. */
struct row *table_find(struct table *table, const char *const *labels)
{
	unsigned int i, j;

	for (i = 0; i < table->rows; i++) {
		for (j = 0; table->bench->labels[j]; j++)
			if (labels[j] && strcmp(table->row[i].label[j], labels[j]))
				break;
		if (!table->bench->labels[j])
			return &table->row[i];
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
	if (table->rows == ROWS_MAX)
		errx(EXIT_FAILURE, "%s: too many rows", table->bench->name);
	row = &table->row[table->rows++];
	for (j = 0; table->bench->labels[j]; j++)
		snprintf(row->label[j], sizeof(row->label[j]), "%s", labels[j]);
	return row;
}

static const struct row *control_of(struct table *table, const struct row *row)
{
	const char *labels[LABELS_MAX];
	unsigned int j;

	for (j = 0; j < LABELS_MAX; j++)
		labels[j] = table->bench->control[j] ? table->bench->control[j] :
						       row->label[j];
	return table_find(table, labels);
}

/* A ratio for each round, so that a disturbance of a whole round cancels out. */
void table_ratios(struct table *table)
{
	const struct series *from, *base;
	const struct column *column;
	const struct row *control;
	unsigned int i, j, k;

	for (i = 0; i < table->rows; i++) {
		control = control_of(table, &table->row[i]);
		for (j = 0; control && table->bench->columns[j].key; j++) {
			column = &table->bench->columns[j];
			if (!column->of)
				continue;
			from = &table->row[i].series[column->of - 1];
			base = &control->series[column->of - 1];
			for (k = 0; k < from->count && k < base->count; k++)
				if (base->value[k])
					series_add(&table->row[i].series[j],
						   from->value[k] / base->value[k]);
		}
	}
}

static const char *cell(const struct column *column, const struct series *series,
			char text[64])
{
	struct series sorted = *series;

	if (!series->count)
		return "-";
	qsort(sorted.value, sorted.count, sizeof(*sorted.value), compare);
	if (column->of && series->count > 1)
		snprintf(text, 64, "%.*f (%.*f..%.*f)", column->digits,
			 series_median(series), column->digits, sorted.value[0],
			 column->digits, sorted.value[sorted.count - 1]);
	else
		snprintf(text, 64, "%.*f", column->digits, series_median(series));
	return text;
}

static int label_width(const struct table *table, unsigned int j)
{
	size_t width = strlen(table->bench->labels[j]);
	unsigned int i;

	for (i = 0; i < table->rows; i++)
		if (strlen(table->row[i].label[j]) > width)
			width = strlen(table->row[i].label[j]);
	return (int)width;
}

/* Prints @row, or the titles if it is NULL. */
static void print_line(const struct table *table, const struct row *row, FILE *file)
{
	const struct bench *bench = table->bench;
	unsigned int j;
	char text[64];

	for (j = 0; bench->labels[j]; j++)
		fprintf(file, "  %-*s", label_width(table, j),
			row ? row->label[j] : bench->labels[j]);
	for (j = 0; bench->columns[j].key; j++)
		fprintf(file, "  %*s", bench->columns[j].of ? 22 : 11,
			row ? cell(&bench->columns[j], &row->series[j], text) :
			      bench->columns[j].title);
	fputc('\n', file);
}

void table_print(const struct table *table, FILE *file)
{
	unsigned int i;

	fprintf(file, "\n%s - %s\n  (%s)\n", table->bench->name, table->bench->title,
		table->note);
	print_line(table, NULL, file);
	for (i = 0; i < table->rows; i++)
		print_line(table, &table->row[i], file);
	fflush(file);
}
