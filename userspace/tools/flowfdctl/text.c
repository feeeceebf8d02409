// SPDX-License-Identifier: GPL-2.0-only
/*
 * Escapes text that other users control, names of processes: the same in all outputs.
 * Names units of time. Parses arguments that commands share.
 */
#include <argp.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "flowfdctl.h"

/*
 * text_escape - copy printable ASCII and write every other byte as \xNN, so that a
 * name can neither move the cursor nor look like another line of the table.
 */
void text_escape(char *out, size_t size, const char *text)
{
	const char *const end = out + size;

	for (; *text && end - out > 4; text++) {
		unsigned char c = *text;

		if (c == '\\')
			out += sprintf(out, "\\\\");
		else if (c < ' ' || c > '~')
			out += sprintf(out, "\\x%02x", c);
		else
			*out++ = c;
	}
	*out = '\0';
}

/* text_json - print what text_escape() made, as a string of JSON or of a label */
void text_json(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

/* text_command - print the name of a process in quotes */
void text_command(const char *command)
{
	char text[ESCAPED_SIZE];

	text_escape(text, sizeof(text), command);
	text_json(stdout, text);
}

/* text_duration - nanoseconds in the unit that suits them, with three digits */
void text_duration(char out[DURATION_SIZE], double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t i = 0;

	/* 999.6 would be printed as 1e+03. */
	for (; i < 3 && ns >= 999.5; i++)
		ns /= 1000;
	snprintf(out, DURATION_SIZE, ns >= 999.5 ? "%.0f%s" : "%.3g%s", ns, units[i]);
}

/* parse_pid - parse the value of --pid */
pid_t parse_pid(struct argp_state *state, const char *text)
{
	unsigned long value = strtoul(text, NULL, 10);

	if (!*text || text[strspn(text, "0123456789")] || !value || value > INT_MAX)
		argp_error(state, "--pid '%s': not the number of a process", text);
	return (pid_t)value;
}

/* parse_other - parse arguments that no command accepts */
int parse_other(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "%s: neither an option nor the value of one", arg);
	return 0;
}
