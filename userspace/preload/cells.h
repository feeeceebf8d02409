/* SPDX-License-Identifier: MIT */
/*
 * The mapped counters of this process, by descriptor: adds and takes in memory. Whatever
 * does not succeed here is for the kernel, which is always right. All functions may run
 * in any thread and in signal handlers, and preserve errno.
 */
#ifndef FLOWFD_PRELOAD_CELLS_H
#define FLOWFD_PRELOAD_CELLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/flowfd.h>

/* Descriptors from here on are never mapped. */
#define CELLS 1024

/* Of each cell: kernel, producers, consumers. */
#define CELL_PAGES 3

/* How often others may be faster: they can be hostile. */
#define CELL_TRIES 64

/* So that the compiler knows that they are in this library. */
#define CELLS_HIDDEN __attribute__((visibility("hidden")))

/* Set before any descriptor is known. */
extern _Atomic(char *) cells_region CELLS_HIDDEN;

/* A constant where it is one. */
#ifdef __x86_64__
static const size_t cells_page = 4096;
#else
extern size_t cells_page CELLS_HIDDEN;
#endif

/*
 * By descriptor: 0: not known to be a mapped counter. Otherwise the lower half is the
 * number of closes of the counter, when it was last compared, plus 1, modulo 2^32, and
 * the upper half is a number of its own for each counter.
 */
extern _Atomic uint64_t cells_known[CELLS] CELLS_HIDDEN;

/** cells_know - whether cells_write() and cells_read() can do anything for @fd */
static inline bool cells_know(int fd)
{
	/* Pairs with cells_map(). */
	return (unsigned int)fd < CELLS &&
	       atomic_load_explicit(&cells_known[fd], memory_order_acquire);
}

static inline struct flowfd_counter_header *cells_header(int fd)
{
	char *region = atomic_load_explicit(&cells_region, memory_order_relaxed);

	return (void *)(region + (size_t)fd * cells_page * CELL_PAGES);
}

static inline struct flowfd_counter_producer *
cells_producer(struct flowfd_counter_header *header)
{
	return (void *)((char *)header + cells_page);
}

static inline struct flowfd_counter_consumer *
cells_consumer(struct flowfd_counter_header *header)
{
	return (void *)((char *)header + 2 * cells_page);
}

/**
 * cells_added - wake readers of @fd, to which was added in memory
 * @fd: descriptor
 * @header: of its cell
 * @known: of its cell, before the add
 */
__attribute__((cold)) void cells_added(int fd, const struct flowfd_counter_header *header,
				       uint64_t known);

/**
 * cells_taken - wake those who wait for a take
 * @fd: descriptor
 * @header: of its cell
 * @known: of its cell, before the take
 * @produced: when @value was taken
 * @value: what was taken from it in memory
 *
 * False: @value was given back, and read(2) must take it.
 */
__attribute__((cold)) bool cells_taken(int fd, struct flowfd_counter_header *header,
				       uint64_t known, uint64_t produced, uint64_t value);

/**
 * cells_look - ask the kernel whether a descriptor still is the counter in its cell
 * @fd: descriptor
 * @header: of its cell
 * @known: of its cell, when @closes was not what it says
 * @closes: in @header
 *
 * Forgets @fd if it is not.
 */
__attribute__((cold)) bool cells_look(int fd, const struct flowfd_counter_header *header,
				      uint64_t known, uint64_t closes);

/*
 * False: another file has the number, or nobody knows. @known: gets the word of the cell,
 * of which a look changes the lower half.
 */
static inline bool cells_is_counter(int fd, const struct flowfd_counter_header *header,
				    uint64_t *known)
{
	uint64_t closes;

	*known = atomic_load_explicit(&cells_known[fd], memory_order_acquire);
	closes = __atomic_load_n(&header->closes, __ATOMIC_ACQUIRE);
	return __builtin_expect((uint32_t)*known == (uint32_t)(closes + 1), 1) ||
	       cells_look(fd, header, *known, closes);
}

/* Behind a locked instruction, which is a full barrier on x86. */
static inline void cells_full_barrier(void)
{
#ifdef __x86_64__
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* The steps of the next three are those of <linux/flowfd.h>. */

/*
 * @then: NULL, or what was produced when @value was taken, to give it back. Then the cell
 * may have another counter's words, which are 2^32 away or more.
 */
static inline bool cells_add(struct flowfd_counter_header *header, uint64_t value,
			     const uint64_t *then)
{
	struct flowfd_counter_producer *producer = cells_producer(header);
	struct flowfd_counter_consumer *consumer = cells_consumer(header);
	uint64_t consumed, produced, count, maximum;
	int tries = CELL_TRIES;

	do {
		if (!tries--)
			return false;
		consumed = __atomic_load_n(&consumer->consumed, __ATOMIC_ACQUIRE);
		produced = __atomic_load_n(&producer->produced, __ATOMIC_ACQUIRE);
		maximum = __atomic_load_n(&header->maximum, __ATOMIC_RELAXED);
		count = produced - consumed;
		if (!produced || count >= maximum || maximum - count <= value)
			return false;
		if (then && produced - *then > INT32_MAX)
			return false;
	} while (!__atomic_compare_exchange_n(&producer->produced, &produced,
					      produced + value, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return true;
}

/**
 * cells_write - add to @fd, which is known, in memory; false: call write(2)
 * @fd: descriptor
 * @bytes: 8 that a program wants to write, at an address that may be bad
 */
static inline bool cells_write(int fd, const void *bytes)
{
	struct flowfd_counter_header *header = cells_header(fd);
	struct flowfd_counter_consumer *consumer = cells_consumer(header);
	uint64_t known, value;

	/* A write to another file returns EFAULT for a bad address. */
	if (!cells_is_counter(fd, header, &known))
		return false;
	memcpy(&value, bytes, sizeof(value));
	/* A write of 0 wakes readers, and adds nothing. */
	if (!value || !cells_add(header, value, NULL))
		return false;
	cells_full_barrier();
	if (__atomic_load_n(&consumer->armed, __ATOMIC_RELAXED) & FLOWFD_ARMED_READERS)
		cells_added(fd, header, known);
	return true;
}

/**
 * cells_read - take all from @fd, which is known, in memory; false: call read(2)
 * @fd: descriptor
 * @value: what was taken
 *
 * Without a count, read(2) arms.
 */
static inline bool cells_read(int fd, uint64_t *value)
{
	struct flowfd_counter_header *header = cells_header(fd);
	struct flowfd_counter_producer *producer = cells_producer(header);
	struct flowfd_counter_consumer *consumer = cells_consumer(header);
	uint64_t known, consumed, produced;
	int tries = CELL_TRIES;
	uint32_t armed;
	bool tell;

	if (!cells_is_counter(fd, header, &known))
		return false;
	do {
		if (!tries--)
			return false;
		consumed = __atomic_load_n(&consumer->consumed, __ATOMIC_ACQUIRE);
		produced = __atomic_load_n(&producer->produced, __ATOMIC_ACQUIRE);
		if (!consumed || produced == consumed)
			return false;
	} while (!__atomic_compare_exchange_n(&consumer->consumed, &consumed, produced,
					      false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	cells_full_barrier();
	*value = produced - consumed;
	armed = __atomic_load_n(&consumer->armed, __ATOMIC_RELAXED);
	if (__builtin_expect(!armed, 1))
		return true;
	tell = armed & FLOWFD_ARMED_WRITERS;
	if (armed & FLOWFD_ARMED_WATCHED) {
		if (!(armed & FLOWFD_ARMED_READERS))
			__atomic_fetch_or(&consumer->armed, FLOWFD_ARMED_READERS,
					  __ATOMIC_SEQ_CST);
		cells_full_barrier();
		tell |= __atomic_load_n(&producer->produced, __ATOMIC_RELAXED) !=
			produced;
	}
	return !tell || cells_taken(fd, header, known, produced, *value);
}

/**
 * cells_refuse - why a descriptor cannot be mapped, whatever it is; NULL: it can
 * @fd: descriptor
 *
 * Descriptors that have the same number in each thread that shares the memory, and none
 * else, can be: not those of a child of vfork(2), nor after unshare(2).
 */
const char *cells_refuse(int fd);

/**
 * cells_map - map a counter that this process just made, and that nobody uses yet
 * @fd: mapped counter for which cells_refuse() returned NULL
 *
 * Returns 0 or an errno; then the counter is used by calls.
 */
int cells_map(int fd);

/** cells_forget - use @fd by calls from now on, as its number may get another meaning */
void cells_forget(int fd);

/** cells_forget_range - cells_forget() for @first to @last */
void cells_forget_range(unsigned int first, unsigned int last);

/** cells_end - forget all, and map nothing any more */
void cells_end(void);

/**
 * cells_begin - let this process map counters, and its children of fork(2)
 *
 * Must be called by a constructor.
 */
void cells_begin(void);

#endif /* FLOWFD_PRELOAD_CELLS_H */
