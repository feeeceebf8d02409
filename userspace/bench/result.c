// SPDX-License-Identifier: GPL-2.0-only
/*
 * The result as JSON: the machine, the settings and every table. The format is
 * documented in flowfd-bench(1); flowfd-bench-report(1) reads it.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <flowfd.h>

#include "bench.h"

#define FORMAT_VERSION 2

static void string(FILE *file, const char *text)
{
	const unsigned char *c;

	if (!text) {
		fputs("null", file);
		return;
	}
	fputc('"', file);
	for (c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else if (*c < ' ' || *c > '~')
			fprintf(file, "\\u%04x", *c);
		else
			fputc(*c, file);
	fputc('"', file);
}

/* What follows another member begins with a comma. */
static void member(FILE *file, const char *key, const char *text)
{
	fprintf(file, ",\n  ");
	string(file, key);
	fputs(": ", file);
	string(file, text);
}

/* The first line of a file that begins with @prefix, without it; NULL: none. */
static const char *fact(const char *path, const char *prefix)
{
	static char line[256];
	char *text = NULL;
	FILE *file = fopen(path, "re");

	if (!file)
		return NULL;
	while (!text && fgets(line, sizeof(line), file))
		if (!strncmp(line, prefix, strlen(prefix)))
			text = line + strlen(prefix);
	fclose(file);
	if (!text)
		return NULL;
	text += strspn(text, " \t:");
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static const char *processor(void)
{
	return fact("/proc/cpuinfo", "model name");
}

/* Whether an emulator, and not a processor, decides how long things take. */
bool result_emulated(void)
{
	const char *name = processor();

	return !name || strstr(name, "QEMU") || strstr(name, "TCG");
}

static void machine(FILE *file)
{
	struct utsname name;
	cpu_set_t usable;

	if (uname(&name))
		err(EXIT_FAILURE, "uname");
	fprintf(file, "\"cpus\": %u", pair_cpus(&usable));
	member(file, "kernel", name.release);
	member(file, "build", name.version);
	member(file, "architecture", name.machine);
	member(file, "processor", processor());
	member(file, "clocksource",
	       fact("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		    ""));
	member(file, "module", fact("/sys/module/flowfd/version", ""));
}

void result_begin(FILE *file, char **argv)
{
	time_t now = time(NULL);
	char date[32];
	struct tm utc;

	if (!gmtime_r(&now, &utc))
		err(EXIT_FAILURE, "gmtime");
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
	fprintf(file, "{ \"version\": %d", FORMAT_VERSION);
	member(file, "format", "flowfd-bench");
	member(file, "tool", FLOWFD_VERSION);
	member(file, "date", date);
	fprintf(file, ",\n  \"command\": [");
	string(file, *argv);
	while (*++argv) {
		fputs(", ", file);
		string(file, *argv);
	}
	fprintf(file, "],\n\"machine\": { ");
	machine(file);
	fprintf(file, " },\n\"settings\": { \"rounds\": %u, \"ms\": %u, \"fallback\": %s",
		settings.rounds, settings.ms, settings.fallback ? "true" : "false");
	member(file, "unit", settings.instructions ? "instructions" : "ns");
	fprintf(file, " },\n\"benchmarks\": [");
}

void result_end(FILE *file)
{
	fprintf(file, "\n] }\n");
}

static void figure(FILE *file, const char *key, const struct series *series)
{
	unsigned int i;

	fprintf(file, ", \"%s\": ", key);
	if (!series->count) {
		fputs("null", file);
		return;
	}
	fprintf(file, "{ \"median\": %.10g, \"values\": [", series_median(series));
	for (i = 0; i < series->count; i++)
		fprintf(file, "%s%.10g", i ? ", " : "", series->value[i]);
	fputs("] }", file);
}

static void add_row(FILE *file, const struct bench *bench, const struct row *row)
{
	unsigned int j;

	for (j = 0; bench->labels[j]; j++) {
		fprintf(file, "%s\"%s\": ", j ? ", " : "", bench->labels[j]);
		string(file, row->label[j]);
	}
	for (j = 0; bench->columns[j].key; j++)
		figure(file, bench->columns[j].key, &row->series[j]);
}

void result_add(FILE *file, const struct table *table)
{
	const struct bench *bench = table->bench;
	static bool any;
	unsigned int i;

	fprintf(file, "%s\n{ \"name\": \"%s\"", any ? "," : "", bench->name);
	any = true;
	member(file, "title", bench->title);
	member(file, "note", table->note);
	fprintf(file, ",\n  \"labels\": [");
	for (i = 0; bench->labels[i]; i++)
		fprintf(file, "%s\"%s\"", i ? ", " : "", bench->labels[i]);
	fprintf(file, "],\n  \"rows\": [");
	for (i = 0; i < table->rows; i++) {
		fprintf(file, "%s\n    { ", i ? "," : "");
		add_row(file, bench, &table->row[i]);
		fputs(" }", file);
	}
	fprintf(file, "\n  ] }");
}
