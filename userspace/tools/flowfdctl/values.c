// SPDX-License-Identifier: GPL-2.0-only
/*
 * What fdinfo says of a counter or ring beside what all modules say: policies, bridges
 * and statistics, each with its name in each output.
 */
#include <string.h>

#include "flowfdctl.h"

const struct value_info value_infos[VALUES] = {
	[READ_MARK] = { COUNTER, POLICY, "read-mark", "READ-MARK", "read_mark", NULL },
	[WRITE_MARK] = { COUNTER, POLICY, "write-mark", "WRITE-MARK", "write_mark",
			 NULL },
	[MAX_DELAY] = { COUNTER, POLICY, "max-delay", "MAX-DELAY", "max_delay", NULL },
	[OVERFLOW] = { COUNTER, POLICY, "overflow", "OVERFLOW", "overflow", NULL },
	[SOURCE] = { COUNTER, BRIDGE, "source", "SOURCE", "source", NULL },
	[SINK] = { COUNTER, BRIDGE, "sink", "SINK", "sink", NULL },
	[WAITING] = { COUNTER, BRIDGE, "source-waiting", "WAITING", "source_waiting",
		      NULL },
	[PRODUCED] = { COUNTER, TOTAL, "produced", "PRODUCED", "produced",
		       "Sum of the initial count and all that was added, also in memory." },
	[WRITES] = { COUNTER, TOTAL, "writes", "WRITES", "writes",
		     "Writes that succeeded, by call or by a bridge." },
	[READS] = { COUNTER, TOTAL, "reads", "READS", "reads",
		    "Reads that succeeded, by call or by a bridge." },
	[WAKEUPS] = { COUNTER, TOTAL, "wakeups", "WAKEUPS", "wakeups",
		      "Times that readers were woken." },
	[HELD_BACK] = { COUNTER, TOTAL, "held-back", "HELD-BACK", "held_back",
			"Times that mark, delay or bucket kept readers from being woken." },
	[AGAIN] = { COUNTER, TOTAL, "again", "AGAIN", "again",
		    "Reads and writes that failed with EAGAIN." },
	[WAITS] = { COUNTER, TOTAL, "waits", "WAITS", "waits",
		    "Writers that slept for room." },
	[WAIT_NS] = { COUNTER, TOTAL, "wait-ns", "WAIT", "wait_ns",
		      "How long writers slept for room." },
	[LOST] = { COUNTER, TOTAL, "lost", "LOST", "lost",
		   "Sum of what the overflow policy has lost." },
	[HIGHEST] = { COUNTER, PEAK, "highest", "HIGHEST", "highest", "Highest count." },
	[PUBLISHED] = { RING, TOTAL, "published", "PUBLISHED", "published",
			"Index entries that were published." },
	[COALESCED] = { RING, TOTAL, "coalesced", "COALESCED", "coalesced",
			"Events whose file was in the index already." },
	[RING_WAITS] = { RING, TOTAL, "waits", "WAITS", "waits",
			 "Waits of the consumer." },
	[SLEEPS] = { RING, TOTAL, "sleeps", "SLEEPS", "sleeps",
		     "Waits of the consumer that slept." },
	[MOST_PENDING] = { RING, PEAK, "most-pending", "MOST-PENDING", "most_pending",
			   "Most index entries that a wait found pending." },
};

bool value_is_statistic(enum value value)
{
	return value_infos[value].role == TOTAL || value_infos[value].role == PEAK;
}

bool value_is_known(const struct object *object, enum value value)
{
	return object->known & 1U << value;
}

static const char *const overflows[] = { "wait", "fail", "saturate", "drop" };

/* overflow_name - of the value that overflow_from_name() has found */
const char *overflow_name(uint64_t overflow)
{
	return overflows[overflow];
}

/* overflow_from_name - returns whether the policy is known */
bool overflow_from_name(const char *name, size_t length, uint64_t *overflow)
{
	size_t i;

	for (i = 0; i < sizeof(overflows) / sizeof(*overflows); i++) {
		if (strlen(overflows[i]) != length || strncmp(name, overflows[i], length))
			continue;
		*overflow = i;
		return true;
	}
	return false;
}
