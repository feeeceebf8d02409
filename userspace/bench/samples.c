// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many samples of one time, of all rounds, and their distribution.
 */
#include <err.h>
#include <math.h>
#include <stdlib.h>

#include "bench.h"

#define POINTS 200

static int compare(const void *left, const void *right)
{
	const double *a = left;
	const double *b = right;

	return (*a > *b) - (*a < *b);
}

/* Sorts @values. */
double samples_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* Adds times in microseconds; sorts the caller's array in place. */
void samples_add(struct samples *samples, double *us, size_t count)
{
	double *all;
	size_t i;

	qsort(us, count, sizeof(*us), compare);
	all = realloc(samples->us, (samples->count + count) * sizeof(*all));
	if (!all)
		err(EXIT_FAILURE, "%zu samples", samples->count + count);
	for (i = 0; i < count; i++)
		all[samples->count + i] = us[i];
	samples->us = all;
	samples->count += count;
}

/*
 * Points of the share of samples that are longer, evenly spaced on a logarithmic
 * scale from all to one, as the tail matters most. Frees @samples.
 */
json_t *samples_distribution(struct samples *samples)
{
	size_t count = samples->count;
	json_t *share = json_array();
	json_t *value = json_array();
	unsigned int i;

	qsort(samples->us, count, sizeof(*samples->us), compare);
	for (i = 0; i < POINTS; i++) {
		double longer = pow((double)count, -(double)i / (POINTS - 1));
		size_t rank = (size_t)((double)count * (1 - longer));

		if (rank >= count)
			rank = count - 1;
		json_array_append_new(share, json_real(longer));
		json_array_append_new(value, json_real(samples->us[rank]));
	}
	free(samples->us);
	*samples = (struct samples){ 0 };
	return json_pack("{s:I, s:o, s:o}", "events", (json_int_t)count,
			 "share_longer", share, "us", value);
}
