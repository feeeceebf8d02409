/* SPDX-License-Identifier: GPL-2.0-only */
/* What a function prints, for tests of it. */
#ifndef FLOWFD_TESTS_OUTPUT_H
#define FLOWFD_TESTS_OUTPUT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Puts @file in the place of standard output while print() runs. */
static inline void print_to(FILE *file, void (*print)(const void *), const void *arg)
{
	int saved = dup(STDOUT_FILENO);

	fflush(stdout);
	if (!file || saved < 0 || dup2(fileno(file), STDOUT_FILENO) < 0)
		abort();
	print(arg);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

/* What print() prints; until the next call. */
static inline const char *output_of(void (*print)(const void *), const void *arg)
{
	static char text[65536];
	FILE *file = tmpfile();
	size_t length;

	print_to(file, print, arg);
	rewind(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

#endif /* FLOWFD_TESTS_OUTPUT_H */
