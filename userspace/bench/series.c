// SPDX-License-Identifier: GPL-2.0-only
/*
 * The values of one figure in all rounds, with median and spread.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

void series_add(struct series *series, double value)
{
	if (series->count < ROUNDS_MAX)
		series->value[series->count++] = value;
}

static int compare(const void *left, const void *right)
{
	const double *a = left;
	const double *b = right;

	return (*a > *b) - (*a < *b);
}

double series_median(const struct series *series)
{
	double sorted[ROUNDS_MAX];
	unsigned int n = series->count;

	if (!n)
		return 0;
	memcpy(sorted, series->value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

double series_min(const struct series *series)
{
	double min = series->count ? series->value[0] : 0;
	unsigned int i;

	for (i = 1; i < series->count; i++)
		if (series->value[i] < min)
			min = series->value[i];
	return min;
}

double series_max(const struct series *series)
{
	double max = series->count ? series->value[0] : 0;
	unsigned int i;

	for (i = 1; i < series->count; i++)
		if (series->value[i] > max)
			max = series->value[i];
	return max;
}
