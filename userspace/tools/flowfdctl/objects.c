// SPDX-License-Identifier: GPL-2.0-only
/* A list of counters and rings: its memory and its files, and what is missing in it. */
#include <err.h>
#include <stdlib.h>

#include <flowfd.h>

#include "flowfdctl.h"

#define EXIT_INCOMPLETE 2

/* grow - make room for one more member of an array whose length is @count */
void *grow(void *array, size_t count, size_t size)
{
	/* At 64, and each power of two above. */
	if (count && (count < 64 || count & (count - 1)))
		return array;
	array = reallocarray(array, count ? 2 * count : 64, size);
	if (!array)
		err(EXIT_FAILURE, "list");
	return array;
}

/*
 * parser_read - take all lines of a file, and close it; an empty one ends an object
 *
 * Returns whether it could be read, and otherwise sets errno.
 */
bool parser_read(struct parser *parser, int fd)
{
	FILE *file = fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	bool good;

	if (!file)
		return false;
	while ((length = getline(&line, &size, file)) > 0) {
		line[length - 1] = '\0';
		if (*line)
			parser_line(parser, line);
		else
			parser_end(parser);
	}
	good = !ferror(file);
	free(line);
	fclose(file);
	return good;
}

/* list_is_complete - whether it has all that was asked for */
bool list_is_complete(const struct list *list)
{
	return !list->unknown && !list->left_out;
}

static void remark(size_t count, const char *why)
{
	if (count)
		fprintf(stderr, "flowfdctl: %zu counters or rings are not shown: %s\n",
			count, why);
}

/*
 * list_end - say on standard error what is missing in a list that is printed, and why
 *
 * Frees it, and returns the exit status.
 */
int list_end(const struct list *list)
{
	fflush(stdout);
	free(list->object);
	remark(list->unknown,
	       "flowfdctl " FLOWFD_VERSION " does not match the loaded module");
	remark(list->left_out, "there are too many");
	return list_is_complete(list) ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
