// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that reached new code, in memory only: what a run found out is in the
 * programs that it prints when something fails.
 */
#include "fuzz.h"

#define SIZE 1024

static struct program programs[SIZE];
static int size;

int corpus_size(void)
{
	return size;
}

/* A full corpus forgets any of its programs. */
void corpus_add(const struct program *p)
{
	int at = size < SIZE ? size++ : (int)random_below(SIZE);

	programs[at] = *p;
}

const struct program *corpus_any(void)
{
	/* The later a program came, the further it got: every other time a late one. */
	if (size > 16 && random_below(2))
		return &programs[size - 1 - random_below(size / 8)];
	return size ? &programs[random_below(size)] : NULL;
}
