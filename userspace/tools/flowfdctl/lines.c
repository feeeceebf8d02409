// SPDX-License-Identifier: GPL-2.0-only
/* Counters and rings of a scan, each once, whichever processes have it open. */
#include <err.h>
#include <stdlib.h>

#include "flowfdctl.h"

/* line_compare - order lines by kind and number: 0 for those of one counter or ring */
int line_compare(const struct line *a, const struct line *b)
{
	const struct object *x = &a->descriptor->object;
	const struct object *y = &b->descriptor->object;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static int compare(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	int order = line_compare(a, b);

	if (order)
		return order;
	/* Any user who got a descriptor of it could have the lowest process ID. */
	if (a->descriptor->uid != b->descriptor->uid)
		return a->descriptor->uid < b->descriptor->uid ? -1 : 1;
	/* Both are in one array, sorted by process and descriptor. */
	return (a->descriptor > b->descriptor) - (a->descriptor < b->descriptor);
}

/**
 * lines_of - make a line for each counter and ring
 * @scan: scan
 * @count: is set to their number
 *
 * Returns lines, in the order of line_compare(), that the caller must free.
 */
struct line *lines_of(const struct scan *scan, size_t *count)
{
	struct line *lines = calloc(scan->count + 1, sizeof(*lines));
	size_t i;

	if (!lines)
		err(EXIT_FAILURE, "lines");
	for (i = 0; i < scan->count; i++)
		lines[i].descriptor = &scan->descriptor[i];
	qsort(lines, scan->count, sizeof(*lines), compare);
	*count = 0;
	for (i = 0; i < scan->count; i++) {
		if (!*count || line_compare(&lines[*count - 1], &lines[i]))
			lines[(*count)++] = lines[i];
		lines[*count - 1].descriptors++;
	}
	return lines;
}
