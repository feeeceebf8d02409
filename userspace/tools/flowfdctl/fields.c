// SPDX-License-Identifier: GPL-2.0-only
/* What a counter or ring has, with its name in each output. */
#include "flowfdctl.h"

const struct field_info field_infos[FIELDS] = {
	[COUNTER_ID] = { COUNTER, TOP, DECIMAL, "eventfd-id", "id", "COUNTER" },
	[RING_ID] = { RING, TOP, DECIMAL, "flowfd-ring-id", "id", "RING" },
	[UID] = { ANY, TOP, DECIMAL, "flowfd-uid", "uid", "UID" },
	[PID] = { ANY, TOP, DECIMAL, "flowfd-pid", "pid", "PID" },
	[FD] = { ANY, TOP, DECIMAL, NULL, "fd", "FD" },
	[COUNT] = { COUNTER, TOP, HEX, "eventfd-count", "count", "COUNT", "flowfd_value",
		    "Count of a counter." },
	[MAXIMUM] = { COUNTER, TOP, HEX, "eventfd-maximum", "maximum", "MAXIMUM",
		      "flowfd_maximum", "The count stays below it." },
	[RATE] = { COUNTER, TOP, DECIMAL, "flowfd-token-rate", "rate", "RATE" },
	[BURST] = { COUNTER, TOP, DECIMAL, "flowfd-token-capacity", "burst", "BURST" },
	[DEFERRED] = { COUNTER, TOP, FLAG, "flowfd-wakeup-deferred", "deferred",
		       "DEFERRED", "flowfd_wakeup_deferred",
		       "Whether a wakeup waits for a token." },
	[SEMAPHORE] = { COUNTER, TOP, FLAG, "eventfd-semaphore", "semaphore",
			"SEMAPHORE" },
	[MAPPED] = { COUNTER, TOP, FLAG, "flowfd-mapped", "mapped", "MAPPED" },
	[READ_MARK] = { COUNTER, FLOW, DECIMAL, "flowfd-read-mark", "read_mark",
			"READ-MARK" },
	[WRITE_MARK] = { COUNTER, FLOW, DECIMAL, "flowfd-write-mark", "write_mark",
			 "WRITE-MARK" },
	[MAX_DELAY] = { COUNTER, FLOW, NANOSECONDS, "flowfd-max-delay", "max_delay",
			"MAX-DELAY" },
	[OVERFLOW] = { COUNTER, FLOW, POLICY, "flowfd-overflow", "overflow", "OVERFLOW" },
	[SOURCE] = { COUNTER, FLOW, DECIMAL, "flowfd-source", "source", "SOURCE" },
	[SINK] = { COUNTER, FLOW, DECIMAL, "flowfd-sink", "sink", "SINK" },
	[WAITING] = { COUNTER, FLOW, DECIMAL, "flowfd-source-waiting", "source_waiting",
		      "WAITING" },
	[PRODUCED] = { COUNTER, STATS, DECIMAL, "flowfd-produced", "produced", "PRODUCED",
		       "flowfd_produced_total",
		       "Sum of the initial count and all that was added, also in memory." },
	[WRITES] = { COUNTER, STATS, DECIMAL, "flowfd-writes", "writes", "WRITES",
		     "flowfd_writes_total",
		     "Writes that succeeded, by call or by a bridge." },
	[READS] = { COUNTER, STATS, DECIMAL, "flowfd-reads", "reads", "READS",
		    "flowfd_reads_total",
		    "Reads that succeeded, by call or by a bridge." },
	[WAKEUPS] = { COUNTER, STATS, DECIMAL, "flowfd-wakeups", "wakeups", "WAKEUPS",
		      "flowfd_wakeups_total", "Times that readers were woken." },
	[HELD_BACK] = { COUNTER, STATS, DECIMAL, "flowfd-held-back", "held_back",
			"HELD-BACK", "flowfd_held_back_total",
			"Times that mark, delay or bucket kept readers from being woken." },
	[AGAIN] = { COUNTER, STATS, DECIMAL, "flowfd-again", "again", "AGAIN",
		    "flowfd_again_total", "Reads and writes that failed with EAGAIN." },
	[WAITS] = { COUNTER, STATS, DECIMAL, "flowfd-waits", "waits", "WAITS",
		    "flowfd_waits_total", "Writers that slept for room." },
	[WAIT_NS] = { COUNTER, STATS, NANOSECONDS, "flowfd-wait-ns", "wait_ns", "WAIT",
		      "flowfd_wait_seconds_total", "How long writers slept for room." },
	[LOST] = { COUNTER, STATS, DECIMAL, "flowfd-lost", "lost", "LOST",
		   "flowfd_lost_total", "Sum of what the overflow policy has lost." },
	[HIGHEST] = { COUNTER, STATS, DECIMAL, "flowfd-highest", "highest", "HIGHEST",
		      "flowfd_highest", "Highest count." },
	[MAX_ITEMS] = { RING, TOP, DECIMAL, "flowfd-ring-max-items", "max_items", "MAX",
			"flowfd_ring_items_max", "Highest number of watches and posts." },
	[HEAD] = { RING, TOP, DECIMAL, "flowfd-ring-head", "head", "HEAD" },
	[TAIL] = { RING, TOP, DECIMAL, "flowfd-ring-tail", "tail", "TAIL" },
	[PENDING] = { RING, TOP, DECIMAL, NULL, "pending", "PENDING",
		      "flowfd_ring_pending", "Index entries that were not taken yet." },
	[BUSY] = { RING, TOP, FLAG, "flowfd-ring-busy", "busy", "BUSY" },
	[WATCHES] = { RING, TOP, DECIMAL, "flowfd-ring-watches", "watches", "WATCHES",
		      "flowfd_ring_watches", "Files that are watched." },
	[POSTS] = { RING, TOP, DECIMAL, "flowfd-ring-posts", "posts", "POSTS",
		    "flowfd_ring_posts", "Items without a file." },
	[PUBLISHED] = { RING, STATS, DECIMAL, "flowfd-ring-published", "published",
			"PUBLISHED", "flowfd_ring_published_total",
			"Index entries that were published." },
	[COALESCED] = { RING, STATS, DECIMAL, "flowfd-ring-coalesced", "coalesced",
			"COALESCED", "flowfd_ring_coalesced_total",
			"Events whose file was in the index already." },
	[RING_WAITS] = { RING, STATS, DECIMAL, "flowfd-ring-waits", "waits", "WAITS",
			 "flowfd_ring_waits_total", "Waits of the consumer." },
	[SLEEPS] = { RING, STATS, DECIMAL, "flowfd-ring-sleeps", "sleeps", "SLEEPS",
		     "flowfd_ring_sleeps_total", "Waits of the consumer that slept." },
};

const char *const overflow_names[OVERFLOWS] = { "wait", "fail", "saturate", "drop" };

/* object_has - whether a number is known: an older module has fewer */
bool object_has(const struct object *object, enum field field)
{
	return object->known & BIT(field);
}

void object_set(struct object *object, enum field field, uint64_t number)
{
	object->number[field] = number;
	object->known |= BIT(field);
}
