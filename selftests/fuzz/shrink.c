// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a failing program shorter: removes calls as long as it still fails. The kernel
 * can die of a try, so each is stored in PATH.try before it runs. If that file exists
 * at the next start, that try failed. The script shrink restarts it.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char try_path[4096];

static bool save(const struct program *p, const char *path)
{
	FILE *f = fopen(path, "w");
	bool saved;

	if (!f)
		return false;
	program_print(p, f);
	saved = !fflush(f) && !fsync(fileno(f));
	return !fclose(f) && saved;
}

static bool load(struct program *p, const char *path)
{
	FILE *f = fopen(path, "r");
	bool loaded = f && program_read(p, f);

	if (f)
		fclose(f);
	return loaded;
}

static const char *run_rounds(const struct program *p, unsigned int rounds)
{
	const char *why = NULL;

	for (unsigned int i = 0; i < rounds && !why; i++)
		why = run_program(p);
	return why ? why : run_settled();
}

/* After a report the kernel cannot be trusted: leave the rest to the next start. */
static void try_without(struct program p, int from, int count, const char *path,
			unsigned int rounds)
{
	const char *why;

	memmove(&p.call[from], &p.call[from + count],
		(p.length - from - count) * sizeof(p.call[0]));
	p.length -= count;
	if (!save(&p, try_path))
		exit(2);
	why = run_rounds(&p, rounds);
	if (why) {
		rename(try_path, path);
		printf("%d calls: %s\n", p.length, why);
		exit(3);
	}
	unlink(try_path);
}

/* Exit status: 0, no call can be removed; 3, start again. */
int shrink(const char *path, unsigned int rounds)
{
	struct program p;

	snprintf(try_path, sizeof(try_path), "%s.try", path);
	if (!access(try_path, F_OK))
		rename(try_path, path);
	if (!load(&p, path)) {
		fprintf(stderr, "%s: no program\n", path);
		return 2;
	}
	for (int count = p.length / 2; count; count /= 2) {
		for (int from = p.length - count; from >= 0; from -= count)
			try_without(p, from, count, path, rounds);
	}
	program_print(&p, stdout);
	return 0;
}
