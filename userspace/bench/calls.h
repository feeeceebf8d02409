/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flowfd-bench - <flowfd.h>, whose inline functions count the calls that they make where
 * memory is not enough. Files that call read(2) and the like by themselves add these to
 * @calls_made. Without the module, calls of the library itself are not counted.
 */
#ifndef FLOWFD_BENCH_CALLS_H
#define FLOWFD_BENCH_CALLS_H

#include <stdint.h>

#define flowfd_counter_notify calls_counter_notify
#define flowfd_counter_write  calls_counter_write
#define flowfd_counter_read   calls_counter_read
#define flowfd_ring_notify    calls_ring_notify
#define flowfd_ring_wait      calls_ring_wait

#include <flowfd.h>

/* System calls of this thread, of those that are counted. */
extern _Thread_local uint64_t calls_made;

#endif /* FLOWFD_BENCH_CALLS_H */
