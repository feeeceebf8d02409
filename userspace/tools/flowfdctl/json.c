// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, rings and what is missing in a scan as members of JSON objects. Written by
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
	if (!value_is_known(object, value))
		printf("null");
	else if (value == OVERFLOW)
		printf("\"%s\"", overflow_name(object->value[value]));
	else
		printf("%" PRIu64, object->value[value]);
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

static void json_watches(const struct object *ring)
{
	uint32_t i;

	printf(", \"watched\": [");
	for (i = 0; i < ring->listed; i++) {
		const struct watch *watch = &ring->watch[i];

		printf("%s\n   {\"fd\": %d, \"events\": %" PRIu32 ", \"data\": %" PRIu64
		       ", \"pinned\": %s}",
		       i ? "," : "", watch->fd, watch->events, watch->data,
		       json_boolean(watch->pinned));
	}
	printf("]");
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

/**
 * json_object - print the members of a counter or ring
 * @descriptor: one of its descriptors
 * @watches: also print those of a ring
 */
void json_object(const struct descriptor *descriptor, bool watches)
{
	const struct object *object = &descriptor->object;

	printf("\"id\": %" PRIu64 ", \"pid\": %d, \"fd\": %d, \"command\": ", object->id,
	       descriptor->pid, descriptor->fd);
	text_json(stdout, descriptor->command);
	if (object->kind == COUNTER)
		json_counter(object);
	else
		json_ring(object);
	json_values(object, "stats", true);
	/* Of several descriptors of a ring, one has the watches. */
	if (watches && object->kind == RING && !object->busy &&
	    (object->listed || !object->watches))
		json_watches(object);
}

/* json_scan - print the members that say what is missing in a scan */
void json_scan(const struct scan *scan)
{
	printf("\"complete\": %s, \"hidden_processes\": %u,"
	       " \"unknown_descriptors\": %u",
	       json_boolean(scan_is_complete(scan)), scan->hidden, scan->unknown);
}
