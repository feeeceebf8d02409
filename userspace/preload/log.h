/* SPDX-License-Identifier: MIT */
/* Writes the reports of --verbose and --log, one line at a time. */
#ifndef FLOWFD_PRELOAD_LOG_H
#define FLOWFD_PRELOAD_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/context.h"

/** struct line - a report that is being made; @text holds the longest one */
struct line {
	size_t length;
	char text[384];
};

/** log_wanted - whether reports are on */
bool log_wanted(const struct context *context);

/** line_begin - start a line with "flowfd-run[PID]: " */
void line_begin(struct line *line);

/** line_text - append @text, cut to the room that is left */
void line_text(struct line *line, const char *text);

/** line_number - append a decimal number */
void line_number(struct line *line, long number);

/** line_error - append the name of an error number */
void line_error(struct line *line, int error);

/** line_end - write the line to the log or to stderr, preserving errno */
void line_end(struct line *line, const struct context *context);

#endif /* FLOWFD_PRELOAD_LOG_H */
