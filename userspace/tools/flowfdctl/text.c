// SPDX-License-Identifier: GPL-2.0-only
/*
 * Escapes text that other users control, names of processes, for a terminal and for
 * JSON. Names units of time. Parses arguments that commands share.
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

/* Decodes the first character of @text; returns its bytes, 0: not UTF-8. */
static size_t utf8_decode(const char *text, uint32_t *character)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {
		{ 0x80, 0x00, 0x00 },
		{ 0xe0, 0xc0, 0x80 },
		{ 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 },
	};
	const unsigned char *byte = (const unsigned char *)text;
	size_t more, i;
	uint32_t c;

	for (more = 0; more < 4; more++)
		if ((*byte & forms[more].mask) == forms[more].lead)
			break;
	if (more == 4)
		return 0;
	c = *byte & ~forms[more].mask;
	for (i = 1; i <= more; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (byte[i] & 0x3f);
	}
	if (c < forms[more].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*character = c;
	return more + 1;
}

/*
 * text_json - print a JSON string in ASCII, which is harmless on a terminal, too; a
 * byte that is not UTF-8 becomes U+FFFD.
 */
void text_json(FILE *file, const char *text)
{
	size_t length;
	uint32_t c;

	fputc('"', file);
	for (; *text; text += length) {
		length = utf8_decode(text, &c);
		if (!length) {
			length = 1;
			c = 0xfffd;
		}
		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c >= ' ' && c <= '~')
			fputc((int)c, file);
		else if (c < 0x10000)
			fprintf(file, "\\u%04x", c);
		else
			fprintf(file, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
				0xdc00 + (c & 0x3ff));
	}
	fputc('"', file);
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

/* parse_interval - parse the value of --interval: seconds from 0.1 to @max */
double parse_interval(struct argp_state *state, const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);

	/* strtod() also accepts nan and 0x. */
	if (!*text || *end || text[strspn(text, "0123456789.")] || value < 0.1 ||
	    value > max)
		argp_error(state, "--interval '%s': not a number from 0.1 to %g", text,
			   max);
	return value;
}

/* parse_other - parse arguments that no command accepts */
int parse_other(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "%s: neither an option nor the value of one", arg);
	return 0;
}
