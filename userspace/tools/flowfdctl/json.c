// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, rings and what is missing in a list as members of JSON objects. Written by
 * hand: most JSON libraries cannot write integers of 64 bits.
 */
#include <inttypes.h>

#include "flowfdctl.h"

const char *json_boolean(bool value)
{
	return value ? "true" : "false";
}

static void json_value(const struct object *object, enum value value)
{
	uint64_t number;

	if (!object_has(object, value, &number))
		printf("null");
	else if (value == OVERFLOW)
		printf("\"%s\"", overflow_name(number));
	else
		printf("%" PRIu64, number);
}

/* An object of statistics, or of the other values. */
static void json_values(const struct object *object, const char *name, bool statistics)
{
	const char *separator = "";
	enum value value;

	printf(", \"%s\": {", name);
	for (value = 0; value < VALUES; value++) {
		if (value_infos[value].kind != object->kind ||
		    value_is_statistic(value) != statistics)
			continue;
		printf("%s\"%s\": ", separator, value_infos[value].field);
		json_value(object, value);
		separator = ", ";
	}
	putchar('}');
}

static void json_counter(const struct object *counter)
{
	printf(", \"count\": %" PRIu64 ", \"maximum\": ", counter->count);
	if (counter->maximum == UINT64_MAX)
		printf("null");
	else
		printf("%" PRIu64, counter->maximum);
	printf(", \"rate\": %" PRIu32 ", \"burst\": %" PRIu32, counter->rate,
	       counter->capacity);
	printf(", \"deferred\": %s, \"semaphore\": %s, \"mapped\": %s",
	       json_boolean(counter->deferred), json_boolean(counter->semaphore),
	       json_boolean(counter->mapped));
	json_values(counter, "flow", false);
}

static void json_ring(const struct object *ring)
{
	printf(", \"max_items\": %" PRIu32 ", \"head\": %" PRIu32 ", \"tail\": %" PRIu32
	       ", \"pending\": %" PRIu32 ", \"busy\": %s, ",
	       ring->max_items, ring->head, ring->tail, object_pending(ring),
	       json_boolean(ring->busy));
	if (ring->busy)
		printf("\"watches\": null, \"posts\": null");
	else
		printf("\"watches\": %" PRIu32 ", \"posts\": %" PRIu32, ring->watches,
		       ring->posts);
}

/* json_object - print the members of a counter or ring */
void json_object(const struct object *object)
{
	printf("\"id\": %" PRIu64 ", ", object->id);
	if (object->fd < 0)
		printf("\"uid\": %u, \"pid\": %d", object->uid, object->pid);
	else
		printf("\"pid\": %d, \"fd\": %d", object->pid, object->fd);
	printf(", \"command\": ");
	text_json(stdout, object->command);
	if (object->kind == COUNTER)
		json_counter(object);
	else
		json_ring(object);
	json_values(object, "stats", true);
}

/* json_list - print the members that say what is missing in a list */
void json_list(const struct list *list)
{
	printf("\"complete\": %s, \"unknown\": %u", json_boolean(list_is_complete(list)),
	       list->unknown);
}
