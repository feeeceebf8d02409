// SPDX-License-Identifier: GPL-2.0-only
/*
 * A list as JSON. Written by hand: most JSON libraries cannot write integers of 64 bits.
 */
#include <inttypes.h>

#include "flowfdctl.h"

/* Version of the JSON format; flowfdctl(1) documents it. */
#define FORMAT_VERSION 3

static const char *boolean(bool value)
{
	return value ? "true" : "false";
}

static void print_number(const struct object *object, enum field field)
{
	uint64_t number = object->number[field];

	if (!object_has(object, field))
		printf("null");
	else if (field_infos[field].form == POLICY)
		printf("\"%s\"", overflow_names[number]);
	else if (field_infos[field].form == FLAG)
		printf("%s", boolean(number));
	else
		printf("%" PRIu64, number);
}

/* Prints the members of a section; of a user and a descriptor, the one that is known. */
static void print_section(const struct object *object, enum section section)
{
	const char *separator = "";
	enum field field;

	for (field = 0; field < FIELDS; field++) {
		const struct field_info *info = &field_infos[field];

		if (info->section != section ||
		    (info->kind == ANY ? !object_has(object, field) :
					 info->kind != object->kind))
			continue;
		printf("%s\"%s\": ", separator, info->name);
		print_number(object, field);
		separator = ", ";
	}
}

static void print_object(const struct object *object)
{
	putchar('{');
	print_section(object, TOP);
	printf(", \"command\": ");
	text_command(object->command);
	if (object->kind == COUNTER) {
		printf(", \"flow\": {");
		print_section(object, FLOW);
		putchar('}');
	}
	printf(", \"stats\": {");
	print_section(object, STATS);
	printf("}}");
}

static void print_objects(const struct list *list, enum kind kind)
{
	const char *separator = "\n  ";
	size_t i;

	for (i = 0; i < list->count; i++) {
		if (list->object[i].kind != kind)
			continue;
		printf("%s", separator);
		print_object(&list->object[i]);
		separator = ",\n  ";
	}
}

/* json_print - print a list, and whether it is complete */
void json_print(const struct list *list)
{
	printf("{\"format\": \"flowfdctl-list\", \"version\": %d,\n ", FORMAT_VERSION);
	printf("\"complete\": %s, \"unknown\": %zu,\n \"counters\": [",
	       boolean(list_is_complete(list)), list->unknown);
	print_objects(list, COUNTER);
	printf("],\n \"rings\": [");
	print_objects(list, RING);
	printf("]}\n");
}
