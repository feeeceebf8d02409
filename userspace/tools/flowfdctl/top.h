/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of flowfdctl top share. */
#ifndef TOP_H
#define TOP_H

#include "flowfdctl.h"

/**
 * struct row - a counter or ring, and how it changed since the scan before
 * @line: the counter or ring
 * @known: the scan before had it
 * @change: of a count, per second
 * @taken: index entries that the consumer of a ring took, per second
 * @rated: which of @rate are known
 * @rate: of statistics, per second
 */
struct row {
	struct line line;
	bool known;
	double change;
	double taken;
	value_set rated;
	double rate[VALUES];
};

/**
 * struct rows - what one scan found
 * @scan: the scan
 * @time: when it was made, in nanoseconds of CLOCK_MONOTONIC
 * @row: by kind and number
 * @count: its length
 */
struct rows {
	struct scan *scan;
	uint64_t time;
	struct row *row;
	size_t count;
};

/* rates.c */
void rows_make(struct rows *rows, struct scan *scan);
void rows_compare(struct rows *rows, const struct rows *before);
void rows_free(struct rows *rows);

/* Columns that show no enum value; those that do have its number. */
enum column {
	NUMBER = VALUES,
	COUNT,
	CHANGE,
	MAXIMUM,
	DEFERRED,
	TAKEN,
	PENDING,
	WATCHES,
	DESCRIPTORS,
	PID,
	DESCRIPTOR,
	COMMAND,
	COLUMNS,
};

/**
 * struct order - how rows are sorted and shown
 * @column: by which those of each kind are sorted; COLUMNS: the busiest first
 * @totals: show totals in the place of rates
 */
struct order {
	unsigned int column[2];
	bool totals;
};

/* columns.c */
unsigned int column_find(enum kind kind, const char *name);
void columns_head(const char *headings[COLUMNS_MAX], enum kind kind, bool totals);
void columns_add(struct table *table, const struct row *row, bool totals);
void rows_sort(struct rows *rows, const struct order *order);

#endif /* TOP_H */
