// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a counter or ring has beside what all modules show: policies, bridges
 * and statistics, each with its name in each output.
 */
#include <string.h>

#include "flowfdctl.h"

const struct value_info value_infos[VALUES] = {
	[READ_MARK] = { COUNTER, POLICY, "flowfd-read-mark", "READ-MARK", "read_mark",
			NULL },
	[WRITE_MARK] = { COUNTER, POLICY, "flowfd-write-mark", "WRITE-MARK", "write_mark",
			 NULL },
	[MAX_DELAY] = { COUNTER, POLICY, "flowfd-max-delay", "MAX-DELAY", "max_delay",
			NULL },
	[OVERFLOW] = { COUNTER, POLICY, "flowfd-overflow", "OVERFLOW", "overflow", NULL },
	[SOURCE] = { COUNTER, BRIDGE, "flowfd-source", "SOURCE", "source", NULL },
	[SINK] = { COUNTER, BRIDGE, "flowfd-sink", "SINK", "sink", NULL },
	[WAITING] = { COUNTER, BRIDGE, "flowfd-source-waiting", "WAITING",
		      "source_waiting", NULL },
	[PRODUCED] = { COUNTER, TOTAL, "flowfd-produced", "PRODUCED", "produced",
		       "Sum of the initial count and all that was added, also in memory." },
	[WRITES] = { COUNTER, TOTAL, "flowfd-writes", "WRITES", "writes",
		     "Writes that succeeded, by call or by a bridge." },
	[READS] = { COUNTER, TOTAL, "flowfd-reads", "READS", "reads",
		    "Reads that succeeded, by call or by a bridge." },
	[WAKEUPS] = { COUNTER, TOTAL, "flowfd-wakeups", "WAKEUPS", "wakeups",
		      "Times that readers were woken." },
	[HELD_BACK] = { COUNTER, TOTAL, "flowfd-held-back", "HELD-BACK", "held_back",
			"Times that mark, delay or bucket kept readers from being woken." },
	[AGAIN] = { COUNTER, TOTAL, "flowfd-again", "AGAIN", "again",
		    "Reads and writes that failed with EAGAIN." },
	[WAITS] = { COUNTER, TOTAL, "flowfd-waits", "WAITS", "waits",
		    "Writers that slept for room." },
	[WAIT_NS] = { COUNTER, TOTAL, "flowfd-wait-ns", "WAIT", "wait_ns",
		      "How long writers slept for room." },
	[LOST] = { COUNTER, TOTAL, "flowfd-lost", "LOST", "lost",
		   "Sum of what the overflow policy has lost." },
	[HIGHEST] = { COUNTER, PEAK, "flowfd-highest", "HIGHEST", "highest",
		      "Highest count." },
	[PUBLISHED] = { RING, TOTAL, "flowfd-ring-published", "PUBLISHED", "published",
			"Index entries that were published." },
	[COALESCED] = { RING, TOTAL, "flowfd-ring-coalesced", "COALESCED", "coalesced",
			"Events whose file was in the index already." },
	[RING_WAITS] = { RING, TOTAL, "flowfd-ring-waits", "WAITS", "waits",
			 "Waits of the consumer." },
	[SLEEPS] = { RING, TOTAL, "flowfd-ring-sleeps", "SLEEPS", "sleeps",
		     "Waits of the consumer that slept." },
};

bool value_is_statistic(enum value value)
{
	return value_infos[value].role == TOTAL || value_infos[value].role == PEAK;
}

/* object_value - where an object has a value of its kind */
uint64_t *object_value(struct object *object, enum value value)
{
	return &object->values[value < COUNTER_VALUES ? value : value - COUNTER_VALUES];
}

/* object_has - whether the module reports a value, and what it is */
bool object_has(const struct object *object, enum value value, uint64_t *number)
{
	*number = object->values[value < COUNTER_VALUES ? value : value - COUNTER_VALUES];
	return object->known & 1U << value;
}

/* The consumer can store any head, but an item is in the index once at most. */
uint32_t object_pending(const struct object *ring)
{
	uint32_t pending = ring->tail - ring->head;

	return pending < ring->max_items ? pending : ring->max_items;
}

static const char *const overflows[] = { "wait", "fail", "saturate", "drop" };

/* overflow_name - of the value that overflow_from_name() has found */
const char *overflow_name(uint64_t overflow)
{
	return overflows[overflow];
}

/* overflow_from_name - returns whether the policy is known */
bool overflow_from_name(const char *name, uint64_t *overflow)
{
	const size_t count = sizeof(overflows) / sizeof(*overflows);

	for (*overflow = 0; *overflow < count; ++*overflow)
		if (!strcmp(overflows[*overflow], name))
			return true;
	return false;
}
