// SPDX-License-Identifier: GPL-2.0-only
/*
 * The result as JSON: the machine, the settings and every table. The format is
 * documented in flowfd-bench(1); flowfd-bench-report(1) reads it.
 */
#include <err.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <flowfd.h>

#include "bench.h"

#define FORMAT_VERSION 1

/* A NULL value is left out: jansson reports it, and so does this. */
static void set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		errx(EXIT_FAILURE, "JSON: %s: out of memory", key);
}

static void append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		errx(EXIT_FAILURE, "JSON: out of memory");
}

/* The first line of a file that begins with @prefix, without it; null: none. */
static json_t *fact(const char *path, const char *prefix)
{
	char line[256];
	char *text = NULL;
	FILE *file;

	file = fopen(path, "re");
	if (!file)
		return json_null();
	while (!text && fgets(line, sizeof(line), file))
		if (!strncmp(line, prefix, strlen(prefix)))
			text = line + strlen(prefix);
	fclose(file);
	if (!text)
		return json_null();
	text += strspn(text, " \t:");
	text[strcspn(text, "\n")] = '\0';
	return json_string(text);
}

static json_t *module_facts(void)
{
	struct flowfd_query query;
	json_t *facts;

	if (flowfd_query(&query, sizeof(query)))
		return json_null();
	facts = json_object();
	set(facts, "version", fact("/sys/module/flowfd/version", ""));
	set(facts, "abi_version", json_integer(query.abi_version));
	set(facts, "features", json_integer((json_int_t)query.features));
	return facts;
}

static json_t *machine(void)
{
	json_t *facts = json_object();
	struct utsname name;

	if (uname(&name))
		err(EXIT_FAILURE, "uname");
	set(facts, "kernel", json_string(name.release));
	set(facts, "build", json_string(name.version));
	set(facts, "architecture", json_string(name.machine));
	set(facts, "processor", fact("/proc/cpuinfo", "model name"));
	set(facts, "cpus", json_integer(pair_cpus()));
	set(facts, "clocksource",
	    fact("/sys/devices/system/clocksource/clocksource0/"
		 "current_clocksource",
		 ""));
	set(facts, "module", module_facts());
	return facts;
}

static json_t *date(void)
{
	time_t now = time(NULL);
	char text[32];
	struct tm utc;

	if (!gmtime_r(&now, &utc))
		err(EXIT_FAILURE, "gmtime");
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

static json_t *json_settings(const struct settings *settings)
{
	json_t *object = json_object();

	set(object, "rounds", json_integer(settings->rounds));
	set(object, "iterations",
	    json_integer((json_int_t)settings->iterations));
	set(object, "burst_ms", json_integer(settings->burst_ms));
	set(object, "bucket_ms", json_integer(settings->bucket_ms));
	set(object, "unit",
	    json_string(settings->instructions ? "instructions" : "ns"));
	return object;
}

/* A result without tables. */
json_t *result_new(const struct settings *settings, char **argv)
{
	json_t *result = json_object();
	json_t *command = json_array();

	while (*argv)
		append(command, json_string(*argv++));
	set(result, "format", json_string("flowfd-bench"));
	set(result, "version", json_integer(FORMAT_VERSION));
	set(result, "tool", json_string(FLOWFD_VERSION));
	set(result, "date", date());
	set(result, "command", command);
	set(result, "machine", machine());
	set(result, "settings", json_settings(settings));
	set(result, "benchmarks", json_array());
	return result;
}

static json_t *json_series(const struct series *series)
{
	json_t *object, *values;
	unsigned int i;

	if (!series->count)
		return json_null();
	object = json_object();
	values = json_array();
	for (i = 0; i < series->count; i++)
		append(values, json_real(series->value[i]));
	set(object, "median", json_real(series_median(series)));
	set(object, "min", json_real(series_min(series)));
	set(object, "max", json_real(series_max(series)));
	set(object, "values", values);
	return object;
}

static json_t *json_row(const struct table *table, const struct row *row)
{
	json_t *object = json_object();
	unsigned int j;

	for (j = 0; table->labels[j]; j++)
		set(object, table->labels[j], json_string(row->label[j]));
	for (j = 0; table->columns[j].key; j++)
		set(object, table->columns[j].key,
		    json_series(&row->series[j]));
	if (row->distribution)
		set(object, "distribution", json_incref(row->distribution));
	return object;
}

static json_t *json_verdict(const struct verdict *verdict)
{
	json_t *object = json_object();

	set(object, "text", json_string(verdict->text));
	set(object, "value", json_real(verdict->value));
	if (verdict->relation) {
		set(object, "relation", json_string(verdict->relation));
		set(object, "goal", json_real(verdict->goal));
		set(object, "met", json_boolean(verdict_met(verdict)));
	}
	return object;
}

static json_t *json_columns(const struct table *table)
{
	const struct column *column;
	json_t *columns = json_array();
	json_t *object;

	for (column = table->columns; column->key; column++) {
		object = json_object();
		set(object, "key", json_string(column->key));
		set(object, "title", json_string(column->title));
		set(object, "digits", json_integer(column->digits));
		append(columns, object);
	}
	return columns;
}

void result_add(json_t *result, const struct table *table)
{
	json_t *object = json_object();
	json_t *labels = json_array();
	json_t *rows = json_array();
	json_t *verdicts = json_array();
	unsigned int i;

	for (i = 0; table->labels[i]; i++)
		append(labels, json_string(table->labels[i]));
	for (i = 0; i < table->rows; i++)
		append(rows, json_row(table, table->row[i]));
	for (i = 0; i < table->verdicts; i++)
		append(verdicts, json_verdict(&table->verdict[i]));
	set(object, "name", json_string(table->name));
	set(object, "title", json_string(table->title));
	set(object, "note",
	    table->note ? json_string(table->note) : json_null());
	set(object, "labels", labels);
	set(object, "columns", json_columns(table));
	set(object, "rows", rows);
	set(object, "verdicts", verdicts);
	append(json_object_get(result, "benchmarks"), object);
}
