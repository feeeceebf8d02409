/* SPDX-License-Identifier: MIT */
/* What --verbose and --log report, a line at a time. */
#ifndef FLOWFD_PRELOAD_LOG_H
#define FLOWFD_PRELOAD_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/context.h"

/** struct line - a report in the making; as small as its longest one */
struct line {
	size_t length;
	char text[384];
};

/** log_wanted - is anything to be reported? */
bool log_wanted(const struct context *context);

/** line_begin - "flowfd-run[PID]: " */
void line_begin(struct line *line);

/** line_text - append @text, as much as there is room for */
void line_text(struct line *line, const char *text);

/** line_number - append a decimal number */
void line_number(struct line *line, long number);

/** line_error - append the name of an error number */
void line_error(struct line *line, int error);

/** line_end - write the line where reports go; errno stays as it is */
void line_end(struct line *line, const struct context *context);

#endif /* FLOWFD_PRELOAD_LOG_H */
