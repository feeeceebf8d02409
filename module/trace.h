/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracepoints. docs/statistics.md documents names and fields, which stay as they are.
 * One that is disabled costs a nop. A counter passes its tracepoints under its lock.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM flowfd

#if !defined(FLOWFD_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FLOWFD_TRACE_H

#include <linux/tracepoint.h>

struct flowfd_counter;
struct flowfd_ring;
struct flowfd_watch;

/* @reason of flowfd_held_back. */
#define HELD_BY_MARK   0
#define HELD_BY_BUCKET 1

/* clang-format off */

/* A task or bridge moved a value to or from the count. */
DECLARE_EVENT_CLASS(flowfd_transfer,
		    TP_PROTO(const struct flowfd_counter *c, u64 value),
		    TP_ARGS(c, value),
		    TP_STRUCT__entry(__field(u64, value)
				     __field(u64, count)
				     __field(int, counter)),
		    TP_fast_assign(__entry->value = value;
				   __entry->count = counter_count(c);
				   __entry->counter = c->id;),
		    TP_printk("counter=%d value=%llu count=%llu", __entry->counter,
			      __entry->value, __entry->count));

DEFINE_EVENT(flowfd_transfer, flowfd_write,
	     TP_PROTO(const struct flowfd_counter *c, u64 value),
	     TP_ARGS(c, value));

DEFINE_EVENT(flowfd_transfer, flowfd_read,
	     TP_PROTO(const struct flowfd_counter *c, u64 value),
	     TP_ARGS(c, value));

TRACE_EVENT(flowfd_wakeup,
	    TP_PROTO(const struct flowfd_counter *c, bool slept),
	    TP_ARGS(c, slept),
	    TP_STRUCT__entry(__field(u64, count)
			     __field(int, counter)
			     __field(u8, slept)),
	    TP_fast_assign(__entry->count = counter_count(c);
			   __entry->counter = c->id;
			   __entry->slept = slept;),
	    TP_printk("counter=%d count=%llu slept=%u", __entry->counter, __entry->count,
		      __entry->slept));

TRACE_EVENT(flowfd_held_back,
	    TP_PROTO(const struct flowfd_counter *c, u32 reason),
	    TP_ARGS(c, reason),
	    TP_STRUCT__entry(__field(u64, count)
			     __field(int, counter)
			     __field(u32, reason)),
	    TP_fast_assign(__entry->count = counter_count(c);
			   __entry->counter = c->id;
			   __entry->reason = reason;),
	    TP_printk("counter=%d count=%llu reason=%s", __entry->counter, __entry->count,
		      __print_symbolic(__entry->reason, { HELD_BY_MARK, "mark" },
				       { HELD_BY_BUCKET, "bucket" })));

TRACE_EVENT(flowfd_timer,
	    TP_PROTO(const struct flowfd_counter *c, bool wakes),
	    TP_ARGS(c, wakes),
	    TP_STRUCT__entry(__field(u64, count)
			     __field(int, counter)
			     __field(u8, wakes)),
	    TP_fast_assign(__entry->count = counter_count(c);
			   __entry->counter = c->id;
			   __entry->wakes = wakes;),
	    TP_printk("counter=%d count=%llu wakes=%u", __entry->counter, __entry->count,
		      __entry->wakes));

TRACE_EVENT(flowfd_counter_close,
	    TP_PROTO(const struct flowfd_counter *c),
	    TP_ARGS(c),
	    TP_STRUCT__entry(__field(u64, writes)
			     __field(u64, reads)
			     __field(u64, wakeups)
			     __field(int, counter)),
	    TP_fast_assign(__entry->writes = c->stats.writes;
			   __entry->reads = c->stats.reads;
			   __entry->wakeups = c->stats.wakeups;
			   __entry->counter = c->id;),
	    TP_printk("counter=%d writes=%llu reads=%llu wakeups=%llu", __entry->counter,
		      __entry->writes, __entry->reads, __entry->wakeups));

TRACE_EVENT(flowfd_publish,
	    TP_PROTO(const struct flowfd_watch *w, __poll_t events, bool coalesced),
	    TP_ARGS(w, events, coalesced),
	    TP_STRUCT__entry(__field(u64, ring)
			     __field(u32, item)
			     __field(u32, events)
			     __field(int, fd)
			     __field(u8, coalesced)),
	    TP_fast_assign(__entry->ring = w->ring->id;
			   __entry->item = w->index_entry - 1;
			   __entry->events = (__force u32)events;
			   __entry->fd = w->fd;
			   __entry->coalesced = coalesced;),
	    TP_printk("ring=%llu item=%u fd=%d events=%#x coalesced=%u", __entry->ring,
		      __entry->item, __entry->fd, __entry->events, __entry->coalesced));

TRACE_EVENT(flowfd_wait_begin,
	    TP_PROTO(const struct flowfd_ring *ring, u32 wanted, u32 pending),
	    TP_ARGS(ring, wanted, pending),
	    TP_STRUCT__entry(__field(u64, ring)
			     __field(u32, wanted)
			     __field(u32, pending)),
	    TP_fast_assign(__entry->ring = ring->id;
			   __entry->wanted = wanted;
			   __entry->pending = pending;),
	    TP_printk("ring=%llu wanted=%u pending=%u", __entry->ring, __entry->wanted,
		      __entry->pending));

TRACE_EVENT(flowfd_wait_end,
	    TP_PROTO(const struct flowfd_ring *ring, int result, bool slept),
	    TP_ARGS(ring, result, slept),
	    TP_STRUCT__entry(__field(u64, ring)
			     __field(int, result)
			     __field(u8, slept)),
	    TP_fast_assign(__entry->ring = ring->id;
			   __entry->result = result;
			   __entry->slept = slept;),
	    TP_printk("ring=%llu result=%d slept=%u", __entry->ring, __entry->result,
		      __entry->slept));

TRACE_EVENT(flowfd_ring_close,
	    TP_PROTO(const struct flowfd_ring *ring),
	    TP_ARGS(ring),
	    TP_STRUCT__entry(__field(u64, ring)
			     __field(u64, published)),
	    TP_fast_assign(__entry->ring = ring->id;
			   __entry->published =
				   (unsigned long)atomic_long_read(&ring->tail);),
	    TP_printk("ring=%llu published=%llu", __entry->ring, __entry->published));

/* clang-format on */

#endif /* FLOWFD_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
