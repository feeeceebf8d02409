// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rates: differences between two scans. A scan takes up to some seconds, so each
 * descriptor has the time at which it was read.
 */
#include <err.h>
#include <stdlib.h>

#include "top.h"

/**
 * rows_make - make rows of a scan
 * @rows: is filled in; the caller must free it with rows_free()
 * @scan: belongs to @rows from now on
 */
void rows_make(struct rows *rows, struct scan *scan)
{
	struct line *lines = lines_of(scan, &rows->count);
	size_t i;

	rows->scan = scan;
	rows->row = calloc(rows->count + 1, sizeof(*rows->row));
	if (!rows->row)
		err(EXIT_FAILURE, "rows");
	for (i = 0; i < rows->count; i++)
		rows->row[i].line = lines[i];
	free(lines);
}

void rows_free(struct rows *rows)
{
	scan_free(rows->scan);
	free(rows->row);
}

static int compare_places(const void *left, const void *right)
{
	const struct descriptor *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->fd > b->fd) - (a->fd < b->fd);
}

/* Whether a descriptor of an earlier scan refers to a counter of the same number now. */
static bool is_still_there(const struct scan *scan, const struct descriptor *before)
{
	const struct descriptor *now = bsearch(before, scan->descriptor, scan->count,
					       sizeof(*before), compare_places);

	return now && now->object.kind == COUNTER && now->object.id == before->object.id;
}

/* Whether a number that only grows is less. (The sum that a counter produced can wrap.) */
static bool has_less(const struct object *object, const struct object *before)
{
	enum value value;

	for (value = 0; value < VALUES; value++)
		if (value_is_statistic(value) && value != PRODUCED &&
		    object->value[value] < before->value[value])
			return true;
	return false;
}

/*
 * The number of a counter is used again after its end, that of a ring when the module was
 * loaded again. It is another one if it has less, if the first descriptor of the counter
 * is another one's, or if the ring has another size.
 */
static bool is_continued(const struct scan *scan, const struct row *row,
			 const struct row *before)
{
	const struct object *object = &row->line.descriptor->object;
	const struct object *other = &before->line.descriptor->object;

	if (has_less(object, other))
		return false;
	if (object->kind == RING)
		return object->max_items == other->max_items;
	return is_still_there(scan, before->line.descriptor);
}

static void compute(struct row *row, const struct row *before)
{
	const struct descriptor *d = row->line.descriptor, *e = before->line.descriptor;
	const struct object *a = &d->object, *b = &e->object;
	double seconds = (double)(d->time - e->time) / 1e9;
	enum value value;

	if (d->time <= e->time)
		return;
	row->known = true;
	row->change = ((double)a->count - (double)b->count) / seconds;
	row->taken = (uint32_t)(a->head - b->head) / seconds;
	for (value = 0; value < VALUES; value++) {
		if (value_infos[value].role != TOTAL || !value_is_known(a, value) ||
		    !value_is_known(b, value) || a->value[value] < b->value[value])
			continue;
		row->rated |= 1U << value;
		row->rate[value] = (double)(a->value[value] - b->value[value]) / seconds;
	}
	/* An older module has it only modulo 2^32. */
	if (a->kind == RING && !value_is_known(a, PUBLISHED)) {
		row->rated |= 1U << PUBLISHED;
		row->rate[PUBLISHED] = (uint32_t)(a->tail - b->tail) / seconds;
	}
}

/**
 * rows_compare - compute the rates of rows
 * @rows: rows, in the order in which they were made
 * @before: rows of the scan before, likewise
 */
void rows_compare(struct rows *rows, const struct rows *before)
{
	size_t i, j = 0;

	for (i = 0; i < rows->count; i++) {
		struct row *row = &rows->row[i];

		while (j < before->count &&
		       line_compare(&before->row[j].line, &row->line) < 0)
			j++;
		if (j < before->count &&
		    !line_compare(&before->row[j].line, &row->line) &&
		    is_continued(rows->scan, row, &before->row[j]))
			compute(row, &before->row[j]);
	}
}
