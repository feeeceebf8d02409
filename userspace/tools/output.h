/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Standard output of a program: what cannot be written is an error, wherever the program
 * ends. argp_parse(3) ends it itself after --help and --version.
 */
#ifndef FLOWFD_TOOLS_OUTPUT_H
#define FLOWFD_TOOLS_OUTPUT_H

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int output_failed;

static inline void output_check(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return;
	warn("standard output");
	_exit(output_failed);
}

/* The program then ends with @status, not with that of exit(3). */
static inline void output_check_at_exit(int status)
{
	output_failed = status;
	if (atexit(output_check))
		errx(status, "atexit");
}

#endif /* FLOWFD_TOOLS_OUTPUT_H */
