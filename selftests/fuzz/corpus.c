// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs that reached new code, in memory only: the result of a run is the
 * program that it prints when something fails.
 */
#include "fuzz.h"

#define SIZE 1024

static struct program programs[SIZE];
static int size;

int corpus_size(void)
{
	return size;
}

/* A full corpus replaces one of its programs. */
void corpus_add(const struct program *p)
{
	int at = size < SIZE ? size++ : (int)random_below(SIZE);

	programs[at] = *p;
}

const struct program *corpus_any(void)
{
	/* Later programs tend to reach further: half of the time take a late one. */
	if (size > 16 && random_below(2))
		return &programs[size - 1 - random_below(size / 8)];
	return size ? &programs[random_below(size)] : NULL;
}
